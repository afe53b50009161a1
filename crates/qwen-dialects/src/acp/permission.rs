//! Permission requests and their options.

use std::borrow::Cow;

use qwen_events::{Confirmation, ToolCall, offer_rule, visible_text};
use serde_json::{Value, json};

use super::sizes::{self, MAX_PART};
use super::wire::{Elicitation, PermissionOption};

/// The names of the tool that asks the user, in both vocabularies.
pub const ASK_QUESTION_TOOLS: [&str; 2] = ["ask_user_question", "AskUserQuestion"];

/// The longest rule that is offered, in characters: a user must be able to read all of it.
const LONGEST_RULE: usize = 160;

/// The longest arguments that become a form, in bytes. A form repeats them several times, and no user reads more.
const MAX_FORM: usize = MAX_PART / 4;

/// The ids of the options.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OptionId {
    AllowOnce,
    AllowSession,
    AllowAlways,
    /// Approves a plan; from then on changes of files need no approval.
    AutoEdit,
    RejectOnce,
    RejectSession,
}

impl OptionId {
    const ALL: [Self; 6] = [
        Self::AllowOnce,
        Self::AllowSession,
        Self::AllowAlways,
        Self::AutoEdit,
        Self::RejectOnce,
        Self::RejectSession,
    ];

    /// The id on the wire.
    pub fn name(self) -> &'static str {
        match self {
            Self::AllowOnce => "allow_once",
            Self::AllowSession => "allow_session",
            Self::AllowAlways => "allow_always",
            Self::AutoEdit => "auto-edit",
            Self::RejectOnce => "reject_once",
            Self::RejectSession => "reject_session",
        }
    }

    /// The option with this id.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|option| option.name() == name)
    }

    fn kind(self) -> &'static str {
        match self {
            Self::AllowOnce => "allow_once",
            Self::AllowSession | Self::AllowAlways | Self::AutoEdit => "allow_always",
            Self::RejectOnce => "reject_once",
            Self::RejectSession => "reject_always",
        }
    }
}

fn option(id: OptionId, name: impl Into<Cow<'static, str>>) -> PermissionOption<'static> {
    PermissionOption { option_id: id.name().into(), name: name.into(), kind: id.kind().into() }
}

/// The rule that the answers for the session and for always add; none if there is no rule that a user can
/// read and judge.
pub(super) fn rule(call: &ToolCall, confirmation: &Confirmation) -> Option<String> {
    let rule = offer_rule(call, confirmation)?;
    // A rule with a hidden character is not what it looks like.
    (rule.chars().count() <= LONGEST_RULE && visible_text(&rule) == rule && !rule.contains('\n'))
        .then_some(rule)
}

/// The possible answers.
pub(super) fn options(confirmation: &Confirmation, rule: Option<&str>) -> Vec<PermissionOption<'static>> {
    if let Confirmation::Plan { .. } = confirmation {
        return vec![
            option(OptionId::AllowOnce, "Default: carry out the plan, asking before changes"),
            option(OptionId::AutoEdit, "Auto-edit: carry out the plan, changing files without asking"),
            option(OptionId::RejectOnce, "Plan: keep planning"),
        ];
    }
    let mut options = vec![option(OptionId::AllowOnce, "Allow once")];
    if let Some(rule) = rule {
        options.push(option(OptionId::AllowSession, format!("Allow for this session: {rule}")));
        options.push(option(OptionId::AllowAlways, format!("Always allow: {rule}")));
    }
    options.push(option(OptionId::RejectOnce, "Reject"));
    if let Some(rule) = rule {
        options.push(option(OptionId::RejectSession, format!("Reject for this session: {rule}")));
    }
    options
}

/// The questions of a call as a form; none if the call asks nothing that a form can hold.
pub(super) fn form<'a>(session_id: &'a str, call: &'a ToolCall) -> Option<Elicitation<'a>> {
    if call.arguments.as_str().len() > MAX_FORM {
        return None;
    }
    let arguments: Value = serde_json::from_str(call.arguments.as_str()).ok()?;
    let (message, requested_schema) = question_form(&arguments)?;
    Some(Elicitation {
        session_id: session_id.into(),
        tool_call_id: sizes::call_id(&call.id),
        mode: "form".into(),
        message: message.into(),
        requested_schema,
        meta: Some(json!({"qwen": {"arguments": arguments}})),
    })
}

/// The questions in the arguments of a call: their texts, and the JSON Schema of the answers. None if there is
/// no question.
pub fn question_form(arguments: &Value) -> Option<(String, Value)> {
    let questions = arguments.get("questions")?.as_array()?;
    let mut properties = serde_json::Map::new();
    let mut message = Vec::new();
    for (at, item) in questions.iter().enumerate() {
        let question = item.get("question")?.as_str()?;
        message.push(question);
        let header = item.get("header").and_then(Value::as_str).unwrap_or(question);
        let choices: Vec<Value> = item
            .get("options")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .filter_map(|option| {
                let label = option.get("label")?.as_str()?;
                let description = option.get("description").and_then(Value::as_str);
                let title = description.map_or_else(|| label.to_owned(), |text| format!("{label}: {text}"));
                Some(json!({"const": label, "title": title}))
            })
            .collect();
        let several = item.get("multiSelect").and_then(Value::as_bool).unwrap_or(false);
        let property = match (choices.is_empty(), several) {
            (true, _) => json!({"type": "string", "title": header, "description": question}),
            (false, false) => {
                json!({"type": "string", "title": header, "description": question, "oneOf": choices})
            }
            (false, true) => json!({"type": "array", "title": header, "description": question,
                "items": {"anyOf": choices}}),
        };
        properties.insert(format!("answer_{}", at + 1), property);
    }
    let required: Vec<String> = properties.keys().cloned().collect();
    let schema = json!({"type": "object", "properties": properties, "required": required});
    (!required.is_empty()).then(|| (message.join("\n"), schema))
}
