//! What runs and the boundary around it: processes that never outlive us ([`process`]), and the sandbox that the kernel
//! enforces on them.
//!
//! A [`Fence`] is a session's sandbox. It is opened for the first command and again whenever its bounds change.

mod fence;
pub mod process;
mod sandbox;
mod scratch;

pub use fence::{Bounds, Fence, Inside};
pub use sandbox::{
    Can, Mode, Occupant, Opened, Placeholder, Policy, PolicyError, Protected, Report, Sandbox, SandboxError,
    Stay, TEMP_VARIABLES, Tampered, can, open, report, sandboxed_env_removals,
};
pub use scratch::Scratch;
