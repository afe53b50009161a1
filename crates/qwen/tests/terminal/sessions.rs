//! Typed commands, other sessions, the way back, and copies of the conversation.

use mock_model::{MockModel, Reply, ReplyEvent, gate, sse};

use crate::harness::{Screen, qwen};

const UP: &str = "\u{1b}[A";
const DOWN: &str = "\u{1b}[B";
const ESC: &str = "\u{1b}";

#[test]
fn a_typed_command_runs_without_the_model_and_joins_the_conversation() {
    let mock = MockModel::with([Reply::text("I see the word.")]);
    let mut screen = Screen::ready(&qwen(&mock));
    screen.type_keys("!echo remember-$((40 + 2)) > made.txt; cat made.txt\r");
    screen.wait_for("remember-42");
    screen.wait_gone("esc interrupts");
    assert!(mock.requests().is_empty(), "the model was not called");
    assert!(!screen.contents().contains("Run this command?"), "the user typed it:\n{}", screen.contents());
    screen.type_keys("what was it?\r");
    screen.wait_for("I see the word.");
    let said = mock.wait_for_request(0).body.to_string();
    assert!(said.contains("remember-42"), "{said}");
}

#[test]
fn a_typed_command_obeys_the_rules_and_shows_its_whole_output() {
    let mock = MockModel::with([]);
    let program = qwen(&mock).args(["--disallowed-tools", "Bash(touch *)"]);
    let mut screen = Screen::ready(&program);
    screen.type_keys("!touch forbidden.txt\r");
    screen.wait_for("not allowed");
    assert!(!program.cwd_path().join("forbidden.txt").exists());
    screen.wait_gone("esc interrupts");
    screen.type_keys("!seq 1 60\r");
    screen.wait_for("60");
    screen.wait_gone("esc interrupts");
    assert!(!screen.contents().contains("more lines above"), "{}", screen.contents());
}

#[test]
fn escape_ends_a_typed_command() {
    let mock = MockModel::with([]);
    let mut screen = Screen::ready(&qwen(&mock));
    screen.type_keys("!echo begun; sleep 1000\r");
    screen.wait_for("begun");
    screen.wait_for("esc interrupts");
    screen.type_keys(ESC);
    screen.wait_for("Interrupted");
    screen.wait_gone("esc interrupts");
}

#[test]
fn a_session_is_found_by_what_was_said_in_it_and_goes_on() {
    let mock = MockModel::with([
        Reply::text("The capital of Peru is Lima."),
        Reply::text("Llamas live there."),
        Reply::text("You asked about Peru."),
    ]);
    let program = qwen(&mock);
    for (prompt, answer) in [("south america?", "is Lima."), ("which animals?", "Llamas live there.")] {
        let mut screen = Screen::ready(&program);
        screen.type_keys(&format!("{prompt}\r"));
        screen.wait_for(answer);
        screen.wait_gone("esc interrupts");
        screen.type_keys("\u{4}");
        screen.wait();
    }
    let mut screen = Screen::ready(&program);
    screen.type_keys("/resume\r");
    screen.wait_for("Continue with a session");
    screen.wait_for("south america?");
    screen.wait_for("which animals?");
    // The word is in an answer only, not in a title.
    screen.type_keys("capital");
    screen.wait_gone("which animals?");
    screen.wait_for("found: The capital of Peru is Lima.");
    screen.type_keys("\r");
    screen.wait_for("Continuing with");
    screen.wait_for("> south america?");
    screen.wait_gone("search:");
    screen.type_keys("what did I ask?\r");
    screen.wait_for("You asked about Peru.");
    let said = mock.wait_for_request(2).body.to_string();
    assert!(said.contains("south america?") && !said.contains("which animals?"), "{said}");
}

#[test]
fn a_list_takes_no_key_of_a_draft_and_escape_closes_it() {
    let mock = MockModel::with([
        Reply::text("First."),
        Reply::new([gate("busy"), sse::text("Second."), sse::finish("stop"), sse::done()]),
    ]);
    let program = qwen(&mock);
    let mut screen = Screen::ready(&program);
    screen.type_keys("one\r");
    screen.wait_for("First.");
    screen.wait_gone("esc interrupts");
    screen.type_keys("/rewind\r");
    screen.wait_for("Go back to before a prompt");
    screen.type_keys(ESC);
    screen.wait_gone("enter chooses");
    screen.type_keys("two\r");
    mock.reached("busy");
    screen.type_keys("/rewind\r");
    screen.wait_for("joins the turn: /rewind");
    screen.type_keys("my draft");
    screen.wait_for("> my draft");
    mock.open("busy");
    // The list is printed instead of opened.
    screen.wait_for("Go back to before a prompt");
    screen.wait_for("> my draft");
    screen.type_keys("!");
    screen.wait_for("> my draft!");
}

#[test]
fn escape_twice_rewinds_after_a_preview_that_names_what_stays() {
    let read = Reply::call("c0", "read_file", r#"{"file_path":"notes.txt"}"#);
    let write = Reply::call("c1", "write_file", r#"{"file_path":"notes.txt","content":"new\n"}"#);
    let run = Reply::call("c2", "run_shell_command", r#"{"command":"touch by-command.txt"}"#);
    let mock = MockModel::with([
        Reply::text("Hello."),
        read,
        write,
        run,
        Reply::text("Changed."),
        Reply::text("Again."),
    ]);
    let program = qwen(&mock).arg("--yolo");
    let notes = program.cwd_path().join("notes.txt");
    std::fs::write(&notes, "old\n").unwrap();
    let mut screen = Screen::ready(&program);
    screen.type_keys("greet\r");
    screen.wait_for("Hello.");
    screen.wait_gone("esc interrupts");
    screen.type_keys("change the notes\r");
    screen.wait_for("Changed.");
    screen.wait_gone("esc interrupts");
    screen.type_keys(ESC);
    // The decoder waits for the rest of a sequence before it reports the key.
    screen.type_keys(ESC);
    screen.wait_for("Go back to before a prompt");
    screen.wait_for("change the notes");
    screen.type_keys("\r");
    screen.wait_for("Before: change the notes");
    screen.wait_for("Stay here");
    screen.type_keys(DOWN);
    screen.wait_for("Would be restored");
    screen.wait_for("`touch by-command.txt`");
    assert_eq!(std::fs::read_to_string(&notes).unwrap(), "new\n", "a preview changes nothing");
    screen.type_keys("\r");
    screen.wait_for("The conversation is back before that prompt.");
    screen.wait_for("> change the notes");
    assert_eq!(std::fs::read_to_string(&notes).unwrap(), "old\n");
    assert!(program.cwd_path().join("by-command.txt").exists());
    screen.type_keys("\u{3}");
    screen.wait_for("Cleared; Up brings it back.");
    screen.type_keys("go\r");
    screen.wait_for("Again.");
    let said = mock.wait_for_request(5).body.to_string();
    assert!(said.contains("greet") && !said.contains("change the notes"), "{said}");
}

#[test]
fn a_rewound_turn_is_not_shown_when_the_session_continues_and_marked_in_the_transcript() {
    let mock = MockModel::with([Reply::text("A kept answer."), Reply::text("An undone answer.")]);
    let program = qwen(&mock);
    let mut screen = Screen::ready(&program);
    for (prompt, answer) in
        [("first question\r", "A kept answer."), ("second question\r", "An undone answer.")]
    {
        screen.type_keys(prompt);
        screen.wait_for(answer);
        screen.wait_gone("esc interrupts");
    }
    screen.type_keys("/rewind\r");
    screen.wait_for("Go back to before a prompt");
    screen.type_keys("\r");
    screen.wait_for("Before: second question");
    screen.type_keys(DOWN);
    screen.wait_for("No file would change.");
    screen.type_keys("\r");
    screen.wait_for("The conversation is back before that prompt.");
    screen.type_keys("\u{3}");
    screen.wait_for("Cleared; Up brings it back.");
    screen.type_keys("\u{4}");
    screen.wait();
    let mut screen = Screen::start(&program.arg("--continue"));
    screen.wait_for("A kept answer.");
    // The footer is the end of the first frame.
    screen.wait_for("mock · default");
    let shown = screen.contents();
    assert!(shown.contains("> first question") && shown.contains("A kept answer."), "{shown}");
    assert!(!shown.contains("second question") && !shown.contains("An undone answer."), "{shown}");
    screen.type_keys("\u{f}");
    screen.wait_for("> second question (rewound)");
    screen.wait_for("q close");
    let shown = screen.contents();
    assert!(shown.contains("An undone answer.") && !shown.contains("first question (rewound)"), "{shown}");
}

#[test]
fn only_the_files_or_only_the_conversation_can_go_back() {
    let write = |content: &str| {
        let arguments = format!(r#"{{"file_path":"notes.txt","content":"{content}"}}"#);
        Reply::call("c1", "write_file", &arguments)
    };
    let mock = MockModel::with([
        write("one"),
        Reply::text("Written."),
        Reply::text("Still known."),
        Reply::text("Forgotten."),
    ]);
    let program = qwen(&mock).arg("--yolo");
    let notes = program.cwd_path().join("notes.txt");
    let mut screen = Screen::ready(&program);
    screen.type_keys("write it\r");
    screen.wait_for("Written.");
    screen.wait_gone("esc interrupts");
    screen.type_keys("/rewind\r");
    screen.wait_for("Go back to before a prompt");
    screen.type_keys("\r");
    screen.wait_for("Before: write it");
    screen.type_keys(UP);
    screen.wait_for("Would be removed");
    screen.type_keys("\r");
    screen.wait_for("Removed: ");
    screen.wait_gone("esc interrupts");
    assert!(!notes.exists());
    screen.type_keys("remember?\r");
    screen.wait_for("Still known.");
    assert!(mock.wait_for_request(2).body.to_string().contains("write it"));
    screen.wait_gone("esc interrupts");
    std::fs::write(&notes, "by hand").unwrap();
    screen.type_keys("/rewind\r");
    screen.wait_for("enter chooses");
    screen.type_keys(&format!("{DOWN}\r"));
    screen.wait_for("Before: write it");
    screen.type_keys(&DOWN.repeat(2));
    screen.wait_for("Files stay as they are.");
    screen.type_keys("\r");
    screen.wait_for("The conversation is back");
    assert_eq!(std::fs::read_to_string(&notes).unwrap(), "by hand");
    screen.type_keys("\u{3}");
    screen.type_keys("now?\r");
    screen.wait_for("Forgotten.");
    assert!(!mock.wait_for_request(3).body.to_string().contains("write it"));
}

#[test]
fn a_fork_leaves_the_first_session_as_it_was() {
    let mock =
        MockModel::with([Reply::text("Common."), Reply::text("In the copy."), Reply::text("In the first.")]);
    let program = qwen(&mock);
    let mut screen = Screen::ready(&program.clone().args(["--session-id", "first"]));
    screen.type_keys("begin\r");
    screen.wait_for("Common.");
    screen.wait_gone("esc interrupts");
    screen.type_keys("/chat fork\r");
    screen.wait_for("continues in a copy");
    screen.type_keys("only here\r");
    screen.wait_for("In the copy.");
    screen.wait_gone("esc interrupts");
    screen.type_keys("\u{4}");
    screen.wait();
    let mut screen = Screen::ready(&program.args(["--resume", "first"]));
    screen.type_keys("and here?\r");
    screen.wait_for("In the first.");
    let said = mock.wait_for_request(2).body.to_string();
    assert!(said.contains("begin") && !said.contains("only here"), "{said}");
}

#[test]
fn the_conversation_is_exported_as_markdown_html_and_json_lines() {
    let mock = MockModel::with([Reply::text("Use `<b>` & **bold**.")]);
    let program = qwen(&mock);
    let mut screen = Screen::ready(&program);
    screen.type_keys("how?\r");
    screen.wait_for("Use <b> & bold.");
    screen.wait_gone("esc interrupts");
    for name in ["talk.md", "talk.html", "talk.jsonl"] {
        screen.type_keys(&format!("/export {name}\r"));
        screen.wait_for(&format!("The conversation is in {name}."));
    }
    let read = |name: &str| std::fs::read_to_string(program.cwd_path().join(name)).unwrap();
    assert!(read("talk.md").contains("Use `<b>` & **bold**."), "{}", read("talk.md"));
    let html = read("talk.html");
    assert!(html.starts_with("<!doctype html>"), "{html}");
    assert!(html.contains("Use `&lt;b&gt;` &amp; **bold**."), "{html}");
    let lines: Vec<serde_json::Value> =
        read("talk.jsonl").lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines[0]["role"], "user");
    assert_eq!(lines[1]["content"][0]["text"], "Use `<b>` & **bold**.");
}

/// Types a prompt or a command and waits for what it prints.
fn enter(screen: &mut Screen, text: &str, shown: &str) {
    screen.type_keys(&format!("{text}\r"));
    screen.wait_for(shown);
    screen.wait_gone("esc interrupts");
}

#[test]
fn what_a_continued_session_shows_is_what_the_model_has_after_compact_undo_and_redo() {
    let cases: [(&[&str], bool); 3] =
        [(&["/compact"], true), (&["/compact", "/undo"], false), (&["/compact", "/undo", "/redo"], true)];
    for (commands, is_compressed) in cases {
        let mock = MockModel::with(["one.", "two.", "THE SUMMARY", "after."].map(Reply::text));
        let program = qwen(&mock);
        let mut screen = Screen::ready(&program);
        enter(&mut screen, "first prompt", "one.");
        enter(&mut screen, "second prompt", "two.");
        for command in commands {
            screen.type_keys(&format!("{command}\r"));
            screen.wait_for(match *command {
                "/compact" => "was compressed from",
                "/undo" => "The last turn was removed",
                _ => "is back in the conversation",
            });
            screen.wait_gone("esc interrupts");
        }
        screen.type_keys("\u{4}");
        screen.wait();
        let mut screen = Screen::ready(&program.clone().args(["--continue"]));
        screen.wait_for("> first prompt");
        let shown = screen.contents();
        assert_eq!(shown.contains("> second prompt"), is_compressed, "{commands:?}:\n{shown}");
        assert_eq!(
            shown.contains("The conversation was compressed here"),
            is_compressed,
            "{commands:?}:\n{shown}"
        );
        enter(&mut screen, "third prompt", "after.");
        let said = mock.wait_for_request(3).body["messages"].to_string();
        assert_eq!(said.contains("THE SUMMARY"), is_compressed, "{commands:?}: {said}");
        assert_eq!(said.contains("first prompt"), !is_compressed, "{commands:?}: {said}");
        assert!(!said.contains("second prompt"), "{commands:?}: {said}");
    }
}

#[test]
fn after_a_way_back_the_size_of_what_was_removed_triggers_no_compaction() {
    let sized = |text: &str, tokens| {
        let usage = ReplyEvent::Usage { input: tokens, output: 5 }.step();
        Reply::new([ReplyEvent::Text(text.into()).step(), usage])
    };
    let mock = MockModel::with([sized("one.", 3000), sized("two.", 120_000), sized("three.", 3000)]);
    let mut screen = Screen::ready(&qwen(&mock));
    enter(&mut screen, "first prompt", "one.");
    enter(&mut screen, "second prompt", "two.");
    screen.wait_for("120k tokens");
    enter(&mut screen, "/undo", "The last turn was removed");
    screen.wait_gone("120k tokens");
    enter(&mut screen, "third prompt", "three.");
    assert_eq!(mock.requests().len(), 3, "nothing was summarized");
}
