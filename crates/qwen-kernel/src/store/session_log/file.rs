//! Session logs in files: the log itself as `SESSION.jsonl`, as a worker writes it, and its ownership beside
//! it as `SESSION.owner`. A worker that shares the directory has written the bytes already; then an append
//! only confirms them.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{DirBuilderExt, FileExt};
use std::path::{Path, PathBuf};

use qwen_events::SessionId;
use rustix::fs::{CWD, FlockOperation, Mode, OFlags, ResolveFlags};
use serde::{Deserialize, Serialize};

use super::{Judged, LogOwner, SessionLog, judge};
use crate::ipc::CommitReason;
use crate::store::Appended;

/// Stores session logs in files below a directory.
#[derive(Debug)]
pub struct FileLog {
    directory: PathBuf,
}

/// The content of `SESSION.owner`.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Ownership {
    epoch: u64,
    is_owned: bool,
    last: Option<CommitReason>,
}

impl FileLog {
    /// Logs in `directory`, which is created with mode 0700.
    pub fn open(directory: &Path) -> io::Result<Self> {
        std::fs::DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
        Ok(Self { directory: directory.to_owned() })
    }

    fn path(&self, session: &SessionId, kind: &str) -> PathBuf {
        self.directory.join(format!("{session}.{kind}"))
    }

    /// Reads the ownership under a lock, lets `change` decide, and writes it if `change` returns true.
    fn with_owner<T>(
        &self,
        session: &SessionId,
        change: impl FnOnce(&mut Ownership) -> io::Result<(T, bool)>,
    ) -> io::Result<T> {
        let mut file = open_without_links(&self.path(session, "owner"), OFlags::RDWR | OFlags::CREATE)?;
        // Another owner holds it for a moment only. The caller repeats what failed, so no one waits for one
        // that was stopped.
        rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive)?;
        let result = update_owner(&mut file, change);
        // Explicitly, because a child that has not called `exec` yet shares the open file and with it the
        // lock.
        rustix::fs::flock(&file, FlockOperation::Unlock)?;
        result
    }

    fn log(&self, session: &SessionId, writes: bool) -> io::Result<File> {
        let writing = if writes { OFlags::RDWR | OFlags::APPEND | OFlags::CREATE } else { OFlags::RDONLY };
        open_without_links(&self.path(session, "jsonl"), writing)
    }
}

/// Opens a regular file whose path contains no link: a tenant's worker can replace what is in its directories,
/// and the hub has rights that the worker does not have.
pub(super) fn open_without_links(path: &Path, flags: OFlags) -> io::Result<File> {
    // A pipe that was put in place of the file must not block.
    let flags = flags | OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY;
    let mode = if flags.contains(OFlags::CREATE) { Mode::RUSR | Mode::WUSR } else { Mode::empty() };
    let file = match rustix::fs::openat2(CWD, path, flags, mode, ResolveFlags::NO_SYMLINKS) {
        // Kernels and containers without this call still do not follow a link in place of the file.
        Err(rustix::io::Errno::NOSYS | rustix::io::Errno::PERM) => rustix::fs::open(path, flags, mode)?,
        opened => opened?,
    };
    let file = File::from(file);
    if file.metadata()?.is_file() { Ok(file) } else { Err(io::ErrorKind::InvalidInput.into()) }
}

fn update_owner<T>(
    file: &mut File,
    change: impl FnOnce(&mut Ownership) -> io::Result<(T, bool)>,
) -> io::Result<T> {
    let mut text = String::new();
    file.read_to_string(&mut text)?;
    // An owner that died while it wrote left no valid text; its epoch was never used.
    let mut owner: Ownership = serde_json::from_str(text.trim()).unwrap_or_default();
    let (result, changed) = change(&mut owner)?;
    if changed {
        // Padded to the former length, so that the text is replaced by one write.
        let mut next = serde_json::to_vec(&owner)?;
        next.resize(next.len().max(text.len()), b' ');
        file.seek(SeekFrom::Start(0))?;
        file.write_all(&next)?;
    }
    Ok(result)
}

impl SessionLog for FileLog {
    fn take(&self, session: &SessionId) -> io::Result<LogOwner> {
        let bytes = self.log(session, true)?.metadata()?.len();
        self.with_owner(session, |owner| {
            owner.epoch += 1;
            owner.is_owned = true;
            Ok((LogOwner { epoch: owner.epoch, bytes, last: owner.last.clone() }, true))
        })
    }

    fn read(&self, session: &SessionId, from: u64) -> io::Result<Vec<u8>> {
        let mut file = self.log(session, false)?;
        file.seek(SeekFrom::Start(from))?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    fn append(&self, id: &SessionId, epoch: u64, at: u64, lines: &[u8], reason: &CommitReason) -> Appended {
        let appended = self.with_owner(id, |owner| {
            if owner.epoch != epoch || !owner.is_owned {
                return Ok((Appended::Fenced, false));
            }
            let mut file = self.log(id, true)?;
            let length = file.metadata()?.len();
            let there = length.saturating_sub(at).min(lines.len() as u64);
            let mut stored = vec![0; usize::try_from(there).unwrap_or(0)];
            file.read_exact_at(&mut stored, at.min(length))?;
            match judge(length, at, lines, &stored) {
                Judged::Impossible => return Ok((Appended::Fenced, false)),
                Judged::Done if at + (lines.len() as u64) < length => return Ok((Appended::Ok, false)),
                Judged::Done => {}
                Judged::New => {
                    if let Err(error) = file.write_all(lines) {
                        // The next append must not follow a partial one.
                        let _ = file.set_len(length);
                        return Err(error);
                    }
                }
            }
            owner.last = Some(reason.clone());
            Ok((Appended::Ok, true))
        });
        appended.unwrap_or(Appended::Unknown)
    }

    fn release(&self, session: &SessionId, epoch: u64) -> Appended {
        let released = self.with_owner(session, |owner| {
            if owner.epoch != epoch {
                return Ok((Appended::Fenced, false));
            }
            owner.is_owned = false;
            Ok((Appended::Ok, true))
        });
        released.unwrap_or(Appended::Unknown)
    }

    fn list(&self) -> io::Result<Vec<SessionId>> {
        let mut sessions = Vec::new();
        for entry in std::fs::read_dir(&self.directory)? {
            let name = entry?.file_name();
            let id = name.to_str().and_then(|name| name.strip_suffix(".jsonl"));
            sessions.extend(id.and_then(|id| SessionId::parse(id).ok()));
        }
        sessions.sort_by(|one, other| one.as_str().cmp(other.as_str()));
        Ok(sessions)
    }

    fn delete(&self, session: &SessionId) -> io::Result<()> {
        for kind in ["jsonl", "owner"] {
            match std::fs::remove_file(self.path(session, kind)) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
        Ok(())
    }
}
