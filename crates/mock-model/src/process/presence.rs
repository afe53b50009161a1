//! Checks whether processes still exist: by id, or by a mark that they and their children carry.

use std::fs;
use std::time::Instant;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, pidfd_open};

use crate::{WAIT_LIMIT, fail};

/// The processes whose command line or environment contains `mark`, except this one.
pub fn marked(mark: &str) -> Vec<u32> {
    let own = std::process::id();
    let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
    let pids = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<u32>().ok());
    pids.filter(|pid| *pid != own && carries(*pid, mark.as_bytes())).collect()
}

fn carries(pid: u32, mark: &[u8]) -> bool {
    ["cmdline", "environ"].iter().any(|file| {
        // A process that has ended, or belongs to another user, cannot be read.
        let bytes = fs::read(format!("/proc/{pid}/{file}")).unwrap_or_default();
        bytes.windows(mark.len()).any(|window| window == mark)
    })
}

/// Waits until a process has ended; it need not be a child of this one.
#[track_caller]
pub fn wait_gone(pid: u32) {
    if !gone_by(pid, Instant::now() + WAIT_LIMIT) {
        let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let line = String::from_utf8_lossy(&line).replace('\0', " ");
        fail(&format!("process {pid} ({line}) is still there after {} s", WAIT_LIMIT.as_secs()));
    }
}

/// Waits until no process carries this mark any more.
#[track_caller]
pub fn wait_marked_gone(mark: &str) {
    let deadline = Instant::now() + WAIT_LIMIT;
    // Each round waits for all processes found; the next round finds those that they started before they
    // ended.
    loop {
        let pids = marked(mark);
        if pids.is_empty() {
            return;
        }
        if !pids.iter().all(|pid| gone_by(*pid, deadline)) {
            fail(&format!(
                "processes marked {mark:?} are still there after {} s: {pids:?}",
                WAIT_LIMIT.as_secs()
            ));
        }
    }
}

fn gone_by(pid: u32, deadline: Instant) -> bool {
    let Some(pid) = i32::try_from(pid).ok().and_then(Pid::from_raw) else { return true };
    let handle = match pidfd_open(pid, PidfdFlags::empty()) {
        Ok(handle) => handle,
        Err(error) => return error == Errno::SRCH,
    };
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        let time = Timespec {
            tv_sec: i64::try_from(left.as_secs()).unwrap_or(0),
            tv_nsec: left.subsec_nanos().into(),
        };
        match poll(&mut [PollFd::new(&handle, PollFlags::IN)], Some(&time)) {
            Err(Errno::INTR) => {}
            ready => return ready.is_ok_and(|count| count > 0),
        }
    }
}
