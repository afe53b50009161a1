//! What a request offers and explains, and what its answers say.

use qwen_events::{Body, Confirmation, ToolStatus};
use serde_json::json;

use crate::harness::{Stage, call, end};

/// A stage with a request to read a place outside the workspace.
fn reading(tool: &str, arguments: &serde_json::Value) -> Stage {
    let mut stage = Stage::new(100, 30);
    stage.keys("go\r");
    let info = Confirmation::Info { prompt: format!("{tool} {arguments}").into(), urls: Vec::new() };
    stage.ask("q1", call("c1", tool, &arguments.to_string()), info, "It is outside the workspace.");
    stage
}

#[test]
fn always_offers_a_rule_for_reading_outside_the_workspace() {
    for (tool, arguments, rule) in [
        ("read_file", json!({"file_path": "/srv/notes.txt"}), "Read(//srv/notes.txt)"),
        ("Grep", json!({"pattern": "x", "path": "/srv/logs/"}), "Read(//srv/logs/**)"),
    ] {
        let mut stage = reading(tool, &arguments);
        let screen = stage.screen();
        assert!(
            screen.contains("? Read /srv/notes.txt?") || screen.contains("? Search x in /srv/logs/?"),
            "{screen}"
        );
        stage.answer("a");
        let screen = stage.screen();
        assert!(screen.contains(&format!("> {rule}")), "{screen}");
        assert!(screen.contains("Covers reading //srv"), "{screen}");
    }
}

#[test]
fn an_empty_rule_is_explained_and_covers_nothing() {
    let mut stage = Stage::new(100, 30);
    stage.keys("go\r");
    stage.question("q1", "npm install left-pad && node -e 'console.log(1)'");
    stage.answer("a");
    let screen = stage.screen();
    assert!(
        screen.contains("No rule is offered for this call. Enter one, such as Bash(npm install *)."),
        "{screen}"
    );
    assert!(!screen.contains("Covers every call of ."), "{screen}");
}

#[test]
fn a_refusal_without_a_message_is_a_plain_no() {
    let mut stage = Stage::new(100, 30);
    stage.keys("go\r");
    stage.question("q1", "cargo publish");
    stage.answer("e");
    stage.keys("\r");
    let screen = stage.screen();
    assert!(screen.contains("Run this command? no\n"), "{screen}");
    let commands = format!("{:?}", stage.effects());
    assert!(commands.contains(r#"Ok({"behavior":"deny"})"#), "{commands}");
}

#[test]
fn line_mode_reports_that_no_rule_is_offered_and_labels_the_models_description() {
    let mut stage = Stage::new(100, 40);
    stage.restart(|options| options.plain = true);
    stage.line("go");
    let arguments = json!({"command": "echo $(date)", "description": "Show the date"}).to_string();
    let exec = Confirmation::Exec { command: "echo $(date)".into(), root_command: "echo".into() };
    stage.ask("q1", call("c1", "run_shell_command", &arguments), exec, "It contains a substitution.");
    stage.pass(1000);
    stage.line("2");
    let screen = stage.screen();
    assert!(screen.contains("The model describes it as: Show the date"), "{screen}");
    assert!(screen.contains("No rule is offered for this call; answer it with another number."), "{screen}");
}

#[test]
fn a_result_is_shown_without_the_note_about_earlier_calls() {
    let mut stage = Stage::new(100, 30);
    stage.keys("go\r");
    stage.turn_start();
    let run = call("c2", "run_shell_command", r#"{"command":"cat x"}"#);
    let text = format!(
        "{}edit `a` did not happen (it failed).\nno such file\nExit code: 1",
        qwen_events::EARLIER_CALLS
    );
    stage.event(Body::ToolStart(run.clone()));
    stage.event(Body::ToolEnd(Box::new(end(run, ToolStatus::Error, &text, None))));
    let screen = stage.screen();
    assert!(screen.contains("no such file") && !screen.contains("did not happen"), "{screen}");
}
