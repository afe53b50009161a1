//! The tool `run`: its declaration, its arguments and its results.

use serde_json::{Value, json};

use crate::turn::{TurnOutcome, TurnStep};

/// The name of the only tool.
pub const NAME: &str = "run";

/// The arguments of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunArguments {
    pub prompt: String,
    pub session: Option<String>,
    pub workspace: Option<String>,
}

impl RunArguments {
    /// Reads the arguments. The error names what is wrong, for the model that wrote them.
    pub fn parse(arguments: &Value) -> Result<Self, String> {
        let Some(fields) = arguments.as_object() else {
            return Err("The arguments must be an object.".to_owned());
        };
        if let Some(name) =
            fields.keys().find(|name| !["prompt", "session", "workspace"].contains(&name.as_str()))
        {
            return Err(format!("There is no argument '{name}'. Use prompt, session and workspace."));
        }
        let text = |name: &str| match fields.get(name) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(text)) => Ok(Some(text.clone())),
            Some(_) => Err(format!("`{name}` must be a text.")),
        };
        let prompt = text("prompt")?.filter(|prompt| !prompt.trim().is_empty());
        let prompt = prompt.ok_or("`prompt` must be a text that is not empty.")?;
        Ok(Self { prompt, session: text("session")?, workspace: text("workspace")? })
    }
}

/// The declaration of the tool.
pub fn declaration(workspaces: &[String]) -> Value {
    let description = format!(
        "Runs a coding agent on a prompt and returns its final answer. The agent reads and edits files and runs commands in a workspace, \
         under the permissions of its user. Pass the session of an earlier result to continue that conversation. Workspaces: {}.",
        workspaces.join(", ")
    );
    json!({
        "name": NAME,
        "title": "Run the qwen agent",
        "description": description,
        "inputSchema": {
            "type": "object",
            "properties": {
                "prompt": {"type": "string", "description": "The task for the agent."},
                "session": {"type": "string", "description": "The session to continue. A new one if absent."},
                "workspace": {"type": "string", "description": "The absolute path of the directory for a new session."},
            },
            "required": ["prompt"],
            "additionalProperties": false,
        },
        "outputSchema": {
            "type": "object",
            "properties": {
                "session": {"type": "string"},
                "status": {"type": "string", "description": "done, cancelled, error, interrupted, or the limit that was reached."},
                "text": {"type": "string", "description": "The agent's final message, or why the turn failed."},
                "denied": {"type": "array", "items": {"type": "string"}, "description": "Tool calls that no one could permit."},
            },
            "required": ["session", "status", "text"],
        },
        "annotations": {"title": "Run the qwen agent", "readOnlyHint": false, "destructiveHint": true, "idempotentHint": false, "openWorldHint": true},
    })
}

/// What a call's result is made from.
#[derive(Debug, Default)]
pub struct RunTranscript {
    /// The text of the message that is written, or was written last.
    text: String,
    /// Calls that were denied because the client cannot ask its user.
    pub denied: Vec<String>,
}

impl RunTranscript {
    /// Takes a step. Returns what the client is told about it.
    pub fn take(&mut self, step: &TurnStep) -> Option<String> {
        match step {
            TurnStep::MessageStart => {
                self.text.clear();
                Some("Waiting for the model".to_owned())
            }
            TurnStep::Text(text) => {
                self.text.push_str(text);
                None
            }
            TurnStep::CallStart { name, .. } => Some(format!("Calling {name}")),
            TurnStep::CallEnd { status, .. } => Some(format!("A tool call ended: {status}")),
            TurnStep::Approval { name, .. } => Some(format!("{name} waits for permission")),
            _ => None,
        }
    }

    /// The result of the call after the turn's end.
    pub fn result(&self, session: &str, end: &TurnOutcome) -> Value {
        let mut text = self.text.clone();
        if let Some((message, _)) = &end.error {
            text.clone_from(message);
        }
        let mut shown = text.clone();
        for denied in &self.denied {
            let lead = if shown.is_empty() { "" } else { "\n\n" };
            shown.push_str(&format!("{lead}Denied, because this client cannot ask its user: {denied}"));
        }
        let mut structured = json!({"session": session, "status": end.status, "text": text});
        if !self.denied.is_empty() {
            structured["denied"] = self.denied.clone().into();
        }
        json!({
            "content": [{"type": "text", "text": shown}],
            "structuredContent": structured,
            "isError": end.status != "done",
        })
    }
}

/// The result of a call that was not started.
pub fn failed(message: &str) -> Value {
    json!({"content": [{"type": "text", "text": message}], "isError": true})
}

/// The question about a tool call that needs permission. `is_stateless` adds what the older revisions do not have.
pub fn question(name: &str, arguments: &Value, reason: &str, is_stateless: bool) -> Value {
    let what = arguments["command"].as_str().map_or_else(|| arguments.to_string(), str::to_owned);
    let why = if reason.is_empty() { String::new() } else { format!("\n\nReason: {reason}") };
    let mut params = json!({
        "message": format!("The agent asks for permission to use {name}:\n\n{what}{why}"),
        "requestedSchema": {
            "type": "object",
            "properties": {
                "decision": {"type": "string", "title": "Decision", "enum": ["allow", "deny"], "enumNames": ["Allow", "Deny"]},
                "message": {"type": "string", "title": "Message for the agent", "description": "With deny: what it should do instead."},
            },
            "required": ["decision"],
        },
    });
    if is_stateless {
        params["mode"] = "form".into();
    }
    params
}

/// The decision in an answer to [`question`]: whatever is not clearly permission is a denial.
pub fn decision(answer: Option<&Value>) -> (&'static str, serde_json::Map<String, Value>) {
    let mut response = serde_json::Map::new();
    let Some(answer) = answer else { return ("deny", response) };
    let content = &answer["content"];
    if let Some(message) = content["message"].as_str().filter(|message| !message.is_empty()) {
        response.insert("message".to_owned(), message.into());
    }
    let is_allowed = answer["action"] == "accept" && content["decision"] == "allow";
    (if is_allowed { "allow" } else { "deny" }, response)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_clear_answer_permits() {
        let allow = json!({"action": "accept", "content": {"decision": "allow"}});
        assert_eq!(decision(Some(&allow)).0, "allow");
        for answer in [
            json!({"action": "accept", "content": {"decision": "deny", "message": "no"}}),
            json!({"action": "accept", "content": {}}),
            json!({"action": "accept"}),
            json!({"action": "decline", "content": {"decision": "allow"}}),
            json!({"action": "cancel"}),
            json!(null),
        ] {
            assert_eq!(decision(Some(&answer)).0, "deny", "{answer}");
        }
        assert_eq!(decision(None).0, "deny");
    }

    #[test]
    fn arguments_are_checked() {
        let parse = |arguments: Value| RunArguments::parse(&arguments);
        assert!(parse(json!({"prompt": "x", "session": null})).is_ok());
        for wrong in [
            json!({}),
            json!({"prompt": " "}),
            json!({"prompt": 1}),
            json!({"prompt": "x", "mode": "yolo"}),
            json!([]),
        ] {
            assert!(parse(wrong.clone()).is_err(), "{wrong}");
        }
    }
}
