//! Starts this program anew in the same process. What a session left in memory or open is gone, while the
//! process id, the standard streams, the limits and the environment stay.

use std::ffi::OsString;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use rustix::io::{Errno, FdFlags};
use rustix::process::{WaitId, WaitIdOptions, waitid};

use super::exit;

/// How long children of the session may take to end.
const CHILDREN_LIMIT: Duration = Duration::from_secs(1);

/// Linux's `__WALL`: waits for children that do not signal their end, too, such as the first process of a
/// sandbox's namespace.
const ALL_CHILDREN: WaitIdOptions = WaitIdOptions::from_bits_retain(0x4000_0000);

/// The commit descriptors of the next process image, once a restart was requested.
static REQUESTED: Mutex<Option<Vec<OwnedFd>>> = Mutex::new(None);

/// Requests a restart at the end of the role. The descriptors take the place of those in `--commit-fd`.
pub fn request(descriptors: Vec<OwnedFd>) {
    *REQUESTED.lock().unwrap_or_else(PoisonError::into_inner) = Some(descriptors);
}

/// Restarts if that was requested. Returns if it was not or if it is not possible; the process then ends.
pub fn restart_if_requested() {
    let requested = REQUESTED.lock().unwrap_or_else(PoisonError::into_inner).take();
    let Some(descriptors) = requested.filter(|_| children_ended()) else { return };
    let inherited = descriptors.iter().try_for_each(|fd| rustix::io::fcntl_setfd(fd, FdFlags::empty()));
    if inherited.is_err() {
        return;
    }
    let numbers: Vec<String> = descriptors.iter().map(|fd| fd.as_raw_fd().to_string()).collect();
    let mut args = std::env::args_os();
    let mut command = Command::new("/proc/self/exe");
    if let Some(name) = args.next() {
        command.arg0(name);
    }
    let error = command.args(with_descriptors(args, &numbers.join(","))).exec();
    exit::report(&format!("qwen: the worker cannot be restarted: {error}"));
}

/// The arguments with another value of `--commit-fd`.
fn with_descriptors(args: impl Iterator<Item = OsString>, numbers: &str) -> Vec<OsString> {
    let mut replaced: Vec<OsString> = Vec::new();
    let mut is_value = false;
    for arg in args {
        let is_joined = arg.to_str().is_some_and(|arg| arg.starts_with("--commit-fd="));
        let next = if is_value {
            numbers.into()
        } else if is_joined {
            format!("--commit-fd={numbers}").into()
        } else {
            arg
        };
        is_value = !is_value && next == "--commit-fd";
        replaced.push(next);
    }
    replaced
}

/// Reaps the children of the session, which a new process image could not do. False if one does not end.
fn children_ended() -> bool {
    let deadline = Instant::now() + CHILDREN_LIMIT;
    loop {
        match waitid(WaitId::All, WaitIdOptions::EXITED | WaitIdOptions::NOHANG | ALL_CHILDREN) {
            Err(Errno::CHILD) => return true,
            Ok(Some(_)) | Err(Errno::INTR) => {}
            Ok(None) if Instant::now() < deadline => thread::sleep(Duration::from_millis(1)),
            Ok(None) | Err(_) => return false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::with_descriptors;

    #[test]
    fn only_the_value_of_the_commit_descriptor_is_replaced() {
        let replaced = |args: &[&str]| {
            let replaced = with_descriptors(args.iter().map(Into::into), "8");
            replaced.into_iter().map(|arg| arg.into_string().unwrap()).collect::<Vec<_>>()
        };
        assert_eq!(replaced(&["--commit-fd", "5", "--leash", "5"]), ["--commit-fd", "8", "--leash", "5"]);
        assert_eq!(replaced(&["--yolo", "--commit-fd=5"]), ["--yolo", "--commit-fd=8"]);
    }
}
