//! Spec 2 §2, §3, §5 and §7: the envelope, the framing and the reply.

use mock_model::{MockModel, Reply, ReplyEvent};
use serde_json::{Value, json};

use crate::harness::{Host, asked, call, judged, qwen, told, toolmaker, worker};

#[test]
fn session_id_is_the_thread_and_the_same_on_every_line() {
    let mock = MockModel::with([Reply::text("hi")]);
    let lines = told(&asked(&mock, "loom").args(["--session-id", "sess-001"]), "loom", 0);
    assert!(lines.iter().all(|line| line["session_id"] == "sess-001"), "{lines:#?}");
    let checkpoint = lines.iter().find(|line| line["type"] == "checkpoint").unwrap();
    assert_eq!(checkpoint["thread_id"], "sess-001");
}

#[test]
fn event_id_counts_from_one_without_a_gap_over_all_turns_of_a_stream() {
    let mock = MockModel::with(["one", "two", "three"].map(Reply::text));
    let mut host = Host::of(&worker(&mock, "loom"), "loom");
    let lines: Vec<Value> = ["a", "b", "c"].iter().flat_map(|text| host.say(text)).collect();
    let ids: Vec<u64> = lines.iter().map(|line| line["event_id"].as_u64().unwrap()).collect();
    assert_eq!(ids, (1..=lines.len() as u64).collect::<Vec<_>>());
    assert_eq!(lines.iter().filter(|line| line["type"] == "run_start").count(), 3);
    host.leave();
}

#[test]
fn node_id_names_a_node_run_is_shared_within_it_and_absent_before_the_first() {
    let lines = told(&asked(&toolmaker(), "loom").arg("--yolo"), "loom", 0);
    assert!(lines[0].get("node_id").is_none(), "{}", lines[0]);
    let mut open: Option<&Value> = None;
    let mut entered = Vec::new();
    for line in &lines {
        match line["type"].as_str() {
            Some("node_enter") => {
                entered.push(line["node_id"].as_str().unwrap());
                open = Some(&line["node_id"]);
            }
            Some("node_exit") => {
                assert_eq!(Some(&line["node_id"]), open, "{line}");
                open = None;
            }
            _ if open.is_some() => assert_eq!(Some(&line["node_id"]), open, "{line}"),
            _ => {}
        }
        // The body's `id` is the node's name, which is a part of the run's.
        if let (Some(name), Some(run)) = (line["id"].as_str(), line["node_id"].as_str()) {
            assert!(run.starts_with(&format!("run-{name}-")), "{line}");
        }
    }
    assert_eq!(entered, ["run-think-1", "run-act-1", "run-observe-1", "run-think-2"]);
}

#[test]
fn every_frame_is_one_line_of_utf_8_whatever_the_model_says() {
    let said = "one\ntwo\r\n\u{2028}\u{1F600} \"quoted\" \\ \u{0} 流式 \u{7f}";
    for dialect in ["loom", "loom-export"] {
        let mock = MockModel::with([Reply::text(said)]);
        let lines = told(&asked(&mock, dialect), dialect, 0);
        assert_eq!(lines.last().unwrap()["reply"], said, "{dialect}");
    }
}

#[test]
fn the_reply_is_the_last_line_and_has_the_node_run_that_wrote_it() {
    let lines = told(&asked(&toolmaker(), "loom").arg("--yolo"), "loom", 0);
    let (reply, rest) = lines.split_last().unwrap();
    assert_eq!((&reply["reply"], &reply["node_id"]), (&json!("Done."), &json!("run-think-2")));
    assert!(reply.get("type").is_none() && rest.iter().all(|line| line.get("reply").is_none()));
    let written: String = rest
        .iter()
        .filter(|line| line["type"] == "message_chunk" && line["node_id"] == "run-think-2")
        .map(|line| line["content"].as_str().unwrap())
        .collect();
    assert_eq!(reply["reply"], written, "the final node run's chunks, joined");
}

#[test]
fn an_answer_without_words_is_an_empty_reply_of_the_node_run_that_wrote_none() {
    let mock = MockModel::with([
        Reply::new([
            ReplyEvent::Text("look".into()).step(),
            call("c1", "list_directory", &json!({ "path": "." })),
        ]),
        Reply::new([ReplyEvent::Finish("stop".into()).step()]),
    ]);
    let lines = told(&asked(&mock, "loom"), "loom", 0);
    let reply = lines.last().unwrap();
    assert_eq!((&reply["reply"], &reply["node_id"]), (&json!(""), &json!("run-think-2")));
    assert!(!lines.iter().any(|line| line["value"]["kind"] == "run_end"), "it did not fail");
}

/// What the spec prints with the envelope, without it, and as a stream of before there were numbers.
#[test]
fn receivers_take_the_envelope_the_bare_form_and_streams_without_numbers() {
    let full = r#"{"session_id":"sess-001","event_id":0,"type":"run_start","run_id":"run-1","message":"Hello","agent":"react"}
{"session_id":"sess-001","node_id":"run-think-1","event_id":1,"type":"node_enter","id":"think"}
{"session_id":"sess-001","node_id":"run-think-1","event_id":2,"type":"message_chunk","content":"Hello","id":"think"}
{"session_id":"sess-001","node_id":"run-think-1","event_id":3,"type":"node_exit","id":"think","result":"Ok"}
{"session_id":"sess-001","node_id":"run-think-1","event_id":4,"reply":"Hello"}
"#;
    let without = |names: &[&str]| -> String {
        let bare = |line: &str| {
            let mut line: Value = serde_json::from_str(line).unwrap();
            for name in names {
                line.as_object_mut().unwrap().remove(*name);
            }
            format!("{line}\n")
        };
        full.lines().map(bare).collect()
    };
    for stream in [full.to_owned(), without(&["session_id", "node_id", "event_id"]), without(&["event_id"])] {
        judged("loom", &stream);
        let viewed = qwen().arg("view").stdin(&stream).run();
        assert!(viewed.code == Some(0) && viewed.stdout.contains("Hello"), "{stream}: {viewed:?}");
    }
}
