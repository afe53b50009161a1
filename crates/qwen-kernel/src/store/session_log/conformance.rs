//! Tests that every session log must pass.

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

/// Runs `check` on every implementation.
fn each(check: impl Fn(&dyn SessionLog)) {
    check(&MemoryLog::default());
    let directory = tempfile::tempdir().unwrap();
    check(&FileLog::open(directory.path()).unwrap());
}

#[test]
fn what_is_appended_is_read_from_any_byte() {
    each(|log| {
        let s = id("s");
        let owner = log.take(&s).unwrap();
        assert_eq!((owner.epoch, owner.bytes, owner.last), (1, 0, None));
        assert_eq!(log.append(&s, 1, 0, b"{\"a\":1}\n", &start()), Appended::Ok);
        assert_eq!(log.append(&s, 1, 8, b"{\"b\":2}\n{\"c\":3}\n", &effect()), Appended::Ok);
        assert_eq!(log.read(&s, 0).unwrap(), b"{\"a\":1}\n{\"b\":2}\n{\"c\":3}\n");
        assert_eq!(log.read(&s, 8).unwrap(), b"{\"b\":2}\n{\"c\":3}\n");
        assert_eq!(log.read(&s, 24).unwrap(), b"");
        assert!(log.read(&id("other"), 0).is_err());
    });
}

#[test]
fn an_append_that_is_repeated_is_stored_once() {
    each(|log| {
        let s = id("s");
        log.take(&s).unwrap();
        for _ in 0..3 {
            assert_eq!(log.append(&s, 1, 0, b"{}\n", &start()), Appended::Ok);
        }
        assert_eq!(log.append(&s, 1, 3, b"{}\n", &effect()), Appended::Ok);
        assert_eq!(log.append(&s, 1, 0, b"{}\n", &start()), Appended::Ok, "late");
        assert_eq!(log.read(&s, 0).unwrap(), b"{}\n{}\n");
        assert_eq!(log.take(&s).unwrap().last, Some(effect()), "a late repeat changes nothing");
    });
}

#[test]
fn a_former_owner_is_refused_and_so_are_gaps_other_bytes_and_parts_of_lines() {
    each(|log| {
        let s = id("s");
        log.take(&s).unwrap();
        assert_eq!(log.append(&s, 1, 0, b"{}\n", &start()), Appended::Ok);
        let owner = log.take(&s).unwrap();
        assert_eq!((owner.epoch, owner.bytes, owner.last), (2, 3, Some(start())));
        assert_eq!(log.append(&s, 1, 3, b"{}\n", &effect()), Appended::Fenced, "a stale owner");
        assert_eq!(log.append(&s, 1, 0, b"{}\n", &start()), Appended::Fenced, "even where it repeats");
        assert_eq!(log.append(&s, 2, 4, b"{}\n", &effect()), Appended::Fenced, "a gap");
        assert_eq!(log.append(&s, 2, 0, b"[]\n", &effect()), Appended::Fenced, "other bytes");
        assert_eq!(log.append(&s, 2, 0, b"{}\n{}\n", &effect()), Appended::Fenced, "half of it is there");
        assert_eq!(log.append(&s, 2, 3, b"{}", &effect()), Appended::Fenced, "no whole line");
        assert_eq!(log.append(&s, 2, 3, b"{}\n", &effect()), Appended::Ok);
    });
}

#[test]
fn who_releases_a_log_appends_no_more_and_the_next_owner_can() {
    each(|log| {
        let s = id("s");
        log.take(&s).unwrap();
        assert_eq!(log.release(&s, 2), Appended::Fenced, "only the owner");
        for _ in 0..2 {
            assert_eq!(log.release(&s, 1), Appended::Ok);
        }
        assert_eq!(log.append(&s, 1, 0, b"{}\n", &start()), Appended::Fenced);
        assert_eq!(log.take(&s).unwrap().epoch, 2);
        assert_eq!(log.append(&s, 2, 0, b"{}\n", &start()), Appended::Ok);
    });
}

#[test]
fn logs_are_listed_and_deleted() {
    each(|log| {
        for name in ["b", "a"] {
            log.take(&id(name)).unwrap();
        }
        assert_eq!(log.list().unwrap(), [id("a"), id("b")]);
        log.delete(&id("a")).unwrap();
        log.delete(&id("a")).unwrap();
        assert_eq!(log.list().unwrap(), [id("b")]);
        assert_eq!(log.take(&id("a")).unwrap().epoch, 1, "it begins anew");
    });
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
