//! Tests of the stores on this machine. What every store must pass is in `store/conformance.rs`.

use qwen_events::SessionId;

use crate::store::Appended;

use super::{Events, FileEvents, MemoryEvents, Read};

/// A page that holds everything.
const ALL: usize = usize::MAX;

fn id(text: &str) -> SessionId {
    SessionId::parse(text).unwrap()
}

fn lines(read: Read) -> String {
    match read {
        Read::Lines { lines, .. } => String::from_utf8(lines).unwrap(),
        other => panic!("{other:?}"),
    }
}

/// Runs `check` on every implementation.
fn each(check: impl Fn(&dyn Events)) {
    check(&MemoryEvents::new(200));
    let directory = tempfile::tempdir().unwrap();
    check(&FileEvents::open(directory.path(), 1000).unwrap());
}

#[test]
fn a_follower_gets_every_line_once() {
    each(|store| {
        let s = id("s");
        store.take(&s).unwrap();
        let mut follower = store.follow(&s, 0);
        assert_eq!(lines(follower.read_on(ALL)), "");
        store.append(&s, 1, 1, b"{\"a\":1}\n{\"a\":2}\n", None);
        assert_eq!(lines(follower.read_on(ALL)), "{\"a\":1}\n{\"a\":2}\n");
        assert_eq!(lines(follower.read_on(ALL)), "");
        store.append(&s, 1, 3, b"{\"a\":3}\n", None);
        assert_eq!(lines(follower.read_on(ALL)), "{\"a\":3}\n");
    });
}

#[test]
fn the_store_is_bounded_and_names_the_oldest_line_that_it_has() {
    each(|store| {
        let s = id("s");
        store.take(&s).unwrap();
        for n in 1..=500_u64 {
            assert_eq!(store.append(&s, 1, n, format!("{{\"n\":{n}}}\n").as_bytes(), None), Appended::Ok);
        }
        let Read::TooOld { oldest } = store.read(&s, 0, ALL) else { panic!("bounded") };
        assert!(oldest > 100, "{oldest}");
        assert!(lines(store.read(&s, oldest - 1, ALL)).starts_with(&format!("{{\"n\":{oldest}}}\n")));
        assert!(lines(store.read(&s, 499, ALL)).ends_with("{\"n\":500}\n"));
        assert_eq!(store.take(&s).unwrap().last, 500);
    });
}

#[test]
fn a_successor_reads_what_a_dead_hub_stored_and_cuts_a_torn_record() {
    let directory = tempfile::tempdir().unwrap();
    let s = id("s");
    let first = FileEvents::open(directory.path(), 1 << 20).unwrap();
    first.take(&s).unwrap();
    first.append(&s, 1, 1, b"{\"a\":1}\n", Some("p 1"));
    let path = directory.path().join("s.events");
    let mut text = std::fs::read(&path).unwrap();
    text.extend_from_slice(b"@ 1 2 1 90 null\n{\"torn");
    std::fs::write(&path, text).unwrap();
    let second = FileEvents::open(directory.path(), 1 << 20).unwrap();
    let taken = second.take(&s).unwrap();
    assert_eq!((taken.epoch, taken.last, taken.open.as_deref()), (2, 1, Some("p 1")));
    assert_eq!(first.append(&s, 1, 2, b"{}\n", None), Appended::Fenced, "the first owner is stale");
    assert_eq!(second.append(&s, 2, 2, b"{\"a\":2}\n", None), Appended::Ok);
    assert_eq!(lines(second.read(&s, 0, ALL)), "{\"a\":1}\n{\"a\":2}\n");
}

#[test]
fn pages_joined_are_what_one_read_returns_from_every_line_on() {
    let directory = tempfile::tempdir().unwrap();
    let stores: [&dyn Events; 2] =
        [&MemoryEvents::new(1 << 20), &FileEvents::open(directory.path(), 1 << 20).unwrap()];
    for store in stores {
        let s = id("s");
        store.take(&s).unwrap();
        let mut next = 1;
        for batch in 0..40_u64 {
            let text: String = (next..=next + batch % 7)
                .map(|n| format!("{{\"n\":{n},\"x\":\"{}\"}}\n", "x".repeat(50)))
                .collect();
            assert_eq!(store.append(&s, 1, next, text.as_bytes(), None), Appended::Ok);
            next += batch % 7 + 1;
        }
        for (after, limit) in (0..next).flat_map(|after| [1, 100, 500, 5000].map(|limit| (after, limit))) {
            let (mut at, mut joined) = (after, String::new());
            while at < next - 1 {
                let page = lines(store.read(&s, at, limit));
                let count = page.lines().count() as u64;
                assert!(count > 0 && (page.len() <= limit || count == 1), "{at} {limit}: {count}");
                at += count;
                joined.push_str(&page);
            }
            assert_eq!(joined, lines(store.read(&s, after, ALL)), "{after} {limit}");
        }
    }
}

#[tokio::test]
async fn stores_on_this_machine_pass_the_suite_of_all_stores() {
    use crate::store::conformance::events;
    let directory = tempfile::tempdir().unwrap();
    let files = FileEvents::open(directory.path(), 8 << 20).unwrap();
    let memory = MemoryEvents::new(8 << 20);
    for store in [&files as &dyn crate::store::AsyncEvents, &memory] {
        events::check_all(store).await;
        events::check_a_long_line_is_one_line(store, 2 << 20).await;
    }
}
