//! `ask_user_question`: asks the user questions. The host replies to the permission request with the answers
//! in the call's input; this tool only formats them for the model.

use qwen_events::{Argument, ArgumentValue, ClaudeTool, Confirmation, ToolCall, ToolDeclaration, ToolKind};
use serde_json::Value;

use crate::declared::{DeclaredTool, tool_input};
use crate::refusal::Refusal;
use crate::{CallContext, Outcome, ToolFuture};

const DESCRIPTION: &str = "Asks the user one or more questions and waits for the answers. Use it when you cannot continue \
without a decision that only the user can take; offer short options where there are some.";

const ITEMS: &str = concat!(
    r#""items":{"type":"object","properties":{"#,
    r#""question":{"type":"string","description":"The question itself."},"#,
    r#""header":{"type":"string","description":"A short title, shown above it."},"#,
    r#""options":{"type":"array","description":"Answers to choose from.","items":{"type":"object","properties":{"#,
    r#""label":{"type":"string","description":"The answer."},"#,
    r#""description":{"type":"string","description":"What it means."}},"#,
    r#""required":["label"]}},"#,
    r#""multiSelect":{"type":"boolean","description":"Whether several options may be chosen."}},"#,
    r#""required":["question"]}"#,
);

pub(super) struct AskUserQuestion;

tool_input! {
    struct Input {
        questions: Vec<Value> = Argument::new(ArgumentValue::Json { before: r#""type":"array","minItems":1"#, after: ITEMS }, "The questions, in order."),
    }
}

impl DeclaredTool for AskUserQuestion {
    const DECLARATION: &'static ToolDeclaration =
        &ToolDeclaration::new("ask_user_question", ToolKind::Ask, DESCRIPTION, Input::ARGUMENTS)
            .claude(&[ClaudeTool::with_name("AskUserQuestion")]);

    fn confirmation(call: &ToolCall, _: &CallContext) -> Option<Confirmation> {
        let (input, _) = Input::parse(call).ok()?;
        let asked: Vec<&str> = input.questions.iter().filter_map(question).collect();
        Some(Confirmation::Info { prompt: asked.join("\n").into(), urls: Vec::new() })
    }

    fn run<'a>(call: &'a ToolCall, _: &'a CallContext) -> ToolFuture<'a> {
        Box::pin(std::future::ready(run(call).unwrap_or_else(Outcome::from)))
    }
}

fn question(item: &Value) -> Option<&str> {
    item.get("question").and_then(Value::as_str)
}

fn run(call: &ToolCall) -> Result<Outcome, Refusal> {
    let (Input { questions: asked }, arguments) = Input::parse(call)?;
    let Some(answers) = arguments.non_null("answers") else {
        return Ok(Outcome::failure(
            "no_answer",
            "The user gave no answer. Continue with your best judgement.",
        ));
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

/// Formats an answer as plain text.
fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(several) => several.iter().map(plain).collect::<Vec<_>>().join(", "),
        other => other.to_string(),
    }
}
