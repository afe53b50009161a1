//! The session's namespaces: a mount namespace in which only the permitted paths are writable, and an empty
//! network namespace. They are created once; entering them costs each command a few system calls.

use std::ffi::CString;
use std::io;
use std::net::TcpListener;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileTypeExt;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use crate::hidden::HiddenView;
use crate::kernel::covers::{self, CoverNames, CoverStep, CoverStyle, plan_covers};
use crate::kernel::disowned::Disowned;
use crate::kernel::shields::{Covers, NamespaceAge, Shields, cover};
use crate::kernel::{self, Outcome, ProcessStack, SymlinkMode};
use crate::policy::SandboxPolicy;
use crate::process::first::{self, FirstProcess};
use crate::system_temp::SYSTEM_TEMP;

/// Options of the mount that covers paths. It contains almost nothing, so it is as small as possible.
const VOID_OPTIONS: &std::ffi::CStr = c"size=64k,mode=755";
const SHARED_MEMORY: &std::ffi::CStr = c"/dev/shm";
const TERMINALS: &std::ffi::CStr = c"/dev/pts";
/// Devices through which root could read hidden files or keyboard input.
const RAW_DEVICES: &[&str] = &["/dev/mem", "/dev/kmem", "/dev/port", "/dev/input"];

/// How namespaces can be created on this machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NamespaceMethod {
    /// With our own privileges.
    Privileged,
    /// In a user namespace, with privileges over our own resources only.
    UserNamespace,
}

/// Namespaces that commands enter.
pub(crate) struct Namespaces {
    user: Option<OwnedFd>,
    mount: OwnedFd,
    messages: OwnedFd,
    network: Option<OwnedFd>,
    processes: Option<Processes>,
    /// The gateway's listening socket in the network, until it is taken.
    door: Mutex<Option<OwnedFd>>,
    covers: OwnedFd,
    ignored_directory: OwnedFd,
    shared_memory: Option<OwnedFd>,
    terminals: Option<OwnedFd>,
    shields: Shields,
}

/// A namespace of processes, and what keeps it.
struct Processes {
    namespace: OwnedFd,
    first: Arc<FirstProcess>,
}

#[derive(Debug, thiserror::Error)]
#[error("{step}: {source}")]
pub(crate) struct NamespaceError {
    step: &'static str,
    source: io::Error,
}

impl Namespaces {
    pub(crate) fn build(
        policy: &SandboxPolicy,
        hidden: &HiddenView,
        way: NamespaceMethod,
        network: bool,
        shields: impl Fn(&CoverNames) -> Shields,
    ) -> Result<Self, NamespaceError> {
        let build = |style| {
            let (covers, names) = plan_covers(hidden, &policy.temp, style);
            let (plan, shields) = (Plan::new(policy, style, covers), shields(&names));
            let network = NetworkPlan { is_private: network, has_door: network && policy.gateway };
            plan.run(way, network, &shields).map(|fds| (fds, shields))
        };
        let (fds, shields) = build(CoverStyle::Unowned).or_else(|_| build(CoverStyle::Device))?;
        let mut slots = fds.slots.into_iter();
        let missing = || NamespaceError { step: "mounts", source: io::Error::other("a mount was not made") };
        Ok(Self {
            user: fds.user,
            mount: fds.mount.ok_or_else(missing)?,
            messages: fds.messages.ok_or_else(missing)?,
            network: fds.network,
            processes: fds.processes,
            door: Mutex::new(fds.door),
            covers: slots.next().flatten().ok_or_else(missing)?,
            ignored_directory: slots.next().flatten().ok_or_else(missing)?,
            shared_memory: slots.next().flatten(),
            terminals: slots.next().flatten(),
            shields,
        })
    }

    /// Moves the calling process into the user namespace, and its children into the namespace of processes.
    pub(crate) fn join(&self) -> Outcome {
        if let Some(user) = &self.user {
            kernel::enter(user.as_raw_fd(), libc::CLONE_NEWUSER)?;
        }
        if let Some(processes) = &self.processes {
            kernel::enter(processes.namespace.as_raw_fd(), libc::CLONE_NEWPID)?;
        }
        Ok(())
    }

    /// Moves the calling process, which has joined, into the other namespaces and raises the shields. Runs after a
    /// fork. Afterwards the working directory is `/`.
    pub(crate) fn enter(&self) -> Outcome {
        kernel::enter(self.mount.as_raw_fd(), libc::CLONE_NEWNS)?;
        kernel::enter(self.messages.as_raw_fd(), libc::CLONE_NEWIPC)?;
        if let Some(network) = &self.network {
            kernel::enter(network.as_raw_fd(), libc::CLONE_NEWNET)?;
        }
        self.shields.raise(self.covers(), NamespaceAge::Again)
    }

    /// Fails if a shield was lost since [`Namespaces::enter`]. Runs between fork and exec.
    pub(crate) fn still_shielded(&self) -> Outcome {
        self.shields.are_up()
    }

    /// The descriptors that entering uses.
    pub(crate) fn descriptors(&self) -> impl Iterator<Item = &OwnedFd> {
        let covers = [&self.covers, &self.ignored_directory];
        [&self.mount, &self.messages]
            .into_iter()
            .chain(covers)
            .chain(&self.user)
            .chain(&self.network)
            .chain(self.processes.as_ref().map(|processes| &processes.namespace))
    }

    pub(crate) fn has_network(&self) -> bool {
        self.network.is_some()
    }

    /// True if commands see only processes of the sandbox.
    pub(crate) fn has_processes(&self) -> bool {
        self.processes.is_some()
    }

    /// The descriptor that keeps the first process waiting.
    pub(crate) fn first_line(&self) -> Option<RawFd> {
        self.processes.as_ref().map(|processes| processes.first.descriptor())
    }

    /// The listening socket for the gateway, at the first call.
    pub(crate) fn take_door(&self) -> Option<TcpListener> {
        self.door.lock().unwrap_or_else(PoisonError::into_inner).take().map(TcpListener::from)
    }

    /// Directory of the namespace's private shared memory.
    pub(crate) fn shared_memory(&self) -> Option<RawFd> {
        self.shared_memory.as_ref().map(AsRawFd::as_raw_fd)
    }

    /// Directory of the namespace's private terminals.
    pub(crate) fn terminals(&self) -> Option<RawFd> {
        self.terminals.as_ref().map(AsRawFd::as_raw_fd)
    }

    fn covers(&self) -> Covers {
        Covers { hidden: self.covers.as_raw_fd(), ignored: self.ignored_directory.as_raw_fd() }
    }
}

/// Checks what this machine permits by creating namespaces with an empty plan.
pub(crate) fn probe(way: NamespaceMethod, network: bool) -> Result<(), NamespaceError> {
    Plan { steps: vec![Step::FollowOutside, Step::EverythingReadOnly], slots: FIRST_SLOTS, processes: false }
        .run(way, NetworkPlan { is_private: network, has_door: false }, &Shields::default())
        .map(drop)
}

/// The network to make.
#[derive(Debug, Clone, Copy)]
struct NetworkPlan {
    is_private: bool,
    /// It has a listening socket for the gateway.
    has_door: bool,
}

static BUILDING: Mutex<()> = Mutex::new(());

/// The first slots of every plan.
const COVERS: usize = 0;
const IGNORED_DIRECTORY: usize = 1;
const SHARED: usize = 2;
const PSEUDO: usize = 3;
const FIRST_SLOTS: usize = 4;

/// One operation in the new mount namespace. Descriptors that outlive a step are stored in a numbered slot.
#[derive(Debug, PartialEq, Eq)]
enum Step {
    FollowOutside,
    Clone {
        from: CString,
        slot: usize,
    },
    /// Like `Clone`, for what may have gone: the slot then stays empty.
    CloneIfThere {
        from: CString,
        slot: usize,
    },
    /// Clones a cover by its name.
    CloneCover {
        name: CString,
        slot: usize,
    },
    Snapshot {
        at: CString,
        options: &'static std::ffi::CStr,
    },
    Terminals {
        at: CString,
    },
    Directory {
        at: CString,
    },
    MakeCover(CoverStep),
    /// Mounts the complete covers over themselves, read-only and without an owner.
    SealCovers {
        at: CString,
        style: CoverStyle,
    },
    /// Writes the file by which git takes a directory for a repository.
    RepositoryHead {
        at: CString,
    },
    /// Mounts a view of processes in which only those are visible that the reader may trace.
    OwnProcesses,
    Point {
        at: CString,
        slot: usize,
    },
    ReadOnly {
        slot: usize,
    },
    EverythingReadOnly,
    Attach {
        slot: usize,
        at: CString,
    },
    /// Makes a slot read-only and attaches it, if it is not empty.
    AttachIfThere {
        slot: usize,
        at: CString,
    },
    Cover {
        at: CString,
    },
}

/// The steps to a mount namespace for a policy.
struct Plan {
    steps: Vec<Step>,
    slots: usize,
    /// A namespace of processes is wanted.
    processes: bool,
}

impl Plan {
    fn new(policy: &SandboxPolicy, style: CoverStyle, covers: Vec<CoverStep>) -> Self {
        let mut plan = Self { steps: vec![Step::FollowOutside], slots: FIRST_SLOTS, processes: true };
        let all_writable = policy.writable_paths().contains(&Path::new("/"));
        let writable = if all_writable { vec![policy.temp.as_path()] } else { policy.writable_paths() };
        // Read-only paths come first, because writable ones can be inside them.
        let shown = policy.show.iter().map(|place| (place.as_path(), false));
        let copies: Vec<(&Path, usize)> = shown
            .chain(writable.into_iter().map(|place| (place, true)))
            .map(|(place, writable)| {
                let slot = plan.slot();
                plan.steps.push(Step::Clone { from: text(place), slot });
                if !writable {
                    plan.steps.push(Step::ReadOnly { slot });
                }
                (place, slot)
            })
            .collect();

        let system_temp = policy.system_temp.as_ref().filter(|_| !all_writable);
        let system_temp = system_temp.map(|temp| plan.clone_system_temp(temp));

        // A staging mount for the covers. The temporary directory is mounted over it afterwards.
        let stage = policy.temp.as_path();
        plan.steps.push(Step::Snapshot { at: text(stage), options: VOID_OPTIONS });
        plan.steps.extend(covers.into_iter().map(Step::MakeCover));
        let ways = plan.make_ways(policy, stage, &copies);
        plan.steps.push(Step::SealCovers { at: text(stage), style });
        plan.steps.push(Step::Point { at: text(stage), slot: COVERS });

        plan.steps.push(Step::OwnProcesses);
        if !all_writable {
            plan.steps.push(Step::EverythingReadOnly);
        }
        // On a separate mount that stays writable: a process that another thread of ours forks shares our
        // descriptors until it calls `exec`, and a mount with a file open for writing cannot become
        // read-only.
        plan.steps.push(Step::Snapshot { at: text(stage), options: VOID_OPTIONS });
        let ignored = stage.join("ignored");
        plan.steps.push(Step::Directory { at: text(&ignored) });
        for name in ["", "objects", "refs"] {
            plan.steps.push(Step::Directory { at: text(&ignored.join(".git").join(name)) });
        }
        plan.steps.push(Step::RepositoryHead { at: text(&ignored.join(".git/HEAD")) });
        plan.steps.push(Step::Point { at: text(&ignored), slot: IGNORED_DIRECTORY });
        if let Some((own, visible)) = system_temp {
            plan.steps.push(Step::Attach { slot: own, at: text(Path::new(SYSTEM_TEMP)) });
            plan.steps.extend(visible.into_iter().map(|(at, slot)| Step::AttachIfThere { slot, at }));
        }
        for (hidden, name) in ways {
            let slot = plan.slot();
            plan.steps.push(Step::CloneCover { name, slot });
            plan.steps.push(Step::Attach { slot, at: text(hidden) });
        }
        for (place, slot) in copies {
            plan.steps.push(Step::Attach { slot, at: text(place) });
        }
        if Path::new("/dev/shm").is_dir() {
            plan.steps.push(Step::Snapshot { at: SHARED_MEMORY.into(), options: c"mode=1777" });
            plan.steps.push(Step::Point { at: SHARED_MEMORY.into(), slot: SHARED });
        }
        if Path::new("/dev/pts").is_dir() {
            plan.steps.push(Step::Terminals { at: TERMINALS.into() });
            plan.steps.push(Step::Point { at: TERMINALS.into(), slot: PSEUDO });
        }
        plan.steps.extend(raw_devices().into_iter().map(|at| Step::Cover { at }));
        plan
    }

    /// Clones the directory that replaces the system's temporary directory, and the names that stay visible in it.
    /// Returns its slot, and the places and slots of the names.
    fn clone_system_temp(&mut self, temp: &crate::SystemTemp) -> (usize, Vec<(CString, usize)>) {
        let own = self.slot();
        self.steps.push(Step::Clone { from: text(&temp.directory), slot: own });
        if !temp.is_writable {
            self.steps.push(Step::ReadOnly { slot: own });
        }
        let visible = temp.visible.iter().map(|name| {
            let (at, slot) = (text(&Path::new(SYSTEM_TEMP).join(name)), self.slot());
            self.steps.push(Step::CloneIfThere { from: at.clone(), slot });
            (at, slot)
        });
        (own, visible.collect())
    }

    /// Makes the covers of hidden directories that contain a visible path: directories that contain only the parents
    /// of that path. Returns the hidden directories with the names of their covers.
    fn make_ways<'a>(
        &mut self,
        policy: &'a SandboxPolicy,
        stage: &Path,
        copies: &[(&Path, usize)],
    ) -> Vec<(&'a Path, CString)> {
        let mut ways = Vec::new();
        for hidden in &policy.deny_read {
            let below: Vec<_> = copies.iter().filter(|(place, _)| place.starts_with(hidden)).collect();
            if below.is_empty() || below.iter().any(|(place, _)| place == hidden) {
                continue;
            }
            let name = format!("way{}", ways.len());
            let cover = stage.join(&name);
            self.steps.push(Step::Directory { at: text(&cover) });
            for (place, _) in &below {
                let mut way = cover.clone();
                for name in place.strip_prefix(hidden).unwrap_or(place) {
                    way.push(name);
                    self.steps.push(Step::Directory { at: text(&way) });
                }
            }
            ways.push((hidden.as_path(), text(Path::new(&name))));
        }
        ways
    }

    fn slot(&mut self) -> usize {
        self.slots += 1;
        self.slots - 1
    }

    /// Runs the plan in a separate process and returns the namespaces.
    fn run(
        &self,
        way: NamespaceMethod,
        network: NetworkPlan,
        shields: &Shields,
    ) -> Result<Descriptors, NamespaceError> {
        let (uid, gid) = (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw());
        // Without a line there is no process that waits at its end.
        let line = FirstProcess::line().ok().filter(|_| self.processes);
        let mut making = NamespaceBuild {
            plan: self,
            shields,
            network,
            disowned: Disowned::new(uid, gid),
            uid_map: (way == NamespaceMethod::UserNamespace).then(|| format!("{uid} {uid} 1")),
            gid_map: format!("{gid} {gid} 1"),
            slots: vec![-1; self.slots],
            user: -1,
            mount: -1,
            messages: -1,
            network_made: -1,
            door: -1,
            processes: -1,
            first: -1,
            stack: ProcessStack::new(),
            first_line: line.as_ref().map(|(_, reader)| reader.as_raw_fd()),
            at: "process",
            outcome: Ok(()),
        };
        // One at a time: whether the process is dumpable holds for all threads, and the map of users depends on
        // it.
        let building = BUILDING.lock().unwrap_or_else(PoisonError::into_inner);
        let ran = kernel::run_outside_namespaces(&mut ProcessStack::new(), make, &mut making);
        drop(building);
        let step = making.at;
        let outcome = ran.and(making.outcome);
        // Take ownership even after a failure, so that no descriptor leaks.
        let made = Descriptors {
            user: adopt_fd(making.user),
            mount: adopt_fd(making.mount),
            messages: adopt_fd(making.messages),
            network: adopt_fd(making.network_made),
            door: adopt_fd(making.door),
            processes: line.filter(|_| making.first > 0).and_then(|(line, _)| {
                let first = FirstProcess::new(making.first, line);
                adopt_fd(making.processes).map(|namespace| Processes { namespace, first })
            }),
            disowned: adopt_fd(making.disowned.users),
            slots: making.slots.into_iter().map(adopt_fd).collect(),
        };
        match outcome {
            Ok(()) => Ok(made),
            Err(errno) => Err(NamespaceError { step, source: io::Error::from_raw_os_error(errno) }),
        }
    }
}

/// The descriptors that a completed plan returns.
struct Descriptors {
    user: Option<OwnedFd>,
    mount: Option<OwnedFd>,
    messages: Option<OwnedFd>,
    network: Option<OwnedFd>,
    door: Option<OwnedFd>,
    processes: Option<Processes>,
    /// Only closed.
    #[expect(dead_code, reason = "held until the covers were made")]
    disowned: Option<OwnedFd>,
    slots: Vec<Option<OwnedFd>>,
}

#[expect(unsafe_code, reason = "the descriptors come from a process that shares our table of them")]
fn adopt_fd(fd: RawFd) -> Option<OwnedFd> {
    // SAFETY: `make` opened it for us and no other code knows its number.
    (fd >= 0).then(|| unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Shared with the process that makes the namespaces.
struct NamespaceBuild<'a> {
    plan: &'a Plan,
    shields: &'a Shields,
    disowned: Disowned,
    network: NetworkPlan,
    uid_map: Option<String>,
    gid_map: String,
    slots: Vec<RawFd>,
    user: RawFd,
    mount: RawFd,
    messages: RawFd,
    network_made: RawFd,
    door: RawFd,
    processes: RawFd,
    /// The first process in that namespace.
    first: libc::pid_t,
    /// For a process in the new namespace.
    stack: ProcessStack,
    /// The end of the line at which the first process waits; `None` where there is to be none.
    first_line: Option<RawFd>,
    /// The current operation, for the error.
    at: &'static str,
    outcome: Outcome,
}

/// The body of that process: only system calls on prepared data.
fn make(making: &mut NamespaceBuild<'_>) {
    making.outcome = make_namespaces(making).and_then(|()| make_mounts(making));
}

fn make_namespaces(making: &mut NamespaceBuild<'_>) -> Outcome {
    making.at = "a namespace of our own";
    if let Some(uid_map) = &making.uid_map {
        // Before the mount namespace: a process that another thread of ours forks shares our descriptors until
        // it calls `exec`, and a mount with a file open for writing cannot become read-only.
        kernel::unshare(libc::CLONE_NEWUSER)?;
        making.at = "the map of users";
        // These files belong to root while the process, which shares our memory, is not dumpable.
        let dumpable = kernel::set_dumpable(1);
        let mapped = kernel::write_file(c"/proc/self/setgroups", b"deny")
            .and_then(|()| kernel::write_file(c"/proc/self/uid_map", uid_map.as_bytes()))
            .and_then(|()| kernel::write_file(c"/proc/self/gid_map", making.gid_map.as_bytes()));
        kernel::set_dumpable(dumpable);
        mapped?;
        making.user = kernel::open(c"/proc/self/ns/user", libc::O_RDONLY)?;
    }
    making.at = "a namespace of our own";
    let network = if making.network.is_private { libc::CLONE_NEWNET } else { 0 };
    kernel::unshare(libc::CLONE_NEWNS | libc::CLONE_NEWIPC | network)?;
    if making.network.is_private {
        making.at = "a network of our own";
        kernel::loopback_up()?;
        if making.network.has_door {
            making.door = kernel::listen_on_loopback()?;
        }
        making.network_made = kernel::open(c"/proc/self/ns/net", libc::O_RDONLY)?;
    }
    making.messages = kernel::open(c"/proc/self/ns/ipc", libc::O_RDONLY)?;
    if let Some(line) = making.first_line {
        // Without it, commands see the processes of the machine.
        let _ = make_processes(making, line);
    }
    making.mount = kernel::open(c"/proc/self/ns/mnt", libc::O_RDONLY)?;
    Ok(())
}

/// Makes a namespace for the caller's children and the first process in it. If its processes cannot be shown,
/// [`make_mounts`] gives it up.
#[expect(unsafe_code, reason = "forks a process that makes raw system calls only")]
fn make_processes(making: &mut NamespaceBuild<'_>, line: RawFd) -> Outcome {
    kernel::unshare(libc::CLONE_NEWPID)?;
    // SAFETY: this process makes nothing but system calls itself.
    making.first = unsafe { first::fork(line) }?;
    making.processes = kernel::open(c"/proc/self/ns/pid_for_children", libc::O_RDONLY)?;
    Ok(())
}

/// Mounts the processes of the new namespace, which only a process in it can do: a child. If that fails, the namespace is
/// given up. Without it, processes that a command may not trace are hidden, if we may do that.
fn show_processes(namespace: &mut RawFd, stack: &mut ProcessStack) {
    let mut mounted = Err(0);
    if *namespace >= 0 {
        let ran = kernel::run_outside_namespaces(
            stack,
            |mounted| *mounted = kernel::mount_processes(c"/proc"),
            &mut mounted,
        );
        if ran.and(mounted).is_ok() {
            return;
        }
        kernel::close(*namespace);
        *namespace = -1;
    }
    let _ = kernel::mount_processes(c"/proc");
}

fn make_mounts(making: &mut NamespaceBuild<'_>) -> Outcome {
    making.at = "mounts of our own";
    for step in &making.plan.steps {
        match step {
            Step::SealCovers { at, style: CoverStyle::Unowned } => making.disowned.seal(at)?,
            Step::SealCovers { style: CoverStyle::Device, .. } => {}
            Step::OwnProcesses => show_processes(&mut making.processes, &mut making.stack),
            step => take(step, &mut making.slots)?,
        }
    }
    // A probe has nothing to cover.
    let Some(covers) = find_covers(&making.slots) else { return Ok(()) };
    making.shields.raise(covers, NamespaceAge::New)
}

fn take(step: &Step, slots: &mut [RawFd]) -> Outcome {
    match step {
        Step::FollowOutside => kernel::follow_outside_mounts(),
        Step::Clone { from, slot } => {
            store_slot(slots, *slot, kernel::clone_tree(from, SymlinkMode::Follow)?)
        }
        Step::CloneIfThere { from, slot } => match kernel::clone_tree(from, SymlinkMode::Keep) {
            Ok(tree) => store_slot(slots, *slot, tree),
            Err(_) => Ok(()),
        },
        Step::CloneCover { name, slot } => {
            let tree = kernel::clone_named(slot_descriptor(slots, COVERS)?, name)?;
            store_slot(slots, *slot, tree)
        }
        Step::Snapshot { at, options } => kernel::mount_memory(at, options),
        Step::Terminals { at } => kernel::mount_terminals(at),
        Step::Directory { at } => match kernel::make_directory(at, 0o755) {
            Err(libc::EEXIST) => Ok(()),
            outcome => outcome,
        },
        Step::MakeCover(step) => covers::take(step),
        Step::RepositoryHead { at } => kernel::create_file(at, b"ref: refs/heads/main\n"),
        Step::SealCovers { .. } | Step::OwnProcesses => Ok(()),
        Step::Point { at, slot } => store_slot(slots, *slot, kernel::point_at(at)?),
        Step::ReadOnly { slot } => kernel::make_read_only(slot_descriptor(slots, *slot)?),
        Step::EverythingReadOnly => kernel::make_everything_read_only(),
        Step::AttachIfThere { slot, at } => match slot_descriptor(slots, *slot)? {
            tree if tree >= 0 => {
                kernel::make_read_only(tree)?;
                // The kind of the entry may have changed since its mount point was made.
                let _ = kernel::attach(tree, at, SymlinkMode::Keep);
                Ok(())
            }
            _ => Ok(()),
        },
        Step::Attach { slot, at } => kernel::attach(slot_descriptor(slots, *slot)?, at, SymlinkMode::Follow),
        Step::Cover { at } => cover(at, None, find_covers(slots).ok_or(libc::EBADF)?, NamespaceAge::New),
    }
}

fn store_slot(slots: &mut [RawFd], slot: usize, fd: RawFd) -> Outcome {
    let place = slots.get_mut(slot).ok_or(libc::EBADF)?;
    *place = fd;
    Ok(())
}

fn slot_descriptor(slots: &[RawFd], slot: usize) -> Outcome<RawFd> {
    slots.get(slot).copied().ok_or(libc::EBADF)
}

fn find_covers(slots: &[RawFd]) -> Option<Covers> {
    let slot = |slot: usize| slots.get(slot).copied().filter(|fd| *fd >= 0);
    Some(Covers { hidden: slot(COVERS)?, ignored: slot(IGNORED_DIRECTORY)? })
}

/// Block devices, through which root could read every hidden file.
fn raw_devices() -> Vec<CString> {
    if !rustix::process::geteuid().is_root() {
        return Vec::new();
    }
    let disks = std::fs::read_dir("/dev").into_iter().flatten().flatten();
    let disks = disks.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_block_device()));
    let others = RAW_DEVICES.iter().map(Path::new).filter(|path| path.exists());
    disks.map(|entry| text(&entry.path())).chain(others.map(text)).collect()
}

/// Converts a path to a C string. Existing paths contain no NUL.
pub(crate) fn text(path: &Path) -> CString {
    CString::new(path.as_os_str().as_bytes()).unwrap_or_default()
}
