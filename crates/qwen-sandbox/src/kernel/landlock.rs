//! Landlock: restricts which files may be written or read and which processes may be signalled. A ruleset is
//! built once per session; each command applies it to itself with one system call.
#![expect(unsafe_code, reason = "Landlock's system calls have no wrapper in libc")]

use std::collections::HashSet;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use crate::policy::SandboxPolicy;

const EXECUTE: u64 = 1 << 0;
const WRITE_FILE: u64 = 1 << 1;
const READ_FILE: u64 = 1 << 2;
const REMOVE_DIR: u64 = 1 << 4;
const REMOVE_FILE: u64 = 1 << 5;
const MAKE_CHAR: u64 = 1 << 6;
const MAKE_DIR: u64 = 1 << 7;
const MAKE_REG: u64 = 1 << 8;
const MAKE_SOCK: u64 = 1 << 9;
const MAKE_FIFO: u64 = 1 << 10;
const MAKE_BLOCK: u64 = 1 << 11;
const MAKE_SYM: u64 = 1 << 12;
const REFER: u64 = 1 << 13;
const TRUNCATE: u64 = 1 << 14;
const IOCTL_DEV: u64 = 1 << 15;

const BIND_TCP: u64 = 1 << 0;
const CONNECT_TCP: u64 = 1 << 1;

const SCOPE_ABSTRACT_SOCKETS: u64 = 1 << 0;
const SCOPE_SIGNALS: u64 = 1 << 1;

/// The access rights that apply to files other than directories.
const FILE_RIGHTS: u64 = EXECUTE | WRITE_FILE | READ_FILE | TRUNCATE | IOCTL_DEV;

/// Devices that any program may write, because they store nothing.
const DEVICES: &[&str] = &["/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"];
/// A process's own terminal and the multiplexer for new ones. Both also need ioctl access.
const TERMINALS: &[&str] = &["/dev/tty", "/dev/ptmx"];
/// The terminals of all sessions. Commands must not read input typed there.
const EVERYBODYS_TERMINALS: &str = "/dev/pts";

const RULE_PATH_BENEATH: u32 = 1;
const ASK_VERSION: u32 = 1;

#[repr(C)]
struct RulesetAttr {
    handled_access_fs: u64,
    handled_access_net: u64,
    scoped: u64,
}

#[repr(C, packed)]
struct PathBeneathAttr {
    allowed_access: u64,
    parent_fd: i32,
}

/// The active Landlock ABI version; 0 means none.
pub(crate) fn abi() -> u32 {
    // SAFETY: the kernel takes no structure when it is asked for its version.
    let version = unsafe {
        libc::syscall(libc::SYS_landlock_create_ruleset, std::ptr::null::<RulesetAttr>(), 0usize, ASK_VERSION)
    };
    u32::try_from(version).unwrap_or(0)
}

/// The other active mechanisms, which determine what Landlock has to enforce.
pub(crate) struct OtherMechanisms {
    /// Mounts cover the paths that may not be read.
    pub mounts: bool,
    /// The command has its own empty network namespace.
    pub network: bool,
    /// Directory of the command's private shared memory.
    pub shared_memory: Option<RawFd>,
    /// Directory of the command's private terminals.
    pub terminals: Option<RawFd>,
}

/// A ruleset that commands apply to themselves.
#[derive(Debug)]
pub(crate) struct Ruleset(OwnedFd);

impl Ruleset {
    /// Builds the ruleset for a resolved policy.
    pub(crate) fn build(
        policy: &SandboxPolicy,
        abi: u32,
        beside: &OtherMechanisms,
        hidden: &mut HiddenPaths,
    ) -> io::Result<Self> {
        let mut changing = WRITE_FILE
            | REMOVE_DIR
            | REMOVE_FILE
            | MAKE_CHAR
            | MAKE_DIR
            | MAKE_REG
            | MAKE_SOCK
            | MAKE_FIFO
            | MAKE_BLOCK
            | MAKE_SYM;
        for (since, right) in [(2, REFER), (3, TRUNCATE), (5, IOCTL_DEV)] {
            if abi >= since {
                changing |= right;
            }
        }
        let screens_reading = !beside.mounts;
        // Listing directories is not restricted: a rule for a directory applies to everything below it, so a
        // parent of a hidden path could not be listed without exposing the path itself.
        let reading = if screens_reading { READ_FILE | EXECUTE } else { 0 };
        let network = if policy.network || beside.network || abi < 4 { 0 } else { BIND_TCP | CONNECT_TCP };
        let scoped = match abi {
            ..6 => 0,
            _ if policy.unix_sockets => SCOPE_SIGNALS,
            _ => SCOPE_SIGNALS | SCOPE_ABSTRACT_SOCKETS,
        };
        let handled = changing | reading;
        let ruleset = Self::create(
            abi,
            &RulesetAttr { handled_access_fs: handled, handled_access_net: network, scoped },
        )?;

        // No command may create devices.
        let ours = handled & !(MAKE_CHAR | MAKE_BLOCK | IOCTL_DEV);
        for place in policy.writable_paths() {
            let holds_hidden = policy.deny_read.iter().any(|hidden| hidden.starts_with(place));
            // Forbid moves between directories if a root contains hidden paths: a hidden file could be moved
            // to where later commands may read it.
            ruleset.allow(place, if holds_hidden { ours & !reading & !REFER } else { ours })?;
        }
        if let Some(temp) = policy.system_temp.as_ref().filter(|temp| beside.mounts && temp.is_writable) {
            ruleset.allow(&temp.directory, ours)?;
        }
        if let Some(directory) = beside.shared_memory {
            ruleset.allow_descriptor(directory, ours)?;
        }
        let terminal = handled & (WRITE_FILE | TRUNCATE | READ_FILE | IOCTL_DEV);
        if let Some(directory) = beside.terminals {
            ruleset.allow_descriptor(directory, terminal)?;
        }
        for device in DEVICES {
            ruleset.allow_if_there(device, handled & (WRITE_FILE | TRUNCATE | READ_FILE))?;
        }
        for path in TERMINALS {
            ruleset.allow_if_there(path, terminal)?;
        }
        if screens_reading {
            hidden
                .note(policy.deny_read.iter().map(PathBuf::as_path).chain([Path::new(EVERYBODYS_TERMINALS)]));
            for place in hidden.readable_paths().iter().chain(&policy.show) {
                ruleset.allow_if_there(place, reading)?;
            }
        }
        Ok(ruleset)
    }

    fn create(abi: u32, attr: &RulesetAttr) -> io::Result<Self> {
        // A kernel refuses a structure that is longer than its own version.
        let size: usize = match abi {
            ..4 => 8,
            4..6 => 16,
            _ => size_of::<RulesetAttr>(),
        };
        // SAFETY: the structure outlives the call, and `size` is at most its length.
        let fd =
            unsafe { libc::syscall(libc::SYS_landlock_create_ruleset, std::ptr::from_ref(attr), size, 0) };
        match RawFd::try_from(fd) {
            // SAFETY: the kernel just gave us this descriptor, which closes on exec.
            Ok(fd) if fd >= 0 => Ok(Self(unsafe { OwnedFd::from_raw_fd(fd) })),
            _ => Err(io::Error::last_os_error()),
        }
    }

    fn allow(&self, path: &Path, rights: u64) -> io::Result<()> {
        let place = std::fs::OpenOptions::new().read(true).custom_flags(libc::O_PATH).open(path)?;
        let rights = if place.metadata()?.is_dir() { rights } else { rights & FILE_RIGHTS };
        self.allow_descriptor(place.as_raw_fd(), rights)
    }

    fn allow_if_there(&self, path: impl AsRef<Path>, rights: u64) -> io::Result<()> {
        match self.allow(path.as_ref(), rights) {
            Err(error)
                if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::PermissionDenied) =>
            {
                Ok(())
            }
            outcome => outcome,
        }
    }

    fn allow_descriptor(&self, fd: RawFd, rights: u64) -> io::Result<()> {
        if rights == 0 {
            return Ok(());
        }
        let attr = PathBeneathAttr { allowed_access: rights, parent_fd: fd };
        // SAFETY: the structure has the kernel's layout and outlives the call.
        let added = unsafe {
            libc::syscall(
                libc::SYS_landlock_add_rule,
                self.0.as_raw_fd(),
                RULE_PATH_BENEATH,
                std::ptr::from_ref(&attr),
                0,
            )
        };
        if added == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    }

    pub(crate) fn descriptor(&self) -> RawFd {
        self.0.as_raw_fd()
    }
}

/// Files that may not be read, identified by inode instead of name: a command may rename a file that it
/// cannot read.
#[derive(Debug, Default)]
pub(crate) struct HiddenPaths {
    /// The hidden files and directories.
    things: HashSet<Identity>,
    /// Their parent directories.
    ways: HashSet<Identity>,
}

/// A device and an inode on it.
type Identity = (u64, u64);

impl HiddenPaths {
    /// Adds the files that are at these paths now. Files noted earlier stay hidden.
    fn note<'a>(&mut self, paths: impl IntoIterator<Item = &'a Path>) {
        let identity = |path: &Path| path.metadata().ok().map(|meta| (meta.dev(), meta.ino()));
        for path in paths {
            self.things.extend(identity(path));
            self.ways.extend(path.ancestors().skip(1).filter_map(identity));
        }
    }

    /// Returns directories and files that together contain everything except the hidden paths. Only parents
    /// of hidden paths are listed entry by entry. Files created later in a listed directory are not included.
    fn readable_paths(&self) -> Vec<PathBuf> {
        let mut places = Vec::new();
        self.collect(Path::new("/"), &mut places);
        places
    }

    fn collect(&self, place: &Path, places: &mut Vec<PathBuf>) {
        let Ok(meta) = place.symlink_metadata() else { return };
        let identity = (meta.dev(), meta.ino());
        // Skip links, whose targets are covered by their own path, and block devices, which expose hidden
        // files.
        if self.things.contains(&identity) || meta.is_symlink() || meta.file_type().is_block_device() {
            return;
        }
        if !self.ways.contains(&identity) {
            places.push(place.to_owned());
            return;
        }
        for entry in std::fs::read_dir(place).into_iter().flatten().flatten() {
            self.collect(&entry.path(), places);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_version_up_to_ours_takes_its_rules() {
        let place = tempfile::tempdir().unwrap();
        let mut policy = SandboxPolicy::new(place.path(), "/tmp");
        policy.deny_read = vec!["/etc/shadow".into()];
        let newest = abi();
        if newest == 0 {
            eprintln!("SKIPPED: there is no Landlock here");
        }
        for version in 1..=newest {
            for mounts in [false, true] {
                let beside = OtherMechanisms { mounts, network: false, shared_memory: None, terminals: None };
                let ruleset = Ruleset::build(&policy, version, &beside, &mut HiddenPaths::default());
                assert!(ruleset.is_ok(), "version {version}: {:?}", ruleset.err());
            }
        }
    }

    #[test]
    fn a_hidden_file_stays_hidden_under_another_name() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().canonicalize().unwrap();
        std::fs::create_dir_all(path.join("a/secret")).unwrap();
        std::fs::create_dir(path.join("a/open")).unwrap();
        let mut hidden = HiddenPaths::default();
        hidden.note([path.join("a/secret").as_path()]);
        let places = |hidden: &HiddenPaths| {
            let places = hidden.readable_paths();
            places
                .into_iter()
                .filter_map(|place| place.strip_prefix(&path).map(Path::to_owned).ok())
                .collect::<Vec<_>>()
        };
        assert_eq!(places(&hidden), [Path::new("a/open")]);
        std::fs::rename(path.join("a/secret"), path.join("a/other")).unwrap();
        std::fs::rename(path.join("a"), path.join("b")).unwrap();
        hidden.note([path.join("a/secret").as_path()]);
        assert_eq!(places(&hidden), [Path::new("b/open")]);
    }
}
