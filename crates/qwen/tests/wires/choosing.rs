//! Which wire is spoken and in which form, where the other suites leave off.

use mock_model::process::Ended;
use mock_model::{MockModel, Reply};
use serde_json::{Value, json};

use crate::harness::{DIALECTS, ends_turn, fields, judged, qwen, toolmaker};

fn run(flags: &str, vars: &[(&str, &str)], stdin: &str) -> Ended {
    let mock = MockModel::with([Reply::text("Hi")]);
    let program =
        vars.iter().fold(qwen().with_model(&mock), |program, (name, value)| program.env(name, value));
    program.args(["--model", "mock"]).args(flags.split(' ')).stdin(stdin).run()
}

#[test]
fn a_dialect_that_a_flag_names_is_spoken_without_a_format() {
    for dialect in DIALECTS {
        let ended = run(&format!("-p x --dialect {dialect}"), &[], "");
        assert_eq!(ended.code, Some(0), "{ended:?}");
        let lines = judged(dialect, &ended.stdout);
        assert!(lines.len() > 1 && ends_turn(dialect, lines.last().unwrap()), "{dialect}: {lines:#?}");
    }
    // A format that is named too is obeyed.
    assert_eq!(run("-p x --dialect loom -o text", &[], "").stdout, "Hi\n");
    assert_eq!(run("-p x --dialect loom -o json", &[], "").json_lines().len(), 1);
}

#[test]
fn a_variable_names_the_wire_and_not_whether_one_is_wanted() {
    assert_eq!(run("-p x", &[("QWEN_DIALECT", "loom")], "").stdout, "Hi\n");
}

#[test]
fn json_is_short_for_a_stream_of_loom_whatever_the_input() {
    let line = json!({ "type": "user", "message": { "role": "user", "content": "x" } }).to_string();
    for (flags, stdin) in [
        ("--json -p x", ""),
        ("--json --input-format stream-json", line.as_str()),
        ("--json -o stream-json -p x", ""),
    ] {
        let ended = run(flags, &[], stdin);
        assert_eq!(ended.code, Some(0), "{flags}: {ended:?}");
        assert_eq!(judged("loom", &ended.stdout).last().unwrap()["reply"], "Hi", "{flags}");
    }
    let ended = run("--json -p x --dialect loom-export", &[], "");
    assert_eq!(judged("loom-export", &ended.stdout).last().unwrap(), &json!({ "reply": "Hi" }));
}

#[test]
fn a_document_has_the_events_of_the_stream_and_the_reply_beside_them() {
    for dialect in ["loom", "loom-export", "core", "claude-lite"] {
        let run = |format: &str| {
            let mock = toolmaker();
            let program = qwen().with_model(&mock).args([
                "--model",
                "mock",
                "-p",
                "x",
                "--yolo",
                "--session-id",
                "s-1",
            ]);
            let ended = program.args(["--dialect", dialect, "-o", format]).run();
            assert_eq!(ended.code, Some(0), "{ended:?}");
            judged(dialect, &ended.stdout)
        };
        let (stream, document) = (run("stream-json"), run("json"));
        let [document] = &document[..] else { panic!("one document: {document:#?}") };
        assert_eq!(fields(document), ["events", "reply"], "{dialect}");
        assert_eq!(document["reply"], "Done.", "{dialect}");
        let kinds = |lines: &[Value]| -> Vec<String> {
            let kind = |line: &Value| {
                line["type"].as_str().map_or_else(|| fields(line)[0].to_owned(), str::to_owned)
            };
            let mut kinds: Vec<String> =
                lines.iter().filter(|line| line.get("reply").is_none()).map(kind).collect();
            // Tools that run beside each other end in any order.
            kinds.sort_unstable();
            kinds
        };
        assert_eq!(kinds(document["events"].as_array().unwrap()), kinds(&stream), "{dialect}");
    }
}

#[test]
fn a_worker_that_writes_documents_numbers_on_over_its_turns() {
    let mock = MockModel::with(["one", "two"].map(Reply::text));
    let lines: String = ["a", "b"]
        .map(|text| {
            format!("{}\n", json!({ "type": "user", "message": { "role": "user", "content": text } }))
        })
        .concat();
    let flags = ["--model", "mock", "--dialect", "loom", "--input-format", "stream-json", "-o", "json"];
    let ended = qwen().with_model(&mock).args(flags).stdin(lines).run();
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let documents = judged("loom", &ended.stdout);
    assert_eq!(documents.iter().map(|d| d["reply"].as_str().unwrap()).collect::<Vec<_>>(), ["one", "two"]);
    let ids: Vec<u64> = documents
        .iter()
        .flat_map(|document| document["events"].as_array().unwrap())
        .map(|event| event["event_id"].as_u64().unwrap())
        .collect();
    assert!(ids.windows(2).all(|pair| pair[0] < pair[1]), "{ids:?}");
}

#[test]
fn every_dialect_is_known_by_its_first_lines_and_can_be_viewed() {
    for dialect in DIALECTS {
        let ended = run(&format!("-p x --dialect {dialect}"), &[], "");
        let checked = qwen().arg("check").stdin(&ended.stdout).run();
        assert_eq!(checked.code, Some(0), "{checked:?}");
        let said = format!("{}{}", checked.stdout, checked.stderr);
        assert!(said.contains(&format!("{dialect},")), "{dialect}: {said}");
        let viewed = qwen().arg("view").stdin(&ended.stdout).run();
        assert!(viewed.code == Some(0) && viewed.stdout.contains("Hi"), "{dialect}: {viewed:?}");
        let fragment = qwen()
            .args(["check", "--fragment", "--dialect", dialect])
            .stdin(ended.stdout.lines().last().unwrap())
            .run();
        assert_eq!(fragment.code, Some(0), "{dialect}: {fragment:?}");
    }
}
