//! Preparing a command and starting it under its guardian.

use std::ffi::{CString, OsStr, c_char};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::ptr;
use std::time::Duration;

use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::pipe::{PipeFlags, pipe_with};
use tokio::net::unix::pipe;
use tokio::time::timeout;

use super::command::{Plan, Step};
use super::guardian;
use super::guardians::{Guardian, Guardians, Hook};
use super::order::{self, Texts};
use super::output_order::{OutputOrder, packet_pipe};
use super::running::{GuardianReport, Running};
use super::{ProcessSpec, SpawnError, Stdin};

/// How long a guardian may take to report a start. After that the command, which already runs, may have
/// stopped it.
const SILENCE: Duration = Duration::from_millis(500);

/// Starts a command and waits until it runs. Needs a tokio runtime with I/O.
pub async fn spawn(spec: ProcessSpec) -> Result<Running, SpawnError> {
    let Some(program) = spec.env.find_program(&spec.program) else {
        return Err(SpawnError::NotFound(spec.program));
    };
    let (mut running, mut ordered) = start(&spec, program.as_os_str(), spec.guardians.as_deref())?;
    loop {
        let Ok(report) = timeout(SILENCE, running.report()).await else {
            running.wake();
            continue;
        };
        match report? {
            // The state that the guardian prepared may be outdated since its last command.
            GuardianReport::Failed(step, _) if ordered && step == Step::BeforeExec as i32 => {
                (running, ordered) = start(&spec, program.as_os_str(), None)?;
            }
            GuardianReport::Failed(step, errno) => return Err(failure(spec, program, step, errno)),
            // If the guardian was killed before its report, rely on the command's own report.
            GuardianReport::Started => return Ok(running),
            GuardianReport::End if running.pid() > 0 => return Ok(running),
            GuardianReport::End => {
                return Err(SpawnError::System(io::Error::other("the guardian process was killed")));
            }
            other @ (GuardianReport::Forked(_) | GuardianReport::Exited(_) | GuardianReport::Clear(_)) => {
                running.note(other);
            }
        }
    }
}

fn failure(spec: ProcessSpec, program: PathBuf, step: i32, errno: i32) -> SpawnError {
    let source = io::Error::from_raw_os_error(errno);
    if step == Step::Directory as i32 {
        SpawnError::Directory { cwd: spec.cwd, source }
    } else if step == Step::BeforeExec as i32 {
        SpawnError::BeforeExec(source)
    } else if step == Step::Exec as i32 {
        SpawnError::Exec { program, source }
    } else {
        SpawnError::System(source)
    }
}

/// Starts a command with an idle guardian, or with a new one. Returns true if the guardian was reused.
fn start(
    spec: &ProcessSpec,
    program: &OsStr,
    waiting: Option<&Guardians>,
) -> Result<(Running, bool), SpawnError> {
    let program = text(program, "the program's name")?;
    let cwd = text(spec.cwd.as_os_str(), "the working directory")?;
    let mut args = Vec::with_capacity(spec.args.len() + 1);
    args.push(text(spec.name.as_ref().unwrap_or(&spec.program), "the program's name")?);
    for arg in &spec.args {
        args.push(text(arg, "an argument")?);
    }

    let (stdin, stdin_writer) = match spec.stdin {
        Stdin::Null => (above_stdio(File::open("/dev/null")?.into())?, None),
        Stdin::Pipe => {
            let (reader, writer) = pipe_ends(false)?;
            nonblocking(&writer)?;
            (reader, Some(pipe::Sender::from_owned_fd_unchecked(writer)?))
        }
    };
    let (out_reader, out) = pipe_ends(spec.ordered_output)?;
    let (err_reader, err) = pipe_ends(spec.ordered_output)?;
    let order = if spec.ordered_output {
        Some(OutputOrder::watch(out_reader.as_fd(), err_reader.as_fd())?)
    } else {
        None
    };
    let (stdout, stderr) = (receiver(out_reader)?, receiver(err_reader)?);

    let hook = Hook::from_hook(spec.before_exec.as_ref());
    // A descriptor that keeps its number can only be inherited.
    let waiting = waiting.filter(|_| spec.keep.is_empty());
    let ordered = waiting.and_then(|waiting| {
        let order = order::write(&program, &cwd, &args, spec.env.entries())?;
        waiting.order(&order, [stdin.as_fd(), out.as_fd(), err.as_fd()], &hook)
    });
    let was_ordered = ordered.is_some();
    let guardian = match ordered {
        Some(guardian) => guardian,
        None => {
            let (line, its_line) = Guardian::line()?;
            let (argv, envp) = (pointers(&args), pointers(spec.env.entries()));
            let keep: Vec<RawFd> = spec.keep.iter().map(AsRawFd::as_raw_fd).collect();
            let plan = Plan {
                texts: Texts { program: &program, cwd: &cwd, argv: &argv, envp: &envp },
                stdio: [stdin.as_raw_fd(), out.as_raw_fd(), err.as_raw_fd()],
                keep: &keep,
                before_exec: spec.before_exec.as_deref(),
                line: its_line.as_raw_fd(),
            };
            let stays = spec.guardians.is_some();
            let pid = guardian::fork(&plan, stays).map_err(io::Error::from_raw_os_error)?;
            Guardian::new(pid, line)?
        }
    };
    let afterwards = spec.guardians.clone().map(|place| (place, hook));
    let mut running = Running::new(guardian, afterwards, stdin_writer, stdout, stderr);
    running.order = order;
    running.is_apart = spec.before_exec.as_ref().is_some_and(|hook| hook.has_family());
    Ok((running, was_ordered))
}

fn text(text: &OsStr, what: &'static str) -> Result<CString, SpawnError> {
    CString::new(text.as_bytes()).map_err(|_| SpawnError::Nul(what))
}

fn pointers(texts: &[CString]) -> Vec<*const c_char> {
    texts.iter().map(|text| text.as_ptr()).chain([ptr::null()]).collect()
}

/// A pipe, reading end first. Both ends lie above the standard descriptors, because the command's process
/// overwrites those while it still needs the others.
fn pipe_ends(of_packets: bool) -> io::Result<(OwnedFd, OwnedFd)> {
    let (reader, writer) = if of_packets { packet_pipe()? } else { pipe_with(PipeFlags::CLOEXEC)? };
    Ok((above_stdio(reader)?, above_stdio(writer)?))
}

pub(super) fn above_stdio(fd: OwnedFd) -> io::Result<OwnedFd> {
    if fd.as_raw_fd() > 2 { Ok(fd) } else { Ok(rustix::io::fcntl_dupfd_cloexec(&fd, 3)?) }
}

fn receiver(reader: OwnedFd) -> io::Result<pipe::Receiver> {
    nonblocking(&reader)?;
    pipe::Receiver::from_owned_fd_unchecked(reader)
}

fn nonblocking(fd: impl AsFd) -> io::Result<()> {
    let flags = fcntl_getfl(&fd)?;
    Ok(fcntl_setfl(&fd, flags | OFlags::NONBLOCK)?)
}
