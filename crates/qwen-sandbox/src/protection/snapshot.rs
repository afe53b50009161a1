//! A copy of a protected name, taken before a command runs: enough to detect a change and to undo it.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs::{self, Metadata, OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use crate::protection::directory::{DirectoryHandle, remove};

/// How much of a protected directory is remembered: more than hooks and settings ever are.
const BYTES: u64 = 4 * 1024 * 1024;

/// The content of a name.
#[derive(Debug)]
pub(crate) enum Snapshot {
    Nothing,
    File {
        stamp: Stamp,
        mode: u32,
        content: Option<Vec<u8>>,
    },
    Link(PathBuf),
    Directory {
        mode: u32,
        entries: BTreeMap<OsString, Snapshot>,
    },
    /// A device, pipe or socket, or something that we could not look at.
    Unknown,
}

/// Metadata that changes with every change of a file.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Stamp {
    inode: u64,
    size: u64,
    changed: (i64, i64),
}

impl Stamp {
    fn from_metadata(meta: &Metadata) -> Self {
        Self { inode: meta.ino(), size: meta.size(), changed: (meta.ctime(), meta.ctime_nsec()) }
    }
}

/// The result of comparing a name with its snapshot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Restored {
    /// Nothing had changed.
    Unchanged,
    /// It had changed and was restored.
    Undone,
    /// It had changed and could not be restored.
    Remains,
}

impl Restored {
    pub(crate) fn and(self, other: Self) -> Self {
        match (self, other) {
            (Self::Remains, _) | (_, Self::Remains) => Self::Remains,
            (Self::Undone, _) | (_, Self::Undone) => Self::Undone,
            _ => Self::Unchanged,
        }
    }

    pub(crate) fn undone(outcome: &io::Result<()>) -> Self {
        if outcome.is_ok() { Self::Undone } else { Self::Remains }
    }
}

impl Snapshot {
    /// Remembers a name in a directory.
    pub(crate) fn capture(place: &DirectoryHandle, name: &OsStr) -> Self {
        let mut left = BYTES;
        Self::within(place, name, &mut left)
    }

    fn within(place: &DirectoryHandle, name: &OsStr, left: &mut u64) -> Self {
        if place.lacks(name) {
            return Self::Nothing;
        }
        let path = place.name(name);
        let Ok(meta) = fs::symlink_metadata(&path) else { return Self::Unknown };
        if meta.is_symlink() {
            fs::read_link(path).map_or(Self::Unknown, Self::Link)
        } else if meta.is_dir() {
            let Ok(below) = place.open_below(Path::new(name)) else { return Self::Unknown };
            let names = below.names().unwrap_or_default();
            let entries =
                names.into_iter().map(|name| (name.clone(), Self::within(&below, &name, left))).collect();
            Self::Directory { mode: meta.mode(), entries }
        } else if meta.is_file() {
            let content = (meta.size() <= *left).then(|| read(&path).ok()).flatten();
            *left = left.saturating_sub(meta.size());
            Self::File { stamp: Stamp::from_metadata(&meta), mode: meta.mode(), content }
        } else {
            Self::Unknown
        }
    }

    /// True if two snapshots hold the same content, whatever its age and permissions.
    pub(crate) fn has_same_content(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Nothing, Self::Nothing) => true,
            (Self::File { content: Some(one), .. }, Self::File { content: Some(two), .. }) => one == two,
            (Self::Link(one), Self::Link(two)) => one == two,
            (Self::Directory { entries: one, .. }, Self::Directory { entries: two, .. }) => {
                one.len() == two.len()
                    && one.iter().zip(two).all(|(one, two)| one.0 == two.0 && one.1.has_same_content(two.1))
            }
            _ => false,
        }
    }

    /// Compares the name with the snapshot and restores what changed.
    pub(crate) fn restore(&self, place: &DirectoryHandle, name: &OsStr) -> Restored {
        if matches!(self, Self::Nothing) && place.lacks(name) {
            return Restored::Unchanged;
        }
        let path = place.name(name);
        match (self, fs::symlink_metadata(&path)) {
            (Self::Unknown, _) => Restored::Unchanged,
            (Self::Directory { entries, .. }, Ok(meta)) if meta.is_dir() => {
                match place.open_below(Path::new(name)) {
                    Ok(below) => Self::restore_entries(entries, &below),
                    Err(_) => Restored::Remains,
                }
            }
            (Self::File { stamp, mode, content }, Ok(meta)) if meta.is_file() => {
                let same = *stamp == Stamp::from_metadata(&meta)
                    || (*mode == meta.mode() && content.is_some() && *content == read(&path).ok());
                if same { Restored::Unchanged } else { self.replace(place, name) }
            }
            (Self::Link(target), Ok(meta))
                if meta.is_symlink() && fs::read_link(&path).is_ok_and(|t| t == *target) =>
            {
                Restored::Unchanged
            }
            _ => self.replace(place, name),
        }
    }

    fn restore_entries(entries: &BTreeMap<OsString, Self>, below: &DirectoryHandle) -> Restored {
        let known = entries
            .iter()
            .map(|(name, memory)| memory.restore(below, name))
            .fold(Restored::Unchanged, Restored::and);
        let names = below.names().unwrap_or_default();
        let new = names.iter().filter(|name| !entries.contains_key(*name));
        new.map(|name| Self::Nothing.restore(below, name)).fold(known, Restored::and)
    }

    fn replace(&self, place: &DirectoryHandle, name: &OsStr) -> Restored {
        if matches!(self, Self::File { content: None, .. }) {
            return Restored::Remains;
        }
        let path = place.name(name);
        let removed = match remove(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            outcome => outcome,
        };
        Restored::undone(&removed.and_then(|()| self.write(place, name)))
    }

    fn write(&self, place: &DirectoryHandle, name: &OsStr) -> io::Result<()> {
        let path = place.name(name);
        match self {
            Self::Nothing | Self::Unknown => Ok(()),
            Self::Link(target) => std::os::unix::fs::symlink(target, path),
            Self::File { mode, content, .. } => {
                let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
                file.write_all(content.as_deref().unwrap_or_default())?;
                file.set_permissions(Permissions::from_mode(mode & 0o7777))
            }
            Self::Directory { mode, entries } => {
                fs::create_dir(&path)?;
                let below = place.open_below(Path::new(name))?;
                for (name, memory) in entries {
                    memory.write(&below, name)?;
                }
                fs::set_permissions(path, Permissions::from_mode(mode & 0o7777))
            }
        }
    }
}

/// Reads a file that must not be a link, nor keep us waiting.
fn read(path: &Path) -> io::Result<Vec<u8>> {
    let mut file =
        OpenOptions::new().read(true).custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK).open(path)?;
    let mut content = Vec::new();
    io::Read::read_to_end(&mut file, &mut content)?;
    Ok(content)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Takes a snapshot of `kept`, runs `change`, restores, and returns the result and the output of `find`.
    fn after(change: &str) -> (Restored, String) {
        let place = tempfile::tempdir().unwrap();
        let setup =
            "mkdir -p kept/sub; echo one > kept/a; echo two > kept/sub/b; ln -s a kept/l; chmod 750 kept/a";
        let shell = |script: &str| {
            let out = std::process::Command::new("sh")
                .args(["-c", script])
                .current_dir(place.path())
                .output()
                .unwrap();
            String::from_utf8(out.stdout).unwrap()
        };
        shell(setup);
        let look = "find . | sort; stat -c %a kept/a; cat kept/a kept/sub/b; readlink kept/l; ls outside";
        let before = shell(look);
        let dir = DirectoryHandle::open(place.path()).unwrap();
        let memory = Snapshot::capture(&dir, OsStr::new("kept"));
        shell(change);
        let mended = memory.restore(&dir, OsStr::new("kept"));
        let now = shell(look);
        (mended, if now == before { String::new() } else { now })
    }

    #[test]
    fn every_kind_of_change_is_restored() {
        for change in [
            "echo more >> kept/a",
            "echo new > kept/new",
            "mkdir -p kept/new/deep; echo x > kept/new/deep/x",
            "rm kept/a",
            "rm -r kept",
            "rm -r kept; echo file > kept",
            "rm -r kept; mkdir ../kept-away; ln -s ../kept-away kept",
            "rm kept/a; mkdir kept/a",
            "rm -r kept/sub; ln -s /tmp kept/sub",
            "rm kept/l; ln -s sub kept/l",
            "chmod 4777 kept/a",
        ] {
            assert_eq!(after(change), (Restored::Undone, String::new()), "{change}");
        }
    }

    #[test]
    fn an_unchanged_name_is_not_rewritten() {
        for change in ["true", "touch kept/a", "cp -p kept/a x; mv x kept/a"] {
            assert_eq!(after(change), (Restored::Unchanged, String::new()), "{change}");
        }
    }

    #[test]
    fn a_file_created_by_the_command_is_removed() {
        let place = tempfile::tempdir().unwrap();
        let dir = DirectoryHandle::open(place.path()).unwrap();
        let memory = Snapshot::capture(&dir, OsStr::new("new"));
        assert_eq!(memory.restore(&dir, OsStr::new("new")), Restored::Unchanged);
        fs::write(place.path().join("new"), "x").unwrap();
        assert_eq!(memory.restore(&dir, OsStr::new("new")), Restored::Undone);
        assert!(!place.path().join("new").exists());
    }
}
