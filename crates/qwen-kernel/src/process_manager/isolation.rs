//! The view of the file system that a tenant's worker has: its own user and mount namespace, in which the
//! places of other tenants and of the hub do not exist. It is entered between fork and exec, so no option of a
//! session can leave it. In a hub that root started, the tenant's own user and limits are part of it.

use std::ffi::{CStr, CString};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use rustix::fs::{CWD, Mode, OFlags};
use rustix::mount::{MountFlags, MountPropagationFlags, MoveMountFlags, OpenTreeFlags};
use rustix::thread::UnshareFlags;

use super::spawn::SpawnSpec;
use super::tenant_user::TenantUser;

/// What a tenant's worker does not see.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct TenantView {
    /// Files and directories that are replaced by empty ones.
    pub hidden: Vec<PathBuf>,
    /// Directories inside hidden ones that stay.
    pub visible: Vec<PathBuf>,
}

/// What separates a process from others, ready for use between fork and exec: nothing there allocates.
#[derive(Default)]
pub(super) struct Confinement {
    /// The files of control groups that take the process.
    groups: Vec<OwnedFd>,
    view: Option<PreparedView>,
}

impl Confinement {
    pub(super) fn prepare(spec: &SpawnSpec) -> io::Result<Self> {
        let view = match &spec.view {
            Some(view) => {
                let cwd = spec.cwd.clone().map_or_else(std::env::current_dir, Ok)?;
                Some(PreparedView::new(view, &cwd, spec.user)?)
            }
            None => None,
        };
        let open = |path: &PathBuf| rustix::fs::open(path, OFlags::WRONLY | OFlags::CLOEXEC, Mode::empty());
        let groups: Result<_, _> = spec.control_groups.iter().map(open).collect();
        Ok(Self { groups: groups?, view })
    }

    /// Enters the limits, then the view. Runs between fork and exec.
    pub(super) fn enter(&mut self) -> io::Result<()> {
        for group in &self.groups {
            // Means the process that writes.
            rustix::io::write(group, b"0")?;
        }
        self.view.as_mut().map_or(Ok(()), PreparedView::enter)
    }
}

/// Makes a command run with the view, the user and the limits of a worker: for what the hub reads on behalf of
/// a tenant.
pub fn confine(command: &mut Command, spec: &SpawnSpec) -> io::Result<()> {
    let mut confinement = Confinement::prepare(spec)?;
    // SAFETY: the closure runs between fork and exec and makes only system calls; it neither allocates nor
    // locks.
    #[expect(unsafe_code, reason = "namespaces are entered in the child")]
    unsafe {
        command.pre_exec(move || confinement.enter());
    }
    Ok(())
}

/// The view, ready for use between fork and exec.
struct PreparedView {
    hidden: Vec<HiddenPath>,
    cwd: CString,
    maps: [CString; 2],
    user: Option<TenantUser>,
    /// Locks the mounts in a second namespace, because a worker of root keeps its privileges after exec.
    is_locked_again: bool,
}

struct HiddenPath {
    path: CString,
    is_directory: bool,
    visible: Vec<VisiblePath>,
}

struct VisiblePath {
    path: CString,
    /// The directories from the hidden one to this one, which are made in the empty one.
    parents: Vec<CString>,
    /// The content of the directory, taken before it is hidden.
    tree: Option<OwnedFd>,
}

impl PreparedView {
    /// Prepares the view of a worker with this working directory. Hidden paths that do not exist are left out.
    fn new(view: &TenantView, cwd: &Path, user: Option<TenantUser>) -> io::Result<Self> {
        let real = |paths: &[PathBuf]| -> Vec<PathBuf> {
            let mut real: Vec<PathBuf> = paths.iter().filter_map(|path| path.canonicalize().ok()).collect();
            real.sort();
            real.dedup();
            real
        };
        let (all, visible) = (real(&view.hidden), real(&view.visible));
        let is_gone = |path: &PathBuf| {
            let inside = |outer: &PathBuf| path != outer && path.starts_with(outer);
            all.iter().any(inside) && !visible.iter().any(|visible| path.starts_with(visible))
        };
        let mut hidden = Vec::new();
        for path in all.iter().filter(|path| !is_gone(path)) {
            let inner = visible.iter().filter(|visible| visible.starts_with(path) && *visible != path);
            let inner: io::Result<Vec<VisiblePath>> =
                inner.map(|inner| VisiblePath::new(path, inner)).collect();
            hidden.push(HiddenPath { path: text(path)?, is_directory: path.is_dir(), visible: inner? });
        }
        let own = (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw());
        let (uid, gid) = user.map_or(own, |user| (user.uid, user.gid));
        let map = |id: u32| CString::new(format!("{id} {id} 1")).map_err(io::Error::other);
        let maps = [map(uid)?, map(gid)?];
        Ok(Self { hidden, cwd: text(cwd)?, maps, user, is_locked_again: uid == 0 })
    }

    /// Enters the view. Runs between fork and exec.
    fn enter(&mut self) -> io::Result<()> {
        match self.user {
            // The tenant's user may not be able to reach what is mounted.
            Some(_) => unshare(UnshareFlags::NEWNS)?,
            None => self.separate()?,
        }
        rustix::mount::mount_change(c"/", MountPropagationFlags::DOWNSTREAM | MountPropagationFlags::REC)?;
        for hidden in &mut self.hidden {
            hidden.hide()?;
        }
        if let Some(user) = self.user {
            user.assume()?;
            TenantUser::own_process()?;
        }
        if self.is_locked_again || self.user.is_some() {
            self.separate()?;
        }
        rustix::process::chdir(&*self.cwd)?;
        Ok(())
    }

    /// Enters new namespaces with the same user.
    fn separate(&self) -> io::Result<()> {
        unshare(UnshareFlags::NEWUSER | UnshareFlags::NEWNS)?;
        write(c"/proc/self/setgroups", c"deny")?;
        write(c"/proc/self/uid_map", &self.maps[0])?;
        write(c"/proc/self/gid_map", &self.maps[1])
    }
}

impl HiddenPath {
    fn hide(&mut self) -> io::Result<()> {
        if !self.is_directory {
            return Ok(rustix::mount::mount_bind(c"/dev/null", &*self.path)?);
        }
        for visible in &mut self.visible {
            let flags = OpenTreeFlags::OPEN_TREE_CLONE
                | OpenTreeFlags::AT_RECURSIVE
                | OpenTreeFlags::OPEN_TREE_CLOEXEC;
            visible.tree = Some(rustix::mount::open_tree(CWD, &*visible.path, flags)?);
        }
        let flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
        rustix::mount::mount(c"none", &*self.path, c"tmpfs", flags, c"size=64k,mode=0755")?;
        for visible in &mut self.visible {
            for parent in &visible.parents {
                match rustix::fs::mkdir(&**parent, Mode::from_raw_mode(0o755)) {
                    Ok(()) | Err(rustix::io::Errno::EXIST) => {}
                    Err(error) => return Err(error.into()),
                }
            }
            if let Some(tree) = visible.tree.take() {
                let flags = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH;
                rustix::mount::move_mount(&tree, c"", CWD, &*visible.path, flags)?;
            }
        }
        Ok(rustix::mount::mount_remount(&*self.path, flags | MountFlags::RDONLY | MountFlags::BIND, c"")?)
    }
}

impl VisiblePath {
    fn new(hidden: &Path, path: &Path) -> io::Result<Self> {
        let mut parents: Vec<&Path> =
            path.ancestors().take_while(|parent| *parent != hidden && parent.starts_with(hidden)).collect();
        parents.reverse();
        let parents: io::Result<Vec<CString>> = parents.into_iter().map(text).collect();
        Ok(Self { path: text(path)?, parents: parents?, tree: None })
    }
}

fn unshare(namespaces: UnshareFlags) -> io::Result<()> {
    // SAFETY: the process has one thread, which has just been forked, and no descriptor table is shared.
    #[expect(unsafe_code, reason = "only the flag for descriptor tables is unsafe, and it is not used")]
    unsafe {
        Ok(rustix::thread::unshare_unsafe(namespaces)?)
    }
}

fn text(path: &Path) -> io::Result<CString> {
    CString::new(path.as_os_str().as_bytes()).map_err(io::Error::other)
}

fn write(path: &CStr, content: &CStr) -> io::Result<()> {
    let file = rustix::fs::open(path, OFlags::WRONLY | OFlags::CLOEXEC, Mode::empty())?;
    let content = content.to_bytes();
    let written = rustix::io::write(&file, content)?;
    if written == content.len() { Ok(()) } else { Err(io::ErrorKind::WriteZero.into()) }
}

/// True if this machine can give a worker its own view, as this user. Starts a short process.
pub fn is_isolation_available(binary: &Path, user: Option<TenantUser>) -> bool {
    let mut command = Command::new(binary);
    command.arg("--version").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let (view, cwd) = (Some(TenantView::default()), Some(PathBuf::from("/")));
    confine(&mut command, &SpawnSpec { cwd, view, user, ..SpawnSpec::default() }).is_ok()
        && command.status().is_ok_and(|status| status.success())
}
