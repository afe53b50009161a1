//! What stays on the screen, and how it is presented.

use mock_model::{MockModel, Reply};
use serde_json::json;

use crate::harness::{Screen, qwen};

/// Opens the request that a turn waits with.
const OPEN: &str = "\u{11}";

fn count(screen: &Screen, text: &str) -> usize {
    screen.contents().matches(text).count()
}

#[test]
fn a_models_question_and_its_answer_stay_in_the_transcript() {
    let arguments =
        r#"{"questions":[{"question":"Which colour?","options":[{"label":"red"},{"label":"green"}]}]}"#;
    let mock =
        MockModel::with([Reply::call("c1", "ask_user_question", arguments), Reply::text("Thank you.")]);
    let mut screen = Screen::ready(&qwen(&mock));
    screen.type_keys("ask me\r");
    screen.wait_for("? The model asks");
    screen.type_keys(OPEN);
    screen.wait_for("Which colour?");
    screen.type_keys("2");
    screen.wait_for("Thank you.");
    assert_eq!((count(&screen, "Which colour?"), count(&screen, "green")), (1, 1), "{}", screen.contents());
}

#[test]
fn a_long_paste_is_shown_folded_when_it_is_sent() {
    let mock = MockModel::with([Reply::text("Read it.")]);
    let mut screen = Screen::ready(&qwen(&mock));
    let paste: String = (0..200).map(|n| format!("row {n}\r")).collect();
    screen.type_keys(&format!("see \u{1b}[200~{paste}\u{1b}[201~"));
    screen.wait_for("> see [paste 1: 200 lines]");
    screen.type_keys("\r");
    screen.wait_for("Read it.");
    let contents = screen.contents();
    let shown = contents.lines().filter(|line| line.contains("row ")).count();
    assert!(shown < 12, "{shown} of the pasted lines are shown:\n{contents}");
    assert!(mock.wait_for_request(0).body.to_string().contains("row 199"));
}

#[test]
fn tables_and_plans_wrap_at_words() {
    let table = "| name | meaning |\n|---|---|\n| alpha | considerable explanations everywhere indeed |\n";
    let plan = json!({"plan": "Considerable explanations everywhere indeed about something"}).to_string();
    let mock = MockModel::with([
        Reply::new([
            mock_model::ReplyEvent::Text(table.into()).step(),
            mock_model::ReplyEvent::call("c1", "exit_plan_mode", &plan).step(),
        ]),
        Reply::text("Working."),
    ]);
    let mut screen = Screen::sized(&qwen(&mock).args(["--approval-mode", "plan"]), 40, 40);
    screen.wait_for("mock in");
    screen.type_keys("go\r");
    screen.wait_for("? Carry out this plan?");
    screen.type_keys(OPEN);
    screen.wait_for("something");
    let contents = screen.contents();
    for word in ["considerable", "Considerable", "explanations", "everywhere", "indeed"] {
        assert!(contents.contains(word), "{word} is broken:\n{contents}");
    }
}

#[test]
fn todos_diffs_and_the_reason_of_a_denial_appear_once() {
    let todos = r#"{"todos":[{"id":"1","content":"work","status":"in_progress"},{"id":"2","content":"unique entry","status":"pending"}]}"#;
    let mock = MockModel::with([
        Reply::call("c1", "todo_write", todos),
        Reply::call("c2", "write_file", r#"{"file_path":"notes.txt","content":"unique line\n"}"#),
        Reply::call("c3", "run_shell_command", r#"{"command":"touch made"}"#),
        Reply::text("Done."),
    ]);
    let mut screen = Screen::sized(&qwen(&mock), 100, 60);
    screen.wait_for("mock in");
    screen.type_keys("go\r");
    screen.wait_for("? Change notes.txt");
    screen.type_keys(OPEN);
    screen.wait_for("y yes, once");
    screen.type_keys("y");
    screen.wait_for("? Run this command?");
    screen.type_keys(OPEN);
    screen.wait_for("e no, with a message");
    screen.type_keys("e");
    screen.wait_for("tell the model");
    screen.type_keys("unique reason\r");
    screen.wait_for("Done.");
    screen.wait_gone("esc interrupts");
    for text in ["unique entry", "unique line", "unique reason"] {
        assert_eq!(count(&screen, text), 1, "{text}:\n{}", screen.contents());
    }
}

#[test]
fn yolo_mode_is_visibly_different_and_entering_it_asks() {
    let mock = MockModel::with([Reply::text("Done.")]);
    let mut screen = Screen::ready(&qwen(&mock).args(["--approval-mode", "plan"]));
    screen.type_keys("\u{1b}[Z");
    screen.wait_for("Enter yolo mode?");
    assert!(!screen.contents().contains("YOLO: nothing is asked"), "{}", screen.contents());
    screen.type_keys("\u{1b}[Z");
    screen.wait_for("YOLO: nothing is asked");
}

#[test]
fn the_token_count_is_current_after_a_compaction() {
    let mock = MockModel::with([Reply::text("one"), Reply::text("two"), Reply::text("SUMMARY")]);
    let mut screen = Screen::ready(&qwen(&mock));
    for (prompt, answer) in [("first", "one"), ("second", "two")] {
        screen.type_keys(&format!("{prompt}\r"));
        screen.wait_for(answer);
    }
    screen.wait_for("15 tokens");
    screen.type_keys("/compress\r");
    screen.wait_gone("15 tokens");
    screen.wait_for("The conversation was compressed from ");
    assert_eq!(count(&screen, "The conversation was compressed from "), 1, "{}", screen.contents());
    // Both counts include the system prompt and the tools.
    let contents = screen.contents();
    let line = contents.lines().find(|line| line.contains("compressed from")).unwrap();
    let numbers: Vec<u64> = line.split(' ').filter_map(|part| part.parse().ok()).collect();
    assert!(numbers.len() == 2 && numbers.iter().all(|tokens| *tokens > 1000), "{line}");
    screen.wait_for(&format!("{} tokens", numbers[1]));
}

#[test]
fn the_first_lines_wrap_at_words() {
    let mock = MockModel::with([]);
    let mut screen = Screen::sized(&qwen(&mock), 40, 24);
    screen.wait_for("> ");
    let contents = screen.contents();
    let hint: Vec<&str> = contents.lines().skip_while(|line| !line.starts_with("? lists")).take(2).collect();
    assert_eq!(hint.join(" "), "? lists the keys, / the commands; @ names a file, ! runs a command.");
}

#[test]
fn questions_of_a_form_wrap_at_words() {
    let arguments = r#"{"questions":[{"question":"Which database serves for considerable persistent storage?",
        "options":[{"label":"SQLite","description":"embedded in the process, so considerable operation is spared"}]}]}"#;
    let mock = MockModel::with([Reply::call("c1", "ask_user_question", arguments)]);
    let mut screen = Screen::sized(&qwen(&mock), 40, 24);
    screen.wait_for("mock in");
    screen.type_keys("go\r");
    screen.wait_for("? The model asks");
    screen.type_keys(OPEN);
    screen.wait_for("1. SQLite");
    let contents = screen.contents();
    for word in ["considerable", "persistent", "embedded", "operation", "spared"] {
        assert!(contents.contains(word), "{word} is cut:\n{contents}");
    }
}

#[test]
fn quitting_prints_how_to_resume() {
    let mock = MockModel::with([Reply::text("Hello.")]);
    let mut screen = Screen::ready(&qwen(&mock));
    screen.type_keys("hi\r");
    screen.wait_for("Hello.");
    screen.wait_gone("esc interrupts");
    screen.type_keys("/quit\r");
    assert!(screen.wait().success());
    assert!(screen.contents().contains("To continue this session: qwen --resume "), "{}", screen.contents());
}

#[test]
fn read_and_search_calls_show_counts() {
    let mock = MockModel::with([
        Reply::call("c1", "read_file", r#"{"file_path":"notes.txt"}"#),
        Reply::call("c2", "grep_search", r#"{"pattern":"milk"}"#),
        Reply::call("c3", "glob", r#"{"pattern":"*.txt"}"#),
        Reply::text("Done."),
    ]);
    let program = qwen(&mock);
    std::fs::write(program.cwd_path().join("notes.txt"), "milk\nbread\nmilk\n").unwrap();
    let mut screen = Screen::ready(&program);
    screen.type_keys("look\r");
    screen.wait_for("Done.");
    let contents = screen.contents();
    for text in ["notes.txt lines 1 to 3 of 3", "milk 2 matches in 1 file", "*.txt 1 file"] {
        assert!(contents.contains(text), "{text}:\n{contents}");
    }
}
