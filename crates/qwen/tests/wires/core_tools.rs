//! Spec 4 §1–3: a tool call as it is asked for, confirmed and answered, field by field.

use std::fs;

use mock_model::process::Signal;
use mock_model::{MockModel, Reply};
use serde_json::{Value, json};

use crate::harness::{Host, asked, call, fields, of, shell, told, toolmaker, with_a_sub_agent, worker};

const CORE: &str = "core";

/// The values of the lines of a type.
fn values<'a>(lines: &'a [Value], kind: &str) -> Vec<&'a Value> {
    of(lines, kind).into_iter().map(|line| &line["value"]).collect()
}

#[test]
fn every_line_is_a_type_and_a_value() {
    let lines = told(&asked(&toolmaker(), CORE).arg("--yolo"), CORE, 0);
    assert!(lines.iter().all(|line| fields(line) == ["type", "value"]), "{lines:#?}");
}

#[test]
fn a_request_has_the_fields_of_its_list() {
    let lines = told(&asked(&toolmaker(), CORE).args(["--yolo", "--session-id", "s-1"]), CORE, 0);
    let requests = values(&lines, "tool_call_request");
    assert_eq!(requests.len(), 4);
    for request in &requests {
        let expected = ["args", "callId", "isClientInitiated", "name", "prompt_id", "response_id"];
        assert_eq!(fields(request), expected, "{request}");
        assert!(request["args"].is_object() && request["response_id"].is_string(), "{request}");
        assert_eq!(
            (&request["isClientInitiated"], &request["prompt_id"]),
            (&json!(false), &json!("s-1########1"))
        );
    }
    assert_eq!((&requests[0]["callId"], &requests[0]["name"]), (&json!("ok"), &json!("run_shell_command")));
    assert_eq!(requests[0]["args"], json!({ "command": "echo out; echo err >&2" }));
    assert_eq!(requests[2]["args"], json!({}), "what the model broke");
}

#[test]
fn a_response_has_the_fields_of_its_list_and_belongs_to_its_request() {
    let lines = told(&asked(&toolmaker(), CORE).arg("--yolo"), CORE, 0);
    let responses = values(&lines, "tool_call_response");
    for (id, error_type) in [
        ("ok", Value::Null),
        ("fails", json!("file_not_found")),
        ("broken", json!("invalid_arguments")),
        ("unknown", json!("unknown_tool")),
    ] {
        let [response] = responses.iter().filter(|value| value["callId"] == id).collect::<Vec<_>>()[..]
        else {
            panic!("one response to {id}")
        };
        let expected =
            ["callId", "contentLength", "error", "errorType", "outputFile", "responseParts", "resultDisplay"];
        assert_eq!(fields(response), expected, "{response}");
        assert_eq!(response["errorType"], error_type, "{id}");
        let text = response["responseParts"][0]["text"].as_str().unwrap();
        assert_eq!(response["error"], if error_type.is_null() { Value::Null } else { json!(text) }, "{id}");
        assert_eq!(response["contentLength"], text.chars().count(), "{id}");
        assert!(response["outputFile"].is_null() && response["resultDisplay"].is_string(), "{response}");
    }
}

/// A call, what its confirmation is, and the further fields it has.
type Confirmed = (&'static str, Value, &'static str, &'static [&'static str], &'static [&'static str]);

#[test]
fn a_confirmation_has_the_call_and_the_details_of_its_type() {
    let edit = &["fileDiff", "fileName", "filePath", "isModifying", "newContent", "originalContent"][..];
    let cases: [Confirmed; 5] = [
        (
            "edit",
            json!({ "file_path": "a.txt", "old_string": "old", "new_string": "new" }),
            "edit",
            edit,
            &[],
        ),
        ("write_file", json!({ "file_path": "b.txt", "content": "x\n" }), "edit", edit, &[]),
        ("run_shell_command", json!({ "command": "touch made" }), "exec", &["command", "rootCommand"], &[]),
        (
            "web_fetch",
            json!({ "url": "https://example.com/a", "prompt": "p" }),
            "info",
            &["prompt", "urls"],
            &[],
        ),
        ("exit_plan_mode", json!({ "plan": "1. do" }), "plan", &["plan"], &["--approval-mode", "plan"]),
    ];
    for (tool, args, kind, extra, flags) in cases {
        let mock = MockModel::with([Reply::new([call("c1", tool, &args)]), Reply::text("ok")]);
        let program = worker(&mock, CORE).args(flags);
        fs::write(program.cwd_path().join("a.txt"), "old content\n").unwrap();
        let mut host = Host::of(&program, CORE);
        host.ask("go");
        let lines = host.turn("deny");
        let confirmation = values(&lines, "tool_call_confirmation")[0];
        assert_eq!(fields(confirmation), ["details", "request"]);
        assert_eq!(confirmation["request"], *values(&lines, "tool_call_request")[0], "the original request");
        let details = &confirmation["details"];
        let mut expected = [&["onConfirm", "title", "type"], extra].concat();
        expected.sort_unstable();
        assert_eq!(fields(details), expected, "{tool}: {details}");
        assert_eq!(details["type"], kind, "{tool}");
        assert!(
            ["title", "onConfirm"]
                .iter()
                .all(|name| details[name].as_str().is_some_and(|text| !text.is_empty()))
        );
        let place = |kind: &str| lines.iter().position(|line| line["type"] == kind).unwrap();
        assert!(place("tool_call_request") < place("tool_call_confirmation"));
        assert!(place("tool_call_confirmation") < place("tool_call_response"));
        host.leave();
    }
}

#[test]
fn the_details_of_an_edit_show_both_texts_and_the_diff() {
    let args = json!({ "file_path": "src/a.txt", "old_string": "old", "new_string": "new" });
    let mock = MockModel::with([Reply::new([call("c1", "edit", &args)]), Reply::text("ok")]);
    let program = worker(&mock, CORE);
    let path = program.cwd_path().join("src/a.txt");
    fs::create_dir(path.parent().unwrap()).unwrap();
    fs::write(&path, "old content\nunchanged line\n").unwrap();
    let mut host = Host::of(&program, CORE);
    let lines = host.say("go");
    let details = &values(&lines, "tool_call_confirmation")[0]["details"];
    assert_eq!(
        (&details["fileName"], &details["originalContent"]),
        (&json!("a.txt"), &json!("old content\nunchanged line\n"))
    );
    assert_eq!(details["newContent"], "new content\nunchanged line\n");
    assert!(details["filePath"].as_str().unwrap().ends_with("/src/a.txt"), "{details}");
    assert!(
        details["fileDiff"].as_str().unwrap().contains("-old content\n+new content\n unchanged line"),
        "{details}"
    );
    // The result is shown as the change that it was.
    let shown = &values(&lines, "tool_call_response")[0]["resultDisplay"];
    assert_eq!((&shown["fileName"], &shown["newContent"]), (&json!("a.txt"), &details["newContent"]));
    assert!(shown["fileDiff"].is_string() && shown["originalContent"].is_string(), "{shown}");
    assert_eq!(fs::read_to_string(path).unwrap(), "new content\nunchanged line\n");
    host.leave();
}

#[test]
fn a_confirmation_is_answered_on_the_flat_control_channel() {
    for (behavior, error_type) in [("allow", Value::Null), ("deny", json!("permission_denied"))] {
        let mock = MockModel::with([Reply::new([shell("c1", "touch made")]), Reply::text("ok")]);
        let mut host = Host::of(&worker(&mock, CORE), CORE);
        host.ask("go");
        let lines = host.turn(behavior);
        let question = of(&lines, "control_request")[0];
        assert_eq!(
            (&question["subtype"], &question["metadata"]["tool_call_id"]),
            (&json!("can_use_tool"), &json!("c1"))
        );
        assert_eq!(values(&lines, "tool_call_response")[0]["errorType"], error_type, "{behavior}");
        let finished = lines.last().unwrap();
        assert_eq!(finished["type"], "finished", "the turn goes on");
        let denials = finished["value"]["permissionDenials"].as_array().map_or(0, Vec::len);
        assert_eq!(denials, usize::from(behavior == "deny"), "a refusal is listed in the terminal record");
        host.leave();
    }
}

#[test]
fn where_nobody_can_be_asked_there_is_no_confirmation_and_a_refusal() {
    let mock = MockModel::with([Reply::new([shell("c1", "touch made")]), Reply::text("ok")]);
    let program = asked(&mock, CORE);
    let lines = told(&program, CORE, 0);
    assert!(of(&lines, "tool_call_confirmation").is_empty());
    assert_eq!(values(&lines, "tool_call_response")[0]["errorType"], "permission_denied");
    assert!(!program.cwd_path().join("made").exists());
}

#[test]
fn a_result_that_was_too_long_names_its_file() {
    let mock = MockModel::with([Reply::new([shell("c1", "seq 1 200000")]), Reply::text("ok")]);
    let lines = told(&asked(&mock, CORE).arg("--yolo"), CORE, 0);
    let response = values(&lines, "tool_call_response")[0];
    assert!(response["outputFile"].as_str().is_some_and(|path| path.starts_with('/')), "{response}");
}

#[test]
fn a_cancelled_call_is_answered_before_the_turn_ends() {
    let mock = MockModel::with([Reply::new([shell("c1", "touch started; exec sleep 600")])]);
    let program = asked(&mock, CORE).arg("--yolo");
    let mut run = program.start();
    run.close_stdin();
    run.json_until(|line| line["type"] == "tool_call_request");
    run.signal(Signal::INT);
    let ended = run.wait();
    assert_eq!(ended.code, Some(130), "{ended:?}");
    let lines = crate::harness::judged(CORE, &ended.stdout);
    assert_eq!(values(&lines, "tool_call_response")[0]["errorType"], "cancelled");
    assert_eq!(lines.last().unwrap()["type"], "user_cancelled");
}

#[test]
fn calls_of_a_sub_agent_name_the_call_that_they_serve() {
    let mock = with_a_sub_agent();
    let lines = told(&asked(&mock, CORE).arg("--yolo"), CORE, 0);
    for kind in ["tool_call_request", "tool_call_response"] {
        let [inner] = values(&lines, kind)
            .into_iter()
            .filter(|value| value["callId"] == "inner")
            .collect::<Vec<_>>()[..]
        else {
            panic!("{kind}: {lines:#?}")
        };
        assert_eq!(inner["parentCallId"], "outer", "{kind}");
    }
    let said: Vec<&Value> = values(&lines, "content");
    assert_eq!(said, ["from above"], "a sub-agent's words are no content");
}
