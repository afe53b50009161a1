//! Sessions over several workers: resume, fork, rewind, stores, pools.

use std::collections::HashMap;
use std::io;
use std::sync::{Arc, Mutex};

use mock_model::Reply;
use qwen_kernel::{AgentError, AgentManager, AgentOptions, SessionOptions, SessionStore};
use serde_json::json;

use crate::harness::{Harness, wait};

#[test]
fn a_session_is_resumed_and_forked_by_its_id() {
    let harness =
        Harness::new([Reply::text("one"), Reply::text("two"), Reply::text("three"), Reply::text("four")]);
    wait(async {
        let (manager, mut session) = harness.open(SessionOptions::default()).await;
        session.run("first").await.unwrap();
        let id = session.id().to_owned();
        session.close().await.unwrap();
        let mut resumed = manager.resume_session(&id, SessionOptions::default()).await.unwrap();
        assert_eq!(resumed.run("second").await.unwrap().text, "two");
        resumed.close().await.unwrap();
        let mut fork = manager.fork_session(&id, SessionOptions::default()).await.unwrap();
        assert_ne!(fork.id(), id);
        assert_eq!(fork.run("third").await.unwrap().text, "three");
        fork.close().await.unwrap();
        let mut original = manager.resume_session(&id, SessionOptions::default()).await.unwrap();
        assert_eq!(original.run("fourth").await.unwrap().text, "four");
        manager.close().await;
    });
    let said = harness.said(2);
    let has = |said: &[String], word: &str| said.iter().any(|text| text.contains(word));
    assert!(["first", "one", "second", "two", "third"].iter().all(|word| has(&said, word)), "{said:?}");
    assert!(!has(&harness.said(3), "third"), "a fork leaves the original as it is");
}

#[test]
fn an_id_that_nobody_knows_is_an_error_and_not_an_empty_session() {
    let harness = Harness::new([]);
    wait(async {
        let manager = harness.start();
        for id in ["no-such-session", "not/an/id"] {
            let resumed = manager.resume_session(id, SessionOptions::default()).await.err().unwrap();
            let forked = manager.fork_session(id, SessionOptions::default()).await.err().unwrap();
            for error in [resumed, forked] {
                let known = matches!(&error, AgentError::Refused { code, message } if code == "unknown_session" && message.contains(id));
                assert!(known, "{error}");
            }
        }
        manager.close().await;
    });
}

#[test]
fn rewind_puts_files_back_to_where_they_were_before_a_prompt() {
    let edit = json!({"file_path": "a.txt", "old_string": "before", "new_string": "after"}).to_string();
    let harness = Harness::new([
        Reply::call("c1", "read_file", r#"{"file_path":"a.txt"}"#),
        Reply::call("c2", "edit", &edit),
        Reply::text("Edited."),
    ]);
    let file = harness.home.path().join("a.txt");
    std::fs::write(&file, "before").unwrap();
    wait(async {
        let (manager, mut session) = harness.open(SessionOptions::default().permission_mode("yolo")).await;
        let stream = session.stream("edit").unwrap();
        let prompt = stream.prompt_id().unwrap().to_owned();
        assert!(stream.result().await.unwrap().ok());
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "after");
        assert_eq!(session.rewind_files(&prompt, true).await.unwrap().len(), 1);
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "after");
        session.rewind_files(&prompt, false).await.unwrap();
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "before");
        manager.close().await;
    });
}

#[derive(Default)]
struct MemoryStore(Mutex<HashMap<String, Vec<u8>>>);

impl SessionStore for MemoryStore {
    fn load(&self, session_id: &str) -> io::Result<Option<Vec<u8>>> {
        Ok(self.0.lock().unwrap().get(session_id).cloned())
    }

    fn append(&self, session_id: &str, lines: &[u8]) -> io::Result<()> {
        self.0.lock().unwrap().entry(session_id.to_owned()).or_default().extend_from_slice(lines);
        Ok(())
    }
}

#[test]
fn a_store_of_the_host_gets_every_acknowledged_line_and_brings_a_session_back() {
    let store = Arc::new(MemoryStore::default());
    let text = |id: &str| String::from_utf8(store.load(id).unwrap().unwrap()).unwrap();
    let first = Harness::new([Reply::text("Noted.")]);
    let id = wait(async {
        let options = AgentOptions { session_store: Some(store.clone()), ..first.options() };
        let manager = AgentManager::start(options).unwrap();
        let mut session = manager.create_session(SessionOptions::default()).await.unwrap();
        session.run("My name is Ada.").await.unwrap();
        let id = session.id().to_owned();
        assert!(
            text(&id).contains("Ada") && text(&id).ends_with('\n'),
            "stored before the result was delivered"
        );
        session.close().await.unwrap();
        manager.close().await;
        id
    });
    let kept = text(&id);
    // Another machine: only the store has the session.
    let second = Harness::new([Reply::text("Ada."), Reply::text("Forked.")]);
    wait(async {
        let options = AgentOptions { session_store: Some(store.clone()), ..second.options() };
        let manager = AgentManager::start(options).unwrap();
        let mut session = manager.resume_session(&id, SessionOptions::default()).await.unwrap();
        session.run("Who am I?").await.unwrap();
        session.close().await.unwrap();
        let unknown = manager.resume_session("unknown", SessionOptions::default()).await;
        assert!(matches!(unknown, Err(AgentError::Refused { .. })));
        manager.close().await;
    });
    assert!(second.said(0).iter().any(|text| text.contains("Ada")));
    assert!(text(&id).starts_with(&kept) && text(&id).contains("Who am I?"));
}

#[test]
fn twenty_sessions_share_a_pool_of_four() {
    let harness = Harness::new((0..20).map(|_| Reply::text("ok")));
    let mut options = harness.options();
    options.worker_pool.max_workers = 4;
    wait(run_sessions(options, 20));
}

#[test]
fn a_hundred_sessions_run_at_once_in_one_event_loop() {
    let harness = Harness::new((0..100).map(|_| Reply::text("ok")));
    let mut options = harness.options();
    options.worker_pool.max_workers = 100;
    wait(run_sessions(options, 100));
}

async fn run_sessions(options: AgentOptions, count: usize) {
    let manager = Arc::new(AgentManager::start(options).unwrap());
    let runs: Vec<_> = (0..count)
        .map(|_| {
            let manager = manager.clone();
            tokio::spawn(async move {
                let mut session = manager.create_session(SessionOptions::default()).await.unwrap();
                let result = session.run("go").await.unwrap();
                session.close().await.unwrap();
                result
            })
        })
        .collect();
    for run in runs {
        let result = run.await.unwrap();
        assert_eq!(result.text, "ok", "{:?}", result.error);
    }
    assert_eq!(manager.status().await.unwrap()["sessions"], 0);
}
