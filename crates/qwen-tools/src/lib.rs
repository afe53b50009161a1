//! What an agent can do. A [`Tool`] takes a call and gives back an [`Outcome`]; it says what it writes while it runs
//! through its [`ToolCx`]. Whether a call may run at all is decided before it gets here.

mod tool;

pub use tool::{Outcome, OutputSink, Tool, ToolCx, ToolFuture};

pub mod sandbox;
