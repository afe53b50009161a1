//! The script file: JSON, parsed strictly, with errors that name the location.

use std::collections::HashSet;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use qwen_events::{Finish, Usage};
use serde::de::value::{MapAccessDeserializer, SeqAccessDeserializer};
use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

/// The reply of the script to one call.
#[derive(Debug, Clone)]
pub(super) struct Call {
    pub matching: Option<String>,
    pub steps: Arc<[Step]>,
}

/// One step of a reply.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Step {
    Text { pieces: Vec<Box<str>> },
    Repeat { times: u64, text: Box<str> },
    Thought { pieces: Vec<Box<str>> },
    ToolCall { name: Arc<str>, id: Option<Arc<str>>, arguments: Vec<Box<str>> },
    Delay(Duration),
    Error { status: Option<u16>, message: String, retry_after: Option<f64> },
    Break,
    Usage(Usage),
    Finish(Finish),
    Model(Arc<str>),
    Expect { contains: String },
    WaitForFile(PathBuf),
}

pub(super) fn parse(text: &str) -> Result<Vec<Call>, String> {
    let calls = if text.trim_start().starts_with('[') {
        serde_json::from_str::<Vec<RawCall>>(text).map_err(|e| e.to_string())?
    } else {
        serde_json::from_str::<RawScript>(text).map_err(|e| e.to_string())?.turns
    };
    let calls = calls.into_iter().enumerate().map(|(call, RawCall { steps, matching })| {
        let steps = steps.into_iter().enumerate().map(|(step, raw)| {
            raw.into_step().map_err(|what| format!("call {call}, step {step} (both from 0): {what}"))
        });
        let mut steps = steps.collect::<Result<Vec<_>, String>>()?;
        drop_repeated_ids(&mut steps);
        Ok(Call { matching, steps: steps.into() })
    });
    calls.collect()
}

/// Ids are unique within an answer, whatever a server sends: a repeated one counts as missing.
fn drop_repeated_ids(steps: &mut [Step]) {
    let mut known = HashSet::new();
    for step in steps {
        if let Step::ToolCall { id, .. } = step {
            id.take_if(|id| !known.insert(Arc::clone(id)));
        }
    }
}

#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct RawScript {
    turns: Vec<RawCall>,
}

/// A call: a list of steps, or an object with them.
struct RawCall {
    steps: Vec<RawStep>,
    matching: Option<String>,
}

impl<'de> Deserialize<'de> for RawCall {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(serde::Deserialize)]
        #[serde(deny_unknown_fields)]
        struct Object {
            steps: Vec<RawStep>,
            #[serde(rename = "match")]
            matching: Option<String>,
        }
        struct CallVisitor;
        impl<'de> Visitor<'de> for CallVisitor {
            type Value = RawCall;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a list of steps, or an object with `steps` and perhaps `match`")
            }
            fn visit_seq<A: SeqAccess<'de>>(self, seq: A) -> Result<RawCall, A::Error> {
                let steps = Deserialize::deserialize(SeqAccessDeserializer::new(seq))?;
                Ok(RawCall { steps, matching: None })
            }
            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<RawCall, A::Error> {
                let Object { steps, matching } = Deserialize::deserialize(MapAccessDeserializer::new(map))?;
                Ok(RawCall { steps, matching })
            }
        }
        deserializer.deserialize_any(CallVisitor)
    }
}

#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields, expecting = "a step, such as {\"text\":\"…\"}")]
struct RawStep {
    text: Option<String>,
    thought: Option<String>,
    chunks: Option<usize>,
    split: Option<Split>,
    repeat: Option<u64>,
    tool_call: Option<RawToolCall>,
    delay_ms: Option<u64>,
    error: Option<RawError>,
    #[serde(rename = "break")]
    broken: Option<bool>,
    usage: Option<RawUsage>,
    finish: Option<RawFinish>,
    model: Option<String>,
    expect: Option<RawExpect>,
    wait_for_file: Option<PathBuf>,
}

#[derive(Clone, Copy, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
enum Split {
    Word,
    Char,
}

#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct RawToolCall {
    name: String,
    arguments: Option<Box<RawValue>>,
    id: Option<String>,
    chunks: Option<usize>,
}

#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct RawError {
    status: Option<u16>,
    message: Option<String>,
    retry_after: Option<f64>,
}

#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(clippy::struct_field_names, reason = "these are the names in the file")]
struct RawUsage {
    #[serde(default)]
    prompt_tokens: u64,
    #[serde(default)]
    completion_tokens: u64,
    #[serde(default)]
    cached_tokens: u64,
    #[serde(default)]
    thought_tokens: u64,
}

#[derive(serde::Deserialize)]
#[serde(rename_all = "snake_case")]
enum RawFinish {
    Stop,
    ToolCalls,
    Length,
    ContentFilter,
}

#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct RawExpect {
    contains: String,
}

impl RawStep {
    fn into_step(self) -> Result<Step, String> {
        const KINDS: &str =
            "text, thought, tool_call, delay_ms, error, break, usage, finish, model, expect or wait_for_file";
        let (chunks, split) = (self.chunks, self.split);
        let cut = |text: String| match (chunks, split) {
            (Some(_), Some(_)) => Err("`chunks` and `split` exclude each other".to_owned()),
            (Some(chunks), None) => Ok(in_chunks(&text, chunks)),
            (None, Some(Split::Char)) => Ok(text.chars().map(|c| c.to_string().into()).collect()),
            (None, Some(Split::Word)) => {
                Ok(text.split_inclusive(char::is_whitespace).map(Into::into).collect())
            }
            (None, None) => Ok(vec![text.into_boxed_str()]),
        };
        let is_cut = chunks.is_some() || split.is_some();
        let mut found: Vec<Step> = Vec::new();
        let takes_text = self.text.is_some() || self.thought.is_some();
        if let Some(text) = self.text {
            found.push(match self.repeat {
                Some(_) if is_cut => {
                    return Err("`repeat` is not combined with `chunks` or `split`".to_owned());
                }
                Some(times) => Step::Repeat { times, text: text.into() },
                None => Step::Text { pieces: cut(text)? },
            });
        } else if self.repeat.is_some() {
            return Err("`repeat` needs a `text`".to_owned());
        }
        if let Some(thought) = self.thought {
            found.push(Step::Thought { pieces: cut(thought)? });
        }
        if is_cut && !takes_text {
            return Err("`chunks` and `split` belong to `text` or `thought`".to_owned());
        }
        found.extend(self.tool_call.map(RawToolCall::into_step));
        found.extend(self.delay_ms.map(|ms| Step::Delay(Duration::from_millis(ms))));
        found.extend(self.error.map(|error| Step::Error {
            status: error.status,
            message: error.message.unwrap_or_else(|| "the script says so".to_owned()),
            retry_after: error.retry_after,
        }));
        found.extend(self.broken.filter(|broken| *broken).map(|_| Step::Break));
        found.extend(self.usage.map(|usage| {
            Step::Usage(Usage {
                prompt_tokens: usage.prompt_tokens,
                completion_tokens: usage.completion_tokens,
                cached_tokens: usage.cached_tokens,
                thought_tokens: usage.thought_tokens,
                ..Usage::default()
            })
        }));
        found.extend(self.finish.map(|finish| {
            Step::Finish(match finish {
                RawFinish::Stop => Finish::Stop,
                RawFinish::ToolCalls => Finish::ToolCalls,
                RawFinish::Length => Finish::Length,
                RawFinish::ContentFilter => Finish::ContentFilter,
            })
        }));
        found.extend(self.model.map(|model| Step::Model(model.into())));
        found.extend(self.expect.map(|expect| Step::Expect { contains: expect.contains }));
        found.extend(self.wait_for_file.map(Step::WaitForFile));
        let count = found.len();
        match (found.pop(), count) {
            (Some(step), 1) => Ok(step),
            _ => Err(format!("a step does exactly one thing ({KINDS}); this one does {count}")),
        }
    }
}

impl RawToolCall {
    fn into_step(self) -> Step {
        let arguments = match self.arguments.as_deref().map(RawValue::get) {
            None => "{}".to_owned(),
            // A string is sent verbatim, so that a script can make a model write invalid JSON.
            Some(text) if text.starts_with('"') => serde_json::from_str(text).unwrap_or_default(),
            Some(json) => without_spaces(json),
        };
        Step::ToolCall {
            name: self.name.into(),
            id: self.id.map(Into::into),
            arguments: in_chunks(&arguments, self.chunks.unwrap_or(1)),
        }
    }
}

/// `text` in `count` pieces of about the same length, none of them empty unless the text is.
fn in_chunks(text: &str, count: usize) -> Vec<Box<str>> {
    let chars: Vec<char> = text.chars().collect();
    if chars.is_empty() {
        return vec!["".into()];
    }
    let count = count.clamp(1, chars.len());
    (0..count)
        .map(|n| {
            chars[n * chars.len() / count..(n + 1) * chars.len() / count].iter().collect::<String>().into()
        })
        .collect()
}

/// JSON on one line, in the order in which it was written.
fn without_spaces(json: &str) -> String {
    let (mut in_string, mut escaped) = (false, false);
    json.chars()
        .filter(|c| {
            let keep = in_string || !c.is_ascii_whitespace();
            if *c == '"' && !escaped {
                in_string = !in_string;
            }
            escaped = in_string && *c == '\\' && !escaped;
            keep
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_forms_of_a_script_are_read() {
        let long = parse(r#"{"turns":[{"match":"hi","steps":[{"text":"a b","split":"word"}]}]}"#).unwrap();
        assert_eq!(long[0].matching.as_deref(), Some("hi"));
        assert_eq!(*long[0].steps, [Step::Text { pieces: vec!["a ".into(), "b".into()] }]);
        let short = parse(r#"[[{"thought":"abc","chunks":2}], {"steps":[]}]"#).unwrap();
        assert_eq!(*short[0].steps, [Step::Thought { pieces: vec!["a".into(), "bc".into()] }]);
        assert!(short[1].steps.is_empty());
    }

    #[test]
    fn arguments_keep_their_order_and_may_be_no_json() {
        let calls = parse(
            r#"[[{"tool_call":{"name":"t","arguments":{ "b" : "x \" {y", "a" : [1, 2]}}}],
                [{"tool_call":{"name":"t","arguments":"{\"cut","chunks":3}}], [{"tool_call":{"name":"t"}}]]"#,
        )
        .unwrap();
        let arguments = |at: usize| match &calls[at].steps[0] {
            Step::ToolCall { arguments, .. } => arguments.clone(),
            other => panic!("{other:?}"),
        };
        assert_eq!(arguments(0), [Box::from(r#"{"b":"x \" {y","a":[1,2]}"#)]);
        assert_eq!(arguments(1).concat(), r#"{"cut"#);
        assert_eq!(arguments(1).len(), 3);
        assert_eq!(arguments(2), [Box::from("{}")]);
    }

    #[test]
    fn a_wrong_script_is_told_its_place_and_what_was_expected() {
        for (script, place, expected) in [
            ("{", "line 1 column 1", "EOF"),
            ("{}", "line 1 column 2", "turns"),
            (r#"[[{"txt":"a"}]]"#, "line 1 column 8", "expected one of `text`, `thought`"),
            (r#"[["a"]]"#, "line 1", "a step, such as"),
            ("[[{}]]", "call 0, step 0", "exactly one thing"),
            (r#"[[],[{"text":"a"},{"text":"a","delay_ms":1}]]"#, "call 1, step 1", "exactly one thing"),
            (r#"[[{"finish":"done"}]]"#, "line 1", "tool_calls"),
            (r#"[[{"delay_ms":1,"chunks":2}]]"#, "call 0, step 0", "belong to `text`"),
            (r#"[[{"repeat":3}]]"#, "call 0, step 0", "needs a `text`"),
            ("[3]", "line 1", "a list of steps"),
        ] {
            let error = parse(script).unwrap_err();
            assert!(error.contains(place) && error.contains(expected), "{script}: {error}");
        }
    }
}
