//! Replies as a JSON file, for tests in other languages.
//!
//! ```json
//! [ { "match": "weather", "steps": [ { "tool_call": { "name": "get_weather", "arguments": { "city": "Oslo" } } } ] },
//!   { "steps": [ { "thought": "hm" }, { "text": "It is " }, { "gate": "half" }, { "text": "cold." } ] },
//!   { "steps": [ { "status": 429, "headers": { "retry-after": "1" }, "body": "slow down" } ] } ]
//! ```
//!
//! Or `{ "loop": true, "replies": [ … ] }`, which restarts after the last reply.

use std::time::Duration;

use serde_json::Value;

use crate::{Reply, ReplyEvent, Request, Source, Step};

/// A list of replies. Each is used once; the first that matches is chosen.
#[derive(Debug, Clone)]
pub struct Script {
    entries: Vec<Entry>,
    repeat: bool,
    calls: usize,
}

#[derive(Debug, Clone)]
struct Entry {
    /// A text that the last user message must contain.
    wants: Option<String>,
    steps: Vec<Step>,
    used: bool,
}

impl Script {
    /// Parses a script; the error names the invalid step and reply.
    pub fn parse(text: &str) -> Result<Self, String> {
        let script: Value =
            serde_json::from_str(text).map_err(|error| format!("the script is not valid JSON: {error}"))?;
        let repeat = script["loop"] == true;
        let replies = script.as_array().or_else(|| script["replies"].as_array());
        let replies = replies.ok_or("a script is an array of replies, or an object with `replies`")?;
        let entries = replies.iter().enumerate().map(|(i, reply)| entry(i, reply));
        Ok(Self { entries: entries.collect::<Result<_, _>>()?, repeat, calls: 0 })
    }

    fn take(&mut self, text: &str) -> Option<Vec<Step>> {
        let fits = |wants: &Option<String>| wants.as_ref().is_none_or(|wants| text.contains(wants.as_str()));
        let entry = self.entries.iter_mut().find(|entry| !entry.used && fits(&entry.wants))?;
        entry.used = true;
        Some(entry.steps.clone())
    }
}

impl Source for Script {
    fn reply(&mut self, request: &Request) -> Option<Reply> {
        let text = request.last_user_text();
        let mut steps = self.take(&text);
        if steps.is_none() && self.repeat {
            self.entries.iter_mut().for_each(|entry| entry.used = false);
            steps = self.take(&text);
        }
        let mut steps = steps?;
        for step in &mut steps {
            // Missing ids are generated here, so that a script that restarts repeats none.
            if let Step::Event(ReplyEvent::Call { id, .. }) = step
                && id.is_empty()
            {
                self.calls += 1;
                *id = format!("call_{}", self.calls);
            }
        }
        Some(Reply { steps })
    }

    fn reset(&mut self) {
        self.entries.iter_mut().for_each(|entry| entry.used = false);
        self.calls = 0;
    }
}

fn entry(number: usize, reply: &Value) -> Result<Entry, String> {
    let steps = reply["steps"].as_array().ok_or(format!("reply {number} has no `steps`"))?;
    let parsed = steps.iter().enumerate().map(|(i, value)| {
        step(value).ok_or_else(|| {
            format!(
                "step {i} of reply {number} is {value}: a step is one of text, thought, tool_call, usage, finish, \
                 delay_ms, gate, head, raw, close, status"
            )
        })
    });
    let checked = Reply::checked(parsed.collect::<Result<_, _>>()?);
    let steps = checked.map_err(|error| format!("reply {number}: {error}"))?.steps;
    Ok(Entry { wants: reply["match"].as_str().map(str::to_owned), steps, used: false })
}

fn step(value: &Value) -> Option<Step> {
    let text = |key: &str| value[key].as_str().map(str::to_owned);
    if let Some(piece) = text("text") {
        return Some(Step::Event(ReplyEvent::Text(piece)));
    }
    if let Some(piece) = text("thought") {
        return Some(Step::Event(ReplyEvent::Thought(piece)));
    }
    if let Some(reason) = text("finish") {
        return Some(Step::Event(ReplyEvent::Finish(reason)));
    }
    if let Some(name) = text("gate") {
        return Some(Step::Gate(name));
    }
    if let Some(bytes) = text("raw") {
        return Some(Step::Chunk(bytes.into_bytes().into()));
    }
    if let Some(call) = value["tool_call"].as_object() {
        let arguments = match call.get("arguments") {
            Some(Value::String(written)) => written.clone(),
            Some(arguments) => arguments.to_string(),
            None => "{}".to_owned(),
        };
        let id = call.get("id").and_then(Value::as_str).unwrap_or("");
        return Some(Step::Event(ReplyEvent::call(id, call.get("name")?.as_str()?, &arguments)));
    }
    if let Some(usage) = value["usage"].as_object() {
        let count = |keys: [&str; 2]| keys.iter().find_map(|key| usage.get(*key)?.as_u64()).unwrap_or(0);
        return Some(Step::Event(ReplyEvent::Usage {
            input: count(["prompt_tokens", "input_tokens"]),
            output: count(["completion_tokens", "output_tokens"]),
        }));
    }
    if let Some(time) = value["delay_ms"].as_u64() {
        return Some(Step::Pause(Duration::from_millis(time)));
    }
    if let Some(code) = value["status"].as_u64() {
        let headers = value["headers"].as_object().into_iter().flatten();
        let headers = headers.filter_map(|(name, value)| Some((name.clone(), value.as_str()?.to_owned())));
        let body = match &value["body"] {
            Value::Null => String::new(),
            Value::String(body) => body.clone(),
            body => body.to_string(),
        };
        return Some(Step::Status(u16::try_from(code).ok()?, headers.collect(), body));
    }
    if value["close"] == true {
        return Some(Step::Close);
    }
    (value["head"] == true).then_some(Step::Head)
}
