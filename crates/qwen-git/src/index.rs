//! The index of a repository: the files that git tracks, with the state in which git saw them last.
//!
//! Versions 2 to 4 are read. An index that refers to another one (a split index) is not: what it tracks cannot
//! be told from the file alone.

use std::ffi::OsString;
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use crate::sha1;

/// The largest index that is read.
const MAX_BYTES: u64 = 64 * 1024 * 1024;
/// Ten numbers that describe a file: times, device, inode, mode, owner, size.
const STATUS_BYTES: usize = 40;
/// The flag of an entry that has a second field of flags.
const EXTENDED: u16 = 0x4000;
/// The bits of the flags that hold the length of the name.
const NAME_LENGTH: u16 = 0x0fff;
const STAGE: u16 = 0x3000;
/// The file type bits of an entry's mode, and the types.
const KIND: u32 = 0o170_000;

/// The id of empty content, in its SHA-1 form.
const EMPTY: [u8; 20] = [
    0xe6, 0x9d, 0xe2, 0x9b, 0xb2, 0xd1, 0xd6, 0x43, 0x4b, 0x8b, 0x29, 0xae, 0x77, 0x5a, 0xd8, 0xc2, 0xe4,
    0x8c, 0x53, 0x91,
];

const MODIFIED_AT: usize = 8;
const MODE_AT: usize = 24;
const SIZE_AT: usize = 36;

/// Why an index cannot be used.
#[derive(Debug)]
pub enum IndexError {
    /// The file cannot be read or written.
    Io(io::Error),
    /// It is not an index of a known version, or it is damaged, too large or split.
    Unsupported,
}

impl From<io::Error> for IndexError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

/// The kind of a tracked path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TrackedKind {
    File {
        executable: bool,
    },
    Link,
    /// A repository inside this one.
    Submodule,
    /// A directory that a sparse index does not list.
    Directory,
}

/// The size and time by which git recognises an unchanged file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct FileStamp {
    /// Seconds since 1970, modulo 2^32 as git stores them.
    pub modified: u32,
    /// The size in bytes, modulo 2^32.
    pub size: u32,
}

/// A path that git tracks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IndexEntry {
    /// Relative to the root of the working tree.
    pub path: PathBuf,
    status: Vec<u8>,
    /// The id of the object with its content.
    pub object: Vec<u8>,
    flags: u16,
    extended: Option<u16>,
    /// Where the entry begins in the file.
    offset: usize,
}

impl IndexEntry {
    fn number(&self, at: usize) -> u32 {
        self.status.get(at..at + 4).map_or(0, number)
    }

    pub fn kind(&self) -> TrackedKind {
        let mode = self.number(MODE_AT);
        match mode & KIND {
            0o120_000 => TrackedKind::Link,
            0o160_000 => TrackedKind::Submodule,
            0o040_000 => TrackedKind::Directory,
            _ => TrackedKind::File { executable: mode & 0o100 != 0 },
        }
    }

    pub fn stamp(&self) -> FileStamp {
        FileStamp { modified: self.number(MODIFIED_AT), size: self.number(SIZE_AT) }
    }

    /// 0, or the side of a merge conflict.
    pub fn stage(&self) -> u16 {
        (self.flags & STAGE) >> 12
    }

    /// True if two entries track the same content in the same way.
    pub fn tracks_same(&self, other: &Self) -> bool {
        self.object == other.object
            && self.number(MODE_AT) == other.number(MODE_AT)
            && self.stage() == other.stage()
    }

    /// The place of its object in the directory of objects, if it is stored alone.
    pub fn loose_object(&self) -> PathBuf {
        let hex: String = self.object.iter().map(|byte| format!("{byte:02x}")).collect();
        let (directory, name) = hex.split_at(hex.len().min(2));
        Path::new(directory).join(name)
    }
}

/// An index as it was read.
#[derive(Debug, Clone)]
pub struct Index {
    pub entries: Vec<IndexEntry>,
    /// Seconds since 1970 of the file's last change. A tracked file that changed in the same second or later may
    /// have changed unnoticed, so git reads it again.
    pub written: i64,
    modified: SystemTime,
    bytes: Vec<u8>,
}

impl Index {
    /// Reads the index of a git directory. `None` if there is none.
    pub fn read(git_directory: &Path, object_bytes: usize) -> Result<Option<Self>, IndexError> {
        let file = git_directory.join("index");
        let about = match file.metadata() {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            about => about?,
        };
        if !about.is_file() || about.len() > MAX_BYTES {
            return Err(IndexError::Unsupported);
        }
        let bytes = fs::read(&file)?;
        let entries = parse(&bytes, object_bytes).ok_or(IndexError::Unsupported)?;
        Ok(Some(Self { entries, written: about.mtime(), modified: about.modified()?, bytes }))
    }

    /// True if git reads an entry's file again, whatever its stamp.
    pub fn is_racy(&self, entry: &IndexEntry) -> bool {
        let stamp = entry.stamp();
        // Git removes the size of an entry that it wants to look at again.
        let is_smudged = stamp.size == 0 && !entry.object.starts_with(&EMPTY);
        i64::from(stamp.modified) >= self.written || is_smudged
    }
}

/// Changes the stamps of entries, so that git finds files with these stamps unchanged. Nothing else changes. The
/// size must be the true one: git takes a file of another size for changed without reading it.
pub fn restamp(
    git_directory: &Path,
    object_bytes: usize,
    stamps: &[(PathBuf, FileStamp)],
) -> Result<(), IndexError> {
    rewrite(git_directory, object_bytes, |index| {
        let mut bytes = index.bytes.clone();
        for entry in &index.entries {
            let Some((_, stamp)) = stamps.iter().find(|(path, _)| *path == entry.path) else { continue };
            let fields = [(MODIFIED_AT, stamp.modified), (MODIFIED_AT + 4, 0), (SIZE_AT, stamp.size)];
            for (at, value) in fields {
                let at = entry.offset + at;
                bytes.get_mut(at..at + 4)?.copy_from_slice(&value.to_be_bytes());
            }
        }
        bytes.truncate(bytes.len().checked_sub(sha1::LENGTH)?);
        Some(bytes)
    })
}

/// Puts entries back that were changed or removed, in the state in which they were read.
pub fn restore(
    git_directory: &Path,
    object_bytes: usize,
    tracked: &[IndexEntry],
    is_meant: &dyn Fn(&Path) -> bool,
) -> Result<(), IndexError> {
    rewrite(git_directory, object_bytes, |index| {
        let mut entries: Vec<&IndexEntry> = index
            .entries
            .iter()
            .filter(|entry| {
                // Neither what took the place of a restored path nor one of its parents may stay.
                !is_meant(&entry.path) && !tracked.iter().any(|kept| kept.path.starts_with(&entry.path))
            })
            .chain(tracked)
            .collect();
        entries.sort_by(|one, other| {
            let name = |entry: &IndexEntry| entry.path.as_os_str().as_bytes().to_vec();
            (name(one), one.stage()).cmp(&(name(other), other.stage()))
        });
        serialize(&entries)
    })
}

/// Replaces an index under its lock, as git does. `change` returns the content without the digest at its end.
fn rewrite(
    git_directory: &Path,
    object_bytes: usize,
    change: impl FnOnce(&Index) -> Option<Vec<u8>>,
) -> Result<(), IndexError> {
    // The digest of other formats is not SHA-1.
    if object_bytes != sha1::LENGTH {
        return Err(IndexError::Unsupported);
    }
    // A link could lead to a directory that is not the repository's.
    if !crate::head::is_real(git_directory) {
        return Err(IndexError::Unsupported);
    }
    let lock = git_directory.join("index.lock");
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o666)
        .custom_flags(0o400_000 /* O_NOFOLLOW */)
        .open(&lock)?;
    let written = (|| {
        let index = Index::read(git_directory, object_bytes)?.ok_or(IndexError::Unsupported)?;
        let mut bytes = change(&index).ok_or(IndexError::Unsupported)?;
        let digest = sha1::digest(&bytes);
        bytes.extend(digest);
        file.write_all(&bytes)?;
        // Git reads files again that changed in the second of this time or later. A new time would hide their
        // changes.
        file.set_modified(index.modified)?;
        fs::rename(&lock, git_directory.join("index"))?;
        Ok(())
    })();
    if written.is_err() {
        // The lock is ours.
        let _ = fs::remove_file(&lock);
    }
    written
}

/// The length of object ids in a repository, by the settings of its common directory.
pub fn object_bytes(common: &Path) -> usize {
    let settings = crate::settings::read_bounded(&common.join("config"));
    let settings = settings.and_then(|text| crate::settings::parse(&text)).unwrap_or_default();
    let is_sha256 = settings.iter().any(|setting| {
        setting.section == "extensions"
            && setting.key == "objectformat"
            && setting.value.eq_ignore_ascii_case("sha256")
    });
    if is_sha256 { 32 } else { sha1::LENGTH }
}

fn number(bytes: &[u8]) -> u32 {
    bytes.iter().fold(0, |number, byte| number << 8 | u32::from(*byte))
}

fn parse(bytes: &[u8], object_bytes: usize) -> Option<Vec<IndexEntry>> {
    let header = bytes.get(..12)?;
    let version = number(&header[4..8]);
    if &header[..4] != b"DIRC" || !(2..=4).contains(&version) {
        return None;
    }
    let count = usize::try_from(number(&header[8..12])).ok()?;
    let mut entries: Vec<IndexEntry> = Vec::new();
    let mut at = 12;
    for _ in 0..count {
        let before = entries.last().map(|entry| entry.path.as_os_str().as_bytes());
        let (entry, end) = parse_entry(bytes, at, version, object_bytes, before)?;
        entries.push(entry);
        at = end;
    }
    // The extensions, each with a name and a length, up to the digest.
    let end = bytes.len().checked_sub(object_bytes)?;
    while at < end {
        let length = usize::try_from(number(bytes.get(at + 4..at + 8)?)).ok()?;
        if bytes.get(at..at + 4)? == b"link" {
            return None;
        }
        at = at.checked_add(8)?.checked_add(length)?;
    }
    (at == end).then_some(entries)
}

/// Parses the entry at an offset, and returns where it ends.
fn parse_entry(
    bytes: &[u8],
    offset: usize,
    version: u32,
    object_bytes: usize,
    before: Option<&[u8]>,
) -> Option<(IndexEntry, usize)> {
    let status = bytes.get(offset..offset + STATUS_BYTES)?.to_vec();
    let mut at = offset + STATUS_BYTES;
    let object = bytes.get(at..at + object_bytes)?.to_vec();
    at += object_bytes;
    let flags = u16::from_be_bytes(bytes.get(at..at + 2)?.try_into().ok()?);
    at += 2;
    let extended = if version >= 3 && flags & EXTENDED != 0 {
        at += 2;
        Some(u16::from_be_bytes(bytes.get(at - 2..at)?.try_into().ok()?))
    } else {
        None
    };
    let mut name = Vec::new();
    if version == 4 {
        let (dropped, after) = parse_length(bytes, at)?;
        at = after;
        let before = before.unwrap_or_default();
        name.extend(before.get(..before.len().checked_sub(dropped)?)?);
    }
    let length = bytes.get(at..)?.iter().position(|byte| *byte == 0)?;
    name.extend(bytes.get(at..at + length)?);
    at += length + 1;
    if version < 4 {
        // Padded to a multiple of eight, with at least one zero.
        at = offset + (at - 1 - offset) / 8 * 8 + 8;
    }
    let path = PathBuf::from(OsString::from_vec(name));
    Some((IndexEntry { path, status, object, flags, extended, offset }, at))
}

/// Parses a length of variable size.
fn parse_length(bytes: &[u8], mut at: usize) -> Option<(usize, usize)> {
    let mut byte = *bytes.get(at)?;
    let mut value = usize::from(byte & 127);
    while byte & 128 != 0 {
        at += 1;
        byte = *bytes.get(at)?;
        value = value.checked_add(1)?.checked_mul(128)?.checked_add(usize::from(byte & 127))?;
    }
    Some((value, at + 1))
}

/// Writes entries without extensions, which git rebuilds.
fn serialize(entries: &[&IndexEntry]) -> Option<Vec<u8>> {
    let version: u32 = if entries.iter().any(|entry| entry.extended.is_some()) { 3 } else { 2 };
    let mut bytes = b"DIRC".to_vec();
    bytes.extend(version.to_be_bytes());
    bytes.extend(u32::try_from(entries.len()).ok()?.to_be_bytes());
    for entry in entries {
        let start = bytes.len();
        let name = entry.path.as_os_str().as_bytes();
        let length = u16::try_from(name.len()).map_or(NAME_LENGTH, |length| length.min(NAME_LENGTH));
        bytes.extend(&entry.status);
        bytes.extend(&entry.object);
        bytes.extend((entry.flags & !NAME_LENGTH | length).to_be_bytes());
        bytes.extend(entry.extended.iter().flat_map(|flags| flags.to_be_bytes()));
        bytes.extend(name);
        let padded = start + (bytes.len() - start) / 8 * 8 + 8;
        bytes.resize(padded, 0);
    }
    Some(bytes)
}
