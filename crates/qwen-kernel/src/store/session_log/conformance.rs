//! Tests of the session logs on this machine. What every log must pass is in `store/conformance.rs`.

use qwen_events::SessionId;

use super::{FileLog, MemoryLog, SessionLog};
use crate::ipc::CommitReason;
use crate::store::Appended;

fn id(text: &str) -> SessionId {
    SessionId::parse(text).unwrap()
}

fn start() -> CommitReason {
    CommitReason::Start { prompt_id: "p".to_owned() }
}

fn effect() -> CommitReason {
    CommitReason::Effect { tool: "edit".to_owned(), call: "c".to_owned() }
}

#[test]
fn bytes_that_a_worker_has_written_itself_are_confirmed() {
    let directory = tempfile::tempdir().unwrap();
    let log = FileLog::open(directory.path()).unwrap();
    let s = id("s");
    log.take(&s).unwrap();
    std::fs::write(directory.path().join("s.jsonl"), b"{\"a\":1}\n").unwrap();
    assert_eq!(log.append(&s, 1, 0, b"{\"a\":1}\n", &start()), Appended::Ok);
    assert_eq!(log.read(&s, 0).unwrap(), b"{\"a\":1}\n");
    let successor = FileLog::open(directory.path()).unwrap();
    assert_eq!(successor.take(&s).unwrap().last, Some(start()));
    assert_eq!(log.append(&s, 1, 8, b"{}\n", &effect()), Appended::Fenced, "the first owner is stale");
}

#[tokio::test]
async fn logs_on_this_machine_pass_the_suite_of_all_logs() {
    use crate::store::conformance::session_log;
    session_log::check_all(&MemoryLog::default()).await;
    let directory = tempfile::tempdir().unwrap();
    session_log::check_all(&FileLog::open(directory.path()).unwrap()).await;
}
