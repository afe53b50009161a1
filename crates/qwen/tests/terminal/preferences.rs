//! Settings of the terminal, trust in a folder, and the first run.

use mock_model::process::Program;
use mock_model::{MockModel, Reply};

use crate::harness::{Screen, contains, qwen};

const ASK: &str = "\u{11}";

fn with_settings(program: Program, settings: &str) -> Program {
    std::fs::create_dir_all(program.qwen_home_path()).unwrap();
    std::fs::write(program.qwen_home_path().join("settings.json"), settings).unwrap();
    program
}

#[test]
fn keys_can_be_bound_anew_and_a_mistake_is_reported() {
    let mock = MockModel::with([Reply::text("Sent.")]);
    let program =
        with_settings(qwen(&mock), r#"{"terminal":{"keys":{"submit":"ctrl+s","newline":"enter"}}}"#);
    let mut screen = Screen::ready(&program);
    screen.type_keys("one\rtwo\u{13}");
    screen.wait_for("Sent.");
    assert!(mock.wait_for_request(0).body.to_string().contains("one\\ntwo"));
    let program = with_settings(qwen(&mock), r#"{"terminal":{"keys":{"fly":"ctrl+s"}}}"#);
    let mut screen = Screen::ready(&program);
    screen.wait_for("there is no action or key 'fly'");
}

#[test]
fn vims_keys_edit_the_composer() {
    let mock = MockModel::with([Reply::text("Sent.")]);
    let program = with_settings(qwen(&mock), r#"{"terminal":{"vim":true}}"#);
    let mut screen = Screen::ready(&program);
    screen.wait_for("INSERT");
    screen.type_keys("hello wrold");
    screen.wait_for("> hello wrold");
    screen.type_keys("\u{1b}");
    screen.wait_for("NORMAL");
    screen.type_keys("bcwworld");
    screen.wait_for("> hello world");
    screen.wait_for("INSERT");
    screen.type_keys("\r");
    screen.wait_for("Sent.");
    assert!(mock.wait_for_request(0).body.to_string().contains("hello world"));
}

#[test]
fn the_footer_shows_what_the_setting_names() {
    let mock = MockModel::with([]);
    let program = with_settings(qwen(&mock), r#"{"terminal":{"footer":["mode","model","nonsense"]}}"#);
    let mut screen = Screen::ready(&program);
    screen.wait_for("default · mock");
    screen.wait_for("has no item 'nonsense'");
}

#[test]
fn prose_is_one_logical_line_if_the_terminal_wraps_it() {
    let prose = "word ".repeat(60);
    let mock = MockModel::with([Reply::text(&prose)]);
    let program = with_settings(qwen(&mock), r#"{"terminal":{"wrap":"terminal"}}"#);
    let mut screen = Screen::ready(&program);
    screen.type_keys("say\r");
    screen.wait_gone("esc interrupts");
    screen.wait_for("word word");
    assert!(contains(&screen.raw, prose.trim_end().as_bytes()), "no break was inserted");
}

#[test]
fn a_question_rings_the_bell_unless_notifications_are_off() {
    let call = || Reply::call("c1", "run_shell_command", r#"{"command":"touch made.txt"}"#);
    for (settings, rings) in [("{}", true), (r#"{"terminal":{"notifications":false}}"#, false)] {
        let mock = MockModel::with([call()]);
        let mut screen = Screen::ready(&with_settings(qwen(&mock), settings));
        screen.type_keys("go\r");
        screen.wait_for("Run this command?");
        assert_eq!(contains(&screen.raw, b"\x07\x1b]9;"), rings, "{settings}");
    }
}

#[test]
fn a_folder_lists_what_it_would_enable_and_counts_after_yes() {
    let mock = MockModel::with([Reply::text("Hello.")]);
    let program = qwen(&mock);
    let own = program.cwd_path().join(".qwen");
    std::fs::create_dir_all(own.join("commands")).unwrap();
    std::fs::write(own.join("commands/greet.md"), "Say hello to $ARGUMENTS.").unwrap();
    std::fs::write(
        own.join("settings.json"),
        r#"{"hooks":{"Stop":[{"hooks":[{"type":"command","command":"touch hooked.txt"}]}]}}"#,
    )
    .unwrap();
    let mut screen = Screen::ready(&program);
    screen.wait_for("Trust this folder?");
    screen.type_keys(ASK);
    screen.wait_for("touch hooked.txt");
    screen.wait_for("greet.md");
    screen.wait_for("y yes");
    screen.type_keys("y");
    // The program starts again, now with the folder's configuration.
    screen.wait_gone("Trust this folder? - ");
    screen.wait_until("the second start", |now| now.contents().matches("qwen 0.").count() >= 2);
    screen.type_keys("/greet Ada\r");
    screen.wait_for("Hello.");
    assert!(mock.wait_for_request(0).body.to_string().contains("Say hello to Ada."));
    screen.wait_gone("esc interrupts");
    assert!(program.cwd_path().join("hooked.txt").exists());
}

#[test]
fn a_folder_that_is_not_trusted_is_not_asked_about_again() {
    let mock = MockModel::with([]);
    let program = qwen(&mock);
    let own = program.cwd_path().join(".qwen");
    std::fs::create_dir_all(&own).unwrap();
    std::fs::write(own.join("settings.json"), r#"{"env":{"GREETING":"hi"}}"#).unwrap();
    let mut screen = Screen::ready(&program);
    screen.wait_for("Trust this folder?");
    screen.type_keys(ASK);
    screen.wait_for("env.GREETING: hi");
    screen.wait_for("y yes");
    screen.type_keys("n");
    screen.wait_for("Trust this folder? no");
    screen.type_keys("\u{4}");
    screen.wait();
    let mut screen = Screen::ready(&program);
    screen.type_keys("typed");
    screen.wait_for("> typed");
    assert!(!screen.contents().contains("Trust this folder?"), "{}", screen.contents());
    std::fs::write(own.join("settings.json"), r#"{"env":{"GREETING":"changed"}}"#).unwrap();
    let mut screen = Screen::ready(&program);
    screen.wait_for("Trust this folder?");
}

#[test]
fn a_first_run_without_a_model_names_the_keys_that_are_set_and_the_demo() {
    let mock = MockModel::with([]);
    let program = qwen(&mock)
        .env_remove("OPENAI_API_KEY")
        .env_remove("OPENAI_BASE_URL")
        .env("DEEPSEEK_API_KEY", "secret-value");
    let mut screen = Screen::sized(&program, 160, 30);
    screen.wait_for("DEEPSEEK_API_KEY is set");
    screen.wait_for("qwen --model demo");
    screen.wait_for("> ");
    assert!(!contains(&screen.raw, b"secret-value"));
}
