//! Tenants and profiles: nobody sees what belongs to another.

use mock_model::{MockModel, Reply};
use serde_json::{Value, json};

use crate::harness::*;

/// Opens a session of a tenant, or of none if the name is empty.
fn open_for(tenant: &str, session: &str, args: &Value) -> Value {
    let mut open = request("o", "open", json!({"session_id": session, "args": args}));
    if !tenant.is_empty() {
        open["tenant"] = json!(tenant);
    }
    open
}

/// A script whose one call shows what a worker can see of itself.
fn shows() -> Value {
    let command = "env; ls -a";
    json!([[{"tool_call": {"name": "run_shell_command", "arguments": {"command": command}}}], [{"text": "ok"}]])
}

#[test]
fn tenants_have_homes_of_their_own_and_never_share_a_session() {
    let program = hub(&shows()).arg("--yolo").arg("--sandbox=false");
    let mut run = program.start();
    for (session, tenant) in [("a", "red"), ("b", "blue")] {
        let mut line = prompt(session, "go");
        line["tenant"] = json!(tenant);
        run.write_line(line);
        let seen: String = run.json_until(is_end).iter().map(Value::to_string).collect();
        assert!(seen.contains(&format!("tenants/{tenant}/home")), "{seen}");
        let other = if tenant == "red" { "blue" } else { "red" };
        assert!(!seen.contains(&format!("tenants/{other}")), "something of another tenant: {seen}");
    }
    let mut forged = prompt("a", "go");
    forged["tenant"] = json!("blue");
    run.write_line(forged);
    let refused = run.json_until(|line| line["metadata"]["error"].is_object()).pop().unwrap();
    assert_eq!(refused["metadata"]["error"]["code"], "foreign_session");
    assert_eq!(run.finish().code, Some(0));
    let state = program.qwen_home_path().join("hub").join("tenants");
    for (tenant, session) in [("red", "a"), ("blue", "b")] {
        let logs = state.join(tenant).join("qwen/sessions");
        let names: Vec<String> = std::fs::read_dir(logs)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        assert!(names.iter().all(|name| name.starts_with(session)), "{names:?}");
    }
}

#[test]
fn what_one_tenant_has_is_out_of_anothers_sight_and_reach() {
    let program = bare();
    let text = "worker_pool: {min_workers: 0}\ntenants:\n  red: {env: {COLOUR: crimson-7f3a}, settings_profile: {user: {context: {fileName: RED-9c1d.md}}}}\n  blue: {env: {}}\n";
    let path = config(&program, text);
    let command = "env; ls -a $HOME $TMPDIR";
    let script = json!([[{"tool_call": {"name": "run_shell_command", "arguments": {"command": command}}}], [{"text": "ok"}]]);
    let file = program.home_path().join("s.json");
    std::fs::write(&file, script.to_string()).unwrap();
    let model = format!("script:{}", file.display());
    let records = program.home_path().join("records");
    let mut run = program
        .arg("--config")
        .arg(path)
        .args(["--record-dir", records.to_str().unwrap()])
        .args(["--", "--model", &model, "--yolo", "--sandbox"])
        .start();
    run.write_line(request("i", "initialize", json!({"sequence": true})));
    answer(&mut run, "i");
    let of = |tenant: &str, mut line: Value| {
        line["tenant"] = json!(tenant);
        line
    };
    run.write_line(of("red", named("a", "p1", "the red word is vermilion")));
    let seen: String = run.json_until(is_end).iter().map(Value::to_string).collect();
    assert!(seen.contains("crimson-7f3a"), "{seen}");
    run.write_line(of("blue", named("b", "p2", "go")));
    let seen: String = run.json_until(is_end).iter().map(Value::to_string).collect();
    for secret in ["crimson-7f3a", "vermilion", "RED-9c1d", "tenants/red"] {
        assert!(!seen.contains(secret), "{secret}: {seen}");
    }
    // Whatever is asked of another tenant's session is refused.
    for subtype in ["attach", "close", "hub/status", "set_model", "interrupt"] {
        run.write_line(of("blue", request("f", subtype, json!({"session_id": "a", "after": 0}))));
        assert_eq!(answer(&mut run, "f")["code"], "foreign_session", "{subtype}");
    }
    for line in [
        of("blue", named("a", "p3", "x")),
        of("blue", json!({"type": "control/cancel", "session_id": "a"})),
        of("blue", json!({"type": "heartbeat_request", "session_id": "a"})),
    ] {
        run.write_line(line);
        let refused = run.json_until(|line| line["metadata"]["error"].is_object()).pop().unwrap();
        assert_eq!(refused["metadata"]["error"]["code"], "foreign_session", "{refused}");
    }
    // Once red has closed it, the id stays red's.
    run.write_line(of("red", request("c", "close", json!({"session_id": "a"}))));
    assert_eq!(answer(&mut run, "c")["closed"], true);
    run.write_line(of("blue", request("o", "open", json!({"session_id": "a"}))));
    assert_eq!(answer(&mut run, "o")["code"], "foreign_session");
    run.write_line(of("blue", request("o", "open", json!({"session_id": "fork", "fork_from": "a"}))));
    answer(&mut run, "o");
    run.write_line(of("blue", named("fork", "p4", "what is the red word?")));
    let lines = run.json_until(|line| line["metadata"]["error"].is_object() || is_end(line));
    assert!(!lines.iter().any(|line| line.to_string().contains("vermilion")), "{lines:#?}");
    for (tenant, session) in [("red", "a"), ("blue", "b")] {
        assert!(records.join(tenant).join(format!("{session}.out.jsonl")).is_file());
    }
    drop(run);
}

#[test]
fn a_line_that_names_a_tenant_and_no_session_reaches_none_of_another_tenant() {
    let touch = json!({"command": "touch approved"}).to_string();
    let mock = MockModel::with([Reply::call("c1", "run_shell_command", &touch), Reply::text("Denied.")]);
    let program = bare().args(["--min-workers", "0", "--", "--model", "mock"]).with_model(&mock);
    let mut run = program.start();
    let of = |tenant: &str, mut line: Value| {
        line["tenant"] = json!(tenant);
        line
    };
    run.write_line(of("red", named("a", "p1", "go")));
    let question = run.json_until(|line| line["type"] == "control_request").pop().unwrap();
    let answers = |behavior: &str| {
        let response = json!({"subtype": "success", "result": {"behavior": behavior}});
        json!({"type": "control_response", "request_id": question["request_id"], "response": response})
    };
    run.write_line(of("blue", answers("allow")));
    let refused = run.json_until(|line| line["metadata"]["error"].is_object()).pop().unwrap();
    assert_eq!(refused["metadata"]["error"]["code"], "unknown_request_id", "{refused}");
    // The only session that is open is not blue's.
    run.write_line(of("blue", json!({"type": "control/cancel"})));
    let cancelled = run.json_until(|line| line["type"] == "result/cancel").pop().unwrap();
    assert_eq!(cancelled["status"], "noop", "{cancelled}");
    run.write_line(request("s", "hub/status", json!({"session_id": "a"})));
    assert_eq!(answer(&mut run, "s")["turn"], "p1", "it still waits for its own answer");
    run.write_line(of("red", answers("deny")));
    assert_eq!(status(&run.json_until(is_end).pop().unwrap()), "done");
    assert!(!program.cwd_path().join("approved").exists());
    assert_eq!(run.finish().code, Some(0));
}

#[test]
fn a_tenants_commands_cannot_read_the_files_of_another() {
    let program = bare();
    let tenants = program.qwen_home_path().join("hub/tenants");
    let of = |tenant: &str, session: &str, command: &str| {
        let script = json!([[{"tool_call": {"name": "run_shell_command", "arguments": {"command": command}}}], [{"text": "ok"}]]);
        let file = program.home_path().join(format!("{tenant}-{session}.json"));
        std::fs::write(&file, script.to_string()).unwrap();
        let args = json!(["--model", format!("script:{}", file.display())]);
        open_for(tenant, session, &args)
    };
    let mut run = program.clone().args(["--", "--yolo", "--sandbox"]).start();
    let mut seen = |open: Value, session: &str| -> String {
        run.write_line(open);
        answer(&mut run, "o");
        run.write_line(prompt(session, "go"));
        run.json_until(is_end).iter().map(Value::to_string).collect()
    };
    std::fs::create_dir_all(tenants.join("red/home")).unwrap();
    std::fs::write(tenants.join("red/home/own"), "vermilion").unwrap();
    assert!(seen(of("red", "a", "cat $HOME/own"), "a").contains("vermilion"), "its own files are there");
    let path = tenants.display();
    let look = format!("cat {path}/red/home/own; ls {path} {path}/red {path}/red/home; true");
    let shown = seen(of("blue", "b", &look), "b");
    assert!(!shown.contains("vermilion") && !shown.contains("\\nown"), "{shown}");
    let shown = seen(of("", "c", &look), "c");
    assert!(!shown.contains("vermilion") && !shown.contains("\\nown"), "the default tenant: {shown}");
    assert_eq!(run.finish().code, Some(0));
}

#[test]
fn a_tenants_file_tools_reach_its_own_files_and_no_others_even_if_that_is_approved() {
    let program = bare();
    let tenants = program.qwen_home_path().join("hub/tenants");
    let secret = tenants.join("red/home/own");
    std::fs::create_dir_all(secret.parent().unwrap()).unwrap();
    std::fs::write(&secret, "vermilion").unwrap();
    let link = program.cwd_path().join("link");
    std::os::unix::fs::symlink(&secret, &link).unwrap();
    let shared = program.home_path().join("shared");
    std::fs::write(&shared, "vermilion").unwrap();
    let mut run = program.clone().args(["--min-workers", "0", "--", "--sandbox=false"]).start();
    // One call of a tool by a tenant whose host allows everything: what was shown, and whether the host was
    // asked.
    let mut shown = |session: &str, tenant: &str, name: &str, arguments: Value| -> (String, bool) {
        let script = json!([[{"tool_call": {"name": name, "arguments": arguments}}], [{"text": "ok"}]]);
        let file = program.home_path().join(format!("{session}.json"));
        std::fs::write(&file, script.to_string()).unwrap();
        let args = json!(["--model", format!("script:{}", file.display())]);
        run.write_line(open_for(tenant, session, &args));
        answer(&mut run, "o");
        run.write_line(prompt(session, "go"));
        let mut seen = run.json_until(|line| line["type"] == "control_request" || is_end(line));
        let question = seen.pop().unwrap();
        if is_end(&question) {
            return (seen.iter().map(Value::to_string).collect(), false);
        }
        let response = json!({"subtype": "success", "result": {"behavior": "allow"}});
        let id = question["request_id"].clone();
        run.write_line(json!({"type": "control_response", "request_id": id, "response": response}));
        (run.json_until(is_end).iter().map(Value::to_string).collect(), true)
    };
    let read = |path: &std::path::Path| json!({"file_path": path});
    for (session, tenant, path) in [("a", "red", &secret), ("b", "blue", &shared)] {
        let (text, asked) = shown(session, tenant, "read_file", read(path));
        assert!(text.contains("vermilion") && asked, "its own file, or nobody's: {text}");
    }
    for (session, tenant, path) in [("c", "blue", &secret), ("d", "", &secret), ("e", "blue", &link)] {
        let (text, asked) = shown(session, tenant, "read_file", read(path));
        assert!(!text.contains("vermilion") && !asked, "{session}: {text}");
    }
    let above = json!({"pattern": "vermil", "path": program.qwen_home_path()});
    let (text, _) = shown("f", "blue", "grep_search", above);
    assert!(!text.contains("vermilion"), "found from above: {text}");
    let (_, asked) = shown("g", "blue", "write_file", json!({"file_path": secret, "content": "blue"}));
    assert_eq!((asked, std::fs::read_to_string(&secret).unwrap().as_str()), (false, "vermilion"));
    assert_eq!(run.finish().code, Some(0));
}

#[test]
fn what_an_untrusted_folder_has_ignored_is_told_once_and_an_empty_profile_layer_not_at_all() {
    let program = bare();
    let settings = program.cwd_path().join(".qwen/settings.json");
    std::fs::create_dir_all(settings.parent().unwrap()).unwrap();
    std::fs::write(&settings, r#"{"model": {"maxRetries": 1}}"#).unwrap();
    let mut run = program.args(["--min-workers", "0", "--", "--model", "demo"]).start();
    for session in ["a", "b"] {
        run.write_line(prompt(session, "hi"));
        run.json_until(ends(session));
    }
    let profile = json!({"overrides": {"model.maxRetries": 1}});
    for session in ["c", "d"] {
        run.write_line(request("o", "open", json!({"session_id": session, "settings_profile": profile})));
        answer(&mut run, "o");
        run.write_line(prompt(session, "hi"));
        run.json_until(ends(session));
    }
    let ended = run.finish();
    assert_eq!(ended.stderr.matches("is not trusted").count(), 1, "{}", ended.stderr);
    assert_eq!(ended.code, Some(0));
}

#[test]
fn a_profile_decides_alone_what_its_session_uses() {
    let program = bare();
    let script = |name: &str, text: &str| {
        let path = program.home_path().join(name);
        std::fs::write(&path, json!([[{"text": text}]]).to_string()).unwrap();
        format!("script:{}", path.display())
    };
    let (host, own) = (script("host.json", "from the host"), script("own.json", "from the profile"));
    let mut run = program.clone().env("QWEN_MODEL", &host).start();
    run.write_line(request(
        "r",
        "open",
        json!({"session_id": "a", "settings_profile": {"overrides": {"model.name": own}}}),
    ));
    answer(&mut run, "r");
    run.write_line(prompt("a", "x"));
    assert_eq!(run.json_until(is_end).pop().unwrap()["choices"][0]["message"]["content"], "from the profile");
    run.write_line(request("r", "open", json!({"session_id": "b", "settings_profile": {"colour": {}}})));
    assert_eq!(answer(&mut run, "r")["code"], "invalid_settings_profile");
    let profiles = program.qwen_home_path().join("hub/profiles");
    assert_eq!(std::fs::read_dir(&profiles).unwrap().count(), 1);
    assert_eq!(run.finish().code, Some(0));
    assert_eq!(std::fs::read_dir(&profiles).unwrap().count(), 0, "nothing of it is left");
}

#[test]
fn a_tenant_that_floods_does_not_keep_another_from_its_turn() {
    let program = bare();
    let path = config(&program, "worker_pool: {min_workers: 0, max_workers: 2, max_queue_per_tenant: 200}\n");
    let script = program.home_path().join("s.json");
    std::fs::write(&script, says("ok").to_string()).unwrap();
    let model = format!("script:{}", script.display());
    let mut run = program.arg("--config").arg(path).args(["--", "--model", &model]).start();
    for n in 0..40 {
        let mut line = prompt(&format!("flood{n}"), "x");
        line["tenant"] = json!("loud");
        run.write_line(line);
    }
    let mut line = prompt("calm", "x");
    line["tenant"] = json!("calm");
    run.write_line(line);
    run.close_stdin();
    let ended = run.wait();
    let order: Vec<String> = ended
        .json_lines()
        .into_iter()
        .filter(is_end)
        .map(|line| line["session_id"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(order.len(), 41);
    let place = order.iter().position(|session| session == "calm").unwrap();
    // Behind what ran when it came, and at most one round more.
    assert!(place <= 6, "{place}: {order:?}");
}

#[test]
fn the_id_of_a_closed_session_stays_with_its_tenant() {
    let of = |tenant: &str, mut line: Value| {
        line["tenant"] = json!(tenant);
        line
    };
    let mut run = hub(&says("x")).start();
    run.json();
    run.write_line(of("blue", named("s", "p1", "x")));
    assert_eq!(status(&run.json_until(is_end).pop().unwrap()), "done");
    run.write_line(of("blue", request("c", "close", json!({"session_id": "s"}))));
    assert_eq!(answer(&mut run, "c")["closed"], true);
    for subtype in ["open", "initialize", "attach"] {
        run.write_line(of("red", request("r", subtype, json!({"session_id": "s"}))));
        assert_eq!(answer(&mut run, "r")["code"], "foreign_session", "{subtype}");
    }
    // Without a tenant, the session is opened again as what it was.
    run.write_line(request("o", "open", json!({"session_id": "s"})));
    assert_eq!(answer(&mut run, "o")["session_id"], "s");
    run.write_line(request("t", "hub/status", json!({"session_id": "s"})));
    assert_eq!(answer(&mut run, "t")["tenant"], "blue");
    assert_eq!(run.finish().code, Some(0));
}
