//! What cannot work on a bus is refused with one error that names what to do.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};

use mock_model::bus::BusServers;
use mock_model::process::Ended;
use mock_model::{MockModel, Reply};
use serde_json::{Value, json};

use crate::harness::*;

fn refused(ended: &Ended, code: &str, hint: &str) {
    assert_ne!(ended.code, Some(0), "{}", ended.stderr);
    assert!(ended.stderr.contains(hint), "{hint}: {}", ended.stderr);
    assert_eq!(ended.stderr.lines().count(), 1, "one error: {}", ended.stderr);
    if let Some(line) = ended.json_lines().first() {
        assert!(line.to_string().contains(code), "{code}: {line}");
    }
}

fn status_of(url: &str) -> Ended {
    qwen().args(["bus", "status", "--bus", url]).run()
}

#[test]
fn addresses_that_cannot_be_meant_are_refused_before_anything_is_sent() {
    refused(&qwen().args(["bus", "status"]).run(), "no_bus", "use --bus URL");
    refused(&status_of("nats://10.1.2.3:4222"), "insecure_bus", "Use tls://");
    refused(&status_of("nats://user:secret-value@127.0.0.1:1"), "bus_credentials", "--bus-credentials");
    let shown = status_of("nats://user:secret-value@127.0.0.1:1").stderr;
    assert!(!shown.contains("secret-value"), "{shown}");
    refused(&status_of("http://127.0.0.1:1"), "invalid_bus_url", "nats://HOST:PORT");
    refused(&status_of("nats://127.0.0.1:1"), "bus_unavailable", "No bus listens");
    let missing = ["bus", "status", "--bus", "nats://127.0.0.1:1", "--bus-credentials", "/nowhere"];
    refused(&qwen().args(missing).run(), "bus_credentials", "/nowhere");
}

#[test]
fn a_server_of_another_protocol_is_named_as_such() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("nats://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for socket in listener.incoming() {
            // The client may be gone already.
            let _ = socket.unwrap().write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n");
        }
    });
    refused(&status_of(&url), "not_a_bus", "not a NATS server");
}

#[test]
fn an_old_server_is_refused_by_its_version() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for socket in listener.incoming() {
            let mut socket = socket.unwrap();
            let info = format!(
                "INFO {{\"server_id\":\"A\",\"version\":\"2.9.10\",\"host\":\"127.0.0.1\",\"port\":{port},\"headers\":true,\"max_payload\":1048576,\"proto\":1}}\r\nPONG\r\n"
            );
            // The client may be gone already.
            let _ = socket.write_all(info.as_bytes());
            std::mem::forget(socket);
        }
    });
    refused(&status_of(&format!("nats://127.0.0.1:{port}")), "bus_version", "nats-server 2.9.10");
}

#[test]
#[ignore = "needs nats-server: make test-fleet"]
fn a_bus_without_jetstream_and_one_without_streams_are_refused_by_name() {
    let servers = BusServers::without_jetstream();
    refused(&status_of(&servers.url()), "bus_without_jetstream", "JetStream");
    let servers = BusServers::start(1);
    refused(&status_of(&servers.url()), "bus_not_initialized", "qwen bus init");
    let hub = qwen().args(["hub", "--local", "--bus", &servers.url(), "--", "--model", "demo"]).run();
    refused(&hub, "bus_not_initialized", "qwen bus init");
    assert_eq!(hub.json_lines().len(), 1, "{}", hub.stdout);
}

#[test]
#[ignore = "needs nats-server: make test-fleet"]
fn streams_are_created_once_and_other_settings_are_refused() {
    let servers = BusServers::start(1);
    let url = servers.url();
    let init = |further: &[&str]| qwen().args(["bus", "init", "--json", "--bus", &url]).args(further).run();
    let created = |ended: &Ended| -> Value { ended.json_lines().first().unwrap()["created"].clone() };
    assert_eq!(created(&init(&[])), 7);
    assert_eq!(created(&init(&[])), 0);
    refused(&init(&["--events-retention", "60"]), "foreign_stream", "max_age");
    refused(&init(&["--shards", "2"]), "foreign_stream", "cannot change");
    refused(&init(&["--shards", "0"]), "invalid_bus_options", "shards");
    let checked = qwen().args(["bus", "check", "--json", "--bus", &url]).run();
    let report = checked.json_lines().remove(0);
    assert_eq!((checked.code, &report["healthy"]), (Some(1), &Value::Bool(false)), "one replica: {report}");
}

#[test]
#[ignore = "needs nats-server: make test-fleet"]
fn wrong_credentials_are_refused_and_right_ones_are_read_from_a_file() {
    let account = "accounts { A { jetstream: enabled, users: [{user: a, password: right-secret}] } }";
    let servers = BusServers::start_with(1, account);
    let program = qwen();
    let file = program.home_path().join("bus.credentials");
    let program = program.args(["bus", "init", "--bus", &servers.url(), "--bus-credentials"]).arg(&file);
    std::fs::write(&file, "a:wrong-secret\n").unwrap();
    let ended = program.run();
    refused(&ended, "bus_credentials", "refuses these credentials");
    assert!(!ended.stderr.contains("wrong-secret"), "{}", ended.stderr);
    std::fs::write(&file, "a:right-secret\n").unwrap();
    let ended = program.run();
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
}

#[test]
fn values_of_the_configuration_that_cannot_work_are_refused_with_their_name() {
    let status =
        |further: &[&str]| qwen().args(["bus", "status", "--bus", "nats://127.0.0.1:1"]).args(further).run();
    refused(&status(&["--bus-prefix", "a.b"]), "invalid_bus_name", "The prefix \"a.b\"");
    let dead = status(&["--bus-heartbeat-interval", "2s", "--bus-dead-after", "3s"]);
    refused(&dead, "invalid_bus_options", "dead_after");
    refused(&status(&["--bus-tls-ca", "/nowhere"]), "bus_tls", "/nowhere");
    let variable =
        qwen().args(["bus", "status", "--bus", "nats://127.0.0.1:1"]).env("QWEN_BUS_DEAD_AFTER", "soon");
    refused(&variable.run(), "bad_flag", "QWEN_BUS_DEAD_AFTER: 'soon'");
    let config = qwen();
    let file = config.home_path().join("hub.yaml");
    std::fs::write(&file, "bus: {url: 'nats://127.0.0.1:1', commit_timeout: soon}").unwrap();
    refused(
        &config.args(["bus", "status", "--config"]).arg(&file).run(),
        "invalid_hub_config",
        "bus.commit_timeout",
    );
}

#[test]
#[ignore = "needs nats-server: make test-fleet"]
fn another_number_of_shards_than_the_bus_has_is_refused_and_prefixes_separate_buses() {
    let servers = BusServers::start(1);
    let url = servers.url();
    let init = |further: &[&str]| qwen().args(["bus", "init", "--bus", &url]).args(further).run();
    assert_eq!(init(&["--shards", "2"]).code, Some(0));
    let hub = qwen().args(["hub", "--bus", &url]).env("QWEN_BUS_SHARDS", "3").run();
    refused(&hub, "foreign_stream", "has 2 shards");
    assert_eq!(init(&["--bus-prefix", "team", "--shards", "1"]).code, Some(0));
    let status = |prefix: &[&str]| {
        let ended = qwen().args(["bus", "status", "--json", "--bus", &url]).args(prefix).run();
        ended.json_lines().remove(0)["streams"].as_array().unwrap().len()
    };
    assert_eq!((status(&[]), status(&["--bus-prefix", "team"])), (5, 3));
}

#[test]
#[ignore = "needs nats-server: make test-fleet"]
fn a_user_without_permissions_is_told_which_are_missing() {
    let servers = BusServers::start_with(
        1,
        "accounts { A { jetstream: enabled, users: [{user: a, password: right-secret, permissions: {publish: [\"other\"], subscribe: [\"_INBOX.>\"]}}] } }",
    );
    let program = qwen();
    let file = program.home_path().join("bus.credentials");
    std::fs::write(&file, "a:right-secret\n").unwrap();
    let ended =
        program.args(["bus", "status", "--bus", &servers.url(), "--bus-credentials"]).arg(&file).run();
    refused(&ended, "bus_permissions", "Permissions Violation");
}

#[test]
#[ignore = "needs nats-server: make test-fleet"]
fn malformed_messages_on_our_subjects_change_nothing() {
    let servers = bus(1);
    let mock = MockModel::with([Reply::text("One."), Reply::text("Two.")]);
    let args = ["node", "--bus", &servers.url(), "--name", "a", "--min-workers", "0"];
    let program = qwen().args(args).args(["--", "--model", "mock"]).with_model(&mock);
    let node = program.start();
    node.wait_for_stderr("is on the bus");
    let mut run = qwen().args(["hub", "--bus", &servers.url()]).start();
    run.write_line(named("s", "p1", "go"));
    run.json_until(ends("p1"));
    run.write_line(request("st", "hub/status", json!({})));
    let status = run.json_until(|line| line["request_id"] == "st").pop().unwrap();
    let incarnation = status["response"]["result"]["machines"][0]["incarnation"].as_str().unwrap().to_owned();
    let address = servers.url();
    let mut raw = TcpStream::connect(address.strip_prefix("nats://").unwrap()).unwrap();
    let mut messages = String::from("CONNECT {\"verbose\":false,\"headers\":true}\r\n");
    let input = format!("q1.node.a.{incarnation}.input");
    for subject in ["q1.heartbeat.a", "q1.heartbeat.b", &input, "q1.live.0.s", "q1.live.1.s", "q1.live.2.s"] {
        for payload in ["", "{", "null", "[1]", "{\"name\":3}", "\u{0}\u{1}"] {
            messages.push_str(&format!("PUB {subject} {}\r\n{payload}\r\n", payload.len()));
        }
        for headers in
            ["Q-Hub: x\r\nQ-Line: many", "Q-Hub: x\r\nQ-Line: 1\r\nQ-Part: 9/1", "Q-Epoch: -1\r\nQ-Seq: 0"]
        {
            let head = format!("NATS/1.0\r\n{headers}\r\n\r\n");
            messages.push_str(&format!("HPUB {subject} {} {}\r\n{head}{{\r\n", head.len(), head.len() + 1));
        }
    }
    messages.push_str("PING\r\n");
    raw.write_all(messages.as_bytes()).unwrap();
    let mut answer = Vec::new();
    while !answer.windows(4).any(|part| part == b"PONG") {
        let mut piece = [0; 4096];
        let read = raw.read(&mut piece).unwrap();
        assert_ne!(read, 0, "{}", String::from_utf8_lossy(&answer));
        answer.extend_from_slice(&piece[..read]);
    }
    run.write_line(named("s", "p2", "go on"));
    let lines = run.json_until(ends("p2"));
    assert_eq!(ends_of(&lines), [("p2", "done")]);
    for after in [json!(-1), json!("x"), json!(1e30)] {
        run.write_line(request("at", "attach", json!({"session_id": "s", "after": after})));
        let refused = run.json_until(|line| line["request_id"] == "at").pop().unwrap();
        assert_eq!(refused["response"]["error"]["code"], "invalid_after", "{refused}");
    }
    run.write_line(request("fu", "attach", json!({"session_id": "s", "after": 1000})));
    let refused = run.json_until(|line| line["request_id"] == "fu").pop().unwrap();
    assert_eq!(refused["response"]["error"]["code"], "after_in_future", "{refused}");
    assert_eq!(run.finish().code, Some(0));
}
