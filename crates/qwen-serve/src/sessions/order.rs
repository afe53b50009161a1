//! The order in which the lines of different sessions passed, in a file.
//!
//! Rationale: the lines themselves are in the store, session by session. Only what the store does not have is
//! written, where one session's lines end and another's begin, so a single session that streams costs nothing.

use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use qwen_events::SessionId;

/// How many runs are kept when a server starts.
const KEPT: usize = 20_000;

/// Consecutive lines of one session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LineRun {
    pub session: SessionId,
    pub first: u64,
    pub last: u64,
}

/// The file. Each of its lines begins a run: the session, the number of the run's first line, and the number
/// with which the run before ended.
#[derive(Debug)]
pub struct OrderFile {
    file: File,
    /// The run that is being written: its session and its last line so far.
    current: Option<(SessionId, u64)>,
}

impl OrderFile {
    /// Reads the runs of a file, and completes them with what the store has: `lasts` are the last numbers of
    /// all sessions. Lines that no run has were written while a former server was killed, so no reader has
    /// them, and they come last.
    pub fn open(path: &Path, lasts: &[(SessionId, u64)]) -> io::Result<(Self, Vec<LineRun>)> {
        let text = match std::fs::read_to_string(path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
            Err(error) => return Err(error),
        };
        let known: HashMap<&SessionId, u64> = lasts.iter().map(|(id, last)| (id, *last)).collect();
        let mut runs: Vec<LineRun> = Vec::new();
        for (session, first, before) in text.lines().filter_map(parse) {
            if let Some(run) = runs.last_mut() {
                run.last = before;
            }
            runs.push(LineRun { session, first, last: u64::MAX });
        }
        // Only the last run may have grown after its beginning was written.
        for run in &mut runs {
            run.last = run.last.min(known.get(&run.session).copied().unwrap_or(0));
        }
        let mut covered: HashMap<SessionId, u64> = HashMap::new();
        for run in &runs {
            covered.insert(run.session.clone(), run.last);
        }
        for (session, last) in lasts {
            let first = covered.get(session).copied().unwrap_or(0) + 1;
            if first <= *last {
                runs.push(LineRun { session: session.clone(), first, last: *last });
            }
        }
        // Sessions that were deleted have no lines.
        runs.retain(|run| run.first <= run.last);
        runs.drain(..runs.len().saturating_sub(KEPT));
        let new = path.with_extension("new");
        let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&new)?;
        let mut before = 0;
        let mut text = String::new();
        for run in &runs {
            text.push_str(&format!("{} {} {before}\n", run.session, run.first));
            before = run.last;
        }
        file.write_all(text.as_bytes())?;
        std::fs::rename(&new, path)?;
        let current = runs.last().map(|run| (run.session.clone(), run.last));
        Ok((Self { file, current }, runs))
    }

    /// Records a line before readers see it.
    pub fn push(&mut self, session: &SessionId, number: u64) {
        match &mut self.current {
            Some((current, last)) if current == session => *last = number,
            current => {
                let before = current.as_ref().map_or(0, |(_, last)| *last);
                // A run that cannot be recorded is found again in the store, but in another place.
                let _ = self.file.write_all(format!("{session} {number} {before}\n").as_bytes());
                *current = Some((session.clone(), number));
            }
        }
    }
}

fn parse(line: &str) -> Option<(SessionId, u64, u64)> {
    let mut words = line.split(' ');
    let session = SessionId::parse(words.next()?).ok()?;
    Some((session, words.next()?.parse().ok()?, words.next()?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(name: &str) -> SessionId {
        SessionId::parse(name).unwrap()
    }

    fn shown(runs: &[LineRun]) -> Vec<(&str, u64, u64)> {
        runs.iter().map(|run| (run.session.as_str(), run.first, run.last)).collect()
    }

    #[test]
    fn runs_are_read_back_and_completed_from_the_store() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("order");
        let (mut order, runs) = OrderFile::open(&path, &[(id("old"), 2)]).unwrap();
        assert_eq!(shown(&runs), [("old", 1, 2)]);
        for (session, number) in [("a", 1), ("a", 2), ("b", 1), ("a", 3), ("a", 4)] {
            order.push(&id(session), number);
        }
        // `a` went on in the last run; the server was killed before two lines of `b` had a run.
        let lasts = [(id("old"), 2), (id("a"), 6), (id("b"), 3)];
        let expected = [("old", 1, 2), ("a", 1, 2), ("b", 1, 1), ("a", 3, 6), ("b", 2, 3)];
        for _ in 0..2 {
            let (_, runs) = OrderFile::open(&path, &lasts).unwrap();
            assert_eq!(shown(&runs), expected);
        }
        let (_, runs) = OrderFile::open(&path, &[(id("b"), 3)]).unwrap();
        assert_eq!(shown(&runs), [("b", 1, 1), ("b", 2, 3)], "deleted sessions have no lines");
    }
}
