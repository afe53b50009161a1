//! The catalogue of rules: what each requires and a stream that violates it.

use super::report::Level;
use crate::dialect::Dialect;

/// One rule of the checker.
#[derive(Debug, Clone, Copy)]
pub struct Rule {
    /// The stable name under which findings report the rule.
    pub name: &'static str,
    pub applies_to: &'static str,
    /// The severity of a violation.
    pub level: Level,
    /// What a valid stream guarantees.
    pub promise: &'static str,
    /// A stream that violates the rule.
    pub example: Example,
}

/// A stream that violates a rule.
#[derive(Debug, Clone, Copy)]
pub enum Example {
    Lines(Dialect, &'static [&'static str]),
    /// A description, if the lines cannot be printed.
    Described(&'static str),
}

/// The rule of this name.
pub fn rule(name: &str) -> Option<&'static Rule> {
    RULES.iter().find(|rule| rule.name == name)
}

/// All rules, those of every dialect first.
pub const RULES: &[Rule] = &[
    Rule {
        name: "utf-8",
        applies_to: "every dialect",
        level: Level::Error,
        promise: "every line is UTF-8",
        example: Example::Described("a line with the byte 0xFF in it"),
    },
    Rule {
        name: "too-long",
        applies_to: "every dialect",
        level: Level::Error,
        promise: "a line has at most 64 MiB",
        example: Example::Described("a line of 65 MiB"),
    },
    Rule {
        name: "json",
        applies_to: "every dialect",
        level: Level::Error,
        promise: "every line is one JSON object",
        example: Example::Lines(Dialect::Loom, &[r#"{"type":"usage""#]),
    },
    Rule {
        name: "json-text",
        applies_to: "every dialect",
        level: Level::Error,
        promise: "no key occurs twice, no surrogate is unpaired, nothing is nested deeper than 128",
        example: Example::Lines(Dialect::Loom, &[r#"{"type":"run_start","type":"run_start"}"#]),
    },
    Rule {
        name: "shape",
        applies_to: "every dialect",
        level: Level::Error,
        promise: "a line has the fields, types and constants of its kind; additional fields are accepted",
        example: Example::Lines(Dialect::Loom, &[r#"{"type":"node_enter"}"#]),
    },
    Rule {
        name: "unknown-type",
        applies_to: "every dialect",
        level: Level::Error,
        promise: "the kind of each line belongs to the dialect",
        example: Example::Lines(Dialect::Loom, &[r#"{"type":"node_enters","id":"think"}"#]),
    },
    Rule {
        name: "no-terminal",
        applies_to: "every dialect",
        level: Level::Error,
        promise: "every turn has its terminal record before the next turn and before the end of the stream",
        example: Example::Lines(Dialect::Loom, &[r#"{"type":"run_start","message":"hi","agent":"react"}"#]),
    },
    Rule {
        name: "one-terminal",
        applies_to: "every dialect",
        level: Level::Error,
        promise: "every turn has exactly one terminal record",
        example: Example::Lines(
            Dialect::ClaudeLite,
            &[
                r#"{"type":"message_stop","stop_reason":"stop_turn","usage":{"input_tokens":1,"output_tokens":1}}"#,
            ],
        ),
    },
    Rule {
        name: "after-terminal",
        applies_to: "every dialect",
        level: Level::Error,
        promise: "nothing of a turn comes after its terminal record",
        example: Example::Lines(
            Dialect::ClaudeLite,
            &[
                r#"{"type":"message_start","message":{"model":"m"}}"#,
                r#"{"type":"message_stop","stop_reason":"stop_turn","usage":{"input_tokens":1,"output_tokens":1}}"#,
                r#"{"type":"content_block_delta","text":"more"}"#,
            ],
        ),
    },
    Rule {
        name: "tool",
        applies_to: "every dialect",
        level: Level::Error,
        promise: "a call that starts ends, a call that ends has started (except for a refusal), neither happens twice, and pieces of a call follow its first one",
        example: Example::Lines(
            Dialect::Loom,
            &[r#"{"type":"tool_output","call_id":"c1","name":"grep_search","content":"x"}"#],
        ),
    },
    Rule {
        name: "usage",
        applies_to: "every dialect",
        level: Level::Error,
        promise: "the terminal record has the usage, and `total_tokens` is the sum of the other two",
        example: Example::Lines(
            Dialect::Loom,
            &[r#"{"type":"usage","prompt_tokens":1,"completion_tokens":2,"total_tokens":4}"#],
        ),
    },
    Rule {
        name: "reply-text",
        applies_to: "loom, loom-export, claude",
        level: Level::Error,
        promise: "the answer in the terminal record equals the streamed text",
        example: Example::Lines(
            Dialect::Loom,
            &[
                r#"{"type":"run_start"}"#,
                r#"{"type":"message_chunk","content":"Hello","id":"think"}"#,
                r#"{"reply":"Bye"}"#,
            ],
        ),
    },
    Rule {
        name: "empty-stream",
        applies_to: "every dialect",
        level: Level::Error,
        promise: "a stream has at least one line",
        example: Example::Lines(Dialect::Loom, &[]),
    },
    Rule {
        name: "empty-line",
        applies_to: "every dialect",
        level: Level::Warning,
        promise: "no line is empty",
        example: Example::Lines(Dialect::Loom, &[""]),
    },
    Rule {
        name: "no-newline",
        applies_to: "every dialect",
        level: Level::Warning,
        promise: "the last line ends in a newline",
        example: Example::Described("a last line without its newline"),
    },
    Rule {
        name: "event-id",
        applies_to: "loom",
        level: Level::Error,
        promise: "`event_id` grows within a session",
        example: Example::Lines(
            Dialect::Loom,
            &[
                r#"{"type":"run_start","session_id":"s","event_id":2}"#,
                r#"{"type":"node_enter","id":"think","session_id":"s","event_id":1}"#,
            ],
        ),
    },
    Rule {
        name: "event-id-gap",
        applies_to: "loom",
        level: Level::Warning,
        promise: "`event_id` grows by one, from 0 or 1",
        example: Example::Lines(
            Dialect::Loom,
            &[
                r#"{"type":"run_start","session_id":"s","event_id":1}"#,
                r#"{"type":"node_enter","id":"think","session_id":"s","event_id":3}"#,
            ],
        ),
    },
    Rule {
        name: "run-start",
        applies_to: "loom, loom-export",
        level: Level::Error,
        promise: "a run is announced before its first node",
        example: Example::Lines(
            Dialect::Loom,
            &[r#"{"type":"node_enter","id":"think"}"#, r#"{"type":"run_start"}"#],
        ),
    },
    Rule {
        name: "node",
        applies_to: "loom, loom-export",
        level: Level::Error,
        promise: "node runs are entered and left in turn; text, usage and tool events are inside one",
        example: Example::Lines(
            Dialect::Loom,
            &[r#"{"type":"run_start"}"#, r#"{"type":"node_exit","id":"think","result":"Ok"}"#],
        ),
    },
    Rule {
        name: "node-id",
        applies_to: "loom",
        level: Level::Error,
        promise: "the lines of a node run share its `node_id`",
        example: Example::Lines(
            Dialect::Loom,
            &[
                r#"{"type":"node_enter","id":"think","node_id":"run-think-1"}"#,
                r#"{"type":"message_chunk","content":"Hi","id":"think","node_id":"run-think-2"}"#,
            ],
        ),
    },
    Rule {
        name: "state",
        applies_to: "loom, loom-export",
        level: Level::Error,
        promise: "`values` and then `updates` come right after `node_exit`, one of each, with the same state",
        example: Example::Lines(
            Dialect::Loom,
            &[r#"{"type":"node_enter","id":"think"}"#, r#"{"type":"values","state":{}}"#],
        ),
    },
    Rule {
        name: "run-end",
        applies_to: "loom, loom-export",
        level: Level::Error,
        promise: "after a `custom` of kind `run_end` comes the reply",
        example: Example::Lines(
            Dialect::Loom,
            &[
                r#"{"type":"custom","value":{"kind":"run_end","status":"error"}}"#,
                r#"{"type":"node_enter","id":"think"}"#,
            ],
        ),
    },
    Rule {
        name: "thoughts",
        applies_to: "loom, loom-export",
        level: Level::Error,
        promise: "candidates are proposed before they are scored, each with a score; a plan names each thought once; a thought starts and ends once",
        example: Example::Lines(Dialect::Loom, &[r#"{"type":"tot_evaluate","chosen":0,"scores":[0.5]}"#]),
    },
    Rule {
        name: "timestamp",
        applies_to: "loom",
        level: Level::Error,
        promise: "checkpoints have an RFC 3339 date",
        example: Example::Lines(
            Dialect::Loom,
            &[
                r#"{"type":"checkpoint","checkpoint_id":"c","timestamp":"today","step":1,"state":{},"thread_id":"s","checkpoint_ns":""}"#,
            ],
        ),
    },
    Rule {
        name: "handshake",
        applies_to: "qwen",
        level: Level::Error,
        promise: "the first line is the handshake: no choices, no usage, and `metadata` with `protocol_version`, `output_format` and `capabilities`",
        example: Example::Lines(
            Dialect::Qwen,
            &[
                r#"{"object":"chat.completion","id":"chatcmpl-s","created":1,"model":"m","choices":[],"metadata":{"protocol_version":"1.0"}}"#,
            ],
        ),
    },
    Rule {
        name: "envelope",
        applies_to: "qwen, claude",
        level: Level::Error,
        promise: "every line names its session; in `qwen` also its prompt, and the `id` is `chatcmpl-<session_id>`",
        example: Example::Lines(
            Dialect::Qwen,
            &[
                r#"{"object":"chat.completion","id":"chatcmpl-s","created":1,"model":"m","choices":[{"index":0,"message":{"role":"assistant","content":"Hi"},"finish_reason":"stop"}]}"#,
            ],
        ),
    },
    Rule {
        name: "role",
        applies_to: "qwen",
        level: Level::Error,
        promise: "chunks: the role first, then pieces, then the `finish_reason`",
        example: Example::Lines(
            Dialect::Qwen,
            &[
                r#"{"object":"chat.completion.chunk","id":"chatcmpl-s","created":1,"model":"m","session_id":"s","prompt_id":"p","choices":[{"index":0,"delta":{"content":"Hi"},"finish_reason":null}]}"#,
            ],
        ),
    },
    Rule {
        name: "finish-reason",
        applies_to: "qwen",
        level: Level::Error,
        promise: "messages with calls, and only those, have the `finish_reason` `tool_calls`; the terminal record has a reason",
        example: Example::Lines(
            Dialect::Qwen,
            &[
                r#"{"object":"chat.completion","id":"chatcmpl-s","created":1,"model":"m","session_id":"s","prompt_id":"p","choices":[{"index":0,"message":{"role":"assistant","content":"Hi"},"finish_reason":"tool_calls"}]}"#,
            ],
        ),
    },
    Rule {
        name: "metadata",
        applies_to: "qwen",
        level: Level::Error,
        promise: "only the handshake, the terminal record and errors have `metadata`",
        example: Example::Lines(
            Dialect::Qwen,
            &[
                r#"{"object":"chat.completion","id":"chatcmpl-s","created":1,"model":"m","session_id":"s","prompt_id":"p","choices":[{"index":0,"message":{"role":"assistant","content":"Hi"},"finish_reason":"stop"}],"metadata":{"session_id":"s"}}"#,
            ],
        ),
    },
    Rule {
        name: "arguments",
        applies_to: "qwen",
        level: Level::Error,
        promise: "the arguments of a call are a JSON object as text",
        example: Example::Lines(
            Dialect::Qwen,
            &[
                r#"{"object":"chat.completion","id":"chatcmpl-s","created":1,"model":"m","session_id":"s","prompt_id":"p","choices":[{"index":0,"message":{"role":"assistant","content":null,"tool_calls":[{"id":"c","type":"function","function":{"name":"edit","arguments":"main.py"}}]},"finish_reason":"tool_calls"}]}"#,
            ],
        ),
    },
    Rule {
        name: "format",
        applies_to: "qwen",
        level: Level::Error,
        promise: "messages and chunks are not mixed in one stream",
        example: Example::Lines(
            Dialect::Qwen,
            &[
                r#"{"object":"chat.completion","id":"chatcmpl-s","created":1,"model":"m","session_id":"s","prompt_id":"p","choices":[{"index":0,"message":{"role":"assistant","content":"Hi"},"finish_reason":"stop"}]}"#,
                r#"{"object":"chat.completion.chunk","id":"chatcmpl-s","created":1,"model":"m","session_id":"s","prompt_id":"p","choices":[{"index":0,"delta":{"role":"assistant"},"finish_reason":null}]}"#,
            ],
        ),
    },
    Rule {
        name: "offsets",
        applies_to: "qwen",
        level: Level::Error,
        promise: "spans and escapes lie inside `text`",
        example: Example::Lines(
            Dialect::Qwen,
            &[
                r#"{"type":"x-qwen-terminal","channel":"stdout","source":"console","session_id":"s","text":"Hi","ansi":[{"offset":9,"code":"[0m"}]}"#,
            ],
        ),
    },
    Rule {
        name: "terminal-text",
        applies_to: "qwen",
        level: Level::Error,
        promise: "`text` holds no escape sequence",
        example: Example::Lines(
            Dialect::Qwen,
            &[
                r#"{"type":"x-qwen-terminal","channel":"stdout","source":"console","session_id":"s","text":"\u001b[1mHi"}"#,
            ],
        ),
    },
    Rule {
        name: "exit-code",
        applies_to: "qwen",
        level: Level::Error,
        promise: "the exit code is reported by the system, at the end of a run",
        example: Example::Lines(
            Dialect::Qwen,
            &[
                r#"{"type":"x-qwen-terminal","channel":"stdout","source":"console","session_id":"s","text":"","exit_code":1}"#,
            ],
        ),
    },
    Rule {
        name: "no-turn",
        applies_to: "qwen",
        level: Level::Warning,
        promise: "there is a turn after the handshake",
        example: Example::Lines(
            Dialect::Qwen,
            &[
                r#"{"object":"chat.completion","id":"chatcmpl-s","created":1,"model":"m","choices":[],"metadata":{"protocol_version":"1.0","output_format":"stream-json","capabilities":[]}}"#,
            ],
        ),
    },
    Rule {
        name: "init",
        applies_to: "claude",
        level: Level::Error,
        promise: "a turn starts with `system/init`",
        example: Example::Lines(
            Dialect::Claude,
            &[r#"{"type":"user","session_id":"s","message":{"role":"user","content":"Hi"}}"#],
        ),
    },
    Rule {
        name: "message",
        applies_to: "claude",
        level: Level::Error,
        promise: "`message_start` and `message_stop` enclose the pieces of a message",
        example: Example::Lines(
            Dialect::Claude,
            &[
                r#"{"type":"stream_event","uuid":"1","session_id":"s","parent_tool_use_id":null,"event":{"type":"content_block_stop","index":0}}"#,
            ],
        ),
    },
    Rule {
        name: "block",
        applies_to: "claude",
        level: Level::Error,
        promise: "blocks count from 0, one is open at a time, and its pieces have its kind",
        example: Example::Lines(
            Dialect::Claude,
            &[
                r#"{"type":"stream_event","uuid":"1","session_id":"s","parent_tool_use_id":null,"event":{"type":"message_start","message":{"id":"m","role":"assistant","model":"m"}}}"#,
                r#"{"type":"stream_event","uuid":"2","session_id":"s","parent_tool_use_id":null,"event":{"type":"content_block_stop","index":0}}"#,
            ],
        ),
    },
    Rule {
        name: "pieces",
        applies_to: "claude",
        level: Level::Error,
        promise: "a whole text or input equals its pieces joined",
        example: Example::Lines(
            Dialect::Claude,
            &[
                r#"{"type":"stream_event","uuid":"1","session_id":"s","parent_tool_use_id":null,"event":{"type":"message_start","message":{"id":"m","role":"assistant","model":"m"}}}"#,
                r#"{"type":"stream_event","uuid":"2","session_id":"s","parent_tool_use_id":null,"event":{"type":"content_block_start","index":0,"content_block":{"type":"text","text":"Hello"}}}"#,
                r#"{"type":"stream_event","uuid":"3","session_id":"s","parent_tool_use_id":null,"event":{"type":"content_block_stop","index":0}}"#,
                r#"{"type":"assistant","uuid":"4","session_id":"s","parent_tool_use_id":null,"message":{"id":"m","role":"assistant","model":"m","content":[{"type":"text","text":"Bye"}]}}"#,
            ],
        ),
    },
    Rule {
        name: "signature",
        applies_to: "claude",
        level: Level::Error,
        promise: "a block of thinking has a `signature`",
        example: Example::Lines(
            Dialect::Claude,
            &[
                r#"{"type":"assistant","uuid":"4","session_id":"s","parent_tool_use_id":null,"message":{"id":"m","role":"assistant","model":"m","content":[{"type":"thinking","thinking":"hm"}]}}"#,
            ],
        ),
    },
    Rule {
        name: "parent",
        applies_to: "claude",
        level: Level::Error,
        promise: "`parent_tool_use_id` names a call of the session",
        example: Example::Lines(
            Dialect::Claude,
            &[
                r#"{"type":"system","subtype":"init","cwd":"/workspace/demo","tools":[],"mcp_servers":[],"model":"qwen-coder","permissionMode":"default","permission_mode":"default","slash_commands":[],"apiKeySource":"OPENAI_API_KEY","claude_code_version":"2.1.325","qwen_code_version":"1.2.3","output_style":"default","agents":[],"skills":[],"plugins":[],"session_id":"s","uuid":"1"}"#,
                r#"{"type":"user","session_id":"s","parent_tool_use_id":"nobody","message":{"role":"user","content":"Hi"}}"#,
            ],
        ),
    },
    Rule {
        name: "session-state",
        applies_to: "claude",
        level: Level::Error,
        promise: "if states are reported, `idle` follows the `result`",
        example: Example::Lines(
            Dialect::Claude,
            &[
                r#"{"type":"system","subtype":"init","cwd":"/workspace/demo","tools":[],"mcp_servers":[],"model":"qwen-coder","permissionMode":"default","permission_mode":"default","slash_commands":[],"apiKeySource":"OPENAI_API_KEY","claude_code_version":"2.1.325","qwen_code_version":"1.2.3","output_style":"default","agents":[],"skills":[],"plugins":[],"session_id":"s","uuid":"1"}"#,
                r#"{"type":"system","subtype":"session_state_changed","state":"idle","sdk_host_only":true,"uuid":"2","session_id":"s"}"#,
            ],
        ),
    },
    Rule {
        name: "uuid",
        applies_to: "claude",
        level: Level::Warning,
        promise: "each line has its own id",
        example: Example::Lines(
            Dialect::Claude,
            &[
                r#"{"type":"assistant","uuid":"4","session_id":"s","parent_tool_use_id":null,"message":{"id":"m","role":"assistant","model":"m","content":[]}}"#,
                r#"{"type":"assistant","uuid":"4","session_id":"s","parent_tool_use_id":null,"message":{"id":"m","role":"assistant","model":"m","content":[]}}"#,
            ],
        ),
    },
    Rule {
        name: "message-start",
        applies_to: "claude-lite",
        level: Level::Error,
        promise: "a turn starts with `message_start`",
        example: Example::Lines(Dialect::ClaudeLite, &[r#"{"type":"content_block_delta","text":"Hi"}"#]),
    },
];
