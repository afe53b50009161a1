//! A child process that is measured: its processor time and its peak memory, as the kernel counts them.

use std::io::Read;
use std::mem::MaybeUninit;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use mock_model::monotonic_ns;
use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process, waitid};

use crate::process;

/// A program that takes longer than this hangs.
const TIME_LIMIT: Duration = Duration::from_secs(120);

/// What a run cost.
pub struct Cost {
    /// When it was started, on the clock that processes share.
    pub started_ns: u64,
    /// User and system time, with that of the children that it waited for.
    pub cpu_ms: f64,
    /// The time of the process alone.
    pub own_cpu_ms: f64,
    /// From start to end.
    pub wall_ms: f64,
    /// Peak memory in millions of bytes.
    pub peak_mb: f64,
}

/// Runs a program to its end. `sink` gets its standard output as it comes, with the time at which it came.
pub fn run(command: &mut Command, mut sink: impl FnMut(&[u8], u64)) -> Result<Cost, String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let errors = tempfile::tempfile().map_err(|error| format!("cannot make a temporary file: {error}"))?;
    let for_child = errors.try_clone().map_err(|error| format!("cannot share a temporary file: {error}"))?;
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(for_child);
    let started_ns = monotonic_ns();
    let mut child = command.spawn().map_err(|error| format!("cannot start {name}: {error}"))?;
    let pid = Pid::from_child(&child);
    let (done, watchdog) = channel::<()>();
    let guard = thread::spawn(move || {
        let late = watchdog.recv_timeout(TIME_LIMIT) == Err(RecvTimeoutError::Timeout);
        if late {
            let _ = kill_process(pid, Signal::KILL);
        }
        late
    });
    let read = pump(&mut child, &mut sink);
    // The id stays taken until the watchdog is off, so that it can only ever hit this process.
    while matches!(waitid(WaitId::Pid(pid), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT), Err(Errno::INTR))
    {
    }
    let ended_ns = monotonic_ns();
    let own_cpu_ns = process::cpu_ns(pid);
    drop(done);
    let late = guard.join().unwrap_or(false);
    let (status, usage) = wait4(pid.as_raw_nonzero().get())?;
    if late {
        return Err(format!("{name} did not end within {} s", TIME_LIMIT.as_secs()));
    }
    read.map_err(|error| format!("cannot read from {name}: {error}"))?;
    if !status.success() {
        return Err(format!("{name} ended with {status}: {}", tail(errors)));
    }
    Ok(cost(started_ns, ended_ns, own_cpu_ns?, &usage))
}

fn cost(started_ns: u64, ended_ns: u64, own_cpu_ns: u64, usage: &libc::rusage) -> Cost {
    let ms = |time: libc::timeval| {
        Duration::from_secs(time.tv_sec.unsigned_abs()) + Duration::from_micros(time.tv_usec.unsigned_abs())
    };
    let peak = u32::try_from(usage.ru_maxrss).unwrap_or(u32::MAX);
    Cost {
        started_ns,
        cpu_ms: (ms(usage.ru_utime) + ms(usage.ru_stime)).as_secs_f64() * 1e3,
        own_cpu_ms: Duration::from_nanos(own_cpu_ns).as_secs_f64() * 1e3,
        wall_ms: Duration::from_nanos(ended_ns - started_ns).as_secs_f64() * 1e3,
        peak_mb: f64::from(peak) * 1024.0 / 1e6,
    }
}

fn pump(child: &mut Child, sink: &mut impl FnMut(&[u8], u64)) -> std::io::Result<()> {
    let Some(mut stdout) = child.stdout.take() else { return Ok(()) };
    let mut buffer = vec![0; 64 * 1024];
    loop {
        let count = stdout.read(&mut buffer)?;
        let now = monotonic_ns();
        if count == 0 {
            return Ok(());
        }
        sink(&buffer[..count], now);
    }
}

/// The end of what a program complained about.
fn tail(mut errors: std::fs::File) -> String {
    use std::io::{Seek, SeekFrom};
    let mut text = Vec::new();
    let length = errors.seek(SeekFrom::End(0)).unwrap_or(0);
    let read =
        errors.seek(SeekFrom::Start(length.saturating_sub(2000))).and_then(|_| errors.read_to_end(&mut text));
    match read {
        Ok(_) => String::from_utf8_lossy(&text).trim().to_owned(),
        Err(error) => format!("(its errors cannot be read: {error})"),
    }
}

#[expect(unsafe_code, reason = "the standard library has no wait that tells what a child cost")]
fn wait4(pid: libc::pid_t) -> Result<(ExitStatus, libc::rusage), String> {
    let mut status = 0;
    let mut usage = MaybeUninit::<libc::rusage>::zeroed();
    loop {
        // SAFETY: both pointers are to live, writable values of the types that the call fills in.
        let waited = unsafe { libc::wait4(pid, &raw mut status, 0, usage.as_mut_ptr()) };
        if waited == pid {
            // SAFETY: zeroed is a valid `rusage`, and the call has filled it in.
            return Ok((ExitStatus::from_raw(status), unsafe { usage.assume_init() }));
        }
        let error = std::io::Error::last_os_error();
        if error.kind() != std::io::ErrorKind::Interrupted {
            return Err(format!("cannot wait for process {pid}: {error}"));
        }
    }
}
