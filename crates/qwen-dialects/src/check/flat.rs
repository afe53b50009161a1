//! The lines that are about the connection and not about a turn: `result/*` and the control channel. Any dialect may
//! write them anywhere, so only their shape is judged; pairing questions with answers takes both directions.

use super::syntax::{Misfit, Object};
use crate::flat::{ControlLine, ResultNote};

/// Reads a line about the connection, if it is one.
pub(super) fn read(object: &Object<'_>) -> Option<Result<(), Misfit>> {
    match object.kind()? {
        "control_request" | "control_response" | "control_cancel_request" => {
            Some(object.read::<ControlLine<'_>>().map(|_| ()))
        }
        "result/heartbeat" | "result/command_hint" | "result/cancel" => {
            Some(object.read::<ResultNote<'_>>().map(|_| ()))
        }
        _ => None,
    }
}
