//! The source of replies once the queue is empty.

use crate::{Reply, Request};

/// Chooses replies. Any closure `FnMut(&Request) -> Option<Reply>` implements it; none means that no reply
/// is left.
pub trait Source: Send {
    fn reply(&mut self, request: &Request) -> Option<Reply>;

    /// Restarts, for `POST /control/reset`.
    fn reset(&mut self) {}
}

impl<F: FnMut(&Request) -> Option<Reply> + Send> Source for F {
    fn reply(&mut self, request: &Request) -> Option<Reply> {
        self(request)
    }
}
