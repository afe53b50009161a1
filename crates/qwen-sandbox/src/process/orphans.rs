//! What a guardian leaves behind that was killed itself: its command's processes then become ours, and we end them.
//!
//! Where no sandbox keeps a command from signalling its guardian, killing that would otherwise set free whatever has
//! left the command's group.
//!
//! This file is Linux: subreapers and `/proc`.
#![expect(unsafe_code, reason = "processes are adopted, looked at and ended by raw system calls")]

use std::ptr;
use std::sync::{Mutex, MutexGuard, Once, PoisonError};
use std::time::Duration;

use libc::pid_t;

use super::children::each_child_among_all;

/// How often orphans are looked for before we give up on what the kernel will not kill for us.
const ROUNDS: u32 = 200;
/// How long to wait for the kernel between two rounds.
const ROUND: Duration = Duration::from_millis(5);

/// The guardians that were not reaped yet.
static GUARDIANS: Mutex<Vec<pid_t>> = Mutex::new(Vec::new());

fn guardians() -> MutexGuard<'static, Vec<pid_t>> {
    GUARDIANS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Notes the guardian that `fork` makes, so that it is never taken for an orphan, and sees to it that orphans come to
/// us. The guardian itself must not touch the lock, which is held in its copy of our memory.
pub(super) fn note_guardian(fork: impl FnOnce() -> pid_t) -> pid_t {
    static ADOPTING: Once = Once::new();
    // SAFETY: no memory is touched. A kernel that refuses leaves orphans to the system, as it always did.
    ADOPTING.call_once(|| _ = unsafe { libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) });
    let mut guardians = guardians();
    let pid = fork();
    if pid > 0 {
        guardians.push(pid);
    }
    pid
}

/// Forgets a guardian that was reaped.
pub(super) fn forget_guardian(pid: pid_t) {
    guardians().retain(|&guardian| guardian != pid);
}

/// Ends what guardians left behind that are gone. What we have started ourselves is in our session, as no orphan of a
/// guardian can be, which began a session of its own.
pub(super) fn end() {
    for round in 0..ROUNDS {
        if round > 0 {
            std::thread::sleep(ROUND);
        }
        let guardians = guardians();
        let mut found = false;
        // SAFETY: the calls touch no memory of ours; a child that we have not reaped keeps its id.
        unsafe {
            let ours = libc::getsid(0);
            each_child_among_all(|pid| {
                if pid > 1 && !guardians.contains(&pid) && libc::getsid(pid) != ours {
                    found = true;
                    libc::kill(pid, libc::SIGKILL);
                    libc::waitpid(pid, ptr::null_mut(), libc::WNOHANG);
                }
            });
        }
        if !found {
            return;
        }
    }
}
