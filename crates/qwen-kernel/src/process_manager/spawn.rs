//! Starts workers from one thread.

use std::ffi::OsString;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use rustix::process::{Pid, PidfdFlags, Resource, Rlimit, Signal};
use tokio::sync::oneshot;

use super::isolation::{Confinement, TenantView};
use super::tenant_user::TenantUser;

/// A process to start.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct SpawnSpec {
    pub binary: PathBuf,
    pub args: Vec<String>,
    /// Variables to set, or to remove if there is no value.
    pub env: Vec<(OsString, Option<OsString>)>,
    /// True to start from an empty environment.
    pub clear_env: bool,
    /// If absent, the kernel's working directory.
    pub cwd: Option<PathBuf>,
    /// The limit on open files.
    pub max_open_files: Option<u64>,
    /// The limit on address space, in bytes.
    pub max_memory: Option<u64>,
    /// The longest silence of the kernel during which the worker may start tools and model calls.
    pub leash: Option<Duration>,
    /// What the worker of a tenant does not see.
    pub view: Option<TenantView>,
    /// The user of the tenant's workers; takes effect together with the view.
    pub user: Option<TenantUser>,
    /// The `cgroup.procs` files of the control groups that limit the tenant.
    pub control_groups: Vec<PathBuf>,
}

#[derive(Debug)]
pub struct Child {
    /// The process id, which is also the process group id.
    pub pid: i32,
    /// Becomes readable when the process ends.
    pub pidfd: OwnedFd,
    pub stdin: OwnedFd,
    pub stdout: OwnedFd,
    pub stderr: OwnedFd,
    /// The socket on which the worker reports its turns and asks for commits.
    pub commits: OwnedFd,
}

type Job = (SpawnSpec, oneshot::Sender<io::Result<Child>>);

/// The thread that starts every child. Dropping it ends the thread and, with it, the children.
#[derive(Debug)]
pub struct Spawner {
    jobs: mpsc::Sender<Job>,
}

impl Spawner {
    /// Starts the thread, for at most this many workers at a time.
    pub fn start(max_workers: usize) -> io::Result<Self> {
        let (jobs, queue) = mpsc::channel::<Job>();
        let parent = rustix::process::getpid();
        let inherited = raise_open_files();
        if is_single_threaded() {
            reserve_descriptors(max_workers);
        }
        thread::Builder::new().name("spawn".to_owned()).stack_size(128 * 1024).spawn(move || {
            while let Ok((spec, reply)) = queue.recv() {
                // A caller that no longer waits drops the child's pipes, which ends the child.
                let _ = reply.send(spawn(&spec, parent, inherited));
            }
        })?;
        Ok(Self { jobs })
    }

    pub async fn spawn(&self, spec: SpawnSpec) -> io::Result<Child> {
        let (reply, started) = oneshot::channel();
        let gone = || io::Error::other("the thread that starts workers has ended");
        self.jobs.send((spec, reply)).map_err(|_| gone())?;
        started.await.map_err(|_| gone())?
    }
}

/// A worker costs five descriptors, and the usual soft limit of 1,024 is meant for programs that use
/// `select`: raises it to the hard limit. Returns the former one, which children get back.
fn raise_open_files() -> Option<Rlimit> {
    let former = rustix::process::getrlimit(Resource::Nofile);
    let raised = Rlimit { current: former.maximum, maximum: former.maximum };
    rustix::process::setrlimit(Resource::Nofile, raised).ok().map(|()| former)
}

/// Descriptors of the kernel for a worker: three pipes, the process, the commit socket, its numbered lines.
const DESCRIPTORS_PER_WORKER: usize = 6;
/// Descriptors besides, such as those of a worker that is being started.
const OTHER_DESCRIPTORS: usize = 64;
/// The most descriptors for which the table is enlarged in advance.
const MAX_RESERVED_DESCRIPTORS: usize = 16 * 1024;

/// Enlarges the table of descriptors for this many workers while the process has one thread. Later, the system
/// doubles a full table only after it has waited for all threads, and the start of a worker would take 10 to
/// 20 ms longer at each power of two.
fn reserve_descriptors(workers: usize) {
    let wanted = workers.saturating_mul(DESCRIPTORS_PER_WORKER).saturating_add(OTHER_DESCRIPTORS);
    let limit = rustix::process::getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    let last = u64::try_from(wanted.min(MAX_RESERVED_DESCRIPTORS)).unwrap_or(0).min(limit).saturating_sub(1);
    if let Ok(last) = i32::try_from(last) {
        // Closed at once: the table keeps its size. Without it, it grows as it is needed.
        let _ = rustix::io::fcntl_dupfd_cloexec(io::stdin(), last);
    }
}

fn is_single_threaded() -> bool {
    std::fs::read_dir("/proc/self/task").is_ok_and(|tasks| tasks.count() == 1)
}

fn spawn(spec: &SpawnSpec, parent: Pid, inherited: Option<Rlimit>) -> io::Result<Child> {
    let mut command = Command::new(&spec.binary);
    let (ours, theirs) = socket_pair()?;
    command.arg("--commit-fd").arg(theirs.as_raw_fd().to_string());
    if let Some(leash) = spec.leash {
        command.arg("--leash").arg(leash.as_secs_f64().to_string());
    }
    command.args(&spec.args).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    if spec.clear_env {
        command.env_clear();
    }
    for (name, value) in &spec.env {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    let mut confinement = Confinement::prepare(spec)?;
    // A tenant's worker enters its directory in its own view, where it may not exist.
    if let Some(cwd) = spec.cwd.as_ref().filter(|_| spec.view.is_none()) {
        command.current_dir(cwd);
    }
    command.process_group(0);
    let (files, memory) = (spec.max_open_files, spec.max_memory);
    let prepare = move || {
        rustix::io::fcntl_setfd(&theirs, rustix::io::FdFlags::empty())?;
        confinement.enter()?;
        rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
        // The parent may have died before the signal was armed.
        if rustix::process::getppid() != Some(parent) {
            return Err(io::Error::from(rustix::io::Errno::SRCH));
        }
        if let Some(inherited) = inherited {
            rustix::process::setrlimit(Resource::Nofile, inherited)?;
        }
        for (resource, limit) in [(Resource::Nofile, files), (Resource::As, memory)] {
            if let Some(limit) = limit {
                rustix::process::setrlimit(resource, Rlimit { current: Some(limit), maximum: Some(limit) })?;
            }
        }
        Ok(())
    };
    // SAFETY: the closure runs between fork and exec and makes only system calls; it neither allocates nor
    // locks.
    #[expect(unsafe_code, reason = "the parent-death signal must be armed in the child")]
    unsafe {
        command.pre_exec(prepare);
    }
    let child = command.spawn()?;
    // Drops the child's end of the socket.
    drop(command);
    connect(child, ours)
}

/// Takes the descriptors of a process that was started.
fn connect(mut child: std::process::Child, commits: OwnedFd) -> io::Result<Child> {
    let pid = i32::try_from(child.id()).map_err(io::Error::other)?;
    let missing = || io::Error::other("a pipe of the child is missing");
    let pidfd = Pid::from_raw(pid)
        .ok_or_else(missing)
        .and_then(|pid| rustix::process::pidfd_open(pid, PidfdFlags::empty()).map_err(io::Error::from));
    let pidfd = match pidfd {
        Ok(pidfd) => pidfd,
        Err(error) => {
            // Without a pid file descriptor, the exit would go unnoticed.
            let _ = child.kill();
            let _ = child.wait();
            return Err(error);
        }
    };
    Ok(Child {
        pid,
        pidfd,
        stdin: child.stdin.take().ok_or_else(missing)?.into(),
        stdout: child.stdout.take().ok_or_else(missing)?.into(),
        stderr: child.stderr.take().ok_or_else(missing)?.into(),
        commits,
    })
}

/// Two connected sockets that no child inherits unless it is meant to.
fn socket_pair() -> io::Result<(OwnedFd, OwnedFd)> {
    let (ours, theirs) = UnixStream::pair()?;
    Ok((ours.into(), theirs.into()))
}

/// Sends a signal to a child's process group, or to the child alone while it has no group. It is sent once: a
/// worker takes a second one as the wish to end without finishing its turn. A process that no longer exists
/// is not an error.
pub fn kill_group(pid: i32, signal: Signal) {
    if let Some(pid) = Pid::from_raw(pid)
        && rustix::process::kill_process_group(pid, signal).is_err()
    {
        let _ = rustix::process::kill_process(pid, signal);
    }
}
