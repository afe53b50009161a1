//! The advice in the results of calls that could not run or failed: it fits the call, the mode and who is there.

use mock_model::process::Program;
use mock_model::{MockModel, Reply};
use serde_json::json;

use crate::harness::qwen;

fn headless(mock: &MockModel, mode: &str) -> Program {
    qwen().with_model(mock).args(["--model", "mock", "-p", "Work", "--approval-mode", mode])
}

/// The results of calls that were made in this mode, one call per message.
fn results(mode: &str, calls: &[(&str, &str)]) -> Vec<String> {
    let mock = MockModel::start();
    for (at, (name, arguments)) in calls.iter().enumerate() {
        mock.push(Reply::call(&format!("c{at}"), name, arguments));
    }
    mock.push(Reply::text("done"));
    assert_eq!(headless(&mock, mode).run().code, Some(0));
    let requests = mock.requests();
    let last = |request: &mock_model::Request| {
        request.messages().last().unwrap()["content"].as_str().unwrap().to_owned()
    };
    requests.iter().skip(1).map(|request| last(request)).collect()
}

#[test]
fn a_plan_is_never_reported_as_approved_outside_plan_mode() {
    let [told] = &results("yolo", &[("exit_plan_mode", r#"{"plan":"Do it"}"#)])[..] else { panic!() };
    assert_eq!(told, "exit_plan_mode is for plan mode only, and the session is not in plan mode.");
}

#[test]
fn a_plan_that_no_one_can_approve_is_answered_with_advice_to_report_it() {
    let [told] = &results("plan", &[("exit_plan_mode", r#"{"plan":"Do it"}"#)])[..] else { panic!() };
    assert!(
        told.starts_with("No one can approve exit_plan_mode in this run: answer with the plan."),
        "{told}"
    );
    assert!(told.contains("--approval-mode default"), "{told}");
}

#[test]
fn a_question_that_no_one_can_answer_is_left_to_the_model() {
    let question = r#"{"questions":[{"question":"Which?"}]}"#;
    for mode in ["plan", "default", "yolo"] {
        let [told] = &results(mode, &[("ask_user_question", question)])[..] else { panic!() };
        assert!(told.contains("no one can answer questions in this run. Decide yourself"), "{mode}: {told}");
        assert!(!told.contains("plan mode"), "{mode}: {told}");
    }
}

#[test]
fn an_unknown_tool_is_answered_with_the_tools_that_can_be_used() {
    let [told] = &results("default", &[("reed_file", "{}")])[..] else { panic!() };
    assert!(told.starts_with("There is no tool called 'reed_file'. The tools are: read_file,"), "{told}");
    for absent in ["ask_user_question", "exit_plan_mode"] {
        assert!(!told.contains(absent), "{absent} cannot be used: {told}");
    }
}

#[test]
fn a_refusal_by_plan_mode_names_the_call_once_and_gives_one_advice() {
    let write = json!({"file_path": "a.txt", "content": "x"}).to_string();
    let [told] = &results("plan", &[("write_file", &write)])[..] else { panic!() };
    assert!(told.starts_with("Permission for write_file (`"), "{told}");
    assert_eq!(told.matches("a.txt").count(), 1, "{told}");
    assert!(told.contains("answer with the plan") && !told.contains("Do not repeat the call"), "{told}");
}

#[test]
fn a_network_failure_in_an_earlier_part_of_a_pipeline_is_explained_by_the_sandbox() {
    let command = "(echo 'curl: (6) Could not resolve host: example.org' >&2; exit 6) 2>&1 | tail -n 1";
    let arguments = json!({ "command": command }).to_string();
    let [told] = &results("yolo", &[("run_shell_command", &arguments)])[..] else { panic!() };
    assert!(told.contains("[In the last pipeline, part 1 of 2 exited with code 6.]"), "{told}");
    let is_explained = told.contains("[The sandbox may have caused this failure: commands have no network");
    // Without a sandbox there is nothing to explain.
    let has_sandbox = qwen().args(["sandbox"]).run().code == Some(0);
    assert_eq!(is_explained, has_sandbox, "{told}");
}

#[test]
fn a_listing_does_not_show_what_the_sandbox_puts_into_the_workspace() {
    let calls = [("run_shell_command", r#"{"command":"touch made"}"#), ("list_directory", r#"{"path":"."}"#)];
    let told = results("yolo", &calls);
    assert!(told[1].contains("made (0 bytes)"), "{}", told[1]);
    assert!(!told[1].contains(".qwen") && !told[1].contains(".mcp.json"), "{}", told[1]);
}
