//! Model clients. A [`Model`] takes a [`Request`] and gives back a stream of [`Piece`]s; which wire is spoken to
//! which server, how often it is tried again and what the pieces are made of stays in here.

mod request;

pub use request::{Model, ModelError, Piece, Pieces, Request};
