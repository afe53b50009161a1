//! Model clients. A [`Model`] takes a [`Request`] and returns a stream of [`Piece`]s; the wire formats, the
//! servers, the retries and the decoding are internal to this crate.

mod anthropic;
mod call_id;
mod config;
mod continued;
mod demo;
mod estimate;
mod exchange;
mod failure;
mod json;
mod known_models;
mod openai;
mod oracle;
mod rate_limit;
mod record;
mod request;
mod retry;
mod script;
mod secret;
mod text_calls;
mod unusable;

pub use config::{ModelConfig, Provider, Timeouts, build, parse_model_spec};
pub use estimate::unfinished as estimate_unfinished;
pub use known_models::{KnownModel, KnownPrice, find_known_model};
pub use request::{Model, ModelError, Piece, Pieces, Request};
pub use secret::Secret;
pub use text_calls::TextToolCalls;
pub use unusable::{unchosen, unusable};
