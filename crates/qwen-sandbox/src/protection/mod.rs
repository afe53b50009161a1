//! Names that programs outside the sandbox act on (`.git/hooks`, `.git/config`, `.qwen`, `.mcp.json`):
//! placeholders where they are missing, and snapshots to undo what the kernel could not prevent.

mod directory;
pub(crate) mod discovery;
pub(crate) mod nested;
pub(crate) mod placeholder;
mod snapshot;
pub(crate) mod watch;
