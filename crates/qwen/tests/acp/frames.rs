//! Our own description of the frames that an agent may send: which keys each type has at its root, and of which
//! type they are. No other key is allowed.

use serde_json::Value;

/// The types of values.
#[derive(Clone, Copy)]
enum Is {
    Text,
    Count,
    Object,
    List,
    Any,
    OneOf(&'static [&'static str]),
}

use Is::{Any, Count, List, Object, OneOf, Text};

type Keys = &'static [(&'static str, bool, Is)];

const STATUSES: &[&str] = &["pending", "in_progress", "completed", "failed"];
const KINDS: &[&str] =
    &["read", "edit", "delete", "move", "search", "execute", "think", "fetch", "switch_mode", "other"];

/// A key, whether it is required, and its type.
const CHUNK: Keys = &[("content", true, Object), ("messageId", false, Text)];
const CALL: Keys = &[
    ("toolCallId", true, Text),
    ("title", false, Text),
    ("name", false, Text),
    ("kind", false, OneOf(KINDS)),
    ("status", false, OneOf(STATUSES)),
    ("content", false, List),
    ("locations", false, List),
    ("rawInput", false, Any),
    ("rawOutput", false, Any),
];
const NOTICE: Keys = &[("severity", true, OneOf(&["info", "warning", "error"])), ("title", true, Text)];

const OPTION: Keys = &[
    ("optionId", true, Text),
    ("name", true, Text),
    ("kind", true, OneOf(&["allow_once", "allow_always", "reject_once", "reject_always"])),
];

fn update_keys(kind: &str) -> Keys {
    match kind {
        "user_message_chunk" | "agent_message_chunk" | "agent_thought_chunk" => CHUNK,
        "tool_call" | "tool_call_update" => CALL,
        "plan" => &[("entries", true, List)],
        "available_commands_update" => &[("availableCommands", true, List)],
        "current_mode_update" => &[("currentModeId", true, Text)],
        "config_option_update" => &[("configOptions", true, List)],
        "session_info_update" => &[("title", false, Text), ("updatedAt", false, Text)],
        // Outside the schema, for clients that advertise sub-agents as sessions.
        "subagent_spawned" => {
            &[("subagentSessionId", true, Text), ("name", true, Text), ("task", true, Text)]
        }
        "subagent_state_update" => &[
            ("subagentSessionId", true, Text),
            ("state", true, OneOf(&["completed", "failed", "cancelled"])),
        ],
        "usage_update" => &[("used", true, Count), ("size", true, Count), ("cost", false, Object)],
        "notice" => NOTICE,
        "compaction_update" => &[("compactionId", true, Text), ("status", true, Text)],
        other => panic!("there is no update {other:?}"),
    }
}

#[track_caller]
fn check_object(what: &str, value: &Value, tag: Option<&str>, keys: Keys) {
    let object = value.as_object().unwrap_or_else(|| panic!("{what} is not an object: {value}"));
    for (name, required, is) in keys {
        let Some(found) = object.get(*name) else {
            assert!(!required, "{what} has no `{name}`: {value}");
            continue;
        };
        let fits = match is {
            Text => found.is_string(),
            Count => found.is_u64(),
            Object => found.is_object(),
            List => found.is_array(),
            Any => true,
            OneOf(words) => found.as_str().is_some_and(|word| words.contains(&word)),
        };
        assert!(fits, "{what}: `{name}` is {found}");
    }
    for name in object.keys() {
        let is_known = keys.iter().any(|(known, ..)| known == name);
        assert!(
            is_known || name == "_meta" || Some(name.as_str()) == tag,
            "{what} has the foreign key `{name}`: {value}"
        );
    }
}

fn check_block(block: &Value) {
    let keys: Keys = match block["type"].as_str() {
        Some("text") => &[("text", true, Text)],
        Some("image") => &[("data", true, Text), ("mimeType", true, Text), ("uri", false, Text)],
        Some("resource_link") => &[("uri", true, Text), ("name", true, Text), ("mimeType", false, Text)],
        other => panic!("there is no content block {other:?}"),
    };
    check_object("a content block", block, Some("type"), keys);
}

fn check_tool(call: &Value) {
    for content in call["content"].as_array().into_iter().flatten() {
        let keys: Keys = match content["type"].as_str() {
            Some("content") => &[("content", true, Object)],
            Some("diff") => &[("path", true, Text), ("oldText", false, Any), ("newText", true, Text)],
            Some("terminal") => &[("terminalId", true, Text)],
            other => panic!("there is no tool content {other:?}"),
        };
        check_object("tool content", content, Some("type"), keys);
        if content["type"] == "content" {
            check_block(&content["content"]);
        }
        if content["type"] == "diff" {
            assert!(content["path"].as_str().unwrap().starts_with('/'), "a relative path: {content}");
        }
    }
    for location in call["locations"].as_array().into_iter().flatten() {
        check_object("a location", location, None, &[("path", true, Text), ("line", false, Count)]);
        assert!(location["path"].as_str().unwrap().starts_with('/'), "a relative path: {location}");
        assert_ne!(location["line"], 0, "lines are counted from 1");
    }
}

fn check_update(update: &Value) {
    let kind = update["sessionUpdate"].as_str().unwrap_or_else(|| panic!("no kind: {update}"));
    check_object(kind, update, Some("sessionUpdate"), update_keys(kind));
    match kind {
        "tool_call" | "tool_call_update" => {
            assert!(kind == "tool_call_update" || update["title"].is_string(), "no title: {update}");
            if let Some(title) = update["title"].as_str() {
                assert!(!title.contains('\n'), "{title:?}");
            }
            check_tool(update);
        }
        "plan" => {
            for entry in update["entries"].as_array().unwrap() {
                let keys: Keys = &[
                    ("content", true, Text),
                    ("priority", true, OneOf(&["high", "medium", "low"])),
                    ("status", true, OneOf(&["pending", "in_progress", "completed"])),
                ];
                check_object("a plan entry", entry, None, keys);
            }
        }
        "available_commands_update" => {
            for command in update["availableCommands"].as_array().unwrap() {
                let keys: Keys =
                    &[("name", true, Text), ("description", true, Text), ("input", false, Object)];
                check_object("a command", command, None, keys);
                assert!(!command["name"].as_str().unwrap().starts_with('/'));
            }
        }
        "config_option_update" => check_options(&update["configOptions"]),
        _ if kind.ends_with("_chunk") => check_block(&update["content"]),
        _ => {}
    }
}

/// Checks options: the current value is among the values.
pub fn check_options(options: &Value) {
    for option in options.as_array().unwrap() {
        let keys: Keys = &[
            ("id", true, Text),
            ("name", true, Text),
            ("description", false, Text),
            ("category", false, Text),
            ("type", true, OneOf(&["select"])),
            ("currentValue", true, Text),
            ("options", true, List),
        ];
        check_object("an option", option, None, keys);
        let values = option["options"].as_array().unwrap();
        assert!(values.iter().any(|value| value["value"] == option["currentValue"]), "{option}");
    }
}

/// Checks a frame of the agent.
#[track_caller]
pub fn check(frame: &Value) {
    assert_eq!(frame["jsonrpc"], "2.0", "{frame}");
    assert!(frame.to_string().len() <= 1024 * 1024, "a frame of {} bytes", frame.to_string().len());
    let params = &frame["params"];
    let Some(method) = frame.get("method") else {
        let keys: Keys =
            &[("jsonrpc", true, Text), ("id", true, Any), ("result", false, Any), ("error", false, Object)];
        check_object("a response", frame, None, keys);
        assert!(frame.get("result").is_some() != frame.get("error").is_some(), "{frame}");
        if let Some(error) = frame.get("error") {
            assert!(error["code"].is_i64(), "{frame}");
            let message = error["message"].as_str().unwrap();
            assert!(!message.is_empty() && !message.contains('\n'), "{frame}");
        }
        return;
    };
    let keys: Keys =
        &[("jsonrpc", true, Text), ("id", false, Text), ("method", true, Text), ("params", true, Object)];
    check_object("a message", frame, None, keys);
    match method.as_str().unwrap() {
        "session/update" => {
            check_object("an update", params, None, &[("sessionId", true, Text), ("update", true, Object)]);
            check_update(&params["update"]);
        }
        "session/request_permission" => {
            let keys: Keys =
                &[("sessionId", true, Text), ("toolCall", true, Object), ("options", true, List)];
            check_object("a permission request", params, None, keys);
            check_object("the call of a request", &params["toolCall"], None, CALL);
            check_tool(&params["toolCall"]);
            for option in params["options"].as_array().unwrap() {
                check_object("an option", option, None, OPTION);
            }
        }
        "elicitation/create" => {
            let keys: Keys = &[
                ("sessionId", true, Text),
                ("toolCallId", false, Text),
                ("mode", true, OneOf(&["form"])),
                ("message", true, Text),
                ("requestedSchema", true, Object),
            ];
            check_object("an elicitation", params, None, keys);
        }
        "$/cancel_request" => check_object("a cancellation", params, None, &[("requestId", true, Any)]),
        other => panic!("the agent must not send {other}: {frame}"),
    }
}
