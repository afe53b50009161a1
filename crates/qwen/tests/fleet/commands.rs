//! Commands and servers that use a bus: `qwen sessions --bus`, `qwen serve --bus`, `qwen hub --status --bus`.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};

use mock_model::bus::BusServers;
use mock_model::process::{Ended, Program, Run, Signal};
use mock_model::{MockModel, Reply, WAIT_LIMIT};
use serde_json::{Value, json};

use crate::harness::*;

fn sessions(servers: &BusServers, args: &[&str]) -> Ended {
    qwen().arg("sessions").args(args).args(["--bus", &servers.url()]).run()
}

fn node(servers: &BusServers, mock: &MockModel) -> Program {
    let args = ["node", "--bus", &servers.url(), "--name", "a", "--min-workers", "0"];
    qwen().args(args).args(["--", "--model", "mock", "--yolo"]).with_model(mock)
}

#[track_caller]
fn started(program: &Program) -> Run {
    let run = program.start();
    run.wait_for_stderr("is on the bus");
    run
}

#[test]
#[ignore = "needs nats-server: make test-fleet"]
fn the_sessions_of_a_bus_are_listed_shown_exported_replayed_and_deleted() {
    let servers = bus(1);
    let mock = MockModel::with([Reply::text("The answer.")]);
    let program = node(&servers, &mock);
    let node = started(&program);
    let mut run = qwen().args(["hub", "--bus", &servers.url()]).start();
    run.write_line(named("a.session", "p1", "the question"));
    run.json_until(ends("p1"));
    let listed = sessions(&servers, &["list", "--json"]);
    let list: Value = serde_json::from_str(&listed.stdout).unwrap();
    assert_eq!(list[0]["session_id"], "a.session", "{list}");
    let shown = sessions(&servers, &["show", "a.ses"]);
    assert!(shown.stdout.contains("the question") && shown.stdout.contains("The answer."), "{shown:?}");
    for command in ["export", "replay"] {
        let written = sessions(&servers, &[command, "a.session", "--dialect", "claude"]);
        assert!(written.stdout.contains("\"type\":\"result\""), "{command}: {written:?}");
    }
    let refused = sessions(&servers, &["delete", "a.session"]);
    assert_eq!(refused.stderr.lines().count(), 1, "{}", refused.stderr);
    assert!(refused.stderr.contains("is using it"), "{}", refused.stderr);
    assert_eq!(run.finish().code, Some(0));
    let hub = qwen().args(["hub", "--status", "--bus", &servers.url()]).run();
    for part in ["node a: live", "session a.session: owned by a/", "stream QTURN: leader"] {
        assert!(hub.stdout.contains(part), "{part}: {}{}", hub.stdout, hub.stderr);
    }
    node.signal(Signal::TERM);
    node.wait();
    let deleted = sessions(&servers, &["delete", "a.session"]);
    assert_eq!(deleted.code, Some(0), "{}", deleted.stderr);
    assert_eq!(sessions(&servers, &["list", "--json"]).stdout.trim(), "[]");
    for (args, code) in [
        (["show", "a.session"], "no session 'a.session' on the bus"),
        (["delete", "odd id"], "'odd id'"),
        (["checkpoints", "s"], "`list`, `show`"),
    ] {
        let refused = sessions(&servers, &args);
        assert_ne!(refused.code, Some(0));
        assert!(refused.stderr.contains(code), "{code}: {}", refused.stderr);
    }
}

/// A server on a free port.
struct Server {
    run: Run,
    port: u16,
    token: String,
}

impl Server {
    #[track_caller]
    fn start(program: &Program, port: u16) -> Self {
        let run = program.start();
        run.wait_for_stderr("serving on");
        let token = std::fs::read_to_string(program.home_path().join(".qwen/serve/token")).unwrap();
        let server = Self { run, port, token: token.trim().to_owned() };
        let deadline = std::time::Instant::now() + WAIT_LIMIT;
        while server.ask("GET", "/api/nodes", "").is_none_or(|state| state["nodes"] == json!([])) {
            assert!(std::time::Instant::now() < deadline, "no node was heard");
        }
        server
    }

    /// Sends a request and returns the body of the answer.
    fn ask(&self, method: &str, path: &str, body: &str) -> Option<Value> {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).ok()?;
        let head = format!(
            "{method} {path} HTTP/1.1\r\nHost: 127.0.0.1:{}\r\nAuthorization: Bearer {}\r\nContent-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
            self.port,
            self.token,
            body.len()
        );
        stream.write_all(head.as_bytes()).ok()?;
        let mut text = String::new();
        stream.read_to_string(&mut text).ok()?;
        let (_, body) = text.split_once("\r\n\r\n")?;
        let body = &body[body.find('{')?..=body.rfind('}')?];
        serde_json::from_str(body).ok()
    }

    /// Waits until a session has no running prompt, and returns it.
    #[track_caller]
    fn settled(&self, session: &str) -> Value {
        let deadline = std::time::Instant::now() + WAIT_LIMIT;
        loop {
            let state = self.ask("GET", &format!("/api/sessions/{session}"), "").unwrap_or_default();
            if state["status"] == "idle" && state["last_event_id"].as_u64() > Some(1) {
                return state;
            }
            assert!(std::time::Instant::now() < deadline, "{state}");
        }
    }
}

fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

#[test]
#[ignore = "needs nats-server: make test-fleet"]
fn a_server_runs_sessions_on_nodes_and_a_restarted_one_continues_them() {
    let servers = bus(1);
    let mock = MockModel::with([Reply::text("One."), Reply::text("Two."), Reply::text("Three.")]);
    let program = node(&servers, &mock);
    let _node = started(&program);
    let port = free_port();
    let server = qwen().args(["serve", "--bus", &servers.url(), "--listen", &format!("127.0.0.1:{port}")]);
    let first = Server::start(&server, port);
    assert_eq!(first.ask("GET", "/api/nodes", "").unwrap()["nodes"][0]["name"], "a");
    let id = first.ask("POST", "/api/sessions", "{}").unwrap()["id"].as_str().unwrap().to_owned();
    let prompts = format!("/api/sessions/{id}/prompts");
    first.ask("POST", &prompts, r#"{"prompt":"go"}"#).unwrap();
    let seen = first.settled(&id)["last_event_id"].as_u64().unwrap();
    first.run.signal(Signal::KILL);
    drop(first);
    // Another hub uses the session meanwhile.
    let mut hub = qwen().args(["hub", "--bus", &servers.url()]).start();
    hub.write_line(named(&id, "other", "go on"));
    hub.json_until(ends("other"));
    assert_eq!(hub.finish().code, Some(0));
    let second = Server::start(&server, port);
    let accepted = second.ask("POST", &prompts, r#"{"prompt":"go on"}"#).unwrap();
    assert!(accepted["prompt_id"].is_string(), "{accepted}");
    let deadline = std::time::Instant::now() + WAIT_LIMIT;
    let snapshot = loop {
        second.settled(&id);
        let snapshot = second.ask("GET", &format!("/api/sessions/{id}/snapshot"), "").unwrap();
        if snapshot["messages"].as_array().is_some_and(|messages| messages.len() == 6) {
            break snapshot;
        }
        assert!(std::time::Instant::now() < deadline, "{snapshot}");
    };
    assert_eq!(snapshot["messages"][5]["content"], "Three.", "{snapshot}");
    assert!(snapshot["last_event_id"].as_u64().unwrap() > seen, "{snapshot}");
    second.ask("DELETE", &format!("/api/sessions/{id}"), "");
    assert_eq!(sessions(&servers, &["list", "--json"]).stdout.trim(), "[]");
    second.run.signal(Signal::TERM);
    assert_eq!(second.run.wait().code, Some(143));
}

#[test]
#[ignore = "needs nats-server: make test-fleet"]
fn a_server_with_workers_shares_its_sessions() {
    let servers = bus(1);
    let mock = MockModel::with([Reply::text("One."), Reply::text("Two.")]);
    let port = free_port();
    let listen = format!("127.0.0.1:{port}");
    let args = ["serve", "--bus", &servers.url(), "--local", "--listen", &listen, "--", "--model", "mock"];
    let server = qwen().args(args).with_model(&mock);
    let run = server.start();
    run.wait_for_stderr("serving on");
    let token = std::fs::read_to_string(server.home_path().join(".qwen/serve/token")).unwrap();
    let server = Server { run, port, token: token.trim().to_owned() };
    let id = server.ask("POST", "/api/sessions", "{}").unwrap()["id"].as_str().unwrap().to_owned();
    server.ask("POST", &format!("/api/sessions/{id}/prompts"), r#"{"prompt":"go"}"#).unwrap();
    server.settled(&id);
    let shown = sessions(&servers, &["show", &id]);
    assert!(shown.stdout.contains("One."), "{shown:?}");
    server.run.signal(Signal::TERM);
    assert_eq!(server.run.wait().code, Some(143));
}
