//! Several tenants on one bus: an account for each, from the hub to the node.

use std::path::Path;

use mock_model::bus::BusServers;
use mock_model::{MockModel, Reply, WAIT_LIMIT};
use serde_json::{Value, json};

use crate::harness::*;

/// Starts a server with an account for each of two tenants, and writes their credentials.
#[track_caller]
fn two_tenants(directory: &Path) -> BusServers {
    let account = |name: &str| {
        format!("{name} {{ jetstream: enabled, users: [{{user: {name}, password: password-of-{name}}}] }}")
    };
    let servers =
        BusServers::start_with(1, &format!("accounts {{ {}, {} }}", account("red"), account("blue")));
    for name in ["red", "blue"] {
        let file = directory.join(name);
        std::fs::write(&file, format!("{name}:password-of-{name}\n")).unwrap();
        let deadline = std::time::Instant::now() + WAIT_LIMIT;
        loop {
            let init =
                qwen().args(["bus", "init", "--bus", &servers.url(), "--bus-credentials"]).arg(&file).run();
            if init.code == Some(0) {
                break;
            }
            assert!(std::time::Instant::now() < deadline, "{}", init.stderr);
        }
    }
    servers
}

fn tenants(directory: &Path) -> String {
    let account = |name: &str| json!({"credentials": directory.join(name)});
    let config = json!({"tenants": {"isolation": "none", "red": account("red"), "blue": account("blue")}});
    let path = directory.join("hub.json");
    std::fs::write(&path, config.to_string()).unwrap();
    path.display().to_string()
}

fn of_tenant(tenant: &str, session: &str, prompt_id: &str) -> Value {
    let mut line = named(session, prompt_id, "go");
    line["tenant"] = tenant.into();
    line
}

#[test]
#[ignore = "needs nats-server: make test-fleet"]
fn each_tenant_uses_its_account_and_sees_nothing_of_the_other() {
    let directory = tempfile::tempdir().unwrap();
    let servers = two_tenants(directory.path());
    let config = tenants(directory.path());
    let mock = MockModel::with([Reply::text("One."), Reply::text("Two.")]);
    let url = servers.url();
    let args = ["node", "--bus", &url, "--name", "a", "--min-workers", "0", "--config", &config];
    let node = qwen().args(args).args(["--", "--model", "mock", "--yolo"]).with_model(&mock);
    let node = node.start();
    node.wait_for_stderr("is on the bus");
    let mut run = qwen().args(["hub", "--bus", &url, "--config", &config]).start();
    run.write_line(of_tenant("red", "s", "p1"));
    assert_eq!(ends_of(&run.json_until(ends("p1"))), [("p1", "done")]);
    // The same id in another account is another session, which this client cannot tell apart.
    run.write_line(of_tenant("blue", "s", "p2"));
    let refused = run.json_until(|line| line["prompt_id"] == "p2").pop().unwrap();
    assert_eq!(refused["metadata"]["error"]["code"], "foreign_session", "{refused}");
    run.write_line(of_tenant("blue", "t", "p3"));
    assert_eq!(ends_of(&run.json_until(ends("p3"))), [("p3", "done")]);
    for (line, code) in
        [(of_tenant("green", "u", "p4"), "unknown_tenant"), (named("v", "p5", "go"), "missing_tenant")]
    {
        run.write_line(&line);
        let refused = run.json_until(|answer| answer["prompt_id"] == line["prompt_id"]).pop().unwrap();
        assert_eq!(refused["metadata"]["error"]["code"], code, "{refused}");
    }
    assert_eq!(run.finish().code, Some(0));
    for (tenant, session) in [("red", "s"), ("blue", "t")] {
        let list = qwen().args(["sessions", "list", "--json", "--bus", &url, "--bus-credentials"]);
        let listed = list.arg(directory.path().join(tenant)).run();
        let listed: Value = serde_json::from_str(&listed.stdout).unwrap();
        assert_eq!(listed.as_array().unwrap().len(), 1, "{listed}");
        assert_eq!(listed[0]["session_id"], session, "{listed}");
    }
    // A hub with the credentials of one tenant cannot name the other one.
    let hub = qwen().args(["hub", "--bus", &url, "--bus-credentials"]).arg(directory.path().join("red"));
    let mut run = hub.start();
    run.write_line(of_tenant("blue", "w", "p6"));
    let refused = run.json_until(|line| line["prompt_id"] == "p6").pop().unwrap();
    assert_eq!(refused["metadata"]["error"]["code"], "invalid_tenant", "{refused}");
    assert_eq!(run.finish().code, Some(0));
}

#[test]
#[ignore = "needs nats-server: make test-fleet"]
fn a_tenant_without_an_account_and_a_node_of_an_unknown_tenant_are_refused() {
    let directory = tempfile::tempdir().unwrap();
    let refused = |config: &Value, role: &str| {
        let path = directory.path().join("bad.json");
        std::fs::write(&path, config.to_string()).unwrap();
        let ended = qwen().args([role, "--bus", "nats://127.0.0.1:1", "--config"]).arg(&path).run();
        assert_ne!(ended.code, Some(0));
        assert_eq!(ended.stderr.lines().count(), 1, "{}", ended.stderr);
        ended.stderr
    };
    let tenants = json!({"isolation": "none", "red": {}});
    for role in ["hub", "node"] {
        let why = refused(&json!({"tenants": tenants}), role);
        assert!(why.contains("tenants.red.credentials"), "{why}");
    }
    let tenants = json!({"isolation": "none", "red": {"credentials": "/nowhere"}});
    assert!(refused(&json!({"tenants": tenants}), "hub").contains("/nowhere"));
    let why = refused(&json!({"tenants": tenants, "node": {"tenants": ["blue"]}}), "node");
    assert!(why.contains("'blue'"), "{why}");
}
