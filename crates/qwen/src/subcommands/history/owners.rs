//! Who appended to a session's streams: one owner for each epoch, and no one who was replaced.

use std::collections::BTreeMap;

use serde_json::Value;

use super::Findings;
use super::load::{Session, StoreEntry};
use super::numbers::Numbered;

/// Checks the stores of a session.
pub fn check(name: &str, session: &Session, numbered: &Numbered, findings: &mut Findings) {
    check_owners(name, session, findings);
    for kind in ["log", "lines"] {
        check_epochs(name, session, kind, findings);
        check_ranges(name, session, kind, findings);
    }
    check_acknowledged(name, session, numbered, findings);
    check_log(name, session, findings);
}

fn check_owners(name: &str, session: &Session, findings: &mut Findings) {
    let mut owners: BTreeMap<(&str, u64), BTreeMap<&str, &str>> = BTreeMap::new();
    for (place, message) in &session.stream {
        if let Some(epoch) = message.epoch {
            owners.entry((&message.kind, epoch)).or_default().entry(&message.owner).or_insert(place);
        }
    }
    for (place, entry) in session.store.iter().filter(|(_, entry)| entry.action == "take") {
        owners.entry((&entry.kind, entry.epoch)).or_default().entry(&entry.process).or_insert(place);
    }
    for ((kind, epoch), owners) in owners {
        if let Some((owner, place)) = owners.iter().nth(1) {
            let first = owners.keys().next().copied().unwrap_or_default();
            let message =
                format!("epoch {epoch} of the {kind} of session {name} belongs to {first} and to {owner}");
            findings.add("two_owners", place, message);
        }
    }
}

/// Checks that the epochs of a stream never decrease.
fn check_epochs(name: &str, session: &Session, kind: &str, findings: &mut Findings) {
    let mut highest = 0;
    for (place, message) in session.stream.iter().filter(|(_, message)| message.kind == kind) {
        let Some(epoch) = message.epoch else { continue };
        if epoch < highest {
            let message = format!(
                "{} appended to the {kind} of session {name} with epoch {epoch}, after epoch {highest}",
                message.owner
            );
            findings.add("stale_append", place, message);
        }
        highest = highest.max(epoch);
    }
}

/// The numbers or bytes that an acknowledged append covers.
fn range_of(entry: &StoreEntry) -> (u64, u64) {
    match entry.kind.as_str() {
        "log" => (entry.offset, entry.offset.saturating_add(entry.bytes)),
        _ => (entry.first, entry.first.saturating_add(entry.count)),
    }
}

/// Checks that what is acknowledged to one owner is not acknowledged to another one.
fn check_ranges(name: &str, session: &Session, kind: &str, findings: &mut Findings) {
    let is_stored =
        |entry: &StoreEntry| entry.action == "append" && entry.kind == kind && entry.outcome == "ok";
    let mut appends: Vec<_> = session.store.iter().filter(|(_, entry)| is_stored(entry)).collect();
    appends.sort_by_key(|(_, entry)| (range_of(entry), entry.epoch));
    let mut before: Option<&(String, StoreEntry)> = None;
    for append in appends {
        let (place, entry) = append;
        let (from, to) = range_of(entry);
        if from == to {
            continue;
        }
        if let Some((_, other)) =
            before.filter(|(_, other)| from < range_of(other).1 && other.epoch != entry.epoch)
        {
            let message = format!(
                "the {kind} of session {name} from {from} on is acknowledged to {} (epoch {}) and to {} (epoch {})",
                other.process, other.epoch, entry.process, entry.epoch
            );
            findings.add("stale_append", place, message);
        }
        if before.is_none_or(|(_, other)| range_of(other).1 <= to) {
            before = Some(append);
        }
    }
}

/// Checks that the stream has every line that was acknowledged.
fn check_acknowledged(name: &str, session: &Session, numbered: &Numbered, findings: &mut Findings) {
    if numbered.stored.is_empty() || numbered.has_expired {
        return;
    }
    let appends = session.store.iter().filter(|(_, entry)| entry.action == "append" && entry.kind == "lines");
    for (place, entry) in appends.filter(|(_, entry)| entry.outcome == "ok") {
        let (from, to) = range_of(entry);
        if let Some(missing) = (from..to).find(|number| !numbered.stored.contains(number)) {
            let message =
                format!("line {missing} of session {name} was acknowledged and is not in the stream");
            findings.add("lost_line", place, message);
        }
    }
}

/// Checks that the log is complete and valid.
fn check_log(name: &str, session: &Session, findings: &mut Findings) {
    let mut log: Vec<u8> = Vec::new();
    let mut whole = 0;
    for (place, message) in session.stream.iter().filter(|(_, message)| message.kind == "log") {
        let Some(offset) = usize::try_from(message.offset).ok().filter(|offset| *offset <= log.len()) else {
            let message = format!("the log of session {name} lacks the bytes before {}", message.offset);
            return findings.add("unreadable_line", place, message);
        };
        log.truncate(offset);
        log.extend(message.payload());
        if !message.is_incomplete {
            whole = log.len();
        }
    }
    log.truncate(whole);
    for (index, line) in log.split(|byte| *byte == b'\n').enumerate().filter(|(_, line)| !line.is_empty()) {
        if let Err(error) = serde_json::from_slice::<Value>(line) {
            let place = session.stream.first().map_or("", |(place, _)| place);
            let message = format!("line {} of the log of session {name}: {error}", index + 1);
            return findings.add("unreadable_line", place, message);
        }
    }
}
