//! Opens files that this process writes in places that commands can also write, such as the workspace: records,
//! logs, the last message, sockets.
//!
//! A command can plant a link there that leads to a file of the user. In these places no link is followed, in
//! no part of the path, and a file is only used if it is a regular file of this user with a single name. A link
//! elsewhere was made by the user and is followed.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Component, Path, PathBuf};

use rustix::fs::{CWD, Mode, OFlags};

/// The most links that are followed in one path, as in the kernel.
const MAX_LINKS: usize = 40;

/// Directories that commands can write, without links in their paths.
#[derive(Debug, Clone, Default)]
pub struct SharedPlaces(Vec<PathBuf>);

/// How a file is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WriteMode {
    /// The content is added at the end.
    Append,
    /// The content replaces what is there.
    Replace,
}

/// A directory, opened without following a link that a command could have made.
#[derive(Debug)]
pub struct HostDirectory {
    descriptor: OwnedFd,
    /// True if commands can write in it.
    is_shared: bool,
}

impl SharedPlaces {
    /// Returns the places with their real paths. Places that do not exist are left out.
    pub fn new(places: impl IntoIterator<Item = PathBuf>) -> Self {
        Self(places.into_iter().filter_map(|place| place.canonicalize().ok()).collect())
    }

    fn contain(&self, path: &Path) -> bool {
        self.0.iter().any(|place| path.starts_with(place))
    }

    /// Opens the file `path` for writing and creates it with mode 0600 if it is missing. Opening a pipe without
    /// a reader fails instead of blocking.
    pub fn open_file(&self, path: &Path, mode: WriteMode) -> io::Result<File> {
        let name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?;
        match self.resolve(path)? {
            Resolved::Outside => open_plain(path, mode),
            // The path enters the shared place through its last part only: a link of the user.
            Resolved::Shared { base, rest } => {
                let parent = rest.parent().unwrap_or(Path::new(""));
                let name = rest.file_name().unwrap_or(name);
                let directory = HostDirectory { descriptor: open_base(&base)?, is_shared: true };
                directory.enter(parent, None)?.open_file(name, mode)
            }
        }
    }

    /// Opens the directory `path` and creates it, with its parents, with mode 0700 if it is missing.
    pub fn open_directory(&self, path: &Path) -> io::Result<HostDirectory> {
        match self.resolve(path)? {
            Resolved::Outside => {
                use std::os::unix::fs::DirBuilderExt;
                std::fs::DirBuilder::new().recursive(true).mode(0o700).create(path)?;
                Ok(HostDirectory { descriptor: open_base(path)?, is_shared: false })
            }
            Resolved::Shared { base, rest } => {
                let directory = HostDirectory { descriptor: open_base(&base)?, is_shared: true };
                directory.enter(&rest, Some(Mode::RWXU))
            }
        }
    }

    /// Opens the directory `path`, which must exist.
    pub fn open_existing_directory(&self, path: &Path) -> io::Result<HostDirectory> {
        match self.resolve(path)? {
            Resolved::Outside => Ok(HostDirectory { descriptor: open_base(path)?, is_shared: false }),
            Resolved::Shared { base, rest } => {
                HostDirectory { descriptor: open_base(&base)?, is_shared: true }.enter(&rest, None)
            }
        }
    }

    /// Follows the links of a path up to the place that commands can write.
    fn resolve(&self, path: &Path) -> io::Result<Resolved> {
        let mut open: Vec<OsString> = Vec::new();
        let push = |open: &mut Vec<OsString>, path: &Path| {
            open.extend(path.components().rev().map(|part| part.as_os_str().to_owned()));
        };
        push(&mut open, &remove_dots(&std::path::absolute(path)?));
        let mut at = PathBuf::from("/");
        let mut links = 0;
        while let Some(part) = open.pop() {
            if self.contain(&at) {
                open.push(part);
                let rest: PathBuf = open.into_iter().rev().collect();
                return Ok(Resolved::Shared { base: at, rest: normal_parts(&rest)? });
            }
            match Path::new(&part).components().next() {
                Some(Component::RootDir) => at = PathBuf::from("/"),
                Some(Component::ParentDir) => {
                    at.pop();
                }
                Some(Component::Normal(name)) => {
                    let next = at.join(name);
                    // Links of the kernel, such as those of open files, have no path.
                    let is_of_kernel = next.starts_with("/proc") || next.starts_with("/dev/fd");
                    match std::fs::read_link(&next) {
                        Ok(target) if !is_of_kernel => {
                            links += 1;
                            if links > MAX_LINKS {
                                return Err(io::Error::other("it has too many links"));
                            }
                            push(&mut open, &target);
                        }
                        _ => at = next,
                    }
                }
                Some(Component::CurDir | Component::Prefix(_)) | None => {}
            }
        }
        Ok(Resolved::Outside)
    }
}

enum Resolved {
    /// The path leads to no shared place.
    Outside,
    /// `rest` is relative to `base`, a real path in a shared place.
    Shared { base: PathBuf, rest: PathBuf },
}

/// Removes `..` with the part before it.
fn remove_dots(path: &Path) -> PathBuf {
    let mut whole = PathBuf::new();
    for part in path.components() {
        if part == Component::ParentDir {
            whole.pop();
        } else {
            whole.push(part);
        }
    }
    whole
}

/// Refuses `..`, which could lead out through a directory that was moved.
fn normal_parts(path: &Path) -> io::Result<PathBuf> {
    let mut whole = PathBuf::new();
    for part in path.components() {
        match part {
            Component::Normal(name) => whole.push(name),
            Component::CurDir => {}
            Component::ParentDir if whole.pop() => {}
            Component::ParentDir | Component::RootDir | Component::Prefix(_) => {
                return Err(io::Error::other("it leads out of the workspace"));
            }
        }
    }
    Ok(whole)
}

const DIRECTORY: OFlags = OFlags::DIRECTORY.union(OFlags::CLOEXEC).union(OFlags::RDONLY);

fn open_base(path: &Path) -> io::Result<OwnedFd> {
    Ok(rustix::fs::openat(CWD, path, DIRECTORY, Mode::empty())?)
}

/// Opens a file in a place that commands cannot write.
fn open_plain(path: &Path, mode: WriteMode) -> io::Result<File> {
    let mut options = File::options();
    match mode {
        WriteMode::Append => options.append(true),
        WriteMode::Replace => options.write(true).truncate(true),
    };
    use std::os::unix::fs::OpenOptionsExt;
    let at_once = OFlags::NONBLOCK.bits().cast_signed();
    options.create(true).mode(0o600).custom_flags(at_once).open(path)
}

impl HostDirectory {
    /// Opens a directory below this one, part by part and without links. With `create`, missing ones are made.
    pub fn enter(self, path: &Path, create: Option<Mode>) -> io::Result<Self> {
        let mut descriptor = self.descriptor;
        for part in path {
            if let Some(mode) = create {
                match rustix::fs::mkdirat(&descriptor, part, mode) {
                    Ok(()) | Err(rustix::io::Errno::EXIST) => {}
                    Err(error) => return Err(error.into()),
                }
            }
            let flags = if self.is_shared { DIRECTORY.union(OFlags::NOFOLLOW) } else { DIRECTORY };
            descriptor = rustix::fs::openat(&descriptor, part, flags, Mode::empty())
                .map_err(|error| explain(error, part))?;
        }
        Ok(Self { descriptor, is_shared: self.is_shared })
    }

    /// The same directory, treated as one that commands can write.
    pub fn into_shared(self) -> Self {
        Self { is_shared: true, ..self }
    }

    /// Another descriptor of the same directory.
    pub fn duplicate(&self) -> io::Result<Self> {
        Ok(Self { descriptor: self.descriptor.try_clone()?, is_shared: self.is_shared })
    }

    /// Opens a file of this directory for writing and creates it with mode 0600 if it is missing.
    pub fn open_file(&self, name: &OsStr, mode: WriteMode) -> io::Result<File> {
        let flags = OFlags::WRONLY
            | OFlags::CREATE
            | OFlags::CLOEXEC
            | OFlags::NONBLOCK
            | OFlags::NOFOLLOW
            | if mode == WriteMode::Append { OFlags::APPEND } else { OFlags::empty() };
        let file = rustix::fs::openat(&self.descriptor, name, flags, Mode::RUSR | Mode::WUSR)
            .map_err(|error| explain(error, name))?;
        let about = rustix::fs::fstat(&file)?;
        let kind = rustix::fs::FileType::from_raw_mode(about.st_mode);
        let is_own = about.st_uid == rustix::process::geteuid().as_raw();
        if !kind.is_file() || about.st_nlink != 1 || !is_own {
            return Err(io::Error::other(
                "it is not a regular file of this user with a single name; a command could have made it: remove it, or \
                 choose a file outside the workspace",
            ));
        }
        if mode == WriteMode::Replace {
            rustix::fs::ftruncate(&file, 0)?;
        }
        Ok(file.into())
    }

    /// A path to a name in this directory that no renaming can redirect. It is valid while the directory is
    /// open in this process.
    pub fn path_of(&self, name: &OsStr) -> PathBuf {
        Path::new("/proc/self/fd").join(self.descriptor.as_raw_fd().to_string()).join(name)
    }
}

fn explain(error: rustix::io::Errno, name: &OsStr) -> io::Error {
    match error {
        rustix::io::Errno::LOOP | rustix::io::Errno::NOTDIR => io::Error::other(format!(
            "'{}' is a link or not a directory, and a command could have made it: remove it, or choose a place outside \
             the workspace",
            name.display()
        )),
        other => other.into(),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    struct Place {
        root: tempfile::TempDir,
        shared: SharedPlaces,
    }

    fn place() -> Place {
        let root = tempfile::tempdir().unwrap();
        for directory in ["workspace/sub", "home"] {
            fs::create_dir_all(root.path().join(directory)).unwrap();
        }
        fs::write(root.path().join("home/profile"), "mine").unwrap();
        let shared = SharedPlaces::new([root.path().join("workspace")]);
        Place { root, shared }
    }

    #[test]
    fn no_link_in_a_shared_place_is_followed() {
        let Place { root, shared } = place();
        let (workspace, home) = (root.path().join("workspace"), root.path().join("home"));
        symlink(home.join("profile"), workspace.join("file")).unwrap();
        symlink(home.join("new"), workspace.join("dangling")).unwrap();
        symlink(&home, workspace.join("directory")).unwrap();
        symlink("../../home", workspace.join("sub/relative")).unwrap();
        symlink(workspace.join("file"), home.join("of-the-user")).unwrap();
        fs::hard_link(home.join("profile"), workspace.join("second-name")).unwrap();
        for path in [
            "workspace/file",
            "workspace/dangling",
            "workspace/directory/profile",
            "workspace/directory/new",
            "workspace/sub/relative/new",
            "workspace/sub/../directory/new",
            "workspace/second-name",
            "home/of-the-user",
            "workspace/../workspace/file",
        ] {
            for mode in [WriteMode::Append, WriteMode::Replace] {
                let opened = shared.open_file(&root.path().join(path), mode);
                assert!(opened.is_err(), "{path}: {mode:?}");
            }
            assert!(shared.open_directory(&root.path().join(path)).is_err(), "{path}");
        }
        assert_eq!(fs::read_to_string(home.join("profile")).unwrap(), "mine");
        assert!(!home.join("new").exists());
    }

    #[test]
    fn ordinary_files_and_links_of_the_user_work() {
        use std::io::Write;
        let Place { root, shared } = place();
        symlink(root.path().join("workspace"), root.path().join("way-in")).unwrap();
        symlink(root.path().join("home"), root.path().join("way-home")).unwrap();
        for path in
            ["workspace/new", "workspace/sub/new", "way-in/other", "way-home/profile", "workspace/../home/x"]
        {
            let path = root.path().join(path);
            shared.open_file(&path, WriteMode::Replace).unwrap().write_all(b"one").unwrap();
            shared.open_file(&path, WriteMode::Append).unwrap().write_all(b" two").unwrap();
            assert_eq!(fs::read_to_string(&path).unwrap(), "one two", "{}", path.display());
        }
        let made = shared.open_directory(&root.path().join("workspace/a/b")).unwrap();
        made.open_file(OsStr::new("f"), WriteMode::Append).unwrap();
        assert!(root.path().join("workspace/a/b/f").exists());
    }
}
