//! Lists sessions without reading whole logs.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use qwen_events::{SessionId, Timestamp};
use serde::Deserialize;

use super::{LogHeader, Store};

/// How many bytes are read at once from either end of a log.
const WINDOW: u64 = 64 * 1024;

/// How many bytes from its end a log is searched for its last turn.
const FARTHEST: u64 = 4 * 1024 * 1024;

/// One session in a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Summary {
    pub header: LogHeader,
    /// When the log was last written.
    pub last_activity: Timestamp,
    /// The number of turns that were started; `None` if the last start is too far from the end of a large
    /// log.
    pub turns: Option<u64>,
    /// The size of the log in bytes.
    pub bytes: u64,
}

impl Store {
    /// The sessions, latest first; restricted to those started in `cwd` if given.
    pub fn list(&self, cwd: Option<&Path>) -> io::Result<Vec<Summary>> {
        let sessions = self.by_age()?.into_iter();
        let summaries = sessions.filter_map(|(at, id)| self.summary(&id, at, cwd));
        Ok(summaries.collect())
    }

    /// The most recently used session of `cwd`.
    pub fn newest(&self, cwd: &Path) -> Option<SessionId> {
        let sessions = self.by_age().ok()?;
        let cwd = cwd.to_string_lossy();
        sessions.into_iter().find_map(|(_, id)| {
            let header = header(&File::open(self.path(&id)).ok()?, &id)?;
            (*header.cwd == *cwd).then_some(id)
        })
    }

    /// All logs by modification time, latest first.
    fn by_age(&self) -> io::Result<Vec<(Timestamp, SessionId)>> {
        let entries = match std::fs::read_dir(self.dir()) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(error),
        };
        let mut sessions: Vec<(Timestamp, SessionId)> = entries
            .filter_map(|entry| {
                let entry = entry.ok()?;
                let name = entry.file_name();
                let id = SessionId::parse(name.to_str()?.strip_suffix(".jsonl")?).ok()?;
                let metadata = entry.metadata().ok().filter(std::fs::Metadata::is_file)?;
                Some((timestamp(metadata.modified().ok()?), id))
            })
            .collect();
        sessions.sort_by(|a, b| b.cmp(a));
        Ok(sessions)
    }

    fn summary(&self, id: &SessionId, last_activity: Timestamp, cwd: Option<&Path>) -> Option<Summary> {
        let file = File::open(self.path(id)).ok()?;
        let header = header(&file, id)?;
        if cwd.is_some_and(|cwd| *cwd.to_string_lossy() != *header.cwd) {
            return None;
        }
        let bytes = file.metadata().ok()?.len();
        Some(Summary { header, last_activity, turns: last_turn(&file, bytes), bytes })
    }
}

/// The first line of a log. A header that exceeds the window is invalid: no directory has such a long path.
fn header(file: &File, id: &SessionId) -> Option<LogHeader> {
    let head = read_at(file, 0, WINDOW).ok()?;
    let end = memchr::memchr(b'\n', &head)?;
    LogHeader::read(&head[..end], id).ok()
}

/// The number of the last turn that was started.
fn last_turn(file: &File, bytes: u64) -> Option<u64> {
    #[derive(Deserialize)]
    struct Start {
        #[serde(rename = "type")]
        kind: Arc<str>,
        #[serde(default)]
        parent: Option<Arc<str>>,
        data: Number,
    }
    #[derive(Deserialize)]
    struct Number {
        turn: u64,
    }
    let mut window = WINDOW;
    loop {
        let from = bytes.saturating_sub(window);
        let tail = read_at(file, from, bytes - from).ok()?;
        let lines = tail.split(|byte| *byte == b'\n').rev();
        let found = lines.filter(|line| is_turn_start(line)).find_map(|line| {
            let start: Start = serde_json::from_slice(line).ok()?;
            (&*start.kind == "turn_start" && start.parent.is_none()).then_some(start.data.turn)
        });
        if found.is_some() || from == 0 || window >= FARTHEST {
            return found.or((from == 0).then_some(0));
        }
        window *= 8;
    }
}

/// True if a line may be a turn start, judged by the prefix that all such lines share.
fn is_turn_start(line: &[u8]) -> bool {
    let head = &line[..line.len().min(64)];
    memchr::memmem::find(head, br#""type":"turn_start""#).is_some()
}

fn read_at(file: &File, from: u64, length: u64) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; usize::try_from(length).unwrap_or(0)];
    let mut filled = 0;
    while filled < bytes.len() {
        match file.read_at(&mut bytes[filled..], from + filled as u64) {
            Ok(0) => break,
            Ok(count) => filled += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    bytes.truncate(filled);
    Ok(bytes)
}

fn timestamp(time: SystemTime) -> Timestamp {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    Timestamp(u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
}
