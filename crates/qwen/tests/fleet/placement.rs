//! Which node a session runs on, and where its files are there.

use mock_model::bus::BusServers;
use mock_model::process::{Program, Run, Signal};
use mock_model::{MockModel, Reply};
use serde_json::{Value, json};

use crate::harness::*;

fn node(servers: &BusServers, mock: &MockModel, name: &str, further: &[&str]) -> Program {
    let url = servers.url();
    let args = ["node", "--bus", &url, "--name", name, "--min-workers", "0"];
    qwen().args(args).args(further).args(["--", "--model", "mock", "--yolo"]).with_model(mock)
}

#[track_caller]
fn started(program: &Program) -> Run {
    let run = program.start();
    run.wait_for_stderr("is on the bus");
    run
}

fn front(servers: &BusServers) -> Program {
    qwen().args(["hub", "--bus", &servers.url()])
}

/// A model whose first answer of each turn writes the working directory to a file there.
fn marking(turns: usize) -> MockModel {
    let command = r#"{"command":"pwd >> mark"}"#;
    MockModel::with((0..turns).flat_map(|turn| {
        [Reply::call(&format!("c{turn}"), "run_shell_command", command), Reply::text("Done.")]
    }))
}

#[track_caller]
fn answer(run: &mut Run, request: &Value) -> Value {
    run.write_line(request.clone());
    let id = request["request_id"].clone();
    run.json_until(|line| line["type"] == "control_response" && line["request_id"] == id).pop().unwrap()
}

#[test]
#[ignore = "needs nats-server: make test-fleet"]
fn labels_select_the_node_and_without_a_match_the_answer_names_them() {
    let servers = bus(1);
    let mock = MockModel::with([Reply::text("One.")]);
    let (west, east) = (
        node(&servers, &mock, "a", &["--label", "zone=west"]),
        node(&servers, &mock, "b", &["--label", "zone=east"]),
    );
    let (_west, _east) = (started(&west), started(&east));
    let mut run = front(&servers).start();
    let open = |id: &str, labels: Value| request(id, "open", json!({"session_id": id, "labels": labels}));
    let refused = answer(&mut run, &open("n", json!({"zone": "north"})));
    assert_eq!(refused["response"]["error"]["code"], "no_matching_node", "{refused}");
    assert!(refused.to_string().contains("zone=north"), "{refused}");
    let opened = answer(&mut run, &open("e", json!({"zone": "east"})));
    assert_eq!(opened["response"]["subtype"], "success", "{opened}");
    run.write_line(named("e", "p1", "go"));
    run.json_until(ends("p1"));
    let status = answer(&mut run, &request("st", "hub/status", json!({})));
    let owners = &status["response"]["result"]["owners"];
    let owner = owners.as_array().unwrap().iter().find(|owner| owner["session_id"] == "e").unwrap();
    assert!(owner["owner"].as_str().unwrap().starts_with("b/"), "{status}");
    assert!(owner["epoch"].as_u64() >= Some(1) && owner["shard"].is_u64(), "{status}");
    assert_eq!(status["response"]["result"]["shards"].as_array().unwrap().len(), 7, "{status}");
    assert_eq!(run.finish().code, Some(0));
}

#[test]
#[ignore = "needs nats-server: make test-fleet"]
fn a_session_in_a_shared_workspace_continues_on_another_node_under_its_path_there() {
    let servers = bus(1);
    let mock = marking(2);
    let directories = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    let announced =
        directories.each_ref().map(|directory| format!("repo={}:shared", directory.path().display()));
    let first = node(&servers, &mock, "a", &["--workspace", &announced[0]]);
    let first = started(&first);
    let mut run = front(&servers).start();
    let wanted = json!({"session_id": "s", "workspace": {"kind": "shared", "id": "repo"}});
    let opened = answer(&mut run, &request("o", "open", wanted));
    assert_eq!(opened["response"]["subtype"], "success", "{opened}");
    run.write_line(named("s", "p1", "go"));
    let mut lines = run.json_until(ends("p1"));
    let second = node(&servers, &mock, "b", &["--workspace", &announced[1]]);
    let _second = started(&second);
    first.signal(Signal::KILL);
    run.write_line(named("s", "p2", "go on"));
    lines.extend(run.json_until(ends("p2")));
    assert_eq!(ends_of(&lines), [("p1", "done"), ("p2", "done")]);
    follow_from(1, &lines);
    for directory in &directories {
        let marked = std::fs::read_to_string(directory.path().join("mark")).unwrap();
        assert_eq!(marked.lines().count(), 1, "{marked}");
    }
    assert_eq!(run.finish().code, Some(0));
}

#[test]
#[ignore = "needs nats-server: make test-fleet"]
fn a_git_workspace_is_created_at_its_commit_on_every_node_that_continues_the_session() {
    let servers = bus(1);
    let mock = marking(2);
    let origin = tempfile::tempdir().unwrap();
    let git = |args: &[&str]| {
        let identity = ["-c", "user.name=a", "-c", "user.email=a@example.com", "-c", "commit.gpgsign=false"];
        let done = std::process::Command::new("git")
            .args(identity)
            .args(args)
            .current_dir(&origin)
            .output()
            .unwrap();
        assert!(done.status.success(), "{done:?}");
    };
    git(&["init", "--quiet", "-b", "main"]);
    std::fs::write(origin.path().join("file"), "content").unwrap();
    git(&["add", "file"]);
    git(&["commit", "--quiet", "-m", "first"]);
    git(&["tag", "v1"]);
    let first = node(&servers, &mock, "a", &[]);
    let first_run = started(&first);
    let mut run = front(&servers).start();
    let workspace = json!({"kind": "git", "url": origin.path(), "commit": "v1"});
    let open =
        |id: &str, workspace: &Value| request(id, "open", json!({"session_id": "s", "workspace": workspace}));
    let opened = answer(&mut run, &open("o", &workspace));
    assert_eq!(opened["response"]["subtype"], "success", "{opened}");
    run.write_line(named("s", "p1", "go"));
    run.json_until(ends("p1"));
    let second = node(&servers, &mock, "b", &[]);
    let _second = started(&second);
    first_run.signal(Signal::KILL);
    run.write_line(named("s", "p2", "go on"));
    assert_eq!(ends_of(&run.json_until(ends("p2"))), [("p2", "done")]);
    for home in [first.home_path(), second.home_path()] {
        let found = find_file(home, "mark").expect("the command ran in the workspace of this node");
        assert_eq!(std::fs::read_to_string(found.with_file_name("file")).unwrap(), "content");
    }
    let missing = json!({"kind": "git", "url": origin.path(), "commit": "v9"});
    let missing = request("m", "open", json!({"session_id": "m", "workspace": missing}));
    let refused = answer(&mut run, &missing);
    assert_eq!(refused["response"]["error"]["code"], "workspace_not_prepared", "{refused}");
    let refused = answer(&mut run, &open("x", &json!({"kind": "git", "url": "ext::sh -c true"})));
    assert_eq!(refused["response"]["error"]["code"], "invalid_workspace", "{refused}");
    assert_eq!(run.finish().code, Some(0));
}

fn find_file(directory: &std::path::Path, name: &str) -> Option<std::path::PathBuf> {
    let mut left = vec![directory.to_owned()];
    while let Some(next) = left.pop() {
        for entry in std::fs::read_dir(next).into_iter().flatten().flatten() {
            let path = entry.path();
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                left.push(path);
            } else if entry.file_name() == name {
                return Some(path);
            }
        }
    }
    None
}

#[test]
#[ignore = "needs nats-server: make test-fleet"]
fn a_node_whose_name_is_in_use_does_not_start() {
    let servers = bus(1);
    let mock = MockModel::with([Reply::text("One.")]);
    let first = node(&servers, &mock, "a", &[]);
    let _first = started(&first);
    let ended = node(&servers, &mock, "a", &[]).run();
    assert_eq!(ended.code, Some(1), "{}", ended.stderr);
    assert!(ended.stderr.contains("has the name 'a'"), "{}", ended.stderr);
    let named = |name: &str| qwen().args(["node", "--bus", &servers.url(), "--name", name]).run();
    for name in ["a.b", "a>", ""] {
        assert!(named(name).stderr.contains("not a name on a bus"), "{name}");
    }
}

#[test]
#[ignore = "needs nats-server: make test-fleet"]
fn a_request_that_a_node_refuses_is_answered() {
    let servers = bus(1);
    let mock = MockModel::with([Reply::text("One.")]);
    let program = node(&servers, &mock, "a", &[]);
    let _node = started(&program);
    let mut run = front(&servers).start();
    let open = |id: &str| request(id, "open", json!({"session_id": "s"}));
    assert_eq!(answer(&mut run, &open("o1"))["response"]["subtype"], "success");
    let refused = answer(&mut run, &open("o2"));
    assert_eq!(refused["response"]["error"]["code"], "duplicate_session", "{refused}");
    let lost = request("o3", "open", json!({"session_id": "t", "cwd": "/nowhere"}));
    assert_eq!(answer(&mut run, &lost)["response"]["error"]["code"], "no_working_directory");
    assert_eq!(run.finish().code, Some(0));
}

#[test]
#[ignore = "needs nats-server: make test-fleet"]
fn the_trace_of_a_prompt_continues_on_the_node_and_at_the_model() {
    let servers = bus(1);
    let mock = MockModel::with([Reply::text("One.")]);
    let collector = "http://127.0.0.1:1";
    let further = ["--telemetry", "--telemetry-otlp-endpoint", collector];
    let program = node(&servers, &mock, "a", &further);
    let _node = started(&program);
    let mut run = front(&servers).start();
    let trace = "0af7651916cd43dd8448eb211c80319c";
    let mut prompt = named("s", "p1", "go");
    prompt["traceparent"] = format!("00-{trace}-b7ad6b7169203331-01").into();
    run.write_line(prompt);
    run.json_until(ends("p1"));
    let requests = mock.requests();
    let sent = requests[0].header("traceparent").unwrap();
    assert!(sent.contains(trace), "{sent}");
    assert_eq!(run.finish().code, Some(0));
}

/// The state of the only descendant of a process that runs a program.
fn state_of(pid: u32, program: &str) -> Option<char> {
    let mut left = vec![pid];
    while let Some(next) = left.pop() {
        left.extend(children(next));
        let stat = std::fs::read_to_string(format!("/proc/{next}/stat")).unwrap_or_default();
        if let Some((start, rest)) = stat.rsplit_once(") ")
            && start.ends_with(&format!("({program}"))
        {
            return rest.chars().next();
        }
    }
    None
}

#[track_caller]
fn wait_for_state(pid: u32, program: &str, is_wanted: impl Fn(char) -> bool) {
    let deadline = std::time::Instant::now() + mock_model::WAIT_LIMIT;
    while !state_of(pid, program).is_some_and(&is_wanted) {
        assert!(std::time::Instant::now() < deadline, "{:?}", state_of(pid, program));
        std::thread::yield_now();
    }
}

#[test]
#[ignore = "needs nats-server: make test-fleet"]
fn commands_in_a_shared_workspace_stand_still_while_their_node_is_cut_off() {
    let mut servers = bus(1);
    let command = r#"{"command":"cat gate > passed"}"#;
    let mock = MockModel::with([Reply::call("c1", "run_shell_command", command), Reply::text("Done.")]);
    let program = node(&servers, &mock, "a", &["--shared-workspace", "w"]);
    let gate = program.cwd_path().join("gate");
    assert!(std::process::Command::new("mkfifo").arg(&gate).status().unwrap().success());
    let node = started(&program);
    let mut run = front(&servers).start();
    run.write_line(named("s", "p1", "go"));
    // It opens the gate once there is a writer.
    let mut writer = std::fs::OpenOptions::new().write(true).open(&gate).unwrap();
    wait_for_state(node.pid(), "cat", |state| state != 'T');
    servers.kill(0);
    wait_for_state(node.pid(), "cat", |state| state == 'T');
    servers.restart(0);
    wait_for_state(node.pid(), "cat", |state| state != 'T');
    std::io::Write::write_all(&mut writer, b"through").unwrap();
    drop(writer);
    let lines = run.json_until(ends("p1"));
    assert_eq!(ends_of(&lines), [("p1", "done")]);
    follow_from(1, &lines);
    assert_eq!(std::fs::read_to_string(program.cwd_path().join("passed")).unwrap(), "through");
    assert_eq!(run.finish().code, Some(0));
}
