//! Mounts whose files belong to no user: neither the owner's permissions nor root's capabilities apply to them.

use std::ffi::CStr;
use std::os::fd::RawFd;

use crate::kernel::{self, Outcome, ProcessStack, SymlinkMode};

/// Prepared before the fork: a user namespace in which the owner of our files has another id.
pub(crate) struct Disowned {
    /// The namespace, once it was made; -1 before.
    pub users: RawFd,
    uid_map: String,
    gid_map: String,
    stack: ProcessStack,
    outcome: Outcome,
}

impl Disowned {
    pub(crate) fn new(uid: u32, gid: u32) -> Self {
        // The id of our files has no mapping, because the only mapping is that of another id.
        let other = |id: u32| if id == u32::MAX - 1 { 0 } else { id + 1 };
        Self {
            users: -1,
            uid_map: format!("{} {uid} 1", other(uid)),
            gid_map: format!("{} {gid} 1", other(gid)),
            stack: ProcessStack::new(),
            outcome: Ok(()),
        }
    }

    /// Mounts a directory over itself, read-only and without an owner. Runs after a fork.
    pub(crate) fn seal(&mut self, at: &CStr) -> Outcome {
        let mut stack = std::mem::replace(&mut self.stack, ProcessStack::none());
        let ran = kernel::run_outside_namespaces(&mut stack, make_users, self);
        self.stack = stack;
        ran.and(self.outcome)?;
        let tree = kernel::clone_tree(at, SymlinkMode::Keep)?;
        let outcome =
            kernel::disown(tree, self.users).and_then(|()| kernel::attach(tree, at, SymlinkMode::Keep));
        kernel::close(tree);
        outcome
    }
}

fn make_users(disowned: &mut Disowned) {
    disowned.outcome = unshare_users(disowned);
}

fn unshare_users(disowned: &mut Disowned) -> Outcome {
    kernel::unshare(libc::CLONE_NEWUSER)?;
    let dumpable = kernel::set_dumpable(1);
    let mapped = kernel::write_file(c"/proc/self/setgroups", b"deny")
        .and_then(|()| kernel::write_file(c"/proc/self/uid_map", disowned.uid_map.as_bytes()))
        .and_then(|()| kernel::write_file(c"/proc/self/gid_map", disowned.gid_map.as_bytes()));
    kernel::set_dumpable(dumpable);
    mapped?;
    disowned.users = kernel::open(c"/proc/self/ns/user", libc::O_RDONLY)?;
    Ok(())
}
