//! The way into a sandbox: what a guardian and then each command's process do to themselves, ready for use between fork
//! and exec.

use std::os::fd::{AsRawFd, RawFd};
use std::sync::Arc;

use crate::kernel;
use crate::kernel::landlock::Ruleset;
use crate::kernel::namespaces::Namespaces;
use crate::kernel::seccomp::Filter;
use crate::process::BeforeExec;

/// Capabilities that a command of root keeps: what it takes to work with files of other users, to be another user, and
/// to listen on a low port. Everything that reaches devices, other processes or the kernel goes.
pub(crate) const KEPT_CAPABILITIES: u64 =
    1 << 0 /* chown */ | 1 << 1 /* dac_override */ | 1 << 3 /* fowner */ | 1 << 4 /* fsetid */
    | 1 << 6 /* setgid */ | 1 << 7 /* setuid */ | 1 << 10 /* net_bind_service */;

/// The way in. It never changes, so that commands may share it for as long as the rules are the same.
pub(crate) struct SandboxEntry {
    pub namespaces: Option<Arc<Namespaces>>,
    pub landlock: Option<Ruleset>,
    pub filter: Option<Arc<Filter>>,
}

impl BeforeExec for SandboxEntry {
    /// What costs most. A guardian does none of what the filter refuses, and in the namespaces it sees what it needs.
    fn prepare(&self) -> Result<(), i32> {
        if let Some(namespaces) = &self.namespaces {
            namespaces.enter()?;
        }
        kernel::no_new_privileges()?;
        if let Some(filter) = &self.filter {
            kernel::filter_system_calls(filter.program())?;
        }
        Ok(())
    }

    /// What a guardian must not do to itself: it would be within reach of its commands' signals and without the
    /// right to end those of other users. And what does not last: the filter lets nobody raise shields any more.
    fn apply(&self) -> Result<(), i32> {
        if let Some(namespaces) = &self.namespaces {
            namespaces.still_shielded()?;
        }
        kernel::keep_capabilities(KEPT_CAPABILITIES)?;
        if let Some(rules) = &self.landlock {
            kernel::landlock_restrict_self(rules.descriptor())?;
        }
        Ok(())
    }

    fn descriptors(&self) -> Vec<RawFd> {
        let namespaces = self.namespaces.iter().flat_map(|namespaces| namespaces.descriptors());
        namespaces.map(AsRawFd::as_raw_fd).chain(self.landlock.as_ref().map(Ruleset::descriptor)).collect()
    }
}
