//! Cleans up after a guardian that was killed: its command's processes become our children, and we kill them.
//!
//! Without a sandbox a command can kill its guardian. Processes outside the command's group would then
//! survive.
//!
//! Linux only: needs subreapers and `/proc`.
#![expect(unsafe_code, reason = "processes are adopted, looked at and ended by raw system calls")]

use std::ptr;
use std::sync::{Mutex, MutexGuard, Once, PoisonError};
use std::time::Duration;

use libc::pid_t;

use super::children::each_child_among_all;

/// How often orphans are searched before we give up on processes that do not die.
const ROUNDS: u32 = 200;
/// How long to wait for the kernel between two rounds.
const ROUND: Duration = Duration::from_millis(5);

/// The guardians that were not reaped yet.
static GUARDIANS: Mutex<Vec<pid_t>> = Mutex::new(Vec::new());

fn guardians() -> MutexGuard<'static, Vec<pid_t>> {
    GUARDIANS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Records the guardian that `fork` creates, so that it is never treated as an orphan, and makes this process
/// the subreaper. The guardian must not use the lock, which is held in its copy of our memory.
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

pub(super) fn forget_guardian(pid: pid_t) {
    guardians().retain(|&guardian| guardian != pid);
}

/// Kills the processes that ended guardians left behind. Our own children are in our session; orphans of a
/// guardian never are, because each guardian starts a new session.
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
