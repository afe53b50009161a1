//! What runs and the boundary around it: processes that never outlive us ([`process`]), and the sandbox that the kernel
//! enforces on them.
//!
//! Sandboxed processes write in the workspace and a private temporary directory only, reach no network and no socket
//! unless the policy allows it, and cannot touch what programs outside act on (`.git/hooks`, `.git/config`, `.qwen`,
//! `.mcp.json`), whether it exists or not.
//!
//! A [`Policy`] says what is wanted, a [`Report`] what the machine can do. [`Sandbox::prepare`] builds everything once per
//! session; [`Sandbox::enter`] gives each command a [`Stay`], which is applied between fork and exec and released when
//! the command is gone. A [`Fence`] is a session's sandbox: it is opened for the first command and again whenever its
//! bounds change. How it works and why: `docs/decisions/`.

mod entry;
mod kernel;
mod mode;
mod policy;
pub mod process;
mod protection;
mod report;
mod sandbox;
mod scratch;
mod session;
#[cfg(test)]
mod tests;
mod variables;

pub use mode::{Mode, Opened, open};
pub use policy::{Placeholder, Policy, PolicyError, Protected};
pub use protection::watch::Tampered;
pub use report::{Can, Report, can, report};
pub use sandbox::{Occupant, Sandbox, SandboxError, Stay};
pub use scratch::Scratch;
pub use session::{Bounds, Fence, Inside};
pub use variables::{TEMP_VARIABLES, sandboxed_env_removals};
