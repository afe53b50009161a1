//! Processes that never outlive us ([`process`]), and the sandbox that the kernel enforces on them.
//!
//! Sandboxed processes write in the workspace and a private temporary directory only, reach no network and no
//! socket unless the policy allows it, and cannot change or create files that programs outside act on
//! (`.git/hooks`, `.git/config`, `.qwen`, `.mcp.json`).
//!
//! A [`SandboxPolicy`] states the requested limits, a [`SandboxReport`] what the machine can enforce.
//! [`Sandbox::prepare`] builds everything once per session; [`Sandbox::enter`] gives each command a
//! [`SandboxLease`], which is applied between fork and exec and released when the command has ended. A
//! [`SandboxSession`] is a session's sandbox: it is opened for the first command and again whenever its
//! bounds change. Design and rationale: `docs/decisions/`.

mod entry;
mod gateway;
mod git_excludes;
mod hidden;
mod kernel;
mod limits;
mod mode;
mod policy;
pub mod process;
mod protection;
mod report;
mod sandbox;
mod scratch;
mod session;
mod system_temp;
#[cfg(test)]
mod tests;
mod variables;

pub use gateway::{GatewayService, NetworkGateway};
pub use limits::SandboxLimits;
pub use mode::{OpenedSandbox, SandboxMode, open};
pub use policy::{Placeholder, ProtectedName, SandboxPolicy, SandboxPolicyError};
pub use protection::placeholder::is_placeholder_at;
pub use protection::watch::Tampering;
pub use report::{SandboxGuarantees, SandboxReport, guarantees, report};
pub use sandbox::{ProcessRole, Sandbox, SandboxError, SandboxLease, SandboxWatcher, WatchedCall};
pub use scratch::Scratch;
pub use session::{ProcessSandbox, SandboxAccess, SandboxBounds, SandboxSession};
pub use system_temp::SystemTemp;
pub use variables::{TEMP_VARIABLES, sandboxed_env_removals};
