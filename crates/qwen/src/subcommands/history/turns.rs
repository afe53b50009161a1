//! The ends of prompts: every accepted prompt has exactly one, and nothing follows it.

use std::collections::{BTreeMap, BTreeSet};

use qwen_dialects::Format;
use qwen_kernel::front::{Front, InputKind, QwenFront};
use serde_json::Value;

use super::Findings;
use super::load::{Exchanged, Reader, Session};
use super::numbers::Numbered;

/// The numbers of the ends of each prompt.
type Ends<'a> = BTreeMap<&'a str, BTreeMap<u64, &'a str>>;

/// Checks the prompts of a session.
pub fn check(name: &str, session: &Session, numbered: &Numbered, findings: &mut Findings) {
    let continued = continued_prompts(session);
    let mut ends = Ends::new();
    for (number, line) in &numbered.by_number {
        let is_end = line.value["metadata"]["turn"].is_object() || line.value["type"] == "result";
        if let Some(prompt) = line.value["prompt_id"].as_str().filter(|_| is_end) {
            ends.entry(prompt).or_default().insert(*number, &line.place);
        }
    }
    for (prompt, places) in &ends {
        if let Some((number, place)) = places.iter().nth(1).filter(|_| !continued.contains(*prompt)) {
            let message = format!("prompt {prompt} of session {name} has a second end, line {number}");
            findings.add("two_ends", place, message);
        }
    }
    for (number, line) in &numbered.by_number {
        let Some(prompt) = line.value["prompt_id"].as_str().filter(|prompt| !continued.contains(*prompt))
        else {
            continue;
        };
        let Some(places) = ends.get(prompt) else { continue };
        if let Some((end, _)) = places.first_key_value().filter(|(end, _)| number > end)
            && !places.contains_key(number)
        {
            let message = format!(
                "line {number} belongs to prompt {prompt} of session {name}, which ended with line {end}"
            );
            findings.add("line_after_end", &line.place, message);
        }
    }
    check_accepted(name, session, numbered, &ends, findings);
    for reader in &session.readers {
        check_reader(name, reader, &continued, findings);
    }
}

/// The prompts whose turns were continued by a tool's answer: each part has an end.
fn continued_prompts(session: &Session) -> BTreeSet<String> {
    let entries = session.readers.iter().flat_map(|reader| &reader.entries);
    let sent = entries.filter_map(|entry| match entry {
        Exchanged::Sent(line) => serde_json::from_slice::<Value>(line).ok(),
        Exchanged::Start | Exchanged::Received(_) => None,
    });
    sent.filter(|line| line["origin"] == "tool_response" || line.get("continuation").is_some())
        .filter_map(|line| line["prompt_id"].as_str().map(str::to_owned))
        .collect()
}

/// Checks that every prompt whose start was stored has an end.
fn check_accepted(name: &str, session: &Session, numbered: &Numbered, ends: &Ends, findings: &mut Findings) {
    if numbered.has_expired {
        return;
    }
    let mut accepted: BTreeMap<&str, &str> = BTreeMap::new();
    for (place, message) in &session.stream {
        let started = message.prompt_id.as_deref().filter(|_| message.reason == "start");
        for prompt in message.open.as_deref().into_iter().chain(started) {
            accepted.entry(prompt).or_insert(place);
        }
    }
    let stored = session.store.iter().filter(|(_, entry)| entry.outcome == "ok" && entry.reason == "start");
    for (place, entry) in stored {
        if let Some(prompt) = entry.prompt_id.as_deref() {
            accepted.entry(prompt).or_insert(place);
        }
    }
    for (prompt, place) in accepted.into_iter().filter(|(prompt, _)| !ends.contains_key(prompt)) {
        let message = format!("prompt {prompt} of session {name} was started and has no end");
        findings.add("no_end", place, message);
    }
}

/// What a reader sent and received of one prompt.
#[derive(Default)]
struct Exchange<'a> {
    sent: usize,
    numbered: BTreeSet<u64>,
    unnumbered: usize,
    is_answered: bool,
    last: Option<&'a str>,
}

/// Checks that everything a client asked was ended, once.
fn check_reader(name: &str, reader: &Reader, continued: &BTreeSet<String>, findings: &mut Findings) {
    let front = QwenFront::new(Format::StreamJson);
    let mut exchanges: BTreeMap<String, Exchange> = BTreeMap::new();
    let (mut unnamed, mut is_attached) = (0, false);
    for entry in &reader.entries {
        match entry {
            Exchanged::Start => {}
            Exchanged::Sent(line) => {
                let Ok(input) = front.input(line) else { continue };
                match (input.kind, input.prompt_id) {
                    (InputKind::Prompt, Some(_)) if input.resend => {}
                    (InputKind::Prompt, Some(prompt)) => {
                        exchanges.entry(prompt.into_owned()).or_default().sent += 1;
                    }
                    (InputKind::Prompt, None) => unnamed += 1,
                    _ => {}
                }
            }
            Exchanged::Received(line) => {
                is_attached |= line.attached_after().is_some();
                let Some(prompt) = line.prompt() else { continue };
                let exchange = exchanges.entry(prompt.to_owned()).or_default();
                exchange.last = Some(&line.place);
                let is_result = line.value["type"].as_str().is_some_and(|kind| kind.starts_with("result/"));
                exchange.is_answered |=
                    line.is_end() || is_result || line.value["metadata"]["error"].is_object();
                exchange.is_answered |= line.value.to_string().contains("\"Steered\"");
                match line.number {
                    Some(number) if line.is_end() => drop(exchange.numbered.insert(number)),
                    None if line.is_end() => exchange.unnumbered += 1,
                    Some(_) | None => {}
                }
            }
        }
    }
    let mut ends_of_unnamed = 0;
    for (prompt, exchange) in &exchanges {
        let ends = exchange.numbered.len() + exchange.unnumbered;
        ends_of_unnamed += usize::from(exchange.sent == 0 && exchange.is_answered);
        if exchange.sent > 0
            && exchange.unnumbered > 0
            && ends > exchange.sent
            && !is_attached
            && !continued.contains(prompt)
        {
            let message = format!("prompt {prompt} of session {name} has {ends} ends for its client");
            findings.add("two_ends", exchange.last.unwrap_or(&reader.name), message);
        }
        if exchange.sent > 0 && !exchange.is_answered && reader.is_complete {
            let message = format!("prompt {prompt} of session {name} has no end for its client");
            findings.add("no_end", &reader.name, message);
        }
    }
    if reader.is_complete && unnamed > ends_of_unnamed {
        let missing = unnamed - ends_of_unnamed;
        let message =
            format!("{missing} prompts of session {name} without an id have no end for their client");
        findings.add("no_end", &reader.name, message);
    }
}
