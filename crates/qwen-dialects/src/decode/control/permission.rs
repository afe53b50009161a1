//! The host's answer to a permission request.

use std::sync::Arc;

use qwen_events::{Behavior, ErrorInfo, Json, PermissionAnswer, PermissionUpdate};

use super::{malformed_answer, malformed_at};
use crate::decode::Result;
use crate::decode::field::{Kind, Object, Value};

/// Reads a permission answer of either dialect. Anything invalid is an error, which means no.
pub fn permission_answer(json: &Json) -> std::result::Result<PermissionAnswer, ErrorInfo> {
    let fields = Value::new(json.as_str(), "").object().map_err(|_| {
        malformed_answer(
            "the answer to a permission question must be an object with `behavior`; it is taken as no",
        )
    })?;
    let behavior = fields.need("behavior", "`allow`, `deny` or `ask`")?;
    let updated_input = fields.any(&["updatedInput", "updated_input"]);
    if let Some(input) = &updated_input
        && input.kind() != Kind::Object
    {
        return Err(input.type_error("the tool's arguments, which are an object"));
    }
    let updates = fields.any(&["updatedPermissions", "updated_permissions"]);
    let updated_permissions = match updates {
        Some(list) => list.array()?.iter().map(update).collect::<Result<Vec<_>>>()?,
        None => Vec::new(),
    };
    Ok(PermissionAnswer {
        behavior: read_behavior(&behavior)?,
        message: fields.string("message")?,
        updated_input: updated_input.map(|input| input.json()),
        updated_permissions,
        interrupt: fields.bool("interrupt")?.unwrap_or(false),
    })
}

fn read_behavior(value: &Value<'_>) -> Result<Behavior> {
    match &*value.text()? {
        "approve" | "allow" => Ok(Behavior::Allow),
        "deny" | "reject" => Ok(Behavior::Deny),
        "ask" => Ok(Behavior::Ask),
        other => {
            let shown: String = other.chars().take(80).collect();
            let path = value.path();
            let message =
                format!("`{path}` is {shown:?}; it must be `allow`, `deny` or `ask`; it is taken as no");
            Err(malformed_at(path, message))
        }
    }
}

/// A change of the rules, in Claude's form.
fn update(value: &Value<'_>) -> Result<PermissionUpdate> {
    let fields = value.object()?;
    let kind = fields.need("type", "what is changed")?;
    Ok(match &*kind.text()? {
        "setMode" => PermissionUpdate::SetMode(fields.need("mode", "an approval mode")?.string()?),
        // Answers can only add and remove rules; rules that a replacement omits remain until they are
        // removed.
        "addRules" | "replaceRules" => {
            PermissionUpdate::AddRules { behavior: rules_behavior(&fields)?, rules: rules(&fields)? }
        }
        "removeRules" => {
            PermissionUpdate::RemoveRules { behavior: rules_behavior(&fields)?, rules: rules(&fields)? }
        }
        "addDirectories" => {
            PermissionUpdate::AddDirectories(fields.need("directories", "an array of paths")?.strings()?)
        }
        other => {
            let shown: String = other.chars().take(80).collect();
            return Err(malformed_at(
                kind.path(),
                format!(
                    "there is no permission update of type {shown:?}; it must be `addRules`, `replaceRules`, \
                     `removeRules`, `setMode` or `addDirectories`"
                ),
            ));
        }
    })
}

fn rules_behavior(fields: &Object<'_>) -> Result<Behavior> {
    fields.get("behavior").map_or(Ok(Behavior::Allow), |value| read_behavior(&value))
}

/// Rules as texts, or as Claude's `{toolName, ruleContent}`.
fn rules(fields: &Object<'_>) -> Result<Vec<Arc<str>>> {
    let list = fields.need("rules", "an array of rules")?;
    list.array()?
        .iter()
        .map(|rule| {
            if rule.kind() == Kind::String {
                return rule.string();
            }
            let rule = rule.object()?;
            let tool = rule.need_any(&["toolName", "tool_name"], "the tool's name")?.string()?;
            let content =
                rule.any(&["ruleContent", "rule_content"]).map(|value| value.string()).transpose()?;
            Ok(match content {
                Some(content) => format!("{tool}({content})").into(),
                None => tool,
            })
        })
        .collect()
}
