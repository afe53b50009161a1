//! The numbers of a session's lines: every reader has each of them once, in order, with the same bytes.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::Findings;
use super::load::{Exchanged, Reader, Received, Session};

/// The numbered lines of a session, from all sources.
#[derive(Default)]
pub struct Numbered {
    pub by_number: BTreeMap<u64, NumberedLine>,
    /// The numbers that the stream has.
    pub stored: BTreeSet<u64>,
    /// True if the stream no longer has its first lines.
    pub has_expired: bool,
}

/// A numbered line as the first source has it.
pub struct NumberedLine {
    pub place: String,
    pub value: Value,
    body: Vec<u8>,
}

/// The numbers of a reader since it started or attached.
#[derive(Default)]
struct Run<'a> {
    /// The number before the first one, if it is known.
    after: Option<u64>,
    numbers: Vec<(u64, &'a str)>,
}

/// Checks the readers and the stream of a session, and returns its lines.
pub fn check(name: &str, session: &Session, findings: &mut Findings) -> Numbered {
    let mut numbered = Numbered::default();
    read_stream(name, session, &mut numbered, findings);
    for reader in &session.readers {
        for entry in &reader.entries {
            if let Exchanged::Received(line) = entry {
                note(name, line, &mut numbered, findings);
            }
        }
        for run in runs(reader) {
            check_run(name, &run, findings);
        }
    }
    numbered
}

/// Adds a line, and compares it with what others have under its number.
fn note(name: &str, line: &Received, numbered: &mut Numbered, findings: &mut Findings) {
    let Some(number) = line.number else { return };
    let Some(known) = numbered.by_number.get(&number) else {
        let new =
            NumberedLine { place: line.place.clone(), value: line.value.clone(), body: line.body.clone() };
        numbered.by_number.insert(number, new);
        return;
    };
    if known.body != line.body {
        let message = format!("line {number} of session {name} has other bytes than in {}", known.place);
        findings.add("different_bytes", &line.place, message);
    }
}

/// Divides what a reader received where it started or attached.
fn runs(reader: &Reader) -> Vec<Run<'_>> {
    let mut runs = vec![Run::default()];
    let mut resent: Vec<Option<String>> = Vec::new();
    for entry in &reader.entries {
        let Some(run) = runs.last_mut() else { break };
        match entry {
            Exchanged::Start => runs.push(Run::default()),
            Exchanged::Sent(line) => {
                let line: Value = serde_json::from_slice(line).unwrap_or_default();
                if line["resend"] == true {
                    resent.push(line["prompt_id"].as_str().map(str::to_owned));
                }
            }
            Exchanged::Received(line) => match (line.attached_after(), line.number) {
                (Some(after), None) => runs.push(Run { after: Some(after), numbers: Vec::new() }),
                (_, Some(number)) => {
                    let expected = run.numbers.last().map(|(last, _)| last + 1).or(run.after.map(|n| n + 1));
                    let is_question =
                        line.value["type"] == "control_request" && run.after.is_some_and(|n| number <= n);
                    // Two things are sent again under their numbers: open questions, and ends that are asked for.
                    let asked = resent.iter().position(|prompt| prompt.as_deref() == line.prompt());
                    if expected == Some(number) || !is_question && (asked.is_none() || !line.is_end()) {
                        run.numbers.push((number, &line.place));
                    } else if let Some(asked) = asked.filter(|_| !is_question) {
                        resent.remove(asked);
                    }
                }
                (_, None) if line.value["metadata"]["error"]["code"] == "lines_expired" => {
                    runs.push(Run::default());
                }
                (..) => {}
            },
        }
    }
    runs
}

fn check_run(name: &str, run: &Run, findings: &mut Findings) {
    let mut seen = BTreeSet::new();
    let mut highest = 0;
    for (number, place) in &run.numbers {
        if !seen.insert(*number) {
            let message = format!("line {number} of session {name} was received before");
            findings.add("doubled_line", place, message);
        } else if *number < highest {
            let message = format!("line {number} of session {name} follows line {highest}");
            findings.add("swapped_line", place, message);
        }
        highest = highest.max(*number);
    }
    let Some(first) = run.after.map(|after| after + 1).or(seen.first().copied()) else { return };
    let mut expected = first;
    for (number, place) in run.numbers.iter().filter(|(number, _)| *number >= first) {
        // A line that comes later was not lost.
        let missing: Vec<u64> =
            (expected..*number).filter(|number| !seen.contains(number)).take(20).collect();
        if !missing.is_empty() {
            let message = format!("session {name}: {} missing before this line", list(&missing));
            findings.add("lost_line", place, message);
        }
        expected = expected.max(number + 1);
    }
}

fn list(numbers: &[u64]) -> String {
    let shown: Vec<String> = numbers.iter().map(u64::to_string).collect();
    match numbers {
        [_] => format!("line {} is", shown.join(", ")),
        _ => format!("lines {} are", shown.join(", ")),
    }
}

/// Puts the stream's messages together to lines, and checks that they follow each other.
fn read_stream(name: &str, session: &Session, numbered: &mut Numbered, findings: &mut Findings) {
    let mut parts: Vec<u8> = Vec::new();
    let mut expected: Option<u64> = None;
    for (place, message) in session.stream.iter().filter(|(_, message)| message.kind == "lines") {
        if message.epoch.is_none() || message.count == 0 {
            continue;
        }
        let part = message.part.as_deref().and_then(|part| part.split_once('/'));
        if part.is_none_or(|(part, _)| part == "1") {
            parts.clear();
        }
        parts.extend(message.payload());
        if part.is_some_and(|(part, parts)| part != parts) {
            continue;
        }
        let whole = std::mem::take(&mut parts);
        let lines: Vec<&[u8]> = whole.split(|byte| *byte == b'\n').collect();
        numbered.has_expired |= expected.is_none() && message.first > 1;
        let next = *expected.get_or_insert(message.first);
        if message.first > next {
            let message = format!("session {name}: the stream lacks lines {next} to {}", message.first - 1);
            findings.add("lost_line", place, message);
        } else if message.first < next {
            let message = format!("session {name}: the stream has line {} before", message.first);
            findings.add("doubled_line", place, message);
        }
        if lines.len() as u64 != message.count {
            let message = format!("the message has {} lines instead of {}", lines.len(), message.count);
            findings.add("lost_line", place, message);
        }
        expected = Some(next.max(message.first + message.count));
        for (number, line) in (message.first..).zip(lines) {
            match serde_json::from_slice(line) {
                Ok(value) => {
                    numbered.stored.insert(number);
                    note(name, &Received::stored(place.clone(), number, line, value), numbered, findings);
                }
                Err(error) => {
                    findings.add(
                        "unreadable_line",
                        place,
                        format!("line {number} of session {name}: {error}"),
                    );
                }
            }
        }
    }
}
