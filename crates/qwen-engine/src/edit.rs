//! Edits of a state before a run continues from it.

use qwen_events::{Body, HistoryChange, Journal, Json};
use serde_json::Value;

use crate::agent::SearchAgents;
use crate::log::{Folded, StoredRun};
use crate::state_json;

/// A change of a state: a value at a path.
#[derive(Debug, Clone, PartialEq)]
pub struct Edit {
    /// A key, or keys and indexes separated by dots, such as `thoughts.0.score`.
    pub path: String,
    pub value: Json,
}

/// The log entries with which the run in `folded` continues from the edited state. The error is written for
/// the author of the edits.
pub(crate) fn apply(folded: &Folded, edits: &[Edit], agents: &dyn SearchAgents) -> Result<Vec<Body>, String> {
    if edits.is_empty() {
        return Ok(Vec::new());
    }
    let turn = folded.unfinished.as_ref();
    match turn.and_then(|turn| Some((turn.start.agent, StoredRun::from_journal(&turn.journal)?))) {
        Some((name, stored)) => {
            let base = agents.rebase(name, &stored).map_err(|error| error.message.to_string())?;
            let Journal::Base { version, next, state } = base else { return Ok(Vec::new()) };
            let edited = StoredRun {
                version,
                state: edited(&state, edits)?,
                deltas: Vec::new(),
                next: Some(next),
                effects: Vec::new(),
            };
            let base = agents.rebase(name, &edited).map_err(|error| error.message.to_string())?;
            if let Journal::Base { state, .. } = &base {
                took(state, edits)?;
            }
            Ok(vec![Body::Journal(Box::new(base))])
        }
        None => {
            let pending: Vec<_> = folded.unanswered.calls.waiting().cloned().collect();
            let edited = edited(&state_json::conversation(&folded.messages, &pending), edits)?;
            let messages = state_json::read_messages(&edited, &folded.messages)?;
            took(&state_json::conversation(&messages, &pending), edits)?;
            Ok(vec![Body::History(Box::new(HistoryChange::Replaced(messages)))])
        }
    }
}

fn value(json: &Json) -> Result<Value, String> {
    serde_json::from_str(json.as_str()).map_err(|error| error.to_string())
}

/// The state with all edits applied.
fn edited(state: &Json, edits: &[Edit]) -> Result<Json, String> {
    let mut whole = value(state)?;
    for edit in edits {
        let new = value(&edit.value).map_err(|error| format!("{} is not JSON: {error}", edit.path))?;
        let mut keys: Vec<&str> = edit.path.split('.').collect();
        let last = keys.pop().unwrap_or_default();
        let mut place = &mut whole;
        for key in keys {
            let keys = keys_of(place);
            place = enter(place, key).ok_or_else(|| unknown(&edit.path, key, &keys))?;
        }
        let keys = keys_of(place);
        let missing = || unknown(&edit.path, last, &keys);
        match place {
            // A key that is omitted while empty can still be set; reading the state back shows whether it is
            // valid.
            Value::Object(map) => {
                map.insert(last.to_owned(), new);
            }
            list => *enter(list, last).ok_or_else(missing)? = new,
        }
    }
    Ok(Json::trusted(whole.to_string()))
}

fn enter<'a>(place: &'a mut Value, key: &str) -> Option<&'a mut Value> {
    match place {
        Value::Object(map) => map.get_mut(key),
        Value::Array(list) => list.get_mut(key.parse::<usize>().ok()?),
        _ => None,
    }
}

/// Checks that the edited values are still present after the state was read back, because reading drops
/// unknown keys.
fn took(state: &Json, edits: &[Edit]) -> Result<(), String> {
    let mut whole = value(state)?;
    for (at, edit) in edits.iter().enumerate() {
        // A later edit of the same path takes precedence.
        let overruled = |later: &Edit| {
            let within = |outer: &str, inner: &str| {
                inner.strip_prefix(outer).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
            };
            within(&later.path, &edit.path) || within(&edit.path, &later.path)
        };
        if edits[at + 1..].iter().any(overruled) {
            continue;
        }
        let mut place = &mut whole;
        for key in edit.path.split('.') {
            let keys = keys_of(place);
            match enter(place, key) {
                Some(inner) => place = inner,
                None if edit.value.as_str().trim() == "null" => return Ok(()),
                None => return Err(unknown(&edit.path, key, &keys)),
            }
        }
    }
    Ok(())
}

fn keys_of(place: &Value) -> String {
    match place {
        Value::Object(map) => map.keys().map(String::as_str).collect::<Vec<_>>().join(", "),
        Value::Array(list) if list.is_empty() => "an empty list".to_owned(),
        Value::Array(list) => format!("0 to {}", list.len() - 1),
        _ => "a value without keys".to_owned(),
    }
}

fn unknown(path: &str, key: &str, keys: &str) -> String {
    format!("'{path}': there is no '{key}' (there is: {keys})")
}
