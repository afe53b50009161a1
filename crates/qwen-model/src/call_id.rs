//! Ids for calls that have none from the server.

use std::sync::Arc;

/// A new id, `call_` and 24 letters or digits.
pub(crate) fn new_id() -> Arc<str> {
    let mut id = String::from("call_");
    id.extend(std::iter::repeat_with(fastrand::alphanumeric).take(24));
    id.into()
}
