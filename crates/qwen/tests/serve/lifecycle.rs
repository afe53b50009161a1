//! Start, drain, restart, kill.

use mock_model::process::Signal;
use mock_model::{MockModel, Reply, gate, sse};
use serde_json::json;

use crate::harness::*;

#[test]
fn sigterm_lets_the_running_turn_finish_and_the_session_continues_after_a_restart() {
    let mock = MockModel::with([
        Reply::new([
            sse::role(),
            sse::text("Half, "),
            gate("half"),
            sse::text("whole."),
            sse::finish("stop"),
            sse::done(),
        ]),
        Reply::text("I remember."),
    ]);
    let program = program(&mock);
    let server = start(&program);
    let id = server.session();
    let (_, after) = server.prompt(&id, "the word is plum");
    let mut events = server.follow(&id, after);
    mock.reached("half");
    server.run.signal(Signal::TERM);
    while server.get("/api/capabilities").json()["draining"] != true {}
    let refused = server.post(&format!("/api/sessions/{id}/prompts"), json!({"prompt": "x"}));
    assert_eq!((refused.status, refused.code().as_str()), (503, "draining"));
    mock.open("half");
    let turn = events.until(is_end);
    assert!(text(&turn).ends_with("whole."), "{turn:#?}");
    let last = turn.last().unwrap().number();
    assert_eq!(server.run.wait().code, Some(143));

    let server = start(&program);
    assert_eq!(server.get(&format!("/api/sessions/{id}")).json()["last_event_id"], last);
    assert_eq!(server.follow(&id, after).until(|event| event.number() == last), turn);
    let next = server.turn(&id, "which word?");
    assert_eq!((next[0].number(), text(&next).as_str()), (last + 1, "I remember."));
    assert!(mock.requests().last().unwrap().body.to_string().contains("plum"));
}

#[test]
fn a_turn_that_kill_9_cut_ends_as_interrupted_at_the_next_start_and_its_approvals_are_gone() {
    let mock = MockModel::with([asks("c1"), Reply::text("After.")]);
    let program = program(&mock);
    let server = start(&program);
    let id = server.session();
    let (prompt, after) = server.prompt(&id, "go");
    let (queued, _) = server.prompt(&id, "later");
    let before = server.follow(&id, after).until(is_question);
    server.run.signal(Signal::KILL);
    server.run.wait();

    let server = start(&program);
    let mut events = server.follow(&id, after);
    let seen = events.until(is_end);
    assert_eq!(seen[..before.len()], before);
    let end = seen.last().unwrap().json();
    assert_eq!((end["prompt_id"].as_str(), status(&seen).as_str()), (Some(prompt.as_str()), "interrupted"));
    let lost = events.until(|event| event.json()["value"]["kind"] == "prompt_lost");
    assert_eq!(lost.last().unwrap().json()["value"]["prompt_id"], queued.as_str());
    assert_eq!(server.get("/api/approvals").json(), json!({"approvals": []}));
    assert_eq!(text(&server.turn(&id, "again")), "After.");
}

#[test]
fn a_second_server_of_the_same_directory_is_refused() {
    let mock = MockModel::start();
    let program = program(&mock);
    let _server = start(&program);
    let second = program.start().wait();
    assert_eq!(second.code, Some(2));
    assert!(second.stderr.contains("Another server uses"), "{}", second.stderr);
}

#[test]
fn the_token_is_generated_kept_and_replaced_on_request() {
    let mock = MockModel::start();
    let program = program(&mock).env_remove("QWEN_SERVER_TOKEN");
    let read =
        || std::fs::read_to_string(program.qwen_home_path().join("serve/token")).unwrap().trim().to_owned();
    let first = start(&program);
    let token = read();
    assert!(first.run.stderr().contains(&format!("/#token={token}")));
    first.run.signal(Signal::TERM);
    first.run.wait();
    let mut second = start(&program);
    assert_eq!(read(), token);
    assert!(!second.run.stderr().contains(&token), "a log file needs no token");
    second.token = token.clone();
    assert_eq!(second.get("/api/sessions").status, 200);
    second.run.signal(Signal::TERM);
    second.run.wait();
    let mut third = start(&program.clone().arg("--new-token"));
    third.token = token;
    assert_eq!(third.get("/api/sessions").status, 401);
}

#[test]
fn flags_that_would_open_the_server_too_far_are_refused() {
    let mock = MockModel::start();
    let cases: [(&[&str], &str); 8] = [
        (&["--listen", "0.0.0.0:0"], "--allow-remote"),
        (&["--listen", "[::]:0"], "--allow-remote"),
        (&["--listen", "0.0.0.0:0", "--allow-remote"], "--tls-cert"),
        (&["--allow-origin", "*"], "'*' is refused"),
        (&["--allow-origin", "https://*.example.com"], "not an origin"),
        (&["--allow-origin", "null"], "not an origin"),
        (&["--listen", "nowhere"], "not an address"),
        (&["--workspace", "/does/not/exist"], "no such directory"),
    ];
    for (flags, reason) in cases {
        let program =
            mock_model::process::qwen(env!("CARGO_BIN_EXE_qwen")).arg("serve").args(flags).with_model(&mock);
        let ended = program.run();
        assert_eq!(ended.code, Some(2), "{flags:?} {}", ended.stderr);
        assert!(ended.stderr.contains(reason), "{flags:?} {}", ended.stderr);
    }
    let short = program(&mock).env("QWEN_SERVER_TOKEN", "short").run();
    assert!(short.code == Some(2) && short.stderr.contains("at least 32"), "{}", short.stderr);
}

#[test]
fn a_unix_socket_serves_its_owner_only() {
    use std::io::Write;
    use std::os::unix::fs::PermissionsExt;
    let mock = MockModel::start();
    let program =
        mock_model::process::qwen(env!("CARGO_BIN_EXE_qwen")).arg("serve").env("QWEN_SERVER_TOKEN", TOKEN);
    let program = program.with_model(&mock);
    let path = program.home_path().join("s.sock");
    let run = program.args(["--listen", &format!("unix:{}", path.display())]).start();
    run.wait_for_stderr("serving on unix:");
    assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    for (token, status) in [(TOKEN, 200), ("wrong", 401)] {
        let mut stream = std::os::unix::net::UnixStream::connect(&path).unwrap();
        write!(stream, "GET /api/sessions HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nAuthorization: Bearer {token}\r\n\r\n").unwrap();
        assert_eq!(read_answer(&mut std::io::BufReader::new(stream)).status, status);
    }
}
