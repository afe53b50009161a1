//! Reads a process's CPU time, memory and wake-ups from `/proc`.

use std::time::Duration;

use rustix::process::Pid;

/// The processor time of a process so far, all its threads together, without its children.
#[expect(unsafe_code, reason = "the standard library knows no processor clocks")]
pub fn cpu_ns(pid: Pid) -> Result<u64, String> {
    let mut clock = 0;
    // SAFETY: `clock` is a live, writable value of the type that the call fills in.
    let error = unsafe { libc::clock_getcpuclockid(pid.as_raw_nonzero().get(), &raw mut clock) };
    if error != 0 {
        return Err(format!("process {pid} has no clock: {}", std::io::Error::from_raw_os_error(error)));
    }
    read_clock(clock).ok_or_else(|| format!("the clock of process {pid} cannot be read"))
}

/// The processor time of this process.
pub fn own_cpu_ns() -> u64 {
    read_clock(libc::CLOCK_PROCESS_CPUTIME_ID).unwrap_or(0)
}

#[expect(unsafe_code, reason = "the standard library knows no processor clocks")]
fn read_clock(clock: libc::clockid_t) -> Option<u64> {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is a live, writable value of the type that the call fills in.
    let read = unsafe { libc::clock_gettime(clock, &raw mut time) };
    let time = Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).ok()?);
    (read == 0).then(|| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX))
}

/// A process of ours that is measured while it runs.
pub trait Measured {
    fn pid(&self) -> Pid;

    fn cpu_ns(&self) -> Result<u64, String> {
        cpu_ns(self.pid())
    }

    fn memory(&self) -> Result<Memory, String> {
        memory(self.pid())
    }
}

/// The memory of a process in millions of bytes.
#[derive(Debug)]
pub struct Memory {
    /// Its own, and its share of what it has in common with others.
    pub pss_mb: f64,
    /// What it wrote itself: heap and stacks.
    pub anonymous_mb: f64,
}

/// The memory of a process now.
pub fn memory(pid: Pid) -> Result<Memory, String> {
    let path = format!("/proc/{}/smaps_rollup", pid.as_raw_nonzero());
    let text = std::fs::read_to_string(&path).map_err(|error| format!("cannot read {path}: {error}"))?;
    let mb = |key: &str| {
        let kb = text
            .lines()
            .find_map(|line| line.strip_prefix(key)?.split_whitespace().next()?.parse::<u32>().ok());
        kb.map(|kb| f64::from(kb) * 1024.0 / 1e6).ok_or_else(|| format!("{path} does not say {key}"))
    };
    Ok(Memory { pss_mb: mb("Pss:")?, anonymous_mb: mb("Anonymous:")? })
}

/// The processes that a process started.
pub fn children(pid: Pid) -> Result<Vec<Pid>, String> {
    let path = format!("/proc/{}/task", pid.as_raw_nonzero());
    let read = || {
        let mut children = Vec::new();
        for task in std::fs::read_dir(&path)? {
            // A thread that ended meanwhile has no children any more.
            let Ok(list) = std::fs::read_to_string(task?.path().join("children")) else { continue };
            let pids = list.split_whitespace().filter_map(|pid| pid.parse().ok());
            children.extend(pids.filter_map(Pid::from_raw));
        }
        Ok(children)
    };
    read().map_err(|error: std::io::Error| format!("cannot read {path}: {error}"))
}

/// How often the threads of a process went to sleep by themselves, and so were woken.
pub fn wakeups(pid: Pid) -> Result<u64, String> {
    let path = format!("/proc/{}/task", pid.as_raw_nonzero());
    let read = || {
        let mut sum = 0;
        for task in std::fs::read_dir(&path)? {
            // A thread that ended meanwhile has no status any more.
            let Ok(status) = std::fs::read_to_string(task?.path().join("status")) else { continue };
            let switches = status.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"));
            sum += switches.and_then(|count| count.trim().parse::<u64>().ok()).unwrap_or(0);
        }
        Ok(sum)
    };
    read().map_err(|error: std::io::Error| format!("cannot read {path}: {error}"))
}

#[cfg(test)]
mod tests {
    use rustix::process::getpid;

    use super::{cpu_ns, memory, own_cpu_ns, wakeups};

    #[test]
    fn the_statistics_of_a_process_can_be_read() {
        let before = cpu_ns(getpid()).unwrap();
        assert!(before > 0 && own_cpu_ns() >= before);
        let memory = memory(getpid()).unwrap();
        assert!(memory.pss_mb > 0.0 && memory.anonymous_mb > 0.0);
        assert!(wakeups(getpid()).is_ok());
    }

    #[test]
    fn a_process_that_is_gone_is_an_error() {
        let mut child = std::process::Command::new("true").spawn().unwrap();
        let pid = rustix::process::Pid::from_child(&child);
        child.wait().unwrap();
        assert!(memory(pid).unwrap_err().contains("smaps_rollup"));
        assert!(cpu_ns(pid).is_err() && wakeups(pid).is_err());
    }
}
