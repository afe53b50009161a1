//! Inter-process communication: JSON lines over a child's pipes.
//!
//! Rationale: a worker's standard output is read into one shared scratch buffer and only an incomplete last
//! line is buffered per worker, so a thousand idle workers cost no buffers. Lines are passed on as borrowed
//! slices. Standard error is always drained, so that a full pipe never blocks a worker; its tail is stored
//! to explain an exit.

mod lines;
mod messages;
mod tail;

pub use lines::{FramedLine, LineBuffer, MAX_LINE};
pub use messages::{CommitReason, HUB_REQUEST, HubMessage, Place, Report, ReportedFact, WorkerMessage};
pub use tail::Tail;
