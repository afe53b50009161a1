//! The corpus, logs, traces and the README.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use mock_model::Reply;
use mock_model::process::Program;
use qwen_kernel::{AgentManager, AgentMessage, AgentOptions, MessageKind, SessionOptions, TurnOptions};
use serde_json::Value;

use crate::harness::{Harness, wait};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

#[test]
fn the_corpus_reads_as_its_manifest_says() {
    let corpus = root().join("corpus");
    let manifest: Value =
        serde_json::from_slice(&std::fs::read(corpus.join("manifest.json")).unwrap()).unwrap();
    let mut read = 0;
    for trace in manifest["traces"].as_array().unwrap() {
        for file in trace["files"].as_array().unwrap() {
            let path = file["path"].as_str().unwrap();
            if file["dialect"] != "qwen" || file["format"] != "stream-json" || path.ends_with(".gz") {
                continue;
            }
            read += 1;
            let mut text = Vec::new();
            std::fs::File::open(corpus.join(path)).unwrap().read_to_end(&mut text).unwrap();
            let lines = text.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
            let messages: Vec<AgentMessage> = lines.map(|line| AgentMessage::parse(line).unwrap()).collect();
            assert_eq!(messages.len() as u64, file["lines"].as_u64().unwrap(), "{path}");
            assert_eq!(messages[0].kind(), MessageKind::Handshake, "{path}");
            assert!(messages.iter().all(|message| message.kind() != MessageKind::Unknown), "{path}");
            let ends = messages.iter().filter(|message| message.kind() == MessageKind::Result);
            let ends: Vec<(Option<&str>, &Value)> =
                ends.map(|message| (message.prompt_id(), &message["metadata"]["turn"]["status"])).collect();
            let turns = trace["turns"].as_array().unwrap();
            let expected: Vec<_> =
                turns.iter().map(|turn| (turn["prompt_id"].as_str(), &turn["status"])).collect();
            assert_eq!(ends, expected, "{path}");
        }
    }
    assert!(read > 10, "{read} traces were read");
}

#[test]
fn any_line_is_read_without_a_panic() {
    for line in [
        "",
        "null",
        "[]",
        "7",
        "{",
        "\u{feff}{}",
        r#"{"type":7}"#,
        r#"{"object":"chat.completion","choices":7}"#,
    ] {
        if let Some(message) = AgentMessage::parse(line.as_bytes()) {
            let _ = (message.kind(), message.text(), message.tool_calls(), message.prompt_id());
        }
    }
    assert_eq!(AgentMessage::parse(b"this is no JSON"), None);
}

#[test]
fn the_logger_of_the_host_gets_structured_records() {
    let harness = Harness::new([Reply::text("ok")]);
    let records = Arc::new(Mutex::new(Vec::new()));
    let kept = records.clone();
    let id = wait(async {
        let logger: qwen_kernel::Logger = Arc::new(move |record| kept.lock().unwrap().push(record.clone()));
        let manager =
            AgentManager::start(AgentOptions { logger: Some(logger), ..harness.options() }).unwrap();
        let mut session = manager.create_session(SessionOptions::default()).await.unwrap();
        session.run("a question").await.unwrap();
        let id = session.id().to_owned();
        session.close().await.unwrap();
        manager.close().await;
        id
    });
    let records = records.lock().unwrap();
    let end = records.iter().find(|record| record["event"] == "turn_end").unwrap();
    assert_eq!((end["session_id"].as_str(), end["status"].as_str()), (Some(&*id), Some("done")));
}

#[test]
fn one_trace_leads_from_the_span_of_the_host_to_the_model_call() {
    let harness = Harness::new([Reply::text("ok")]);
    let trace = "4bf92f3577b34da6a3ce929d0e0e4736";
    let outfile = harness.home.path().join("spans.jsonl");
    wait(async {
        let mut options = harness.options();
        options
            .worker_args
            .extend(["--telemetry".to_owned(), format!("--telemetry-outfile={}", outfile.display())]);
        let manager = AgentManager::start(options).unwrap();
        let mut session = manager.create_session(SessionOptions::default()).await.unwrap();
        let traceparent = Some(format!("00-{trace}-00f067aa0ba902b7-01"));
        let turn = TurnOptions { traceparent, ..TurnOptions::default() };
        session.run_with("go", turn).await.unwrap();
        session.close().await.unwrap();
        manager.close().await;
    });
    let sent = harness.mock.requests()[0].header("traceparent").unwrap().to_owned();
    assert!(sent.contains(trace), "{sent}");
    let spans = std::fs::read_to_string(outfile).unwrap();
    assert!(spans.contains(trace) && spans.contains("00f067aa0ba902b7"), "{spans}");
}

#[test]
fn the_example_of_the_readme_works_as_printed() {
    let readme = std::fs::read_to_string(root().join("crates/qwen-kernel/README.md")).unwrap();
    let example = readme.split("```rust,no_run\n").nth(1).unwrap().split("```").next().unwrap();
    let body = example.split_once("async fn main() -> Result<(), qwen_kernel::AgentError> {\n").unwrap().1;
    let body = body.trim_end().strip_suffix('}').unwrap();
    let printed: Vec<&str> = body.lines().map(str::trim).collect();
    let source: Vec<&str> = include_str!("promises.rs").lines().map(str::trim).collect();
    assert!(
        source.windows(printed.len()).any(|lines| lines == printed),
        "the program below is not the one of the README"
    );
    let ended = Program::new(std::env::current_exe().unwrap())
        .args(["--ignored", "--exact", "promises::act_as_the_readme", "--nocapture", "--test-threads=1"])
        .env("QWEN_BIN", env!("CARGO_BIN_EXE_qwen"))
        .env("README_RUNS", "1")
        .run();
    assert_eq!(ended.code, Some(0), "{}{}", ended.stdout, ended.stderr);
    assert!(ended.stdout.contains("list_directory"), "{}", ended.stdout);
}

#[test]
#[ignore = "not a test: the program of the README"]
fn act_as_the_readme() {
    async fn main() -> Result<(), qwen_kernel::AgentError> {
        let session = SessionOptions::default().model("demo");
        let manager = AgentManager::start(AgentOptions { session, ..AgentOptions::default() })?;
        println!("{}", manager.run("Look around").await?.text);
        manager.close().await;
        Ok(())
    }
    if std::env::var_os("README_RUNS").is_some() {
        wait(main()).unwrap();
    }
}
