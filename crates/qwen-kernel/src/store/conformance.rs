//! Tests that every store must pass, on this machine or on others. Each expects sessions that do not exist.
#![expect(clippy::unwrap_used, reason = "a check fails by a panic")]

use qwen_events::SessionId;

use super::{Appended, AsyncEvents, AsyncSessionLog, Read};
use crate::ipc::CommitReason;

/// A page that holds everything.
const ALL: usize = usize::MAX;

fn id(text: &str) -> SessionId {
    SessionId::parse(text).unwrap()
}

fn text_of(read: Read) -> String {
    match read {
        Read::Lines { lines, .. } => String::from_utf8(lines).unwrap(),
        other => unreachable!("{other:?}"),
    }
}

fn start() -> CommitReason {
    CommitReason::Start { prompt_id: "p".to_owned() }
}

fn effect() -> CommitReason {
    CommitReason::Effect { tool: "edit".to_owned(), call: "c".to_owned() }
}

/// Checks a store of numbered lines.
pub mod events {
    use super::{ALL, Appended, AsyncEvents, Read, id, text_of};

    /// Lines are numbered from one.
    pub async fn check_lines_are_numbered_from_one(store: &dyn AsyncEvents) {
        let s = id("s");
        let taken = store.take(&s).await.unwrap();
        assert_eq!((taken.epoch, taken.last, taken.open), (1, 0, None));
        assert_eq!(store.append(&s, 1, 1, b"{\"a\":1}\n{\"a\":2}\n", Some("p")).await, Appended::Ok);
        assert_eq!(store.append(&s, 1, 3, b"{\"a\":3}\n", None).await, Appended::Ok);
        assert_eq!(store.last(&s).await.unwrap(), 3);
        assert_eq!(text_of(store.read(&s, 0, ALL).await), "{\"a\":1}\n{\"a\":2}\n{\"a\":3}\n");
        assert_eq!(text_of(store.read(&s, 2, ALL).await), "{\"a\":3}\n");
        assert_eq!(text_of(store.read(&s, 3, ALL).await), "");
        assert_eq!(store.read(&s, 4, ALL).await, Read::Future { last: 3 });
        assert_eq!(store.read(&id("other"), 1, ALL).await, Read::Future { last: 0 });
    }

    /// A repeated append is stored once.
    pub async fn check_a_repeated_append_is_stored_once(store: &dyn AsyncEvents) {
        let s = id("s");
        store.take(&s).await.unwrap();
        for _ in 0..3 {
            assert_eq!(store.append(&s, 1, 1, b"{}\n", None).await, Appended::Ok);
        }
        assert_eq!(store.last(&s).await.unwrap(), 1);
    }

    /// The next owner learns of an open turn.
    pub async fn check_the_next_owner_learns_of_an_open_turn(store: &dyn AsyncEvents) {
        let s = id("s");
        store.take(&s).await.unwrap();
        for _ in 0..2 {
            assert_eq!(store.append(&s, 1, 1, b"", Some("p")).await, Appended::Ok);
        }
        let taken = store.take(&s).await.unwrap();
        assert_eq!((taken.last, taken.open.as_deref()), (0, Some("p")));
        assert_eq!(store.append(&s, 2, 1, b"{}\n", None).await, Appended::Ok);
        assert_eq!(store.append(&s, 2, 1, b"", Some("p")).await, Appended::Ok, "late");
        assert_eq!(store.append(&s, 2, 2, b"", Some("q")).await, Appended::Ok);
        let taken = store.take(&s).await.unwrap();
        assert_eq!((taken.last, taken.open.as_deref()), (1, Some("q")));
        assert_eq!(text_of(store.read(&s, 0, ALL).await), "{}\n");
    }

    /// A former owner is refused.
    pub async fn check_a_former_owner_is_refused(store: &dyn AsyncEvents) {
        let s = id("s");
        store.take(&s).await.unwrap();
        assert_eq!(store.append(&s, 1, 1, b"{}\n", Some("p")).await, Appended::Ok);
        let taken = store.take(&s).await.unwrap();
        assert_eq!((taken.epoch, taken.last, taken.open.as_deref()), (2, 1, Some("p")));
        assert_eq!(store.append(&s, 1, 2, b"{}\n", None).await, Appended::Fenced);
        assert_eq!(store.append(&s, 2, 3, b"{}\n", None).await, Appended::Fenced, "a gap");
        assert_eq!(store.append(&s, 2, 2, b"{}\n", None).await, Appended::Ok);
    }

    /// What is deleted begins anew.
    pub async fn check_what_is_deleted_begins_anew(store: &dyn AsyncEvents) {
        let s = id("s");
        store.take(&s).await.unwrap();
        store.append(&s, 1, 1, b"{}\n", None).await;
        store.delete(&s).await.unwrap();
        assert_eq!(store.last(&s).await.unwrap(), 0);
        store.delete(&s).await.unwrap();
    }

    /// Reads from every number on, in pages of several sizes, and compares with one read.
    pub async fn check_pages_joined_are_one_read(store: &dyn AsyncEvents) {
        let s = id("pages");
        store.take(&s).await.unwrap();
        let mut next = 1;
        for batch in 0..12_u64 {
            let text: String = (next..=next + batch % 5)
                .map(|n| format!("{{\"n\":{n},\"x\":\"{}\"}}\n", "x".repeat(50)))
                .collect();
            assert_eq!(store.append(&s, 1, next, text.as_bytes(), None).await, Appended::Ok);
            next += batch % 5 + 1;
        }
        let whole = text_of(store.read(&s, 0, ALL).await);
        for after in 0..next {
            let rest: String =
                whole.lines().skip(usize::try_from(after).unwrap()).map(|l| format!("{l}\n")).collect();
            for limit in [1, 500] {
                let (mut at, mut joined) = (after, String::new());
                while at < next - 1 {
                    let page = text_of(store.read(&s, at, limit).await);
                    let count = page.lines().count() as u64;
                    assert!(count > 0 && (page.len() <= limit || count == 1), "{at} {limit}: {count}");
                    at += count;
                    joined.push_str(&page);
                }
                assert_eq!(joined, rest, "{after} {limit}");
            }
        }
    }

    /// Stores a line that is longer than a message of a bus.
    pub async fn check_a_long_line_is_one_line(store: &dyn AsyncEvents, bytes: usize) {
        let s = id("long");
        store.take(&s).await.unwrap();
        let long = format!("{{\"x\":\"{}\"}}\n", "y".repeat(bytes));
        assert_eq!(store.append(&s, 1, 1, b"{\"a\":1}\n", None).await, Appended::Ok);
        assert_eq!(store.append(&s, 1, 2, long.as_bytes(), None).await, Appended::Ok);
        assert_eq!(store.append(&s, 1, 3, b"{\"a\":3}\n", None).await, Appended::Ok);
        assert_eq!(store.last(&s).await.unwrap(), 3);
        assert!(text_of(store.read(&s, 1, 10).await) == long, "the line came back changed");
        assert_eq!(text_of(store.read(&s, 2, ALL).await), "{\"a\":3}\n");
        assert_eq!(store.take(&s).await.unwrap().last, 3);
    }

    /// Runs every check on sessions that it deletes again.
    pub async fn check_all(store: &dyn AsyncEvents) {
        check_lines_are_numbered_from_one(store).await;
        store.delete(&id("s")).await.unwrap();
        check_a_repeated_append_is_stored_once(store).await;
        store.delete(&id("s")).await.unwrap();
        check_the_next_owner_learns_of_an_open_turn(store).await;
        store.delete(&id("s")).await.unwrap();
        check_a_former_owner_is_refused(store).await;
        store.delete(&id("s")).await.unwrap();
        check_what_is_deleted_begins_anew(store).await;
        store.delete(&id("s")).await.unwrap();
        check_pages_joined_are_one_read(store).await;
    }
}

/// Checks a store of session logs.
pub mod session_log {
    use super::{Appended, AsyncSessionLog, effect, id, start};

    /// What is appended is read.
    pub async fn check_what_is_appended_is_read(log: &dyn AsyncSessionLog) {
        let s = id("s");
        let owner = log.take(&s).await.unwrap();
        assert_eq!((owner.epoch, owner.bytes, owner.last), (1, 0, None));
        assert_eq!(log.append(&s, 1, 0, b"{\"a\":1}\n", &start()).await, Appended::Ok);
        assert_eq!(log.append(&s, 1, 8, b"{\"b\":2}\n{\"c\":3}\n", &effect()).await, Appended::Ok);
        assert_eq!(log.read(&s, 0).await.unwrap(), b"{\"a\":1}\n{\"b\":2}\n{\"c\":3}\n");
        assert_eq!(log.read(&s, 8).await.unwrap(), b"{\"b\":2}\n{\"c\":3}\n");
        assert_eq!(log.read(&s, 24).await.unwrap(), b"");
        assert!(log.read(&id("other"), 0).await.is_err());
    }

    /// A repeated append is stored once.
    pub async fn check_a_repeated_append_is_stored_once(log: &dyn AsyncSessionLog) {
        let s = id("s");
        log.take(&s).await.unwrap();
        for _ in 0..3 {
            assert_eq!(log.append(&s, 1, 0, b"{}\n", &start()).await, Appended::Ok);
        }
        assert_eq!(log.append(&s, 1, 3, b"{}\n", &effect()).await, Appended::Ok);
        assert_eq!(log.append(&s, 1, 0, b"{}\n", &start()).await, Appended::Ok, "late");
        assert_eq!(log.read(&s, 0).await.unwrap(), b"{}\n{}\n");
        assert_eq!(log.take(&s).await.unwrap().last, Some(effect()), "a late repeat changes nothing");
    }

    /// A former owner is refused.
    pub async fn check_a_former_owner_is_refused(log: &dyn AsyncSessionLog) {
        let s = id("s");
        log.take(&s).await.unwrap();
        assert_eq!(log.append(&s, 1, 0, b"{}\n", &start()).await, Appended::Ok);
        let owner = log.take(&s).await.unwrap();
        assert_eq!((owner.epoch, owner.bytes, owner.last), (2, 3, Some(start())));
        assert_eq!(log.append(&s, 1, 3, b"{}\n", &effect()).await, Appended::Fenced, "a stale owner");
        assert_eq!(log.append(&s, 1, 0, b"{}\n", &start()).await, Appended::Fenced, "even where it repeats");
        assert_eq!(log.append(&s, 2, 4, b"{}\n", &effect()).await, Appended::Fenced, "a gap");
        assert_eq!(log.append(&s, 2, 0, b"[]\n", &effect()).await, Appended::Fenced, "other bytes");
        assert_eq!(
            log.append(&s, 2, 0, b"{}\n{}\n", &effect()).await,
            Appended::Fenced,
            "half of it is there"
        );
        assert_eq!(log.append(&s, 2, 3, b"{}", &effect()).await, Appended::Fenced, "no whole line");
        assert_eq!(log.append(&s, 2, 3, b"{}\n", &effect()).await, Appended::Ok);
    }

    /// Who releases appends no more.
    pub async fn check_who_releases_appends_no_more(log: &dyn AsyncSessionLog) {
        let s = id("s");
        log.take(&s).await.unwrap();
        assert_eq!(log.release(&s, 2).await, Appended::Fenced, "only the owner");
        for _ in 0..2 {
            assert_eq!(log.release(&s, 1).await, Appended::Ok);
        }
        assert_eq!(log.append(&s, 1, 0, b"{}\n", &start()).await, Appended::Fenced);
        assert_eq!(log.take(&s).await.unwrap().epoch, 2);
        assert_eq!(log.append(&s, 2, 0, b"{}\n", &start()).await, Appended::Ok);
    }

    /// Logs are listed and deleted.
    pub async fn check_logs_are_listed_and_deleted(log: &dyn AsyncSessionLog) {
        for name in ["b", "a"] {
            log.take(&id(name)).await.unwrap();
        }
        assert_eq!(log.list().await.unwrap(), [id("a"), id("b")]);
        log.delete(&id("a")).await.unwrap();
        log.delete(&id("a")).await.unwrap();
        assert_eq!(log.list().await.unwrap(), [id("b")]);
        assert_eq!(log.take(&id("a")).await.unwrap().epoch, 1, "it begins anew");
    }

    /// Runs every check on sessions that it deletes again.
    pub async fn check_all(log: &dyn AsyncSessionLog) {
        check_logs_are_listed_and_deleted(log).await;
        for name in ["s", "a", "b"] {
            log.delete(&id(name)).await.unwrap();
        }
        check_what_is_appended_is_read(log).await;
        for name in ["s", "a", "b"] {
            log.delete(&id(name)).await.unwrap();
        }
        check_a_repeated_append_is_stored_once(log).await;
        for name in ["s", "a", "b"] {
            log.delete(&id(name)).await.unwrap();
        }
        check_a_former_owner_is_refused(log).await;
        for name in ["s", "a", "b"] {
            log.delete(&id(name)).await.unwrap();
        }
        check_who_releases_appends_no_more(log).await;
        for name in ["s", "a", "b"] {
            log.delete(&id(name)).await.unwrap();
        }
    }
}
