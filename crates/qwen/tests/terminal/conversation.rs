//! What the conversation looks like, and what can be typed into it.

use mock_model::{MockModel, Reply, gate, sse};

use crate::harness::{Screen, qwen};

#[test]
fn calls_are_named_by_their_object_and_output_is_shown() {
    let call = Reply::call("c1", "run_shell_command", r#"{"command":"echo one; echo two"}"#);
    let read = Reply::call("c2", "read_file", r#"{"file_path":"notes.txt"}"#);
    let mock = MockModel::with([call, read, Reply::text("Done.")]);
    let program = qwen(&mock).arg("--yolo");
    std::fs::write(program.cwd_path().join("notes.txt"), "milk\n").unwrap();
    let mut screen = Screen::ready(&program);
    screen.type_keys("look\r");
    screen.wait_for("Done.");
    let contents = screen.contents();
    for text in ["● Run\necho one; echo two\none\ntwo", "● Read notes.txt"] {
        assert!(contents.contains(text), "{text}:\n{contents}");
    }
}

#[test]
fn a_list_of_things_to_do_is_shown_with_its_state() {
    let todos = r#"{"todos":[{"id":"1","content":"find it","status":"completed"},{"id":"2","content":"fix it","status":"in_progress"}]}"#;
    let mock = MockModel::with([Reply::call("c1", "todo_write", todos), Reply::text("On it.")]);
    let mut screen = Screen::ready(&qwen(&mock));
    screen.type_keys("plan\r");
    screen.wait_for("On it.");
    screen.wait_for("✓ find it");
    screen.wait_for("▸ fix it");
}

#[test]
fn prompts_during_a_turn_wait_and_can_be_taken_back() {
    let mock = MockModel::with([
        Reply::new([gate("first"), sse::text("First answer."), sse::finish("stop"), sse::done()]),
        Reply::text("Second answer."),
    ]);
    let mut screen = Screen::ready(&qwen(&mock));
    screen.type_keys("one\r");
    mock.reached("first");
    screen.type_keys("two\t");
    screen.wait_for("queued: two");
    screen.type_keys("three\t");
    screen.wait_for("queued: three");
    screen.type_keys("\u{1b}[A");
    screen.wait_gone("queued: three");
    screen.wait_for("> three");
    mock.open("first");
    screen.wait_for("Second answer.");
    screen.wait_for("> three");
    assert_eq!(mock.requests().len(), 2);
}

#[test]
fn enter_during_a_turn_joins_it_before_the_next_model_call() {
    let mock = MockModel::with([
        Reply::new([
            gate("busy"),
            sse::call(0, "c1", "list_directory", r#"{"path":"."}"#),
            sse::finish("tool_calls"),
            sse::done(),
        ]),
        Reply::text("Heard you."),
    ]);
    let mut screen = Screen::ready(&qwen(&mock));
    screen.type_keys("look around\r");
    mock.reached("busy");
    screen.type_keys("only the tests\r");
    screen.wait_for("joins the turn: only the tests");
    mock.open("busy");
    screen.wait_for("Heard you.");
    screen.wait_for("> only the tests");
    let said = mock.wait_for_request(1).body.to_string();
    assert!(said.contains("only the tests"), "{said}");
    assert_eq!(mock.requests().len(), 2, "one turn");
}

#[test]
fn a_message_that_comes_too_late_gets_a_turn_of_its_own() {
    let mock = MockModel::with([
        Reply::new([gate("busy"), sse::text("First."), sse::finish("stop"), sse::done()]),
        Reply::text("Second."),
    ]);
    let mut screen = Screen::ready(&qwen(&mock));
    screen.type_keys("one\r");
    mock.reached("busy");
    screen.type_keys("two\r");
    screen.wait_for("joins the turn: two");
    mock.open("busy");
    screen.wait_for("Second.");
    screen.wait_gone("joins the turn");
    screen.wait_gone("esc interrupts");
    assert_eq!(screen.contents().matches("> two").count(), 1, "{}", screen.contents());
}

#[test]
fn commands_and_files_are_completed() {
    let mock = MockModel::with([]);
    let program = qwen(&mock);
    std::fs::write(program.cwd_path().join("unusual-name.txt"), "x").unwrap();
    let mut screen = Screen::ready(&program);
    screen.type_keys("/he");
    screen.wait_for("help");
    screen.type_keys("\t");
    screen.wait_for("> /help");
    screen.type_keys("\r");
    screen.wait_for("- undo");
    screen.type_keys("see @unus");
    screen.wait_for("unusual-name.txt");
    screen.type_keys("\t");
    screen.wait_for("> see @unusual-name.txt");
}

#[test]
fn a_large_paste_is_one_chip_and_reaches_the_model_whole() {
    let mock = MockModel::with([Reply::text("Read it.")]);
    let mut screen = Screen::ready(&qwen(&mock));
    let paste: String = (0..300).map(|n| format!("row {n}\r")).collect();
    screen.type_keys(&format!("see \u{1b}[200~{paste}\u{1b}[201~"));
    screen.wait_for("> see [paste 1: 300 lines]");
    screen.type_keys("\r");
    screen.wait_for("Read it.");
    let said = mock.wait_for_request(0).body.to_string();
    assert!(said.contains("row 0\\nrow 1\\n") && said.contains("row 299"), "{said}");
}

#[test]
fn lines_are_added_by_every_newline_key() {
    let mock = MockModel::with([Reply::text("Five lines.")]);
    let mut screen = Screen::ready(&qwen(&mock));
    screen.type_keys("a\u{1b}\rb\nc\\\rd\u{1b}[13;2ue\r");
    screen.wait_for("Five lines.");
    let said = mock.wait_for_request(0).body.to_string();
    assert!(said.contains("a\\nb\\nc\\nd\\ne"), "{said}");
}

#[test]
fn the_editor_of_the_user_edits_the_prompt() {
    let mock = MockModel::with([]);
    let program = qwen(&mock).env_remove("VISUAL").env("EDITOR", "sed -i s/draft/letter/");
    let mut screen = Screen::ready(&program);
    screen.type_keys("my draft");
    screen.wait_for("> my draft");
    screen.type_keys("\u{7}");
    screen.wait_for("> my letter");
    screen.type_keys(" and a draft\u{18}\u{5}");
    screen.wait_for("> my letter and a letter");
    let failing = qwen(&mock).env_remove("VISUAL").env("EDITOR", "false");
    let mut screen = Screen::ready(&failing);
    screen.type_keys("my draft");
    screen.wait_for("> my draft");
    screen.type_keys("\u{7}");
    screen.wait_for("The editor failed");
    screen.wait_for("> my draft");
}

#[test]
fn a_session_that_goes_on_shows_what_was_said_before() {
    let mock = MockModel::with([Reply::text("Remember **forty-two**.")]);
    let program = qwen(&mock);
    let mut screen = Screen::ready(&program);
    screen.type_keys("the number?\r");
    screen.wait_for("Remember forty-two.");
    screen.type_keys("\u{4}");
    screen.wait();
    let mut screen = Screen::ready(&program.arg("--continue"));
    screen.wait_for("> the number?");
    screen.wait_for("Remember forty-two.");
}

#[test]
fn history_is_searched_and_kept_for_the_next_process() {
    let mock = MockModel::with([Reply::text("One."), Reply::text("Two.")]);
    let program = qwen(&mock);
    let mut screen = Screen::ready(&program);
    screen.type_keys("explain the parser\r");
    screen.wait_for("One.");
    screen.type_keys("run tests\r");
    screen.wait_for("Two.");
    screen.type_keys("\u{4}");
    screen.wait();
    let mut screen = Screen::ready(&program);
    screen.type_keys("my draft\u{12}pars");
    screen.wait_for("search: pars");
    screen.wait_for("enter takes it");
    screen.type_keys("\r");
    screen.wait_for("> explain the parser");
    // What was typed before is not lost.
    screen.type_keys("\u{1b}[A");
    screen.wait_for("> my draft");
}

#[test]
fn ctrl_b_sends_the_running_command_to_the_background_and_the_turn_goes_on() {
    let command = r#"{"command":"echo be''gun; sleep 1000"}"#;
    let mock = MockModel::with([Reply::call("c1", "run_shell_command", command), Reply::text("Going on.")]);
    let mut screen = Screen::ready(&qwen(&mock).arg("--yolo"));
    screen.type_keys("go\r");
    // Its output, not its line on the screen.
    screen.wait_for("begun");
    screen.wait_for("ctrl+b to the background");
    screen.type_keys("\u{2}");
    screen.wait_for("Going on.");
    screen.wait_gone("esc interrupts");
    screen.wait_for("▸ echo be''gun; sleep 1000");
    let told = mock.wait_for_request(1).body.to_string();
    assert!(told.contains("moved the command to the background") && told.contains("begun"), "{told}");
    // Without a command it moves the caret.
    screen.type_keys("ac\u{2}b");
    screen.wait_for("> abc");
}

/// The smallest picture: a signature is enough to be recognised.
const PNG: &[u8] = b"\x89PNG\r\n\x1a\n0000";

#[test]
fn a_pasted_path_of_a_picture_is_sent_as_the_picture_and_any_other_path_as_text() {
    let mock = MockModel::with([Reply::text("A cat.")]);
    let program = qwen(&mock);
    std::fs::write(program.cwd_path().join("my cat.png"), PNG).unwrap();
    std::fs::write(program.cwd_path().join("fake.png"), "no picture").unwrap();
    let mut screen = Screen::ready(&program);
    screen.type_keys("what is ");
    screen.type_keys("\u{1b}[200~my\\ cat.png\u{1b}[201~");
    screen.wait_for("[picture 1: image/png]");
    screen.type_keys("\u{1b}[200~fake.png\u{1b}[201~");
    screen.wait_for("[picture 1: image/png]fake.png");
    screen.type_keys("\u{1b}[200~missing.png\u{1b}[201~\r");
    screen.wait_for("A cat.");
    let said = mock.wait_for_request(0);
    let content = said.messages().last().unwrap()["content"].to_string();
    assert!(content.contains("data:image/png;base64,iVBORw0K"), "{content}");
    assert!(content.contains("what is [picture]fake.pngmissing.png"), "{content}");
}

#[test]
fn ctrl_v_inserts_the_picture_that_a_clipboard_tool_gives() {
    use std::os::unix::fs::PermissionsExt;
    let mock = MockModel::with([Reply::text("A dog.")]);
    let program = qwen(&mock);
    let tools = program.home_path().join("tools");
    std::fs::create_dir(&tools).unwrap();
    std::fs::write(tools.join("picture"), PNG).unwrap();
    let tool = tools.join("wl-paste");
    std::fs::write(&tool, format!("#!/bin/sh\nexec cat '{}'\n", tools.join("picture").display())).unwrap();
    std::fs::set_permissions(&tool, std::fs::Permissions::from_mode(0o755)).unwrap();
    let path = format!("{}:{}", tools.display(), std::env::var("PATH").unwrap());
    let mut screen = Screen::ready(&program.env("PATH", path).env("WAYLAND_DISPLAY", "none"));
    screen.type_keys("\u{16}");
    screen.wait_for("[picture 1: image/png]");
    screen.type_keys("\r");
    screen.wait_for("A dog.");
    assert!(mock.wait_for_request(0).body.to_string().contains("data:image/png;base64,iVBORw0K"));
}
