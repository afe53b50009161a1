//! Bounds: sessions, prompts, connections, sizes.

use std::io::{BufReader, Read, Write};

use mock_model::{MockModel, Reply, gate, sse};
use serde_json::json;

use crate::harness::*;

#[test]
fn a_session_queues_fifty_prompts_and_refuses_the_next() {
    let mock = MockModel::with([Reply::new([sse::role(), gate("never"), sse::done()])]);
    let server = serve(&mock);
    let id = server.session();
    for at in 0..51 {
        server.prompt(&id, &format!("prompt {at}"));
    }
    let refused = server.post(&format!("/api/sessions/{id}/prompts"), json!({"prompt": "one more"}));
    assert_eq!((refused.status, refused.code().as_str()), (429, "queue_full"));
    assert!(refused.header("retry-after").is_some());
}

#[test]
fn a_session_at_rest_makes_room_and_busy_ones_do_not() {
    let held = || Reply::new([sse::role(), gate("never"), sse::done()]);
    let mock = MockModel::with([Reply::text("One."), held(), held()]);
    let server = start(&program(&mock).args(["--max-sessions", "2"]));
    let (a, b) = (server.session(), server.session());
    let first = server.turn(&a, "x");
    server.prompt(&b, "busy");
    let c = server.session();
    server.prompt(&c, "busy too");
    let refused = server.post("/api/sessions", json!({}));
    assert_eq!((refused.status, refused.code().as_str()), (503, "too_many_sessions"));
    assert_eq!(refused.header("retry-after"), Some("5"));
    // The session at rest was closed, and is still there.
    assert_eq!(server.follow(&a, 0).until(is_end), first);
    server.post(&format!("/api/sessions/{b}/cancel"), json!({}));
    server.follow(&b, 0).until(is_end);
    assert_eq!(server.post("/api/sessions", json!({})).status, 201);
}

#[test]
fn a_body_beyond_the_limit_is_refused() {
    let mock = MockModel::start();
    let server = serve(&mock);
    let mut stream = server.connect();
    let size = 65 * 1024 * 1024;
    write!(
        stream,
        "POST /api/sessions HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {TOKEN}\r\nContent-Type: application/json\r\nContent-Length: {size}\r\nConnection: close\r\n\r\n",
        server.host()
    )
    .unwrap();
    let piece = vec![b' '; 1024 * 1024];
    // The server answers before it has read everything.
    for _ in 0..65 {
        if stream.write_all(&piece).is_err() {
            break;
        }
    }
    let answer = read_answer(&mut BufReader::new(stream));
    assert!(answer.status == 413 || answer.status == 0, "{answer:?}");
    assert_eq!(server.get("/api/sessions").status, 200);
}

#[test]
fn a_head_that_is_too_large_is_refused() {
    let mock = MockModel::start();
    let server = serve(&mock);
    let host = server.host();
    let answer =
        server.raw(&format!("GET / HTTP/1.1\r\nHost: {host}\r\nX-A: {}\r\n\r\n", "a".repeat(2_000_000)));
    // The connection may be reset before the answer is read.
    assert!(matches!(answer.status, 0 | 431), "{answer:?}");
    assert_eq!(server.get("/health").status, 200);
}

#[test]
fn connections_beyond_the_limit_are_refused_and_others_are_served_again_later() {
    let mock = MockModel::start();
    let server = serve(&mock);
    let mut held = Vec::new();
    let mut refused = 0;
    for _ in 0..1030 {
        let Ok(mut stream) = std::net::TcpStream::connect(("127.0.0.1", server.port)) else { break };
        stream.set_read_timeout(Some(std::time::Duration::from_millis(1))).unwrap();
        let mut byte = [0; 12];
        if held.len() >= 1024 {
            stream.set_read_timeout(Some(mock_model::WAIT_LIMIT)).unwrap();
            if stream.read(&mut byte).is_ok_and(|count| byte[..count].starts_with(b"HTTP/1.1 503")) {
                refused += 1;
            }
        }
        held.push(stream);
    }
    assert!(refused > 0, "{}", held.len());
    drop(held);
    let deadline = std::time::Instant::now() + mock_model::WAIT_LIMIT;
    while server.get("/health").status != 200 {
        assert!(std::time::Instant::now() < deadline);
    }
}

#[test]
fn a_reader_that_stopped_delays_no_one() {
    let pieces = (0..400).map(|_| sse::text(&"x".repeat(8_000)));
    let steps = [sse::role()].into_iter().chain(pieces).chain([sse::finish("stop"), sse::done()]);
    let mock = MockModel::with([Reply::new(steps), Reply::text("Other.")]);
    let server = serve(&mock);
    let id = server.session();
    let _stopped = server.follow(&id, 0);
    let whole = server.turn(&id, "write a lot");
    assert_eq!(text(&whole).len(), 400 * 8_000);
    assert_eq!(text(&server.turn(&server.session(), "hi")), "Other.");
}
