//! Text of others: what reaches a terminal is visible, and what reaches the model is plain.

use mock_model::{MockModel, Reply};
use serde_json::json;

use crate::harness::{qwen, text_and_call};

/// Turns the order of the text around.
const OVERRIDE: char = '\u{202e}';

#[test]
fn characters_that_turn_text_around_are_made_visible_on_standard_error_and_in_listings() {
    let call = json!({ "file_path": format!("{OVERRIDE}txt.exe") }).to_string();
    let mock = MockModel::with([
        text_and_call(&format!("Look{OVERRIDE}ing"), "read_file", &call),
        Reply::text(&format!("done{OVERRIDE}")),
    ]);
    let program = qwen().with_model(&mock);
    let flags = ["--model", "mock", "-p", &format!("see{OVERRIDE}"), "--verbose", "--session-id", "turned"];
    let ended = program.clone().args(flags).run();
    assert!(ended.stderr.contains("Look⟨U+202E⟩ing"), "{ended:?}");
    assert!(!ended.stderr.contains(OVERRIDE), "{ended:?}");
    // A pipe gets the answer as it is.
    assert_eq!(ended.stdout, format!("done{OVERRIDE}\n"));
    for command in [&["sessions", "show", "turned"][..], &["sessions", "list"]] {
        let listed = program.clone().args(command).run();
        assert!(!listed.stdout.contains(OVERRIDE) && listed.stdout.contains("⟨U+202E⟩"), "{listed:?}");
    }
    let exported = program.clone().args(["sessions", "export", "turned", "--dialect", "qwen"]).run();
    let viewed = qwen().args(["view"]).stdin(exported.stdout).run();
    assert!(!viewed.stdout.contains(OVERRIDE) && viewed.stdout.contains("⟨U+202E⟩"), "{viewed:?}");
    let wrong = qwen().args(["--resume", &format!("no{OVERRIDE}such"), "-p", "x"]).run();
    assert!(!wrong.stderr.contains(OVERRIDE), "{wrong:?}");
}

#[test]
fn the_model_and_listings_get_output_without_escape_sequences_and_redraws_while_displays_keep_colours() {
    let script =
        r"printf '\033[31mred\033[0m\n'; printf '10%%\r50%%\r100%%\n'; printf '\033]0;title\007end\n'";
    let mock = MockModel::with([
        text_and_call("", "run_shell_command", &json!({ "command": script }).to_string()),
        Reply::text("done"),
    ]);
    let program = qwen().with_model(&mock);
    let flags = ["--model", "mock", "--yolo", "-p", "x", "--session-id", "coloured"];
    let ended =
        program.clone().args(flags).args(["--dialect", "qwen", "--output-format", "stream-json"]).run();
    let told = mock.requests()[1].body["messages"].to_string();
    assert!(told.contains(r"red\n100%\nend"), "{told}");
    assert!(ended.stdout.contains(r"\u001b[31m"), "{}", ended.stdout);
    let shown = program.args(["sessions", "show", "coloured"]).run();
    assert!(shown.stdout.contains("    red\n    100%\n    end\n"), "{shown:?}");
}

#[test]
fn view_shows_the_last_lines_of_a_failed_command_and_what_an_edit_changed() {
    let command = json!({ "command": "seq 1 40; echo the reason; exit 3" }).to_string();
    let edit = json!({ "file_path": "a.txt", "old_string": "one", "new_string": "two" }).to_string();
    for dialect in ["qwen", "loom", "core"] {
        let mock = MockModel::with([
            text_and_call("", "run_shell_command", &command),
            text_and_call("", "read_file", r#"{"file_path":"a.txt"}"#),
            text_and_call("", "edit", &edit),
            Reply::text("done"),
        ]);
        let program = qwen().with_model(&mock).args(["--model", "mock", "--yolo", "-p", "x"]);
        std::fs::write(program.cwd_path().join("a.txt"), "one\n").unwrap();
        let ended = program.args(["--dialect", dialect, "--output-format", "stream-json"]).run();
        let viewed = qwen().args(["view"]).stdin(&ended.stdout).run().stdout;
        for words in ["the reason", "Exit code: 3", "-one", "+two"] {
            assert!(viewed.contains(words), "{dialect}: {words}: {viewed}");
        }
    }
}

#[test]
fn view_reads_a_message_delta_with_only_output_tokens() {
    let part = |event: serde_json::Value| {
        let line = json!({"type": "stream_event", "session_id": "s", "uuid": "u", "parent_tool_use_id": null, "event": event});
        format!("{line}\n")
    };
    let message = json!({
        "id": "m1", "type": "message", "role": "assistant", "model": "m", "content": [], "stop_reason": null,
        "stop_sequence": null, "usage": {"input_tokens": 12, "output_tokens": 1},
    });
    let delta = json!({"stop_reason": "end_turn", "stop_sequence": null});
    let stream: String = [
        json!({"type": "message_start", "message": message}),
        json!({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}),
        json!({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "Hello."}}),
        json!({"type": "content_block_stop", "index": 0}),
        json!({"type": "message_delta", "delta": delta, "usage": {"output_tokens": 5}}),
        json!({"type": "message_stop"}),
    ]
    .into_iter()
    .map(part)
    .collect();
    let viewed = qwen().args(["view", "--dialect", "claude"]).stdin(stream).run();
    assert_eq!(viewed.code, Some(0), "{viewed:?}");
    assert!(viewed.stdout.contains("Hello."), "{viewed:?}");
    assert!(
        !viewed.stdout.contains("message_delta") && !viewed.stderr.contains("output_tokens"),
        "{viewed:?}"
    );
}
