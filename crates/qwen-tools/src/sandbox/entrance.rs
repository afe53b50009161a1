//! The way into a sandbox: all that a command's process does to itself, ready for use between fork and exec.

use std::os::fd::{AsRawFd, RawFd};
use std::sync::Arc;

use super::kernel::{self, Directory};
use super::landlock::Ruleset;
use super::namespaces::Namespaces;
use super::seccomp::Filter;
use crate::process::BeforeExec;

/// Capabilities that a command of root keeps: what it takes to work with files of other users, to be another user, and
/// to listen on a low port. Everything that reaches devices, other processes or the kernel goes.
pub(super) const KEPT_CAPABILITIES: u64 =
    1 << 0 /* chown */ | 1 << 1 /* dac_override */ | 1 << 3 /* fowner */ | 1 << 4 /* fsetid */
    | 1 << 6 /* setgid */ | 1 << 7 /* setuid */ | 1 << 10 /* net_bind_service */;

/// The way in. It never changes, so that commands may share it for as long as the rules are the same.
pub(super) struct Entrance {
    pub namespaces: Option<Arc<Namespaces>>,
    pub landlock: Option<Ruleset>,
    pub filter: Option<Arc<Filter>>,
}

impl BeforeExec for Entrance {
    fn apply(&self) -> Result<(), i32> {
        if let Some(namespaces) = &self.namespaces {
            // Changing credentials would forget whose death ours is tied to, and entering a mount namespace where we
            // stood. The way back goes through the new mounts.
            let death = kernel::parent_death_signal();
            let directory = Directory::current()?;
            namespaces.enter()?;
            directory.change_to()?;
            if death != 0 {
                kernel::set_parent_death_signal(death)?;
            }
        }
        kernel::no_new_privileges()?;
        kernel::keep_capabilities(KEPT_CAPABILITIES)?;
        if let Some(rules) = &self.landlock {
            kernel::landlock_restrict_self(rules.descriptor())?;
        }
        if let Some(filter) = &self.filter {
            kernel::filter_system_calls(filter.program())?;
        }
        Ok(())
    }

    fn descriptors(&self) -> Vec<RawFd> {
        let namespaces = self.namespaces.iter().flat_map(|namespaces| namespaces.descriptors());
        namespaces.map(AsRawFd::as_raw_fd).chain(self.landlock.as_ref().map(Ruleset::descriptor)).collect()
    }
}
