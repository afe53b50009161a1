//! Questions: seen whole, answered on purpose, remembered where the user says so.

use mock_model::{MockModel, Reply};

use crate::harness::{Screen, qwen};

const ASK: &str = "\u{11}";

fn touch(name: &str) -> Reply {
    Reply::call("c1", "run_shell_command", &format!(r#"{{"command":"touch {name}"}}"#))
}

/// A screen with a question open that the user has turned to.
#[track_caller]
fn asked(screen: &mut Screen, prompt: &str) {
    screen.type_keys(prompt);
    screen.type_keys("\r");
    screen.wait_for("? Run this command?");
    screen.type_keys(ASK);
    screen.wait_for("y yes, once");
}

#[test]
fn yes_runs_the_command_that_was_shown() {
    let mock = MockModel::with([touch("made.txt"), Reply::text("All done.")]);
    let program = qwen(&mock);
    let mut screen = Screen::ready(&program);
    asked(&mut screen, "make it");
    assert!(screen.contents().contains("touch made.txt"), "{}", screen.contents());
    screen.type_keys("y");
    screen.wait_for("All done.");
    assert!(program.cwd_path().join("made.txt").exists());
}

#[test]
fn no_is_the_default_and_words_reach_the_model() {
    let mock = MockModel::with([touch("a.txt"), touch("b.txt"), Reply::text("Understood.")]);
    let program = qwen(&mock);
    let mut screen = Screen::ready(&program);
    asked(&mut screen, "make it");
    // Enter takes what is selected, which is no.
    screen.type_keys("\r");
    screen.wait_for("touch b.txt");
    screen.type_keys(ASK);
    screen.wait_for("y yes, once");
    screen.type_keys("e");
    screen.wait_for("tell the model");
    screen.type_keys("use the other name\r");
    screen.wait_for("Understood.");
    assert!(!program.cwd_path().join("a.txt").exists() && !program.cwd_path().join("b.txt").exists());
    let said = mock.wait_for_request(2);
    assert!(said.body.to_string().contains("use the other name"), "{:?}", said.body);
}

#[test]
fn a_draft_is_never_an_answer() {
    let mock = MockModel::with([touch("made.txt"), Reply::text("As you wish.")]);
    let program = qwen(&mock);
    let mut screen = Screen::ready(&program);
    screen.type_keys("go\r");
    screen.type_keys("yes, and say why");
    screen.wait_for("? Run this command?");
    screen.wait_for("> yes, and say why");
    assert!(screen.contents().contains("ctrl+q"), "the question is a banner:\n{}", screen.contents());
    assert!(!program.cwd_path().join("made.txt").exists());
    screen.type_keys(ASK);
    screen.wait_for("y yes, once");
    screen.type_keys("n");
    screen.wait_for("As you wish.");
    screen.wait_for("> yes, and say why");
    assert!(!program.cwd_path().join("made.txt").exists());
}

#[test]
fn always_offers_a_useful_rule_checks_it_in_place_and_the_next_process_does_not_ask() {
    let again = Reply::call("c2", "run_shell_command", r#"{"command":"touch one.txt"}"#);
    let mock = MockModel::with([touch("one.txt"), Reply::text("First."), again, Reply::text("Second.")]);
    let program = qwen(&mock);
    let settings = program.qwen_home_path().join("settings.json");
    std::fs::create_dir_all(program.qwen_home_path()).unwrap();
    std::fs::write(&settings, "{\n  // kept\n  \"general\": {}\n}\n").unwrap();
    let mut screen = Screen::ready(&program);
    asked(&mut screen, "make it");
    screen.type_keys("a");
    screen.wait_for("> Bash(touch *)");
    screen.wait_for("Covers `touch` with any arguments");
    // A rule that cannot be used is reported in place and declines nothing.
    screen.type_keys("\u{7f}\r");
    screen.wait_for("This is not a rule");
    screen.type_keys(")");
    screen.wait_for("> Bash(touch *)");
    screen.wait_for("Covers `touch` with any arguments");
    screen.type_keys("\r");
    screen.wait_for("First.");
    let saved = std::fs::read_to_string(&settings).unwrap();
    assert!(saved.contains("\"Bash(touch *)\"") && saved.contains("// kept"), "{saved}");
    std::fs::remove_file(program.cwd_path().join("one.txt")).unwrap();
    let mut screen = Screen::ready(&program);
    screen.type_keys("again\r");
    screen.wait_for("Second.");
    assert!(program.cwd_path().join("one.txt").exists());
}

#[test]
fn a_long_command_is_shown_whole_by_scrolling_and_its_escapes_are_visible() {
    let lines: Vec<String> = (0..60).map(|n| format!("echo {n}")).collect();
    let command = format!("{}\\u001b[8m; touch last", lines.join("\\n"));
    let call = Reply::call("c1", "run_shell_command", &format!(r#"{{"command":"{command}"}}"#));
    let mock = MockModel::with([call, Reply::text("No then.")]);
    let mut screen = Screen::ready(&qwen(&mock));
    asked(&mut screen, "go");
    assert!(screen.contents().contains("echo 0"), "{}", screen.contents());
    for _ in 0..8 {
        screen.type_keys("\u{1b}[6~");
    }
    screen.wait_for("[8m; touch last");
    screen.wait_for("y yes, once");
    screen.type_keys("n");
    screen.wait_for("No then.");
}

#[test]
fn an_edit_is_shown_as_a_diff_before_it_happens() {
    let call = Reply::call("c1", "write_file", r#"{"file_path":"notes.txt","content":"milk\nbread\n"}"#);
    let mock = MockModel::with([call, Reply::text("Written.")]);
    let program = qwen(&mock);
    let mut screen = Screen::ready(&program);
    screen.type_keys("write\r");
    screen.wait_for("Change notes.txt (+2 -0)?");
    screen.type_keys(ASK);
    screen.wait_for("+bread");
    screen.type_keys("y");
    screen.wait_for("Written.");
    screen.wait_for("Write notes.txt (+2 -0)");
    assert_eq!(std::fs::read_to_string(program.cwd_path().join("notes.txt")).unwrap(), "milk\nbread\n");
}

#[test]
fn questions_of_the_model_are_forms() {
    let arguments = r#"{"questions":[
        {"question":"Which colour?","options":[{"label":"red"},{"label":"green"}]},
        {"question":"Which name?","options":[]}]}"#;
    let mock =
        MockModel::with([Reply::call("c1", "ask_user_question", arguments), Reply::text("Thank you.")]);
    let mut screen = Screen::ready(&qwen(&mock));
    screen.type_keys("ask me\r");
    screen.wait_for("? The model asks");
    screen.type_keys(ASK);
    screen.wait_for("1/2 Which colour?");
    screen.type_keys("2");
    screen.wait_for("2/2 Which name?");
    screen.type_keys("Ada\r");
    screen.wait_for("Thank you.");
    let said = mock.wait_for_request(1).body.to_string();
    assert!(said.contains("Which colour?: green") && said.contains("Which name?: Ada"), "{said}");
}

#[test]
fn own_words_join_the_marked_options_of_a_form() {
    let arguments = r#"{"questions":[{"question":"Which features?","multiSelect":true,
        "options":[{"label":"login"},{"label":"search"},{"label":"export"}]}]}"#;
    let mock = MockModel::with([Reply::call("c1", "ask_user_question", arguments), Reply::text("Noted.")]);
    let mut screen = Screen::ready(&qwen(&mock));
    screen.type_keys("ask me\r");
    screen.wait_for("? The model asks");
    screen.type_keys(ASK);
    screen.wait_for("[ ] login");
    screen.type_keys(" ");
    screen.wait_for("[x] login");
    // Up from the first option leads to the user's own words.
    screen.type_keys("\u{1b}[A");
    screen.type_keys("an audit log");
    screen.wait_for("an audit log");
    screen.type_keys("\r");
    screen.wait_for("Noted.");
    let said = mock.wait_for_request(1).body.to_string();
    assert!(said.contains("Which features?: login, an audit log"), "{said}");
}

#[test]
fn a_plan_is_read_and_approved_and_the_work_begins() {
    let plan =
        |words: &str| Reply::call("c1", "exit_plan_mode", &format!(r##"{{"plan":"# {words}\n\n1. look"}}"##));
    let mock = MockModel::with([plan("First plan"), plan("Second plan"), Reply::text("Working.")]);
    let mut screen = Screen::ready(&qwen(&mock).args(["--approval-mode", "plan"]));
    screen.type_keys("change it\r");
    screen.wait_for("? Carry out this plan?");
    screen.type_keys(ASK);
    screen.wait_for("y yes, start  n no, keep planning  e no, with a message");
    screen.wait_for("First plan");
    screen.type_keys("e");
    screen.wait_for("tell the model");
    screen.type_keys("look twice\r");
    screen.wait_for("Second plan");
    screen.type_keys(ASK);
    screen.wait_for("y yes, start");
    screen.wait_for("mock · plan");
    screen.type_keys("y");
    screen.wait_for("Working.");
    screen.wait_for("mock · default");
    assert!(mock.wait_for_request(1).body.to_string().contains("look twice"));
}

#[test]
fn v_shows_a_long_command_whole_and_comes_back_to_the_question() {
    let lines: Vec<String> = (1..=40).map(|n| format!("touch line-{n}")).collect();
    let arguments = serde_json::json!({ "command": lines.join("\n") }).to_string();
    let mock =
        MockModel::with([Reply::call("c1", "run_shell_command", &arguments), Reply::text("As you wish.")]);
    let mut screen = Screen::ready(&qwen(&mock));
    asked(&mut screen, "run it");
    screen.wait_for("v shows all");
    screen.type_keys("v");
    screen.wait_until("the command on the whole screen", vt100::Screen::alternate_screen);
    screen.wait_for("touch line-20");
    screen.type_keys("q");
    screen.wait_until("the question", |now| !now.alternate_screen());
    screen.wait_for("y yes, once");
    screen.type_keys("n");
    screen.wait_for("As you wish.");
}

#[test]
fn the_description_is_shown_and_the_command_can_be_changed() {
    let arguments = r#"{"command":"touch made.txt","description":"Creates the marker file"}"#;
    let mock = MockModel::with([Reply::call("c1", "run_shell_command", arguments), Reply::text("All done.")]);
    let program = qwen(&mock);
    let mut screen = Screen::ready(&program);
    asked(&mut screen, "make it");
    screen.wait_for("Creates the marker file");
    screen.type_keys("c");
    screen.wait_for("> touch made.txt");
    screen.type_keys(&"\u{7f}".repeat("made.txt".len()));
    screen.type_keys("other.txt");
    screen.wait_for("> touch other.txt");
    screen.type_keys("\r");
    screen.wait_for("All done.");
    assert!(program.cwd_path().join("other.txt").exists() && !program.cwd_path().join("made.txt").exists());
    // The transcript and the model have the command that ran.
    let contents = screen.contents();
    assert!(contents.contains("\ntouch other.txt\n"), "{contents}");
    let last = mock.wait_for_request(1).last_user_text();
    assert!(last.contains("The user changed the command") && last.contains("touch other.txt"), "{last}");
    screen.type_keys("\u{4}");
    screen.wait();
    let screen = Screen::ready(&program.args(["--continue"]));
    assert!(screen.contents().contains("\ntouch other.txt\n"), "{}", screen.contents());
}
