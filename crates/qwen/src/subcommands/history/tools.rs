//! What tools did: each call once, and only after its start was stored.

use std::collections::BTreeMap;

use super::Findings;
use super::load::Session;
use super::numbers::Numbered;

/// Checks the tools of a session.
pub fn check(name: &str, session: &Session, numbered: &Numbered, findings: &mut Findings) {
    check_shown(name, numbered, findings);
    let streamed = session.stream.iter().filter(|(_, message)| message.reason == "effect");
    let streamed = count(streamed.filter_map(|(_, message)| message.call.as_deref()));
    let stored = session.store.iter().filter(|(_, entry)| entry.reason == "effect" && entry.outcome == "ok");
    let stored = count(stored.filter_map(|(_, entry)| entry.call.as_deref()));
    let is_known = session.stream.iter().any(|(_, message)| message.kind == "log")
        || session.store.iter().any(|(_, entry)| entry.kind == "log");
    let mut ran: BTreeMap<&str, usize> = BTreeMap::new();
    for (place, run) in &session.tools {
        let call = run.call.as_str();
        // A model may use the id of a call again in a later message.
        let commits = streamed.get(call).max(stored.get(call)).copied().unwrap_or(0);
        let runs = ran.entry(call).or_default();
        *runs += 1;
        if *runs > commits.max(1) {
            findings.add("tool_twice", place, format!("call {call} of session {name} ran before"));
        }
        if commits == 0 && is_known {
            let message = format!("call {call} of session {name} ran, and its start was never stored");
            findings.add("tool_without_commit", place, message);
        }
    }
}

fn count<'a>(calls: impl Iterator<Item = &'a str>) -> BTreeMap<&'a str, usize> {
    let mut counts = BTreeMap::new();
    for call in calls {
        *counts.entry(call).or_default() += 1;
    }
    counts
}

/// Checks that the lines show one start for each call that they announce.
fn check_shown(name: &str, numbered: &Numbered, findings: &mut Findings) {
    let mut open: BTreeMap<(&str, &str), bool> = BTreeMap::new();
    for line in numbered.by_number.values().filter(|line| line.value["type"] == "x-qwen-tool-display") {
        let text = |key: &str| line.value[key].as_str().unwrap_or_default();
        let call = (text("prompt_id"), text("tool_call_id"));
        let is_started = match text("status") {
            "pending" => {
                open.insert(call, false);
                false
            }
            "executing" if line.value["result_display"].is_null() => open.insert(call, true) == Some(true),
            _ => false,
        };
        if is_started {
            let message = format!("call {} of session {name} started before", call.1);
            findings.add("tool_twice", &line.place, message);
        }
    }
}
