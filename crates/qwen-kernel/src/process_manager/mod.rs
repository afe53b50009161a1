//! The process manager: starts, signals and reaps worker processes, and records a reason for every exit.
//!
//! Rationale: the parent-death signal fires when the *thread* that forked ends, so one thread that lives as
//! long as the [`Spawner`] starts all children. A child is the leader of its own process group, so that a
//! signal reaches everything it started. It checks its parent after arming the signal, because the parent
//! may have died in between. The end of its standard input makes it finish. Exits are observed through pid
//! file descriptors, which are immune to pid reuse.

mod control_groups;
mod exit;
mod isolation;
mod spawn;
mod tenant_user;

pub use control_groups::{ControlGroups, ResourceLimits};
pub use exit::{ExitCause, WorkerExit};
pub use isolation::{TenantView, confine, is_isolation_available};
pub use spawn::{Child, SpawnSpec, Spawner, kill_group};
pub use tenant_user::TenantUser;
