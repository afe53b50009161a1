//! Where replies come from once the queue is empty.

use crate::{Reply, Request};

/// Chooses replies. Any closure `FnMut(&Request) -> Option<Reply>` is one; none means that there is no answer left.
pub trait Source: Send {
    /// The reply to this request.
    fn reply(&mut self, request: &Request) -> Option<Reply>;

    /// Starts over, as `POST /control/reset` asks for.
    fn reset(&mut self) {}
}

impl<F: FnMut(&Request) -> Option<Reply> + Send> Source for F {
    fn reply(&mut self, request: &Request) -> Option<Reply> {
        self(request)
    }
}
