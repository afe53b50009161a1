//! When workers and streams break.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex};

use mock_model::{Reply, gate, sse};
use qwen_kernel::{
    AgentError, AgentManager, AgentOptions, MessageKind, OnCrash, Session, SessionOptions, TurnOptions,
};
use serde_json::{Value, json};

use crate::harness::{Harness, TOUCH, all, wait};

fn held() -> Reply {
    Reply::new([sse::text("Half"), gate("held")])
}

/// Kills the workers of a harness.
fn kill_workers(harness: &Harness) {
    let workers = mock_model::process::marked(&harness.mark());
    assert!(!workers.is_empty());
    for pid in workers {
        let pid = rustix::process::Pid::from_raw(i32::try_from(pid).unwrap()).unwrap();
        // Its guardian may have gone with it already.
        let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
    }
}

#[test]
fn a_worker_that_is_killed_costs_its_turn_and_not_the_session() {
    let harness = Harness::new([Reply::text("Good."), held(), Reply::text("Again.")]);
    wait(async {
        let (manager, mut session) = harness.open(SessionOptions::default()).await;
        let good = session.run("one").await.unwrap();
        let mut stream = session.stream("go").unwrap();
        harness.mock.reached("held");
        assert_eq!(stream.session().last_result(), Some(&good), "the last good result is kept");
        kill_workers(&harness);
        while stream.next().await.unwrap().is_some() {}
        drop(stream);
        let lost = session.last_result().unwrap();
        let error = lost.error.clone().unwrap();
        assert_eq!((lost.status.as_str(), error.code.as_str()), ("interrupted", "worker_lost"));
        assert!(error.message.contains("signal 9") || error.message.contains("SIGKILL"), "{}", error.message);
        assert_eq!(session.run("again").await.unwrap().text, "Again.");
        manager.close().await;
    });
}

#[test]
fn a_turn_whose_worker_died_is_retried_as_configured() {
    let harness = Harness::new([held(), Reply::text("Whole.")]);
    wait(async {
        let (manager, mut session) = harness.open(SessionOptions::default()).await;
        let options = TurnOptions { retry: true, ..TurnOptions::default() };
        let stream = session.stream_with("go", options).unwrap();
        harness.mock.reached("held");
        kill_workers(&harness);
        let result = stream.result().await.unwrap();
        assert_eq!((result.status.as_str(), result.text.as_str()), ("done", "Whole."));
        manager.close().await;
    });
}

#[test]
fn a_turn_whose_worker_died_is_taken_up_by_the_crash_policy_of_the_session() {
    for policy in OnCrash::ALL {
        let harness = Harness::new([held(), Reply::text("Whole."), Reply::text("Again.")]);
        wait(async {
            let (manager, mut session) = harness.open(SessionOptions::default().on_crash(policy)).await;
            let first = session.id().to_owned();
            let stream = session.stream("go").unwrap();
            harness.mock.reached("held");
            kill_workers(&harness);
            let result = stream.result().await.unwrap();
            if policy == OnCrash::Error {
                assert_eq!(result.error.unwrap().code, "worker_lost");
            } else {
                assert_eq!((result.status.as_str(), result.text.as_str()), ("done", "Whole."), "{policy:?}");
            }
            assert_eq!(session.id() == first, policy != OnCrash::Fork, "{policy:?}");
            assert_eq!(result.session_id, session.id());
            assert!(session.run("again").await.unwrap().ok(), "{policy:?}");
            session.close().await.unwrap();
            manager.close().await;
        });
    }
}

#[test]
fn every_session_ends_with_an_error_when_the_kernel_is_closed() {
    let harness = Harness::new([held()]);
    wait(async {
        let manager = harness.start();
        let mut busy = manager.create_session(SessionOptions::default()).await.unwrap();
        let mut idle = manager.create_session(SessionOptions::default()).await.unwrap();
        let mut stream = busy.stream("go").unwrap();
        harness.mock.reached("held");
        let closing = tokio::spawn(manager.close());
        // The running turn gets its terminal record, or the end of the kernel.
        while let Ok(Some(_)) = stream.next().await {}
        drop(stream);
        closing.await.unwrap();
        assert!(matches!(busy.run("more").await, Err(AgentError::Ended)));
        assert!(matches!(idle.run("more").await, Err(AgentError::Ended)));
        assert!(matches!(idle.set_model(None).await, Err(AgentError::Ended)));
    });
    mock_model::process::wait_marked_gone(&harness.mark());
}

#[test]
fn a_reader_that_stops_reading_pauses_its_own_worker_only() {
    const PIECES: usize = 60_000;
    let piece = "a piece of text that is long enough to count ";
    let harness = Harness::new([]);
    let script = |name: &str, steps: Value| {
        let path = harness.home.path().join(name);
        std::fs::write(&path, json!([steps]).to_string()).unwrap();
        SessionOptions::default().model(&format!("script:{}", path.display()))
    };
    let flood = script("flood.json", json!([{"repeat": PIECES, "text": piece}]));
    let calm = script("calm.json", json!([{"text": "calm"}]));
    wait(async {
        let mut options = harness.options();
        options.worker_args = Vec::new();
        options.include_partial_messages = true;
        let manager = AgentManager::start(options).unwrap();
        let mut slow = manager.create_session(flood).await.unwrap();
        let stream = slow.stream("go").unwrap();
        let mut other = manager.create_session(calm).await.unwrap();
        assert_eq!(other.run("go").await.unwrap().text, "calm");
        let result = stream.result().await.unwrap();
        assert_eq!(result.text.len(), PIECES * piece.len(), "nothing is lost");
        manager.close().await;
    });
}

/// A program that reports its start and its turns, and does `body` for every prompt, whose id is in `$prompt`.
fn fake_worker(harness: &Harness, version: &str, body: &str) -> PathBuf {
    let path = harness.home.path().join("worker.sh");
    let greeting = json!({"object": "chat.completion", "id": "x", "created": 1, "model": "fake", "session_id": "x", "choices": [],
        "metadata": {"protocol_version": version}});
    // Keys in the order in which a worker writes them.
    let greeting = greeting.to_string().replace(r#","object":"chat.completion""#, "");
    let greeting = greeting.replacen('{', r#"{"object":"chat.completion","#, 1);
    let text = format!(
        r#"#!/usr/bin/env bash
while [ $# -gt 0 ]; do [ "$1" != --commit-fd ] || fd=$2; shift; done
lines=0
report() {{ lines=$((lines + 1)); printf '{{"type":"report","at":{{"line":%s}},%s}}\n' "$lines" "$1" >&$fd; }}
field() {{ printf '%s' "$line" | sed -n "s/.*\"$1\":\"\([^\"]*\)\".*/\1/p"; }}
end() {{
    report "\"fact\":\"turn_ended\",\"prompt_id\":\"$prompt\",\"status\":\"done\",\"input_tokens\":1,\"output_tokens\":1"
    printf '{{"object":"chat.completion","id":"x","created":1,"model":"fake","session_id":"%s","prompt_id":"%s",' "$session" "$prompt"
    printf '"choices":[{{"index":0,"message":{{"role":"assistant","content":"'
    "$@"
    printf '"}},"finish_reason":"stop"}}],"usage":{{"prompt_tokens":1,"completion_tokens":1,"total_tokens":2}},'
    printf '"metadata":{{"turn":{{"status":"done","duration_ms":1,"model_calls":1,"tool_calls":0,"permission_denials":[],"usage_by_model":{{}}}}}}}}\n'
}}
report '"fact":"ready","version":"{version}"'
printf '%s\n' '{greeting}'
while IFS= read -r line; do
    session=$(field session_id)
    case $line in
        *'"input"'*) prompt=$(field prompt_id)
{body}
            ;;
    esac
done
"#
    );
    write_program(&path, &text);
    path
}

/// Written by another process, so that no other test's child can hold it open for writing while it is
/// executed.
fn write_program(path: &Path, text: &str) {
    let quoted = text.replace('\'', "'\\''");
    let shell = format!("printf '%s' '{quoted}' > '{0}' && chmod 755 '{0}'", path.display());
    assert!(Command::new("/bin/sh").arg("-c").arg(shell).status().unwrap().success());
}

async fn open_fake(harness: &Harness, worker: PathBuf) -> (AgentManager, Session) {
    let options = AgentOptions { binary_path: Some(worker), worker_args: Vec::new(), ..harness.options() };
    let manager = AgentManager::start(options).unwrap();
    let session = manager.create_session(SessionOptions::default()).await.unwrap();
    (manager, session)
}

#[test]
fn a_line_of_60_mb_is_read() {
    let harness = Harness::new([]);
    let worker = fake_worker(&harness, "1.0", "end sh -c 'head -c 60000000 /dev/zero | tr \"\\000\" x'");
    wait(async {
        let (manager, mut session) = open_fake(&harness, worker).await;
        assert_eq!(session.run("go").await.unwrap().text.len(), 60_000_000);
        manager.close().await;
    });
}

#[test]
fn an_unknown_event_is_delivered_with_its_data_and_the_stream_goes_on() {
    let harness = Harness::new([]);
    let body = r#"printf '{"type":"x-qwen-from-the-future","session_id":"%s","prompt_id":"%s","what":{"is":"new"}}\n' "$session" "$prompt"
lines=$((lines + 1))
printf 'this is no JSON\n[1, 2]\n{"half": \n'
end printf fine"#;
    let worker = fake_worker(&harness, "1.0", body);
    wait(async {
        let (manager, mut session) = open_fake(&harness, worker).await;
        let messages = all(session.stream("go").unwrap()).await;
        let unknown: Vec<_> = messages.iter().filter(|m| m.kind() == MessageKind::Unknown).collect();
        assert_eq!(unknown.len(), 1, "{messages:?}");
        assert_eq!(unknown[0]["what"]["is"], "new");
        assert_eq!(session.last_result().unwrap().text, "fine");
        manager.close().await;
    });
}

#[test]
fn another_protocol_version_is_an_error_that_names_both() {
    let harness = Harness::new([]);
    let worker = fake_worker(&harness, "2.0", "end printf fine");
    wait(async {
        let (manager, mut session) = open_fake(&harness, worker).await;
        let error = session.run("go").await.unwrap().error.unwrap();
        assert_eq!(error.code, "unsupported_protocol");
        assert!(error.message.contains("'2.0'") && error.message.contains("1.0"), "{}", error.message);
        manager.close().await;
    });
}

#[test]
fn a_flood_on_standard_error_stops_nothing_and_reaches_the_host() {
    let harness = Harness::new([]);
    let body = "head -c 5000000 /dev/zero | tr '\\000' e >&2; printf '\\nlast words\\n' >&2\nend printf fine";
    let worker = fake_worker(&harness, "1.0", body);
    let lines = Arc::new(Mutex::new(Vec::new()));
    let kept = lines.clone();
    wait(async {
        let options = AgentOptions {
            binary_path: Some(worker),
            worker_args: Vec::new(),
            stderr: Some(Arc::new(move |line: &str| kept.lock().unwrap().push(line.to_owned()))),
            ..harness.options()
        };
        let manager = AgentManager::start(options).unwrap();
        let mut session = manager.create_session(SessionOptions::default()).await.unwrap();
        assert_eq!(session.run("go").await.unwrap().text, "fine");
        session.close().await.unwrap();
        manager.close().await;
    });
    assert!(lines.lock().unwrap().iter().any(|line| line.contains("last words")));
}

#[test]
fn a_missing_binary_says_where_was_looked_and_what_to_do() {
    let harness = Harness::new([]);
    let options = AgentOptions { binary_path: Some("/nowhere/qwen".into()), ..harness.options() };
    let error = AgentManager::start(options).err().unwrap().to_string();
    assert!(
        ["/nowhere/qwen", "QWEN_BIN", "PATH", "binary_path"].iter().all(|word| error.contains(word)),
        "{error}"
    );
    wait(async {
        let manager = harness.start();
        let cwd = Some("/nowhere/at/all".to_owned());
        let refused = manager.create_session(SessionOptions { cwd, ..SessionOptions::default() }).await;
        assert!(matches!(refused, Err(AgentError::Refused { code, .. }) if code == "no_working_directory"));
        manager.close().await;
    });
}

#[test]
fn a_prompt_that_the_worker_refuses_is_an_error_and_not_a_hang() {
    let harness = Harness::new([Reply::text("ok")]);
    wait(async {
        let (manager, mut session) = harness.open(SessionOptions::default()).await;
        let refused = session.run("").await;
        assert!(
            matches!(&refused, Err(AgentError::Refused { code, .. }) if code == "empty_prompt"),
            "{refused:?}"
        );
        let schema = json!({"type": 7});
        let options = TurnOptions { output_schema: Some(schema), ..TurnOptions::default() };
        assert!(matches!(session.run_with("go", options).await, Err(AgentError::Refused { .. })));
        assert_eq!(session.run("go").await.unwrap().text, "ok");
        manager.close().await;
    });
}

#[test]
fn close_at_every_point_of_a_turn_returns_within_its_time_out() {
    for point in ["created", "sent", "streaming", "asked", "done"] {
        let replies = match point {
            "asked" => vec![Reply::call("c1", "run_shell_command", TOUCH)],
            "done" => vec![Reply::text("Done.")],
            _ => vec![held()],
        };
        let harness = Harness::new(replies);
        let mut options = harness.options();
        if point == "asked" {
            options.control.on_permission = Some(Arc::new(|_| Box::pin(std::future::pending())));
        }
        wait(async {
            let manager = AgentManager::start(options).unwrap();
            let mut session = manager.create_session(SessionOptions::default()).await.unwrap();
            match point {
                "sent" => drop(session.stream("go").unwrap()),
                "streaming" => {
                    let _stream = session.stream("go").unwrap();
                    harness.mock.reached("held");
                }
                "asked" => {
                    let mut stream = session.stream("go").unwrap();
                    while stream.next().await.unwrap().unwrap().kind() != MessageKind::ControlRequest {}
                }
                "done" => assert!(session.run("go").await.unwrap().ok()),
                _ => {}
            }
            session.close().await.unwrap();
            assert_eq!(manager.status().await.unwrap()["sessions"], 0, "{point}");
            manager.close().await;
        });
        mock_model::process::wait_marked_gone(&harness.mark());
    }
}

#[test]
fn prompts_and_system_prompts_of_any_size_go_through_standard_input() {
    let harness = Harness::new([Reply::new([sse::text("Read"), gate("held")])]);
    let (prompt, system) = ("x".repeat(300_000), "y".repeat(300_000));
    wait(async {
        let (manager, mut session) = harness.open(SessionOptions::default().system_prompt(&system)).await;
        let stream = session.stream(&prompt).unwrap();
        harness.mock.reached("held");
        for pid in mock_model::process::marked(&harness.mark()) {
            let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            assert!(!line.windows(9).any(|part| part == b"xxxxxxxxx" || part == b"yyyyyyyyy"));
        }
        drop(stream);
        manager.close().await;
    });
    let said = harness.said(0);
    assert!(said.iter().any(|text| text.contains(&prompt)) && said.iter().any(|text| text.contains(&system)));
}
