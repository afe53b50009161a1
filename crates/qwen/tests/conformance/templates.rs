//! One good line of each type that a host may send, and what each of its fields may be. The matrix of bad
//! lines is derived from these.

use serde_json::{Value, json};

/// Whether a field must be there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Need {
    /// Without it, or with null in its place, the line is bad.
    Required,
    /// It may be absent, and null is the same as absent.
    Optional,
    /// An item of a list: it may be absent, and null is not an item.
    Item,
    /// Nobody looks at it.
    Ignored,
}

/// A field: where it is, whether it must be there, and which kinds of value it takes, as the first letters of
/// `string`, `number`, `boolean`, `array` and `object`.
pub type Field = (&'static str, Need, &'static str);

/// What a good line of a type is answered by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    /// A turn's terminal record, or the result of a command.
    Turn,
    /// A line of its own.
    Line,
    /// Nothing.
    Silence,
}

/// A type of line.
pub struct Template {
    pub name: String,
    /// The line; the number makes its names its own.
    pub line: Box<dyn Fn(usize) -> Value>,
    pub fields: Vec<(String, Need, &'static str)>,
    pub answer: Answer,
    /// Whether only what is bad about it is tried, because what is good about it ends the worker or is held
    /// elsewhere.
    pub only_bad: bool,
    /// Whether a well-formed line is refused all the same, because what it names is not there.
    pub refused: bool,
    /// Fields whose absence makes the line one of another type.
    pub skip: &'static [&'static str],
}

use Need::{Ignored, Item, Optional, Required};

const CHAT: &[Field] = &[
    ("session_id", Optional, "s"),
    ("prompt_id", Optional, "s"),
    ("model", Optional, "s"),
    ("input", Required, "o"),
    ("input.origin", Optional, "s"),
    ("input.parts", Required, "aso"),
    ("input.parts[0]", Required, "so"),
    ("input.parts[0].type", Optional, "s"),
    ("input.parts[0].text", Required, "s"),
    ("input.command", Optional, "o"),
    ("options", Optional, "o"),
    ("options.model", Optional, "s"),
    ("options.temperature", Optional, "n"),
    ("options.top_p", Optional, "n"),
    ("options.max_tokens", Optional, "n"),
    ("options.seed", Optional, "n"),
    ("options.stop", Optional, "as"),
    ("options.stop[0]", Item, "s"),
    ("options.tool_overrides", Optional, "a"),
    ("options.tool_overrides[0]", Item, "s"),
    ("tool_call_id", Optional, "s"),
    ("tool_request", Optional, "o"),
    ("continuation", Optional, "b"),
    ("unknown_field", Ignored, ""),
];

const OPENAI: &[Field] = &[
    ("model", Optional, "s"),
    ("messages", Required, "a"),
    ("messages[0]", Item, "o"),
    ("messages[0].role", Required, "s"),
    ("messages[0].content", Required, "aso"),
    ("messages[1]", Required, "o"),
    ("messages[1].role", Required, "s"),
    ("messages[1].content", Required, "aso"),
    ("temperature", Optional, "n"),
    ("max_tokens", Optional, "n"),
    ("stream", Ignored, ""),
];

const CLAUDE: &[Field] = &[
    ("type", Required, "s"),
    ("session_id", Ignored, ""),
    ("message", Required, "o"),
    ("message.role", Optional, "s"),
    ("message.content", Required, "aso"),
    ("message.content[0]", Required, "so"),
    ("message.content[0].type", Optional, "s"),
    ("message.content[0].text", Required, "s"),
    ("parent_tool_use_id", Ignored, ""),
    ("uuid", Optional, "s"),
];

const COMMAND: &[Field] = &[
    ("input.command.kind", Optional, "s"),
    ("input.command.path", Required, "as"),
    ("input.command.path[0]", Required, "s"),
    ("input.command.args", Optional, "s"),
    ("input.parts", Optional, "aso"),
];

const CONTEXT: &[Field] = &[
    ("session_id", Optional, "s"),
    ("input", Required, "o"),
    ("input.origin", Optional, "s"),
    ("input.parts", Required, "aso"),
    ("input.parts[0].text", Required, "s"),
];

const TOOL_RESPONSE: &[Field] = &[
    ("session_id", Optional, "s"),
    ("input.origin", Optional, "s"),
    ("input.parts[0].type", Optional, "s"),
    ("input.parts[0].text", Required, "s"),
    ("tool_call_id", Required, "s"),
];

const HINT: &[Field] = &[
    ("type", Required, "s"),
    ("session_id", Optional, "s"),
    ("prompt_id", Optional, "s"),
    ("trigger", Optional, "s"),
    ("text", Required, "s"),
    ("cursor", Optional, "n"),
    ("context", Optional, "o"),
    ("context.cwd", Optional, "s"),
    ("context.selected_text", Ignored, ""),
];

const HINT_CANCEL: &[Field] =
    &[("type", Required, "s"), ("session_id", Optional, "s"), ("prompt_id", Optional, "s")];

const HEARTBEAT: &[Field] = &[("type", Required, "s"), ("session_id", Optional, "s"), ("nonce", Ignored, "")];

const CANCEL: &[Field] = &[
    ("type", Required, "s"),
    ("session_id", Optional, "s"),
    ("prompt_id", Optional, "s"),
    ("reason", Optional, "s"),
];

const CONTROL_CANCEL: &[Field] = &[("type", Required, "s"), ("request_id", Required, "s")];

/// Whatever is in it, nobody asked.
const CONTROL_RESPONSE: &[Field] = &[
    ("type", Required, ""),
    ("request_id", Required, ""),
    ("response", Required, ""),
    ("response.subtype", Required, ""),
    ("response.result", Required, ""),
    ("response.result.behavior", Required, ""),
];

/// The requests of the control channel and their own fields.
fn control_requests() -> Vec<(&'static str, Value, &'static [Field])> {
    vec![
        ("interrupt", json!({}), &[]),
        ("set_model", json!({"model": "mock"}), &[("model", Optional, "s")]),
        ("set_permission_mode", json!({"mode": "default"}), &[("mode", Required, "s")]),
        ("set_effort", json!({"effort": "low"}), &[("effort", Optional, "s")]),
        ("supported_commands", json!({}), &[]),
        ("mcp_status", json!({}), &[]),
        ("mcp_server_status", json!({}), &[]),
        ("mcp_reconnect", json!({"serverName": "m"}), &[("serverName", Required, "s")]),
        (
            "mcp_toggle",
            json!({"serverName": "m", "enabled": true}),
            &[("serverName", Required, "s"), ("enabled", Required, "b")],
        ),
        (
            "mcp_message",
            json!({"server_name": "m", "message": {"jsonrpc": "2.0", "method": "ping"}}),
            &[("server_name", Required, "s"), ("message", Required, "o")],
        ),
        ("get_context_usage", json!({"show_details": true}), &[("show_details", Optional, "b")]),
        ("get_available_models", json!({}), &[]),
        ("get_usage_info", json!({"range": "all"}), &[("range", Optional, "s")]),
        ("continue_last_turn", json!({}), &[]),
        (
            "rewind_files",
            json!({"user_message_id": "u", "dry_run": true}),
            &[("user_message_id", Required, "s"), ("dry_run", Optional, "b")],
        ),
        ("stop_task", json!({"task_id": "t"}), &[("task_id", Required, "s")]),
        (
            "initialize",
            json!({"hooks": {"PreCompact": [{"matcher": "x", "hookCallbackIds": ["h"], "timeout": 5, "onFailure": "continue"}]},
                "sdkMcpServers": [], "mcpServers": {}, "agents": {"a": {"description": "d", "prompt": "p"}},
                "systemPrompt": "s", "appendSystemPrompt": "a", "effort": "low", "timeout": {"canUseTool": 60000}}),
            &[
                ("hooks", Optional, "oa"),
                ("hooks.PreCompact", Optional, "a"),
                ("hooks.PreCompact[0]", Item, "o"),
                ("hooks.PreCompact[0].matcher", Optional, "s"),
                ("hooks.PreCompact[0].hookCallbackIds", Required, "as"),
                ("hooks.PreCompact[0].hookCallbackIds[0]", Item, "s"),
                ("hooks.PreCompact[0].timeout", Optional, "n"),
                ("hooks.PreCompact[0].onFailure", Optional, "s"),
                ("sdkMcpServers", Optional, "ao"),
                ("mcpServers", Optional, "oa"),
                ("agents", Optional, "oa"),
                ("agents.a", Item, "o"),
                ("systemPrompt", Optional, "sa"),
                ("appendSystemPrompt", Optional, "sa"),
                ("effort", Optional, "s"),
                ("timeout", Optional, "o"),
                ("timeout.canUseTool", Optional, "n"),
            ],
        ),
        ("end_session", json!({}), &[]),
    ]
}

fn template(
    name: &str,
    line: impl Fn(usize) -> Value + 'static,
    fields: &[Field],
    answer: Answer,
) -> Template {
    let fields = fields.iter().map(|(path, need, kinds)| ((*path).to_owned(), *need, *kinds)).collect();
    Template {
        name: name.to_owned(),
        line: Box::new(line),
        fields,
        answer,
        only_bad: false,
        refused: false,
        skip: &[],
    }
}

/// The prompts.
pub fn prompts() -> Vec<Template> {
    let chat = |n: usize| {
        json!({"session_id": "s", "prompt_id": format!("chat-{n}"), "model": "mock",
            "input": {"origin": "user", "parts": [{"type": "text", "text": "hi"}], "command": null},
            "options": {"model": "mock", "temperature": 0.2, "top_p": 0.5, "max_tokens": 100, "seed": 1, "stop": ["X"],
                "tool_overrides": ["EditTool"]},
            "tool_call_id": "c", "tool_request": {"callId": "c"}, "continuation": false, "unknown_field": "x"})
    };
    let openai = |n: usize| {
        json!({"model": "mock", "messages": [
            {"role": "system", "content": "be brief"}, {"role": "user", "content": format!("hi {n}")}],
            "temperature": 0.1, "max_tokens": 10, "stream": true})
    };
    let claude = |n: usize| {
        json!({"type": "user", "session_id": "", "parent_tool_use_id": null, "uuid": format!("u-{n}"),
            "message": {"role": "user", "content": [{"type": "text", "text": "hi"}]}})
    };
    let command = |n: usize| {
        json!({"session_id": "s", "prompt_id": format!("command-{n}"), "input": {"origin": "user", "parts": [],
            "command": {"kind": "slash", "path": ["help"], "args": ""}}})
    };
    let context = |_| json!({"session_id": "s", "input": {"origin": "system", "parts": [{"type": "text", "text": "context"}]}});
    let tool_response = |n: usize| {
        json!({"session_id": "s", "prompt_id": format!("tool-{n}"), "tool_call_id": "c", "input": {
            "origin": "tool_response", "parts": [{"type": "text", "text": "42"}]}})
    };
    vec![
        template("a chat request", chat, CHAT, Answer::Turn),
        template("an OpenAI request", openai, OPENAI, Answer::Turn),
        template("a claude user line", claude, CLAUDE, Answer::Turn),
        template("a command", command, COMMAND, Answer::Turn),
        Template { skip: &["input.origin"], ..template("context", context, CONTEXT, Answer::Silence) },
        Template {
            only_bad: true,
            skip: &["input.origin"],
            ..template("a tool response", tool_response, TOOL_RESPONSE, Answer::Turn)
        },
    ]
}

/// The requests beside the conversation, and what answers us.
pub fn requests() -> Vec<Template> {
    let hint = |n: usize| {
        json!({"type": "command_hint_request", "session_id": "s", "prompt_id": format!("hint-{n}"), "trigger": "slash",
            "text": "/c", "cursor": 2, "context": {"cwd": ".", "selected_text": ""}})
    };
    let hint_cancel = |n: usize| json!({"type": "command_hint_cancel", "session_id": "s", "prompt_id": format!("hint-{n}")});
    let heartbeat = |_| json!({"type": "heartbeat_request", "session_id": "s", "nonce": 1});
    let cancel =
        |_| json!({"type": "control/cancel", "session_id": "s", "prompt_id": "p", "reason": "escape"});
    let control_cancel = |n: usize| json!({"type": "control_cancel_request", "request_id": format!("r-{n}")});
    let response = |n: usize| {
        json!({"type": "control_response", "request_id": format!("none-{n}"),
            "response": {"subtype": "success", "result": {"behavior": "allow"}}})
    };
    vec![
        template("command_hint_request", hint, HINT, Answer::Line),
        template("command_hint_cancel", hint_cancel, HINT_CANCEL, Answer::Silence),
        template("heartbeat_request", heartbeat, HEARTBEAT, Answer::Line),
        template("control/cancel", cancel, CANCEL, Answer::Line),
        template("control_cancel_request", control_cancel, CONTROL_CANCEL, Answer::Silence),
        template("control_response", response, CONTROL_RESPONSE, Answer::Line),
    ]
}

/// The requests of the control channel, in both forms.
pub fn controls() -> Vec<Template> {
    let mut all = Vec::new();
    for (subtype, body, fields) in control_requests() {
        let only_bad = subtype == "end_session";
        let refused =
            ["mcp_reconnect", "mcp_toggle", "mcp_message", "rewind_files", "stop_task"].contains(&subtype);
        let flat = body.clone();
        let own = [("type", Required, "s"), ("request_id", Required, "s"), ("subtype", Required, "s")];
        let line = move |n: usize| {
            let mut line = flat.clone();
            line["type"] = "control_request".into();
            line["request_id"] = format!("case-{n}").into();
            line["subtype"] = subtype.into();
            line
        };
        let fields_flat: Vec<Field> = own.iter().chain(fields).copied().collect();
        all.push(Template {
            only_bad,
            refused,
            ..template(&format!("{subtype}, flat"), line, &fields_flat, Answer::Line)
        });
        let line = move |n: usize| {
            let mut request = body.clone();
            request["subtype"] = subtype.into();
            json!({"type": "control_request", "request_id": format!("case-{n}"), "request": request})
        };
        let own = [("type", Required, "s"), ("request_id", Required, "s"), ("request", Required, "o")];
        let mut nested = template(&format!("{subtype}, nested"), line, &own, Answer::Line);
        (nested.only_bad, nested.refused) = (only_bad, refused);
        let inner = [("subtype", Required, "s")];
        nested.fields.extend(
            inner.iter().chain(fields).map(|(path, need, kinds)| (format!("request.{path}"), *need, *kinds)),
        );
        all.push(nested);
    }
    all
}
