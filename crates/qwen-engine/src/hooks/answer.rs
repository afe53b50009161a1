//! Parses a hook's answer, in the format of Claude's hooks or in the shorter list format.

use std::sync::Arc;

use qwen_events::Json;
use serde_json::Value;

use super::HookEvent;
use super::ruling::Permission;
use crate::react::parse_arguments;

/// The answer of one hook.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct HookAnswer {
    /// The turn must end, for this reason.
    pub stop: Option<Arc<str>>,
    /// The verdict on the call's permission.
    pub permission: Option<Permission>,
    /// The reason for the permission verdict or the block.
    pub reason: Option<Arc<str>>,
    /// The observed action must not happen, or the agent must not stop yet.
    pub block: bool,
    /// Replaces the call's arguments.
    pub updated_input: Option<Json>,
    /// Replaces the tool's text for the model.
    pub updated_output: Option<Arc<str>>,
    /// Additional context for the model.
    pub context: Option<Arc<str>>,
    /// A message for the user.
    pub message: Option<Arc<str>>,
    /// Suppresses the message for the user.
    pub quiet: bool,
}

impl HookAnswer {
    /// Parses an answer to `event`. An absent field means no opinion; a field of the wrong type is an error.
    pub(super) fn read(event: HookEvent, text: &str) -> Result<Self, String> {
        let text = text.trim();
        if text.is_empty() {
            return Ok(Self::default());
        }
        let value: Value = serde_json::from_str(text).map_err(|error| format!("it is not JSON ({error})"))?;
        let object = match &value {
            Value::Null => return Ok(Self::default()),
            Value::Object(_) => &value,
            _ => return Err("it is not a JSON object".to_owned()),
        };
        // Refuses a key that is there twice: another reader might take the other value.
        parse_arguments(text)?;
        let mut answer = Self::default();
        answer.read_common(object)?;
        answer.read_list_form(object)?;
        match &object["hookSpecificOutput"] {
            Value::Null => {}
            specific @ Value::Object(_) => answer.read_specific(event, specific)?,
            _ => return Err("hookSpecificOutput is not an object".to_owned()),
        }
        Ok(answer)
    }

    /// Adds a permission. The strictest of an answer counts.
    fn add_permission(&mut self, permission: Permission) {
        self.permission = self.permission.max(Some(permission));
    }

    fn read_common(&mut self, object: &Value) -> Result<(), String> {
        self.reason = text(object, "reason")?;
        if flag(object, "continue")? == Some(false) {
            self.stop = Some(text(object, "stopReason")?.or_else(|| self.reason.clone()).unwrap_or_default());
        }
        self.quiet = flag(object, "suppressOutput")?.unwrap_or_default();
        self.message = text(object, "systemMessage")?;
        match text(object, "decision")?.as_deref() {
            None => {}
            Some("block" | "deny") => {
                self.block = true;
                self.add_permission(Permission::Deny);
            }
            Some("approve" | "allow") => self.add_permission(Permission::Allow),
            Some("ask") => self.add_permission(Permission::Ask),
            Some(other) => return Err(format!("decision '{other}' is neither 'block' nor 'approve'")),
        }
        Ok(())
    }

    /// `{shouldSkip, shouldInterrupt, suppressOutput, message}`
    fn read_list_form(&mut self, object: &Value) -> Result<(), String> {
        let message = text(object, "message")?;
        if flag(object, "shouldSkip")? == Some(true) {
            self.block = true;
            self.add_permission(Permission::Deny);
            self.reason = self.reason.take().or_else(|| message.clone());
        }
        if flag(object, "shouldInterrupt")? == Some(true) {
            self.stop = Some(message.clone().unwrap_or_default());
        }
        self.message = self.message.take().or(message);
        Ok(())
    }

    fn read_specific(&mut self, event: HookEvent, specific: &Value) -> Result<(), String> {
        match text(specific, "permissionDecision")?.as_deref() {
            None => {}
            Some("defer") => self.add_permission(Permission::Defer),
            Some("allow") => self.add_permission(Permission::Allow),
            Some("ask") => self.add_permission(Permission::Ask),
            Some("deny") => self.add_permission(Permission::Deny),
            Some(other) => {
                return Err(format!("permissionDecision '{other}' is not allow, deny, ask or defer"));
            }
        }
        if let Some(reason) = text(specific, "permissionDecisionReason")? {
            self.reason = Some(reason);
        }
        self.updated_input = object(specific, "updatedInput")?;
        self.context = text(specific, "additionalContext")?;
        let outputs = ["updatedToolOutput", "updatedMCPToolOutput"].map(|key| &specific[key]);
        self.updated_output = outputs.into_iter().find(|output| !output.is_null()).map(output_text);
        // The format in which PermissionRequest hooks answer.
        let decision = &specific["decision"];
        if decision.is_object() {
            match text(decision, "behavior")?.as_deref() {
                Some("allow" | "approve") => self.add_permission(Permission::Allow),
                Some("deny" | "reject") => self.add_permission(Permission::Deny),
                Some("ask") | None => {}
                Some(other) => return Err(format!("behavior '{other}' is not allow or deny")),
            }
            self.reason = text(decision, "message")?.or_else(|| self.reason.take());
            self.updated_input = object(decision, "updatedInput")?.or_else(|| self.updated_input.take());
            if flag(decision, "interrupt")? == Some(true) {
                self.stop = Some(self.reason.clone().unwrap_or_default());
            }
        }
        match text(specific, "hookEventName")? {
            // A refusal counts under any name.
            Some(name)
                if self.permission == Some(Permission::Allow) && HookEvent::parse(&name) != Some(event) =>
            {
                Err(format!("it allows a call as an answer to '{name}', not to {}", event.name()))
            }
            _ => Ok(()),
        }
    }
}

/// A tool's output as text: the text of content blocks, and JSON for anything else.
fn output_text(output: &Value) -> Arc<str> {
    let blocks = output.as_array().or_else(|| output["content"].as_array());
    let texts: Option<Vec<&str>> = blocks.filter(|blocks| !blocks.is_empty()).and_then(|blocks| {
        let text = |block: &Value| block["type"] == "text";
        blocks.iter().map(|block| block["text"].as_str().filter(|_| text(block))).collect()
    });
    match (texts, output) {
        (Some(texts), _) => texts.join("\n").into(),
        (None, Value::String(text)) => text.as_str().into(),
        (None, other) => other.to_string().into(),
    }
}

fn text(object: &Value, key: &str) -> Result<Option<Arc<str>>, String> {
    match &object[key] {
        Value::Null => Ok(None),
        Value::String(text) => Ok(Some(text.as_str().into())),
        _ => Err(format!("{key} is not a text")),
    }
}

fn flag(object: &Value, key: &str) -> Result<Option<bool>, String> {
    match &object[key] {
        Value::Null => Ok(None),
        Value::Bool(flag) => Ok(Some(*flag)),
        _ => Err(format!("{key} is not true or false")),
    }
}

fn object(object: &Value, key: &str) -> Result<Option<Json>, String> {
    match &object[key] {
        Value::Null => Ok(None),
        value @ Value::Object(_) => Ok(Some(Json::trusted(value.to_string()))),
        _ => Err(format!("{key} is not an object")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> HookAnswer {
        HookAnswer::read(HookEvent::PreToolUse, text).unwrap()
    }

    #[test]
    fn the_words_of_both_forms_are_understood() {
        let deny = |reason: &str| HookAnswer {
            permission: Some(Permission::Deny),
            reason: Some(reason.into()),
            ..HookAnswer::default()
        };
        assert_eq!(read(""), HookAnswer::default());
        assert_eq!(read("null"), HookAnswer::default());
        assert_eq!(read(r#"{"continue":true,"async":true}"#), HookAnswer::default());
        assert_eq!(read(r#"{"continue":false,"stopReason":"late"}"#).stop.as_deref(), Some("late"));
        assert_eq!(read(r#"{"decision":"block","reason":"no"}"#), HookAnswer { block: true, ..deny("no") });
        assert_eq!(read(r#"{"decision":"approve"}"#).permission, Some(Permission::Allow));
        let specific =
            r#"{"hookSpecificOutput":{"permissionDecision":"deny","permissionDecisionReason":"no"}}"#;
        assert_eq!(read(specific), deny("no"));
        let changed = r#"{"hookSpecificOutput":{"updatedInput":{"a":1},"additionalContext":"c","updatedToolOutput":"o"}}"#;
        let changed = read(changed);
        assert_eq!(changed.updated_input.as_ref().map(Json::as_str), Some(r#"{"a":1}"#));
        assert_eq!((changed.context.as_deref(), changed.updated_output.as_deref()), (Some("c"), Some("o")));
        let skip = read(r#"{"shouldSkip":true,"message":"not now"}"#);
        assert_eq!((skip.block, skip.reason.as_deref()), (true, Some("not now")));
        assert_eq!(read(r#"{"shouldInterrupt":true,"message":"stop"}"#).stop.as_deref(), Some("stop"));
        let asked = r#"{"hookSpecificOutput":{"decision":{"behavior":"deny","message":"no"}}}"#;
        assert_eq!(read(asked), deny("no"));
        let both =
            r#"{"decision":"block","reason":"no","hookSpecificOutput":{"permissionDecision":"allow"}}"#;
        assert_eq!(read(both), HookAnswer { block: true, ..deny("no") });
        let other_event = r#"{"hookSpecificOutput":{"hookEventName":"Stop","permissionDecision":"deny","permissionDecisionReason":"no"}}"#;
        assert_eq!(read(other_event), deny("no"));
        let deferred = r#"{"hookSpecificOutput":{"permissionDecision":"defer"}}"#;
        assert_eq!(read(deferred).permission, Some(Permission::Defer));
    }

    #[test]
    fn a_malformed_hook_answer_is_an_error() {
        let bad = [
            "x",
            "[]",
            r#"{"continue":"no"}"#,
            r#"{"decision":"perhaps"}"#,
            r#"{"hookSpecificOutput":{"permissionDecision":"maybe"}}"#,
            r#"{"hookSpecificOutput":{"updatedInput":"rm"}}"#,
            r#"{"hookSpecificOutput":[]}"#,
            r#"{"decision":"block","decision":"approve"}"#,
            r#"{"hookSpecificOutput":{"hookEventName":"PostToolUse","permissionDecision":"allow"}}"#,
        ];
        for text in bad {
            assert!(HookAnswer::read(HookEvent::PreToolUse, text).is_err(), "{text}");
        }
    }
}
