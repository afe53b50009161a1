//! The process manager: starts, signals and reaps worker processes, and has a reason for every exit.
//!
//! Rationale: the parent-death signal fires when the *thread* that forked ends, so all children are started by one thread
//! that lives as long as the [`Spawner`]. A child is the leader of its own process group, so that a signal reaches
//! everything it started; it checks its parent after arming the signal, because the parent may have died in between; and
//! the end of its standard input tells it to finish. Exits are observed through pid file descriptors, which cannot be
//! confused by a reused pid.

mod exit;
mod spawn;

pub use exit::{Exit, ExitCause};
pub use spawn::{Child, SpawnSpec, Spawner, kill_group};
