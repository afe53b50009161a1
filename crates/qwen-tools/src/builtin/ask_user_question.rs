//! `ask_user_question`: puts questions to the person behind the host. The host answers the permission question about
//! the call with the answers in its input; here they only become a text for the model.

use qwen_events::{Confirmation, ToolCall, ToolSpec};
use serde_json::Value;

use super::spec;
use crate::refusal::Refusal;
use crate::{Arguments, Outcome, Tool, ToolCx, ToolFuture};

const DESCRIPTION: &str = "Asks the user one or more questions and waits for the answers. Use it when you cannot go on \
without a decision that only the user can take; offer short options where there are some.";

const SCHEMA: &str = r#"{"type":"object","properties":{
"questions":{"type":"array","minItems":1,"description":"The questions, in order.","items":{"type":"object","properties":{
"question":{"type":"string","description":"The question itself."},
"header":{"type":"string","description":"A word or two to show above it."},
"options":{"type":"array","description":"Answers to choose from.","items":{"type":"object","properties":{
"label":{"type":"string","description":"The answer."},
"description":{"type":"string","description":"What it means."}},
"required":["label"]}},
"multiSelect":{"type":"boolean","description":"Whether several options may be chosen."}},
"required":["question"]}}},
"required":["questions"]}"#;

/// The tool.
pub(super) struct AskUserQuestion {
    spec: ToolSpec,
}

impl AskUserQuestion {
    pub(super) fn new() -> Self {
        Self { spec: spec("ask_user_question", DESCRIPTION, SCHEMA) }
    }
}

impl Tool for AskUserQuestion {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn confirmation(&self, call: &ToolCall, _: &ToolCx) -> Option<Confirmation> {
        let arguments = Arguments::of(call).ok()?;
        let asked: Vec<&str> = arguments.list("questions").ok()?.iter().filter_map(question).collect();
        Some(Confirmation::Info { prompt: asked.join("\n").into(), urls: Vec::new() })
    }

    fn run<'a>(&'a self, call: &'a ToolCall, _: &'a ToolCx) -> ToolFuture<'a> {
        Box::pin(std::future::ready(run(call).unwrap_or_else(Outcome::from)))
    }
}

fn question(item: &Value) -> Option<&str> {
    item.get("question").and_then(Value::as_str)
}

fn run(call: &ToolCall) -> Result<Outcome, Refusal> {
    let arguments = Arguments::of(call)?;
    let asked = arguments.list("questions")?;
    let Some(answers) = arguments.given("answers") else {
        return Ok(Outcome::failure("no_answer", "The user gave no answer. Go on with your best judgement."));
    };
    let lines: Vec<String> = match answers {
        Value::Object(by_question) => {
            by_question.iter().map(|(asked, given)| format!("{asked}: {}", plain(given))).collect()
        }
        Value::Array(in_order) => in_order
            .iter()
            .enumerate()
            .map(|(at, given)| match asked.get(at).and_then(question) {
                Some(asked) => format!("{asked}: {}", plain(given)),
                None => plain(given),
            })
            .collect(),
        other => vec![plain(other)],
    };
    Ok(Outcome::success(format!("The user answered:\n{}", lines.join("\n"))))
}

/// An answer as people write it.
fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(several) => several.iter().map(plain).collect::<Vec<_>>().join(", "),
        other => other.to_string(),
    }
}
