//! The stores on real bus servers. They need `tests/fleet/install`; `make test-fleet` runs them.

use std::rc::Rc;
use std::time::Duration;

use mock_model::bus::BusServers;
use qwen_events::SessionId;
use qwen_kernel::ipc::CommitReason;
use qwen_kernel::store::conformance;
use qwen_kernel::store::{Appended, Claimed, Read, SharedSessions};
use tokio::task::LocalSet;

use super::*;

fn identity(name: &str) -> BusIdentity {
    BusIdentity { name: name.to_owned(), incarnation: "1".to_owned(), workspace: None }
}

fn id(text: &str) -> SessionId {
    SessionId::parse(text).unwrap()
}

async fn connect(servers: &BusServers, name: &str) -> Rc<Bus> {
    let options =
        BusOptions { url: servers.url(), commit_timeout: Duration::from_secs(30), ..BusOptions::default() };
    Rc::new(Bus::connect(&options, identity(name)).await.unwrap())
}

/// Creates the streams; a cluster needs a moment before it can.
async fn initialized(servers: &BusServers, replicas: u32) -> Rc<Bus> {
    let bus = connect(servers, "init").await;
    let options = StreamOptions { shards: 3, replicas, events_retention: Duration::from_secs(3600) };
    let deadline = tokio::time::Instant::now() + mock_model::WAIT_LIMIT;
    loop {
        match init(&bus, &options).await {
            Ok(_) => return bus,
            Err(error) => assert!(tokio::time::Instant::now() < deadline, "{error}"),
        }
    }
}

async fn process(servers: &BusServers, name: &str) -> BusSessions {
    BusSessions::open(connect(servers, name).await).await.unwrap()
}

async fn check_conformance(count: usize) {
    let servers = BusServers::start(count);
    initialized(&servers, u32::try_from(count).unwrap()).await;
    let sessions = process(&servers, "a").await;
    conformance::events::check_all(sessions.events()).await;
    conformance::events::check_a_long_line_is_one_line(sessions.events(), 2 << 20).await;
    conformance::session_log::check_all(sessions.log()).await;
}

#[tokio::test]
#[ignore = "needs nats-server: make test-fleet"]
async fn one_server_passes_the_suite_of_all_stores() {
    LocalSet::new().run_until(check_conformance(1)).await;
}

#[tokio::test]
#[ignore = "needs nats-server: make test-fleet"]
async fn three_servers_pass_the_suite_of_all_stores() {
    LocalSet::new().run_until(check_conformance(3)).await;
}

#[tokio::test]
#[ignore = "needs nats-server: make test-fleet"]
async fn of_fifty_claims_at_the_same_time_one_succeeds() {
    LocalSet::new()
        .run_until(async {
            let servers = BusServers::start(1);
            initialized(&servers, 1).await;
            let mut claims = Vec::new();
            for n in 0..50 {
                let sessions = process(&servers, &format!("n{n}")).await;
                claims.push(tokio::task::spawn_local(async move {
                    let claimed = sessions.claim(&id("s"), false).await.unwrap();
                    // The winner lives until the others have asked it.
                    (matches!(claimed, Claimed::Ours { .. }), sessions)
                }));
            }
            let mut results = Vec::new();
            for claim in claims {
                results.push(claim.await.unwrap());
            }
            assert_eq!(results.iter().filter(|(is_won, _)| *is_won).count(), 1);
        })
        .await;
}

#[tokio::test]
#[ignore = "needs nats-server: make test-fleet"]
async fn a_successor_has_the_bytes_and_the_former_owner_is_fenced() {
    LocalSet::new()
        .run_until(async {
            let servers = BusServers::start(1);
            initialized(&servers, 1).await;
            let first = process(&servers, "first").await;
            let s = id("a.b");
            let Claimed::Ours { position, log, taken } = first.claim(&s, false).await.unwrap() else {
                panic!("a new session is free")
            };
            assert_eq!((position.bytes, log, taken.last), (0, None, 0));
            let start = CommitReason::Start { prompt_id: "p".to_owned() };
            assert_eq!(first.log().append(&s, position.epoch, 0, b"{\"x\":1}\n", &start).await, Appended::Ok);
            assert_eq!(first.events().append(&s, taken.epoch, 1, b"{}\n", Some("p")).await, Appended::Ok);
            let second = process(&servers, "second").await;
            let refused = second.claim(&s, false).await.unwrap();
            assert!(matches!(refused, Claimed::InUse { owner } if owner == "first/1"));
            let Claimed::Ours { position: next, log, taken: lines } = second.claim(&s, true).await.unwrap()
            else {
                panic!("by force")
            };
            assert_eq!(log.as_deref(), Some(&b"{\"x\":1}\n"[..]));
            assert_eq!((lines.last, lines.open.as_deref()), (1, Some("p")));
            let effect = CommitReason::Effect { tool: "edit".to_owned(), call: "c".to_owned() };
            let stale = first.log().append(&s, position.epoch, 8, b"{}\n", &effect).await;
            assert_eq!(stale, Appended::Fenced);
            assert_eq!(first.events().append(&s, taken.epoch, 2, b"{}\n", None).await, Appended::Fenced);
            assert_eq!(second.log().release(&s, next.epoch).await, Appended::Ok);
            assert_eq!(second.reclaim_log(&s).await.unwrap().map(|position| position.bytes), Some(8));
            drop(second);
            assert!(first.reclaim_log(&s).await.unwrap().is_none(), "another process has written since");
        })
        .await;
}

#[tokio::test]
#[ignore = "needs nats-server: make test-fleet"]
async fn a_long_line_of_which_parts_are_missing_does_not_count() {
    LocalSet::new()
        .run_until(async {
            let servers = BusServers::start(1);
            let bus = initialized(&servers, 1).await;
            let first = process(&servers, "first").await;
            let s = id("s");
            let Claimed::Ours { taken, .. } = first.claim(&s, false).await.unwrap() else { panic!("free") };
            assert_eq!(first.events().append(&s, taken.epoch, 1, b"{}\n", Some("p")).await, Appended::Ok);
            let owner = "first/1".to_owned();
            let part = crate::headers::EventHeaders {
                epoch: taken.epoch,
                owner,
                first: 2,
                count: 1,
                part: Some((1, 2)),
                open: Some("p".to_owned()),
            };
            let shard = shard_of(&s, 3);
            let subject = crate::subjects::Names::default().event_subject(shard, &crate::subjects::token(&s));
            bus.client.publish_with_headers(subject, part.to_map(), "{\"half".into()).await.unwrap();
            bus.client.flush().await.unwrap();
            let second = process(&servers, "second").await;
            let Claimed::Ours { taken, .. } = second.claim(&s, true).await.unwrap() else { panic!("force") };
            assert_eq!((taken.last, taken.open.as_deref()), (1, Some("p")));
            assert_eq!(second.events().append(&s, taken.epoch, 2, b"{\"n\":2}\n", None).await, Appended::Ok);
            let Read::Lines { lines, last, .. } = second.events().read(&s, 0, usize::MAX).await else {
                panic!("lines")
            };
            assert_eq!((lines.as_slice(), last), (&b"{}\n{\"n\":2}\n"[..], 2));
        })
        .await;
}

#[tokio::test]
#[ignore = "needs nats-server: make test-fleet"]
async fn appends_wait_while_the_leader_is_replaced_and_none_is_lost() {
    LocalSet::new()
        .run_until(async {
            let mut servers = BusServers::start(3);
            let bus = initialized(&servers, 3).await;
            let sessions = process(&servers, "a").await;
            let s = id("s");
            let Claimed::Ours { taken, .. } = sessions.claim(&s, false).await.unwrap() else {
                panic!("free")
            };
            let stream = crate::subjects::Names::default().event_stream(shard_of(&s, 3));
            for n in 1..=20_u64 {
                if n == 10 {
                    let reports = report(&bus).await.unwrap();
                    let leader = reports.iter().find(|report| report.name == stream).unwrap().leader.clone();
                    servers.kill(servers.index_of(&leader.unwrap()));
                }
                let line = format!("{{\"n\":{n}}}\n");
                let outcome = sessions.events().append(&s, taken.epoch, n, line.as_bytes(), None).await;
                assert_eq!(outcome, Appended::Ok, "{n}");
            }
            let Read::Lines { lines, .. } = sessions.events().read(&s, 0, usize::MAX).await else {
                panic!("lines")
            };
            let expected: String = (1..=20).map(|n| format!("{{\"n\":{n}}}\n")).collect();
            assert_eq!(String::from_utf8(lines).unwrap(), expected);
        })
        .await;
}

#[test]
fn server_versions_without_the_fixes_are_refused() {
    for version in ["2.12.12", "2.12.13", "2.14.3", "2.15.0", "2.15.1", "2.16.0-RC.1"] {
        assert!(is_supported(version), "{version}");
    }
    for version in ["2.9.10", "2.10.29", "2.12.11", "2.13.9", "2.14.2", "1.4.1", "3.0.0", "", "x"] {
        assert!(!is_supported(version), "{version}");
    }
}

#[tokio::test]
#[ignore = "needs nats-server: make test-fleet"]
async fn a_turn_whose_start_only_the_log_has_is_open_for_the_next_owner_until_it_has_an_end() {
    LocalSet::new()
        .run_until(async {
            let servers = BusServers::start(1);
            initialized(&servers, 1).await;
            let s = id("s");
            let first = process(&servers, "first").await;
            let Claimed::Ours { position, .. } = first.claim(&s, false).await.unwrap() else {
                panic!("free")
            };
            let start = CommitReason::Start { prompt_id: "p".to_owned() };
            assert_eq!(first.log().append(&s, position.epoch, 0, b"{}\n", &start).await, Appended::Ok);
            let second = process(&servers, "second").await;
            let Claimed::Ours { taken, .. } = second.claim(&s, true).await.unwrap() else { panic!("force") };
            assert_eq!(taken.open.as_deref(), Some("p"));
            let end = b"{\"prompt_id\":\"p\",\"metadata\":{\"turn\":{\"status\":\"interrupted\"}}}\n";
            assert_eq!(second.events().append(&s, taken.epoch, 1, end, None).await, Appended::Ok);
            let third = process(&servers, "third").await;
            let Claimed::Ours { taken, .. } = third.claim(&s, true).await.unwrap() else { panic!("force") };
            assert_eq!((taken.last, taken.open), (1, None));
        })
        .await;
}
