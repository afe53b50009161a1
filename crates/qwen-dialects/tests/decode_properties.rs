//! The decoder survives whatever is written to it.

use proptest::prelude::*;
use qwen_dialects::{decode, permission_answer};
use qwen_events::Command;

/// Lines to start mutating from: one of every shape.
const SOUND: [&str; 9] = [
    r#"{"session_id":"s","prompt_id":"s########7","model":"m","input":{"origin":"user","parts":[{"type":"text","text":"a\u00e4\ud83e\udd80"}],"command":{"kind":"slash","path":["chat"],"args":""}},"options":{"temperature":0.2,"tool_overrides":["EditTool"],"tools":[{"type":"function","function":{"name":"add"}}]}}"#,
    r#"{"tool_call_id":"c","input":{"origin":"tool_response","parts":[{"functionResponse":{"id":"c","response":{"output":"3"}}}]}}"#,
    r#"{"messages":[{"role":"system","content":"a"},{"role":"assistant","tool_calls":[{"id":"c","function":{"name":"f","arguments":"{}"}}]},{"role":"tool","tool_call_id":"c","content":"x"},{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:image/png;base64,AA"}}]}]}"#,
    r#"{"type":"user","session_id":"","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"c","content":[{"type":"text","text":"a"}]},{"type":"document","source":{"type":"url","url":"https://a/b.pdf"}}]}}"#,
    r#"{"type":"command_hint_request","session_id":"s","trigger":"slash","text":"/c","cursor":2,"context":{"cwd":"/w"}}"#,
    r#"{"type":"control_request","request_id":"r","request":{"subtype":"initialize","hooks":{"Stop":[{"hookCallbackIds":["h"],"timeout":5}]},"agents":[{"name":"a"}],"mcpServers":{"f":{"command":"x"}},"requires":["x"]}}"#,
    r#"{"type":"control_response","response":{"subtype":"success","request_id":"r","response":{"behavior":"allow","updatedPermissions":[{"type":"addRules","rules":[{"toolName":"Bash"}]}]}}}"#,
    r#"{"type":"control_response","request_id":"r","response":{"subtype":"error","error":{"message":"m","retryable":false}}}"#,
    r#"{"type":"control/cancel","session_id":"s","prompt_id":"p","reason":"escape","request_id":"r"}"#,
];

/// Decodes, and follows an answer one step further; an error always has its words.
fn survives(line: &[u8]) {
    match decode(line) {
        Ok(commands) => {
            for command in commands {
                if let Command::Reply { reply, .. } = command
                    && let Ok(json) = reply.result
                {
                    drop(permission_answer(&json));
                }
            }
        }
        Err(error) => assert!(!error.message.is_empty()),
    }
}

#[test]
fn the_lines_that_are_mutated_below_are_sound() {
    for line in SOUND {
        assert!(decode(line.as_bytes()).is_ok(), "{line}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn arbitrary_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        survives(&bytes);
    }

    #[test]
    fn mutated_lines_never_panic(
        line in prop::sample::select(&SOUND[..]),
        cuts in prop::collection::vec((any::<prop::sample::Index>(), any::<prop::sample::Index>(), any::<u8>(), 0..4_u8), 1..6),
    ) {
        let mut bytes = line.as_bytes().to_vec();
        for (one, other, byte, how) in cuts {
            if bytes.is_empty() {
                break;
            }
            let (a, b) = (one.index(bytes.len()), other.index(bytes.len()));
            match how {
                0 => bytes[a] = byte,
                1 => bytes.insert(a, b"{}[]\",:\\u0tfn1-"[usize::from(byte) % 15]),
                2 => drop(bytes.drain(a.min(b)..a.max(b))),
                _ => bytes.extend_from_within(a.min(b)..a.max(b)),
            }
        }
        survives(&bytes);
    }

    /// Any value in place of any value: the shapes hold whatever stands where.
    #[test]
    fn values_of_the_wrong_type_never_panic(
        line in prop::sample::select(&SOUND[..]),
        at in any::<prop::sample::Index>(),
        value in prop::sample::select(&["null", "true", "7", "-1.5e300", "\"\"", "\"x\"", "[]", "[[]]", "{}", "{\"a\":1}"][..]),
    ) {
        let starts: Vec<usize> = line.match_indices(':').map(|(at, _)| at + 1).collect();
        let start = starts[at.index(starts.len())];
        let mut values = serde_json::Deserializer::from_str(&line[start..]).into_iter::<serde_json::Value>();
        if let Some(Ok(_)) = values.next() {
            let end = start + values.byte_offset();
            survives(format!("{}{value}{}", &line[..start], &line[end..]).as_bytes());
        }
    }
}
