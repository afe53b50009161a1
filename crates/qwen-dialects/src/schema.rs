//! The JSON Schemas of all streams.

use schemars::Schema;

/// Each stream's name and the schema of one of its lines.
pub fn schemas() -> Vec<(&'static str, Schema)> {
    [crate::claude::schemas(), crate::claude_lite::schemas(), crate::loom::schemas()].concat()
}
