//! Tools that need someone to answer: questions and plans.

use mock_model::{MockModel, Reply};
use serde_json::{Value, json};

use crate::harness::{asked, qwen};
use crate::wire::QWEN;

/// A worker whose host answers its questions.
fn asked_by_a_worker(mock: &MockModel, flags: &[&str], answer: &Value) -> (Value, Vec<Value>) {
    let flags = ["--input-format", "stream-json", "--output-format", "stream-json", "--model", "mock"]
        .iter()
        .chain(flags)
        .copied();
    let mut run = qwen().with_model(mock).args(flags).start();
    run.write_line(json!({"messages": [{"role": "user", "content": "Go"}]}));
    let question = run.json_until(|line| line["type"] == "control_request").pop().unwrap();
    let response = json!({"subtype": "success", "request_id": question["request_id"], "response": answer});
    run.write_line(json!({"type": "control_response", "response": response}));
    let lines = run.json_until(|line| line["metadata"]["turn"].is_object());
    (question, lines)
}

#[test]
fn a_question_to_the_user_is_put_in_every_mode_and_only_the_host_answers_it() {
    let question = json!({"questions": [{"question": "Which colour?", "options": [{"label": "red"}]}]});
    for mode in ["default", "yolo"] {
        let mock = MockModel::with([
            Reply::call("c1", "ask_user_question", &question.to_string()),
            Reply::text("Done."),
        ]);
        let answer = json!({"behavior": "allow", "updatedInput": {"questions": question["questions"], "answers": {"Which colour?": "red"}}});
        let (asked, _) = asked_by_a_worker(&mock, &["--approval-mode", mode], &answer);
        assert!(asked.to_string().contains("Which colour?"), "{asked}");
        let told = mock.requests()[1].messages().last().unwrap()["content"].to_string();
        assert!(told.contains("Which colour?: red"), "{mode}: {told}");
    }
    // The model cannot answer its own question, and where nobody is there, that is said.
    let forged = json!({"questions": question["questions"], "answers": {"Which colour?": "blue"}});
    for (arguments, piece) in
        [(forged, "no argument `answers`"), (question, "no one can answer questions in this run")]
    {
        let mock = MockModel::with([
            Reply::call("c1", "ask_user_question", &arguments.to_string()),
            Reply::text("Done."),
        ]);
        let ended = asked(&mock, QWEN).arg("--yolo").run();
        assert_eq!(ended.code, Some(0), "{ended:?}");
        let told = mock.requests()[1].messages().last().unwrap()["content"].to_string();
        assert!(told.contains(piece) && !told.contains("blue"), "{told}");
    }
}

#[test]
fn a_plan_is_shown_and_work_begins_once_it_is_agreed_to() {
    for (behavior, mode) in [("allow", "default"), ("deny", "plan")] {
        let mock = MockModel::with([
            Reply::call("c1", "exit_plan_mode", r##"{"plan":"# First\nthen"}"##),
            Reply::text("Done."),
        ]);
        let answer = json!({"behavior": behavior});
        let (asked, lines) = asked_by_a_worker(&mock, &["--approval-mode", "plan"], &answer);
        assert!(asked.to_string().contains("# First"), "{asked}");
        let told = mock.requests()[1].messages().last().unwrap()["content"].to_string();
        assert_eq!(told.contains("approved the plan"), behavior == "allow", "{told}");
        assert_eq!(
            lines.iter().any(|line| line.to_string().contains("ModeChanged")),
            mode == "default",
            "{lines:?}"
        );
    }
}
