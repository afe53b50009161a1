//! A scripted model server over real HTTP, and a controlled process for integration tests.
//!
//! This is test support: it fails by panicking, with the state it has observed. Every wait is bounded by
//! [`WAIT_LIMIT`]; nothing here sleeps to let something else happen.
//!
//! ```
//! use mock_model::{MockModel, Reply, gate, sse};
//!
//! let mock = MockModel::start();
//! mock.push(Reply::text("Hello"));
//! mock.push(Reply::new([sse::text("Hel"), gate("half"), sse::text("lo"), sse::finish("stop"), sse::done()]));
//! assert!(mock.base_url().ends_with("/v1"));
//! ```

pub mod bus;
mod clock;
mod control;
mod http;
mod play;
pub mod process;
mod reply;
mod request;
mod script;
mod server;
mod source;
mod state;

pub mod serve;

use std::time::Duration;

pub use clock::monotonic_ns;
pub use reply::event::ReplyEvent;
pub use reply::{Reply, Step, anthropic, gate, sse};
pub use request::{Request, Wire};
pub use script::Script;
pub use server::MockModel;
pub use source::Source;

/// The time limit of every wait; a longer one fails the test.
pub const WAIT_LIMIT: Duration = Duration::from_secs(30);

/// Fails the test at the caller's line.
#[track_caller]
pub(crate) fn fail(message: &str) -> ! {
    panic!("{message}")
}
