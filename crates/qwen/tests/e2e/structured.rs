//! `--json-schema`: the result fits the schema, in every dialect, or the turn is an error after a bounded
//! number of attempts.

use mock_model::{MockModel, Reply, Request};
use serde_json::{Value, json};

use crate::harness::{asked, judged, qwen};
use crate::wire::{self, CLAUDE, QWEN};

const SCHEMA: &str = r#"{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"],"additionalProperties":false}"#;

fn answer(arguments: &str) -> Reply {
    Reply::call("c1", "structured_output", arguments)
}

fn last_line(stdout: &str) -> Value {
    serde_json::from_str(stdout.lines().last().unwrap()).unwrap()
}

#[test]
fn the_result_is_data_in_every_dialect() {
    wire::each(&wire::all(), |wire| {
        let mock = MockModel::with([answer(r#"{"n":42}"#)]);
        let ended = asked(&mock, wire).args(["--json-schema", SCHEMA, "--approval-mode", "plan"]).run();
        assert_eq!(ended.code, Some(0), "{ended:?}");
        let told = judged(wire, &ended);
        assert_eq!(told.end().status, "done");
        assert!(
            ended.stdout.contains(r#"{\"n\":42}"#),
            "the answer stands where answers are: {}",
            ended.stdout
        );
        assert_eq!(mock.requests().len(), 1, "no further call once the result is there");
        let last = last_line(&ended.stdout);
        match wire.dialect {
            "claude" => assert_eq!(last["structured_output"], json!({"n": 42})),
            "qwen" => assert_eq!(last["metadata"]["turn"]["structured_output"], json!({"n": 42})),
            _ => {}
        }
    });
}

#[test]
fn words_for_people_are_the_result_alone() {
    let mock = MockModel::with([
        Reply::new([
            mock_model::ReplyEvent::Text("Let me see.".to_owned()).step(),
            mock_model::ReplyEvent::call("c0", "list_directory", r#"{"path":"."}"#).step(),
        ]),
        answer(r#"{"n":1}"#),
    ]);
    let ended = qwen().with_model(&mock).args(["-p", "Count", "--json-schema", SCHEMA]).run();
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(0), "{\"n\":1}\n"), "{ended:?}");
}

#[test]
fn the_model_is_told_the_form_and_may_answer_by_either_name_or_in_words() {
    for reply in [
        Reply::call("c1", "StructuredOutput", r#"{"n":42}"#),
        answer(r#"{"n":42}"#),
        Reply::text("```json\n{\"n\": 42}\n```"),
    ] {
        let mock = MockModel::with([reply]);
        let ended = asked(&mock, CLAUDE).args(["--json-schema", SCHEMA]).run();
        assert_eq!(ended.code, Some(0), "{ended:?}");
        assert_eq!(last_line(&ended.stdout)["structured_output"], json!({"n": 42}));
        let tools = mock.requests()[0].body["tools"].clone();
        let tool = tools.as_array().unwrap().iter().find(|t| t["function"]["name"] == "structured_output");
        assert_eq!(tool.unwrap()["function"]["parameters"], serde_json::from_str::<Value>(SCHEMA).unwrap());
    }
}

#[test]
fn a_result_that_does_not_fit_goes_back_to_the_model_with_what_is_wrong() {
    for wrong in [answer(r#"{"n":"many"}"#), answer("not json"), Reply::text("It is 42.")] {
        let mock = MockModel::with([wrong, Reply::call("c2", "structured_output", r#"{"n":42}"#)]);
        let ended = asked(&mock, CLAUDE).args(["--json-schema", SCHEMA]).run();
        assert_eq!(ended.code, Some(0), "{ended:?}");
        judged(CLAUDE, &ended);
        assert_eq!(last_line(&ended.stdout)["structured_output"], json!({"n": 42}));
        assert_eq!(mock.requests().len(), 2);
    }
}

#[test]
fn a_model_that_never_fits_ends_the_turn_after_a_bounded_number_of_attempts() {
    for text in [true, false] {
        wire::each(&wire::all(), |wire| {
            let mock = MockModel::start();
            let mut calls = 0;
            mock.answer_with(move |_: &Request| {
                calls += 1;
                let call = Reply::call(&format!("c{calls}"), "structured_output", r#"{"n":"many"}"#);
                Some(if text { Reply::text("No.") } else { call })
            });
            let ended = asked(&mock, wire).args(["--json-schema", SCHEMA]).run();
            assert_eq!(ended.code, Some(1), "{ended:?}");
            let told = judged(wire, &ended);
            assert_ne!(told.end().status, "done");
            assert_eq!(mock.requests().len(), 5, "{ended:?}");
            let last = last_line(&ended.stdout);
            if wire.dialect == "claude" {
                assert_eq!(last["subtype"], "error_max_structured_output_retries");
                assert!(
                    last["is_error"] == true && last["errors"][0].as_str().unwrap().contains("JSON Schema")
                );
                assert!(last.get("structured_output").is_none());
            }
        });
    }
}

#[test]
fn a_limit_still_ends_the_turn_first() {
    let mock = MockModel::start();
    mock.answer_with(|_: &Request| Some(Reply::text("No.")));
    let ended = asked(&mock, CLAUDE).args(["--json-schema", SCHEMA, "--max-turns", "2"]).run();
    assert_eq!(ended.code, Some(53), "{ended:?}");
    assert_eq!(last_line(&ended.stdout)["subtype"], "error_max_turns");
    assert_eq!(mock.requests().len(), 2);
}

#[test]
fn a_schema_may_stand_in_a_file_and_describe_anything() {
    let mock = MockModel::with([answer(r#"{"value":[1,2]}"#)]);
    let program = asked(&mock, QWEN).args(["--json-schema", "form.json"]);
    std::fs::write(program.cwd_path().join("form.json"), r#"{"type":"array","items":{"type":"integer"}}"#)
        .unwrap();
    let ended = program.run();
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert_eq!(last_line(&ended.stdout)["metadata"]["turn"]["structured_output"], json!([1, 2]));
}

#[test]
fn a_schema_that_cannot_be_used_is_an_error_of_usage_in_the_dialects_own_record() {
    for (schema, code) in [
        (r#"{"type":"strin"}"#, 2),
        ("{", 2),
        ("no-such-file.json", 42),
        (r#"{"unevaluatedProperties":false}"#, 2),
        ("[]", 2),
    ] {
        let mock = MockModel::with([]);
        let ended = asked(&mock, QWEN).args(["--json-schema", schema]).run();
        assert_eq!(ended.code, Some(code), "{schema}: {ended:?}");
        assert_eq!(last_line(&ended.stdout)["error"]["type"], "invalid_request_error", "{schema}: {ended:?}");
        assert!(!ended.stderr.is_empty(), "{schema}");
        let ended = asked(&mock, CLAUDE).args(["--json-schema", schema]).run();
        let record = last_line(&ended.stdout)["type"].clone();
        assert_eq!((ended.code, record), (Some(code), json!("result")), "{ended:?}");
    }
}

#[test]
fn every_turn_of_a_stream_is_held_to_the_schema_of_the_handshake() {
    let mock = MockModel::with([answer(r#"{"n":1}"#), Reply::call("c2", "structured_output", r#"{"n":2}"#)]);
    let mut run =
        qwen().with_model(&mock).args(["--input-format", "stream-json"]).args(CLAUDE.flags()).start();
    let initialize = |id: &str, schema: Value| {
        json!({"type": "control_request", "request_id": id,
               "request": {"subtype": "initialize", "jsonSchema": schema}})
        .to_string()
    };
    run.write_line(initialize("r0", json!({"type": "strin"})));
    let refused = run.json_until(|line| line["type"] == "control_response").pop().unwrap();
    assert_eq!(refused["response"]["subtype"], "error", "{refused}");
    run.write_line(initialize("r1", serde_json::from_str(SCHEMA).unwrap()));
    let taken = run.json_until(|line| line["type"] == "control_response").pop().unwrap();
    assert_eq!(taken["response"]["subtype"], "success", "{taken}");
    for n in [1, 2] {
        run.write_line(json!({"type": "user", "message": {"role": "user", "content": "Count"}}).to_string());
        let result = run.json_until(|line| line["type"] == "result").pop().unwrap();
        assert_eq!(result["structured_output"], json!({"n": n}), "{result}");
    }
    assert_eq!(run.finish().code, Some(0));
}

#[test]
fn trees_and_graphs_of_thoughts_answer_with_data_too() {
    for agent in ["tot", "got"] {
        let mock = MockModel::start();
        let mut answers = 0;
        mock.answer_with(move |request: &Request| {
            let asked = request.last_user_text();
            if !asked.contains("## Form of the answer") {
                return Some(Reply::text("1. think\n2. more"));
            }
            answers += 1;
            Some(Reply::text(if answers == 1 { "forty-two" } else { "{\"n\":42}" }))
        });
        let ended = asked(&mock, wire::LOOM).args(["--json-schema", SCHEMA, "--agent", agent]).run();
        assert_eq!(ended.code, Some(0), "{agent}: {ended:?}");
        judged(wire::LOOM, &ended);
        assert_eq!(last_line(&ended.stdout)["reply"], "{\"n\":42}", "{agent}");
    }
}

#[test]
fn a_request_may_bring_the_schema_of_its_own_result() {
    let mock = MockModel::with([answer(r#"{"n":1}"#), Reply::text("words"), Reply::text("{}")]);
    let mut run = qwen().with_model(&mock).args(["--input-format", "stream-json"]).args(QWEN.flags()).start();
    let schema: Value = serde_json::from_str(SCHEMA).unwrap();
    let wants = |format: Value| {
        json!({"messages": [{"role": "user", "content": "Count"}], "response_format": format}).to_string()
    };
    let mut turn = |line: String| {
        run.write_line(line);
        let over =
            |line: &Value| line["metadata"]["turn"].is_object() || line["metadata"]["error"].is_object();
        run.json_until(over).pop().unwrap()["metadata"].clone()
    };
    let named =
        |schema: &Value| json!({"type": "json_schema", "json_schema": {"name": "count", "schema": schema}});
    assert_eq!(turn(wants(named(&schema)))["turn"]["structured_output"], json!({"n": 1}));
    let plain = turn(wants(json!({"type": "text"})));
    assert_eq!(
        (&plain["turn"]["status"], &plain["turn"]["structured_output"]),
        (&json!("done"), &Value::Null)
    );
    assert_eq!(turn(wants(json!({"type": "json_object"})))["turn"]["structured_output"], json!({}));
    for bad in [named(&json!({"type": "strin"})), json!({"type": "xml"}), json!({"type": "json_schema"})] {
        let refused = turn(wants(bad.clone()));
        assert!(refused["error"].is_object() && refused["turn"].is_null(), "{bad}: {refused}");
    }
    assert_eq!(run.finish().code, Some(0));
}

#[test]
fn undo_takes_back_a_turn_with_all_its_attempts() {
    let mock = MockModel::with([
        Reply::text("{\"n\":1}"),
        Reply::text("No."),
        Reply::text("{\"n\":2}"),
        Reply::text("{\"n\":3}"),
    ]);
    let program = qwen().with_model(&mock).args(["--input-format", "stream-json", "--json-schema", SCHEMA]);
    let mut run = program.args(QWEN.flags()).start();
    for text in ["First", "Second", "/undo", "Third"] {
        run.write_line(json!({"messages": [{"role": "user", "content": text}]}).to_string());
        run.json_until(|line| line["metadata"]["turn"].is_object() || line["type"] == "result/command");
    }
    let requests = mock.requests();
    let told = requests[3].body["messages"].to_string();
    assert!(told.contains("First") && !told.contains("Second") && !told.contains("No."), "{told}");
    assert_eq!(run.finish().code, Some(0));
}

#[test]
fn a_result_with_names_of_its_own_fits_a_schema_of_a_dictionary() {
    for schema in [
        r#"{"type":"object","additionalProperties":{"type":"integer"}}"#,
        r#"{"type":"object","properties":{},"additionalProperties":{"type":"integer"}}"#,
        r#"{"type":"object","patternProperties":{"^[a-z]+$":{"type":"integer"}},"additionalProperties":false}"#,
        r##"{"$ref":"#/$defs/scores","$defs":{"scores":{"type":"object","additionalProperties":{"type":"integer"}}}}"##,
    ] {
        let arguments = if schema.contains("$ref") { r#"{"value":{"ann":1}}"# } else { r#"{"ann":1}"# };
        let mock = MockModel::with([answer(arguments)]);
        let ended = qwen().with_model(&mock).args(["-p", "Count", "--json-schema", schema]).run();
        assert_eq!((ended.code, ended.stdout.as_str()), (Some(0), "{\"ann\":1}\n"), "{schema}: {ended:?}");
    }
}
