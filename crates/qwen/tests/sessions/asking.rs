//! Questions that are left open by one process and answered by another.

use mock_model::{MockModel, Reply, ReplyEvent, Request, Step};

use super::harness::{DIALECTS, conversation, done, exports_well, log, qwen, speaks_well};
use super::thinking::section;

fn call(id: &str, name: &str, arguments: &str) -> Step {
    ReplyEvent::call(id, name, arguments).step()
}

/// Three calls: one that needs no permission and two that do.
fn three_calls() -> Reply {
    Reply::new([
        call("call_1", "run_shell_command", r#"{"command":"touch one"}"#),
        call("call_2", "run_shell_command", r#"{"command":"touch two"}"#),
        call("call_3", "list_directory", r#"{"path":"."}"#),
    ])
}

#[test]
fn several_questions_wait_and_are_answered_by_another_process() {
    for dialect in DIALECTS {
        let mock = MockModel::with([three_calls()]);
        let program = qwen(&mock);
        let flags =
            ["-p", "Go", "--session-id", "s", "--ask-later", "--dialect", dialect, "-o", "stream-json"];
        let asked = program.clone().args(flags).run();
        assert_eq!(asked.code, Some(42), "{dialect}: {}", asked.stderr);
        for named in ["call_1 (run_shell_command)", "call_2 (run_shell_command)", "--answer"] {
            assert!(asked.stderr.contains(named), "{dialect}: {named}: {}", asked.stderr);
        }
        assert!(
            !asked.stderr.contains("call_3"),
            "{dialect}: what needs no answer was done: {}",
            asked.stderr
        );
        let check = mock_model::process::qwen(env!("CARGO_BIN_EXE_qwen"));
        let checked = check.args(["check", "--dialect", dialect]).stdin(&asked.stdout).run();
        assert_eq!(checked.code, Some(0), "{dialect}: {}\n{}", checked.stdout, asked.stdout);
        assert!(!std::fs::read_to_string(log(&program, "s")).unwrap().contains("turn_end"), "{dialect}");
        // One answer is not enough; the other question is still there.
        let again = program.clone().args(["--resume", "s", "--ask-later", "--answer", "call_1=allow"]).run();
        assert_eq!(again.code, Some(42), "{dialect}: {}", again.stderr);
        assert!(!again.stderr.contains("call_1 (") && again.stderr.contains("call_2 ("), "{}", again.stderr);
        assert!(program.cwd_path().join("one").exists() && !program.cwd_path().join("two").exists());
        assert_eq!(mock.requests().len(), 1, "{dialect}: the model is asked when all is answered");
        mock.push(Reply::text("Fine."));
        speaks_well(&program, &["--resume", "s", "--answer", "call_2=not today"], dialect);
        assert!(!program.cwd_path().join("two").exists());
        let said = conversation(&mock.requests()[1]);
        assert!(
            said[3].contains("not today") || said[4].contains("not today") || said[2].contains("not today"),
            "{said:?}"
        );
        exports_well(&program, "s");
    }
}

#[test]
fn a_question_of_the_model_is_answered_in_words() {
    let question = r#"{"questions":[{"question":"Which colour?"}]}"#;
    let mock = MockModel::with([Reply::call("call_1", "ask_user_question", question)]);
    let program = qwen(&mock);
    let asked = program.clone().args(["-p", "Paint", "--session-id", "s", "--ask-later"]).run();
    assert_eq!(asked.code, Some(42), "{}", asked.stderr);
    mock.push(Reply::text("Blue it is."));
    let ended = done(&program, &["--resume", "s", "--answer", "call_1=blue"]);
    assert_eq!(ended.stdout, "Blue it is.\n");
    assert!(conversation(&mock.requests()[1])[2].contains("Which colour?: blue"));
}

#[test]
fn an_answer_that_is_none_is_refused() {
    let mock = MockModel::start();
    let ended = qwen(&mock).args(["-p", "x", "--answer", "allow"]).run();
    assert_eq!(ended.code, Some(2), "{}", ended.stderr);
    assert!(ended.stderr.contains("CALL=ANSWER"), "{}", ended.stderr);
}

/// A graph of two thoughts, each of which calls a tool that needs permission.
fn two_thoughts(request: &Request) -> Reply {
    let prompt = request.last_user_text();
    let used_a_tool = request.messages().iter().any(|message| message["role"] == "tool");
    if prompt.starts_with("Plan") {
        return Reply::text(
            r#"{"nodes":[{"id":"a","op":"generate","instruction":"one"},{"id":"b","op":"generate","instruction":"two"}]}"#,
        );
    }
    if prompt.starts_with("Generate") && !used_a_tool {
        let name = section(&prompt, "Instruction");
        return Reply::call("call_1", "run_shell_command", &format!(r#"{{"command":"touch {name}"}}"#));
    }
    Reply::text("Done.")
}

#[test]
fn thoughts_that_think_beside_each_other_leave_their_questions_too() {
    let mock = MockModel::start();
    mock.answer_with(|request: &Request| Some(two_thoughts(request)));
    let program = qwen(&mock).args(["--agent", "got"]);
    let asked = program.clone().args(["-p", "Go", "--session-id", "s", "--ask-later", "--json"]).run();
    assert_eq!(asked.code, Some(42), "{}", asked.stderr);
    let mut calls: Vec<String> = Vec::new();
    for line in asked.json_lines().iter().filter(|line| line["type"] == "tool_approval") {
        calls.push(line["call_id"].as_str().unwrap().to_owned());
    }
    assert_eq!(calls.len(), 2, "{}", asked.stdout);
    let before = mock.requests().len();
    let answers: Vec<String> = calls.iter().map(|call| format!("{call}=allow")).collect();
    let flags = ["--resume", "s", "--answer", &answers[0], "--answer", &answers[1]];
    let ended = speaks_well(&program, &flags, "loom");
    assert_eq!(ended.json_lines().last().unwrap()["reply"], "Done.");
    assert!(["one", "two"].iter().all(|name| program.cwd_path().join(name).exists()));
    // What was planned and wished is not asked again: two results and the answer are left.
    assert_eq!(mock.requests().len(), before + 3);
    exports_well(&program, "s");
}
