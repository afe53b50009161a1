//! Collectors of every manner: the work never notices.

use mock_model::process::Ended;
use mock_model::{MockModel, Reply};
use serde_json::{Value, json};

use crate::collector::{Collector, Manner};
use crate::harness::{asked, ends_turn, prompt, qwen, worker};

fn notes(ended: &Ended) -> Vec<&str> {
    ended.stderr.lines().filter(|line| line.contains("telemetry")).collect()
}

#[test]
fn a_dead_collector_costs_nothing_but_a_note() {
    let mock = MockModel::with([Reply::text("Hello.")]);
    let dead = {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        format!("http://{}", listener.local_addr().unwrap())
    };
    let program = qwen().with_model(&mock).args(["-p", "x", "--model", "mock", "--telemetry"]);
    let ended = program.args(["--telemetry-otlp-endpoint", &dead]).run();
    assert_eq!((ended.code, ended.stdout.trim()), (Some(0), "Hello."), "{ended:?}");
    assert_eq!(ended.stderr.lines().count(), 1, "{ended:?}");
    assert!(notes(&ended)[0].contains("2 spans are lost"), "{ended:?}");
}

#[test]
fn a_hostile_collector_costs_nothing_but_a_note() {
    let refusal = r#"{"partialSuccess":{"rejectedSpans":"2","errorMessage":"no\nthanks"}}"#;
    for (manner, noted) in [
        (Manner::Says("500 Internal Server Error", "no".into()), Some("HTTP 500")),
        (Manner::Says("413 Payload Too Large", String::new()), Some("HTTP 413")),
        (Manner::Says("503 Service Unavailable\r\nRetry-After: 3600", String::new()), Some("HTTP 503")),
        (Manner::Says("302 Found\r\nLocation: http://127.0.0.1:1/", String::new()), Some("HTTP 302")),
        (Manner::Says("200 OK", refusal.into()), Some("refused 2 spans: nothanks")),
        (Manner::Says("200 OK", "garbage".into()), None),
        (Manner::Says("200 OK", "{".repeat(200_000)), None),
        (Manner::Hangs, Some("2 spans could not be exported")),
        (Manner::Babbles, Some("spans are lost")),
        (Manner::Floods, None),
    ] {
        let (mock, collector) = (MockModel::with([Reply::text("Hello.")]), Collector::of(manner));
        let ended = asked(&mock, &collector).run();
        assert_eq!((ended.code, ended.stdout.trim()), (Some(0), "Hello."), "{ended:?}");
        assert_eq!(ended.stderr.lines().count(), usize::from(noted.is_some()), "{noted:?}: {ended:?}");
        if let Some(noted) = noted {
            assert!(notes(&ended)[0].contains(noted), "{noted}: {ended:?}");
        }
    }
}

#[test]
fn a_collector_that_hangs_holds_up_no_turn() {
    let collector = Collector::of(Manner::Hangs);
    let mock = MockModel::with((0..20).map(|number| Reply::text(&format!("Answer {number}."))));
    let mut run = worker(&mock, &collector).start();
    for number in 0..20 {
        run.write_line(prompt("Go on"));
        let lines = run.json_until(ends_turn);
        let end: &Value = lines.last().unwrap();
        assert_eq!(end["metadata"]["turn"]["status"], "done");
        assert_eq!(end["choices"][0]["message"]["content"], format!("Answer {number}."));
    }
    let ended = run.finish();
    assert_eq!((ended.code, notes(&ended).len()), (Some(0), 1), "{ended:?}");
}

#[test]
fn a_worker_sends_while_it_lives() {
    let (mock, collector) = (MockModel::with([Reply::text("Hi.")]), Collector::new());
    let mut run = worker(&mock, &collector).start();
    run.write_line(prompt("Hello"));
    run.json_until(ends_turn);
    collector.wait_for(1);
    assert_eq!(collector.spans().names(), ["chat mock", "invoke_agent react"]);
    run.finish();
    assert_eq!(collector.exports().len(), 1, "nothing is sent twice");
}

#[test]
fn spans_beyond_the_queue_are_dropped_counted_and_reported() {
    // A message with more calls than may wait, none of which needs anybody.
    let calls = (0..3000).map(|number| {
        mock_model::ReplyEvent::call(
            &format!("c{number}"),
            "list_directory",
            &json!({"path": "."}).to_string(),
        )
        .step()
    });
    let mock = MockModel::with([Reply::new(calls), Reply::text("Done.")]);
    let collector = Collector::of(Manner::Hangs);
    let ended = asked(&mock, &collector).run();
    assert_eq!((ended.code, ended.stdout.trim()), (Some(0), "Done."), "{}", ended.stderr);
    assert_eq!(notes(&ended).len(), 1, "{}", ended.stderr);
    // The calls, two of the model and the turn.
    assert!(ended.stderr.contains("3003 spans"), "{}", ended.stderr);
}

#[test]
fn a_file_that_cannot_be_written_costs_nothing_but_a_note() {
    for path in ["/nowhere/at/all.jsonl", "/dev/stdout", "/dev/full"] {
        let mock = MockModel::with([Reply::text("Hello.")]);
        let program = qwen().with_model(&mock).args(["-p", "x", "--model", "mock", "--telemetry"]);
        let ended = program.args(["--telemetry-outfile", path]).run();
        assert_eq!((ended.code, ended.stdout.trim()), (Some(0), "Hello."), "{ended:?}");
        assert_eq!((ended.stderr.lines().count(), notes(&ended).len()), (1, 1), "{ended:?}");
    }
}
