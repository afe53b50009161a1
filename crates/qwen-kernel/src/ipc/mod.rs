//! Inter-process communication: JSON lines over a child's pipes.
//!
//! Rationale: a worker's standard output is read into one shared scratch buffer and only an incomplete last line is kept
//! per worker, so a thousand idle workers cost no buffers. Lines are handed on as borrowed slices. Standard error is
//! always drained, so that a full pipe never stops a worker; its tail is kept for the reason of an exit.

mod lines;
mod tail;

pub use lines::{LineBuffer, MAX_LINE, Piece};
pub use tail::Tail;
