//! Sandbox entry: the restrictions that a guardian and then each command's process apply to themselves.
//! Prepared in advance for use between fork and exec.

use std::os::fd::{AsRawFd, RawFd};
use std::sync::Arc;

use crate::kernel;
use crate::kernel::landlock::Ruleset;
use crate::kernel::namespaces::Namespaces;
use crate::kernel::seccomp::Filter;
use crate::process::BeforeExec;
use crate::process::cleaner::Lifeline;

/// Capabilities that a root command keeps: to work with files of other users, to switch users, and to listen
/// on a low port. Capabilities over devices, other processes or the kernel are dropped.
pub(crate) const KEPT_CAPABILITIES: u64 =
    1 << 0 /* chown */ | 1 << 1 /* dac_override */ | 1 << 3 /* fowner */ | 1 << 4 /* fsetid */
    | 1 << 6 /* setgid */ | 1 << 7 /* setuid */ | 1 << 10 /* net_bind_service */;

/// Immutable, so that commands can share it as long as the rules are the same.
pub(crate) struct SandboxEntry {
    pub namespaces: Option<Arc<Namespaces>>,
    pub landlock: Option<Ruleset>,
    pub filter: Option<Arc<Filter>>,
    /// Held open by guardians, so that placeholders outlive their commands.
    pub lifeline: Option<Arc<Lifeline>>,
}

impl BeforeExec for SandboxEntry {
    fn has_family(&self) -> bool {
        self.namespaces.as_ref().is_some_and(|namespaces| namespaces.has_processes())
    }

    fn join(&self) -> Result<(), i32> {
        self.namespaces.as_ref().map_or(Ok(()), |namespaces| namespaces.join())
    }

    /// The most expensive steps. A guardian makes no system call that the filter refuses, and the namespaces
    /// contain what it needs.
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

    /// Steps that a guardian must not apply to itself: its commands could signal it, and it could not kill
    /// commands of other users. Also the check of the shields, which no process can raise again under the
    /// filter.
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
        let first = self.namespaces.iter().filter_map(|namespaces| namespaces.first_line());
        let lifeline = self.lifeline.as_ref().map(|lifeline| lifeline.descriptor());
        let landlock = self.landlock.as_ref().map(Ruleset::descriptor);
        namespaces.map(AsRawFd::as_raw_fd).chain(landlock).chain(lifeline).chain(first).collect()
    }
}
