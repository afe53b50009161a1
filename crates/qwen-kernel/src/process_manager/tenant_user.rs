//! The user that a tenant's workers run as, in a hub that root started.

use std::io;
use std::path::Path;

use rustix::fs::Access;
use rustix::process::DumpableBehavior;
use rustix::thread::{Gid, Uid};

/// A user without privileges and without further groups.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TenantUser {
    pub uid: u32,
    pub gid: u32,
}

impl TenantUser {
    /// Makes the calling thread run as this user, without a way back. Makes only system calls.
    pub(super) fn assume(self) -> io::Result<()> {
        let (uid, gid) = (Uid::from_raw(self.uid), Gid::from_raw(self.gid));
        rustix::thread::set_thread_groups(&[])?;
        rustix::thread::set_thread_res_gid(gid, gid, gid)?;
        rustix::thread::set_thread_res_uid(uid, uid, uid)?;
        rustix::thread::set_no_new_privs(true)?;
        Ok(())
    }

    /// Lets a process that assumed this user write its own files in `/proc`, as it has to for namespaces.
    pub(super) fn own_process() -> io::Result<()> {
        Ok(rustix::process::set_dumpable_behavior(DumpableBehavior::Dumpable)?)
    }

    /// True if this user can enter a directory. The system decides, in a thread that runs as this user.
    pub fn can_enter(self, directory: &Path) -> bool {
        let ask = || self.assume().is_ok() && rustix::fs::access(directory, Access::EXEC_OK).is_ok();
        directory.is_dir()
            && std::thread::scope(|scope| {
                let thread = std::thread::Builder::new().name("user".to_owned()).spawn_scoped(scope, ask);
                thread.is_ok_and(|thread| thread.join().unwrap_or(false))
            })
    }
}
