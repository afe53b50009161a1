//! The results of the built-in tools as the model receives them, as one golden file for each vocabulary, with
//! limits reached and not reached, Unicode and binary content.

mod cases;
mod commands;
mod rendering;

use std::collections::VecDeque;
use std::fs;
use std::path::Path;
use std::sync::Mutex;

use mock_model::{MockModel, Reply, Request};
use serde_json::{Value, json};

use self::cases::{Case, Group};
use self::rendering::Rendering;
use crate::harness::{Host, openai, worker};

/// The most bytes of a command's output in a result.
const OUTPUT_LIMIT: usize = 12_288;

#[test]
fn every_result_format_in_our_vocabulary_is_as_recorded() {
    compare("qwen");
}

#[test]
fn every_result_format_in_claudes_vocabulary_is_as_recorded() {
    compare("claude");
}

#[test]
fn no_result_in_claudes_vocabulary_uses_our_names() {
    let results = include_str!("claude.txt");
    for name in [
        "run_shell_command",
        "is_background",
        "shell_task",
        "read_file",
        "write_file",
        "list_directory",
        "grep_search",
        "todo_write",
        "web_fetch",
        "exit_plan_mode",
        "ask_user_question",
    ] {
        let line = results.lines().find(|line| line.contains(name));
        assert_eq!(line, None, "{name}");
    }
}

/// Compares the results of all cases in a vocabulary with its golden file.
#[track_caller]
fn compare(vocabulary: &str) {
    let mut text = String::new();
    for group in cases::groups() {
        text.push_str(&record(vocabulary, &group));
    }
    text.push_str(&record_the_end_of_a_background_command(vocabulary));
    let file = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join(format!("tests/conformance/tool_results/{vocabulary}.txt"));
    if std::env::var_os("QWEN_BLESS").is_some() {
        fs::write(&file, text).unwrap();
        return;
    }
    let stored = fs::read_to_string(&file).unwrap_or_default();
    for (line, (is, was)) in text.lines().zip(stored.lines()).enumerate() {
        assert_eq!(is, was, "line {} of {vocabulary}.txt differs; QWEN_BLESS=1 writes it", line + 1);
    }
    assert_eq!(text.len(), stored.len(), "{vocabulary}.txt has another length; QWEN_BLESS=1 writes it");
}

/// Runs the cases of a group in one session, a call for each message of the model, and renders the results.
fn record(vocabulary: &str, group: &Group) -> String {
    let cases: Vec<&Case> = group.cases.iter().filter(|case| case.is_in(vocabulary)).collect();
    let mock = MockModel::start();
    let mut host = start(&mock, vocabulary);
    let directory = host.program.cwd_path().to_owned();
    (group.prepare)(&directory);
    let replies = cases.iter().enumerate().map(|(at, case)| {
        let (tool, arguments) = case.call(vocabulary);
        (
            case.releases.map(|file| directory.join(file)),
            Reply::call(&format!("c{at}"), &tool, &arguments.to_string()),
        )
    });
    let replies = Mutex::new(replies.collect::<VecDeque<_>>());
    mock.answer_with(move |_: &Request| {
        let Some((released, reply)) = replies.lock().unwrap().pop_front() else {
            return Some(Reply::text("done"));
        };
        if let Some(file) = released {
            fs::write(file, "").unwrap();
        }
        Some(reply)
    });
    host.say("go");
    let rendering = Rendering::in_directory(&directory);
    let mut text = String::new();
    for (case, request) in cases.iter().zip(&mock.requests()[1..]) {
        let Some(title) = case.title else { continue };
        let (tool, arguments) = case.call(vocabulary);
        let result = rendering::last_results(request);
        let is_command = tool == "run_shell_command" || tool == "Bash";
        assert!(!is_command || result.len() <= OUTPUT_LIMIT, "{title}: {} bytes", result.len());
        text.push_str(&rendering.section(&tool, title, &arguments, &result));
    }
    host.leave();
    text
}

/// The notification in the request after the end of a background command.
fn record_the_end_of_a_background_command(vocabulary: &str) -> String {
    let mock = MockModel::start();
    let command = "while [ ! -e go ]; do sleep 0.01; done; seq 1 30; exit 3";
    let arguments = json!({"command": command, "is_background": true, "description": "wait, then count"});
    let case = Case::preparing("run_shell_command", arguments);
    let (tool, arguments) = case.call(vocabulary);
    mock.push(Reply::call("c1", &tool, &arguments.to_string()));
    mock.push(Reply::text("started"));
    mock.push(Reply::text("It failed."));
    let mut host = start(&mock, vocabulary);
    let rendering = Rendering::in_directory(host.program.cwd_path());
    host.say("go");
    let started = rendering::last_results(&mock.requests()[1]);
    fs::write(host.program.cwd_path().join("go"), "").unwrap();
    host.until(|line| line.to_string().contains("exit code 3"));
    host.send(openai("And?"));
    host.turn();
    let notified = mock.requests()[2].last_user_text();
    host.leave();
    rendering.section(&tool, "started in the background", &arguments, &started)
        + &rendering.section(&tool, "its end in the next request", &Value::Null, &notified)
}

fn start(mock: &MockModel, vocabulary: &str) -> Host {
    Host::start(worker(mock, "stream-json").args(["--tool-names", vocabulary, "--yolo"]))
}
