//! Frees the space of old checkpoints.
//!
//! The events stay in the log and can be shown and exported. Pruning removes only what time travel needs: the
//! journal of the runs. It leaves an unfinished turn, the latest checkpoints and the fork points of other
//! sessions unchanged.

use std::collections::{HashMap, HashSet};
use std::fs::{self, File};
use std::io::{self, Write};
use std::sync::Arc;

use qwen_events::{Body, Journal, SessionId};

use super::entry::{self, EntryBody, is_main};
use super::reader::NextLine;
use super::{LogError, LogReader, Store};
use crate::emitter::now;

/// The result of pruning a session.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Pruned {
    /// The number of checkpoints that are still available.
    pub kept: usize,
    /// The number of checkpoints that were removed.
    pub gone: usize,
    /// The number of bytes that were freed.
    pub bytes: u64,
}

impl Store {
    /// Prunes a session to its last `keep` checkpoints, at least one, and the fork points; with `dry_run`
    /// only reports what would happen. Fails while a process uses the session.
    pub fn prune(&self, id: &SessionId, keep: usize, dry_run: bool) -> Result<Pruned, LogError> {
        let file = self.hold(id)?;
        let unusable = |error: io::Error| LogError::io(id, "pruned", error);
        let folded = self.fold(id)?;
        let forked = self.fork_points(id);
        let open = folded.unfinished.as_ref().map(|turn| turn.start.turn);
        let last = folded.checkpoints.len().saturating_sub(keep.max(1));
        let (mut kept, mut gone) = (HashMap::new(), Vec::new());
        for (at, checkpoint) in folded.checkpoints.iter().enumerate() {
            if at >= last
                || Some(checkpoint.turn) == open
                || is_named(&forked, &checkpoint.id, checkpoint.turn, checkpoint.step)
            {
                let step = kept.entry(checkpoint.turn).or_insert(checkpoint.step);
                *step = checkpoint.step.max(*step);
            } else {
                gone.push(checkpoint.id.clone());
            }
        }
        let reader = LogReader::new(file.try_clone().map_err(unusable)?, id, folded.length)?;
        let (mut text, before) = (Vec::new(), folded.length);
        shorten(reader, &kept, open, &mut text)?;
        let mut pruned = Pruned { kept: folded.checkpoints.len() - gone.len(), gone: gone.len(), bytes: 0 };
        if !gone.is_empty() {
            entry::write_pruned(now(), gone, &mut text).map_err(|error| unusable(error.into()))?;
        }
        pruned.bytes = before.saturating_sub(text.len() as u64);
        if pruned.bytes > 0 && !dry_run {
            self.replace(id, &text).map_err(unusable)?;
        }
        Ok(pruned)
    }

    /// The points at which other sessions were forked from this one.
    fn fork_points(&self, id: &SessionId) -> HashSet<Arc<str>> {
        let sessions = self.list(None).unwrap_or_default();
        let parents = sessions.into_iter().filter_map(|session| session.header.parent);
        parents.filter(|parent| parent.session_id == *id).filter_map(|parent| parent.point).collect()
    }

    /// Replaces a log atomically.
    fn replace(&self, id: &SessionId, text: &[u8]) -> io::Result<()> {
        let path = self.path(id);
        let aside = path.with_extension("pruning");
        let written = new_file(&aside).and_then(|mut file| {
            file.write_all(text)?;
            file.sync_all()
        });
        written.and_then(|()| fs::rename(&aside, &path)).inspect_err(|_| {
            // A leftover temporary file is harmless, and the first error is the one to report.
            let _ = fs::remove_file(&aside);
        })
    }
}

fn new_file(path: &std::path::Path) -> io::Result<File> {
    use std::os::unix::fs::OpenOptionsExt;
    File::options().write(true).create(true).truncate(true).mode(0o600).open(path)
}

/// True if a fork names this checkpoint, in any of the accepted notations.
fn is_named(points: &HashSet<Arc<str>>, id: &str, turn: u64, step: u64) -> bool {
    points.contains(id) || points.contains(&*format!("{turn}-{step}")) || points.contains(&*step.to_string())
}

/// The lines of a log without the journal entries that no checkpoint needs. `kept` is the last retained
/// checkpoint of each turn, and `open` is the unfinished turn.
fn shorten(
    mut reader: LogReader,
    kept: &HashMap<u64, u64>,
    open: Option<u64>,
    out: &mut Vec<u8>,
) -> Result<(), LogError> {
    let mut keep = |reader: &LogReader| {
        out.extend_from_slice(reader.line());
        out.push(b'\n');
    };
    keep(&reader);
    let (mut turn, mut steps) = (0, 0);
    // Unreadable lines stay: a later version may know them.
    loop {
        let next = match reader.next_line()? {
            NextLine::Entry(next) => next,
            NextLine::Other => {
                keep(&reader);
                continue;
            }
            NextLine::End => return Ok(()),
        };
        let needed = match &next.what {
            EntryBody::Event(Body::TurnStart(start)) if is_main(&next.scope) => {
                (turn, steps) = (start.turn, 0);
                true
            }
            EntryBody::Event(Body::NodeExit { .. }) if is_main(&next.scope) => {
                steps += 1;
                true
            }
            EntryBody::Event(Body::Journal(_)) if Some(turn) == open => true,
            EntryBody::Event(Body::Journal(journal)) => match (&**journal, kept.get(&turn)) {
                // A completed step contains its effects in its change.
                (Journal::Effect { .. }, _) | (_, None) => false,
                (Journal::Base { .. } | Journal::Step { .. }, Some(last)) => steps < *last,
            },
            _ => true,
        };
        if needed {
            keep(&reader);
        }
    }
}
