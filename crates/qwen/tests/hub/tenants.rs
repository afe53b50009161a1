//! Tenants are separated by the kernel: whatever options a tenant's host chooses, its worker does not see the
//! files and sockets of another tenant or of the hub.

use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;

use mock_model::process::Run;
use serde_json::{Value, json};

use crate::harness::*;

/// What belongs to the tenant red.
const SECRET: &str = "vermilion-4711";

/// Commands of the tenant blue. `T` is the directory of all tenants, `S` the hub's state, `R` its records, `H` the
/// hub's process.
const COMMANDS: &[&str] = &[
    "cat T/red/home/own",
    "cat T/red/qwen/sessions/*.jsonl",
    "ls -la T T/red T/red/home",
    "cd T/red/home && cat own",
    "cat link",
    "cat way/red/home/own",
    "cat T/blue/../red/home/own",
    "cat T/blue/home/../../red/home/own",
    "cat $HOME/../../red/home/own",
    "cat $QWEN_HOME/../../red/qwen/sessions/*.jsonl",
    "cat $TMPDIR/../../red/home/own",
    "cat /proc/self/root/T/red/home/own",
    "cat /proc/self/cwd/link",
    "cat /proc/H/root/T/red/home/own",
    "cat /proc/1/root/T/red/home/own",
    "cat /proc/H/cwd/way/red/home/own",
    "cat /proc/H/environ /proc/H/fd/*",
    "cat /proc/[0-9]*/root/T/red/home/own",
    "cat /proc/[0-9]*/cwd/link",
    "nsenter --target H --mount cat T/red/home/own",
    "nsenter --target 1 --mount cat T/red/home/own",
    "umount S; cat T/red/home/own",
    "umount -l S; cat T/red/home/own",
    "unshare --user --map-root-user --mount sh -c 'umount -l S; cat T/red/home/own'",
    "unshare --user --map-root-user --mount sh -c 'mount --bind / /mnt && cat /mnt/T/red/home/own'",
    "mount -o remount,rw S; echo blue > T/red/home/own",
    "mkdir -p T/red/home && echo blue > T/red/home/own && ls T/red/home/own",
    "echo blue > T/red/home/new",
    "rm -rf T/red",
    "mv T/red T/blue/home/taken; cat T/blue/home/taken/home/own",
    "ln T/red/home/own T/blue/home/taken; cat T/blue/home/taken",
    "ln -s T/red/home/own T/blue/home/soft; cat T/blue/home/soft",
    "cp -r T/red T/blue/home/copy; cat T/blue/home/copy/home/own",
    "tar c T/red",
    "find S -type f -exec cat {} +",
    "grep -r vermilion S",
    "cat R/red/a.out.jsonl R/red/a.in.jsonl",
    "ls -R R; cat R/*/*",
    "echo blue > R/red/a.out.jsonl",
    "cat C",
    "echo blue > C",
    "cat S/profiles/*/*/*.json",
    "ls S; cat S/*",
    "python3 -c \"import socket; s=socket.socket(socket.AF_UNIX); s.connect('T/red/home/socket'); print(s.recv(99))\"",
    "python3 -c \"import socket; s=socket.socket(socket.AF_UNIX); s.connect('M'); s.send(b'GET /status HTTP/1.1\\r\\n\\r\\n'); print('vermilion-4711', s.recv(9))\"",
    "python3 -c \"import os; d=os.open('T', 0); print(open('/proc/self/fd/%d/red/home/own' % d).read())\"",
    "python3 -c \"import os; print(open('/proc/%d/root' % os.getppid() + 'T/red/home/own').read())\"",
    "HOME=T/red/home sh -c 'cat ~/own'",
    "git -C T/red/home status; git --git-dir T/red/home log",
    "chroot /proc/H/root cat T/red/home/own",
];

fn open(session: &str, further: &Value) -> Value {
    let mut options = json!({"session_id": session, "tenant": "blue"});
    for (key, value) in further.as_object().unwrap() {
        options[key] = value.clone();
    }
    request("o", "open", options)
}

/// Reads the lines of a turn whose host allows every call.
fn allow_until_end(run: &mut Run) -> Vec<Value> {
    let mut lines = Vec::new();
    loop {
        lines.extend(run.json_until(|line| line["type"] == "control_request" || is_end(line)));
        let last = &lines[lines.len() - 1];
        if is_end(last) {
            return lines;
        }
        let response = json!({"subtype": "success", "result": {"behavior": "allow"}});
        let id = last["request_id"].clone();
        run.write_line(json!({"type": "control_response", "request_id": id, "response": response}));
    }
}

#[test]
fn no_command_and_no_option_of_a_tenant_reaches_another() {
    let program = bare();
    let (here, home) = (program.cwd_path().to_owned(), program.home_path().to_owned());
    let state = program.qwen_home_path().join("hub");
    let (tenants, records, socket) = (state.join("tenants"), home.join("records"), home.join("metrics.sock"));
    let config = home.join("hub.yaml");
    let text = format!(
        "worker_pool: {{min_workers: 0}}\ntenants:\n  red: {{env: {{COLOUR: {SECRET}}}}}\n  blue: {{env: {{}}}}\n"
    );
    std::fs::write(&config, &text).unwrap();
    std::fs::create_dir_all(tenants.join("red/home")).unwrap();
    std::fs::write(tenants.join("red/home/own"), SECRET).unwrap();
    symlink(tenants.join("red/home/own"), here.join("link")).unwrap();
    symlink(&tenants, here.join("way")).unwrap();
    let listener = UnixListener::bind(tenants.join("red/home/socket")).unwrap();
    listener.set_nonblocking(true).unwrap();
    let metrics = format!("unix:{}", socket.display());
    let mut run = program
        .clone()
        .args([
            "--config",
            config.to_str().unwrap(),
            "--record-dir",
            records.to_str().unwrap(),
            "--metrics",
            &metrics,
        ])
        .args(["--", "--yolo", "--sandbox=false"])
        .start();
    let hub = run.pid().to_string();
    let mut line = prompt("a", SECRET);
    line["tenant"] = json!("red");
    let mut red = open("a", &json!({"args": ["--model", "demo"]}));
    red["tenant"] = json!("red");
    run.write_line(red);
    answer(&mut run, "o");
    run.write_line(line);
    run.json_until(is_end);

    let fill = |command: &str| {
        let places = [("S", &state), ("T", &tenants), ("R", &records), ("C", &config), ("M", &socket)];
        let mut filled = String::new();
        for part in command.split_inclusive(|c: char| !c.is_ascii_alphanumeric() && c != '_') {
            let end = part.len()
                - part
                    .chars()
                    .last()
                    .filter(|c| !c.is_ascii_alphanumeric() && *c != '_')
                    .map_or(0, char::len_utf8);
            let (name, rest) = part.split_at(end);
            let place =
                places.iter().find(|(short, _)| *short == name).map(|(_, path)| path.display().to_string());
            filled += &place.unwrap_or_else(|| if name == "H" { hub.clone() } else { name.to_owned() });
            filled += rest;
        }
        filled
    };
    let mut steps: Vec<Value> = Vec::new();
    for command in COMMANDS {
        let arguments = json!({"command": fill(command)});
        steps.push(json!([{"tool_call": {"name": "run_shell_command", "arguments": arguments}}]));
    }
    for (tool, arguments) in [
        ("read_file", json!({"file_path": tenants.join("red/home/own")})),
        ("read_file", json!({"file_path": here.join("link")})),
        ("list_directory", json!({"path": tenants})),
        ("grep_search", json!({"pattern": "vermilion", "path": state})),
        ("glob", json!({"pattern": "**/own", "path": state})),
        ("write_file", json!({"file_path": tenants.join("red/home/own"), "content": "blue"})),
        ("write_file", json!({"file_path": records.join("red/a.out.jsonl"), "content": "blue"})),
    ] {
        steps.push(json!([{"tool_call": {"name": tool, "arguments": arguments}}]));
    }
    steps.push(json!([{"text": "done"}]));
    let script = home.join("script.json");
    std::fs::write(&script, Value::Array(steps).to_string()).unwrap();
    run.write_line(open("b", &json!({"args": ["--model", format!("script:{}", script.display())]})));
    answer(&mut run, "o");
    let mut line = prompt("b", "go");
    line["tenant"] = json!("blue");
    run.write_line(line);
    let lines = allow_until_end(&mut run);
    // Calls and questions repeat the commands, so only output and results count.
    let is_result = |line: &&Value| line["type"] == "x-qwen-terminal" || line["result_display"].is_object();
    let results: Vec<String> = lines.iter().filter(is_result).map(Value::to_string).collect();
    assert!(results.len() >= COMMANDS.len(), "{lines:?}");
    for result in &results {
        assert!(!result.contains(SECRET), "{result}");
    }

    for (number, options) in [
        json!({"cwd": tenants.join("red/home")}),
        json!({"cwd": tenants}),
        json!({"cwd": state}),
        json!({"cwd": here.join("way/red/home")}),
        json!({"args": ["--include-directories", tenants.join("red")]}),
        json!({"args": ["--add-dir", tenants.join("red")]}),
        json!({"args": [format!("--add-dir={}", tenants.join("red").display())]}),
        json!({"args": ["--settings", tenants.join("red/qwen/settings.json")]}),
        json!({"args": ["--mcp-config", r#"{"mcpServers":{}}"#]}),
        json!({"args": ["--append-system-prompt-file", tenants.join("red/home/own")]}),
        json!({"args": ["--system-prompt-file", tenants.join("red/home/own")]}),
        json!({"args": ["--debug-file", tenants.join("red/home/own")]}),
        json!({"args": ["--visible-dir", tenants]}),
        json!({"env": {"HOME": tenants.join("red/home")}}),
        json!({"env": {"QWEN_HOME": tenants.join("red/qwen")}}),
        json!({"env": {"TMPDIR": tenants.join("red/home")}}),
        json!({"env": {"QWEN_CODE_USER_SETTINGS_PATH": tenants.join("red/home/own")}}),
    ]
    .iter()
    .enumerate()
    {
        run.write_line(open(&format!("o{number}"), options));
        let answered = answer(&mut run, "o");
        let refused = ["option_not_allowed", "no_working_directory"];
        assert!(refused.iter().any(|code| answered.to_string().contains(code)), "{options}: {answered}");
        assert!(!answered.to_string().contains(SECRET), "{options}: {answered}");
    }
    assert!(listener.accept().is_err(), "red's socket was reached");
    run.finish();
    assert_eq!(std::fs::read_to_string(tenants.join("red/home/own")).unwrap(), SECRET);
    assert!(!tenants.join("red/home/new").exists());
    assert_eq!(std::fs::read_to_string(&config).unwrap(), text);
    assert!(std::fs::read_to_string(records.join("red/a.in.jsonl")).unwrap().contains(SECRET));
}

#[test]
fn a_tenants_worker_keeps_its_own_places_its_profile_and_its_sandbox() {
    let program = bare();
    let script = program.home_path().join("script.json");
    let command = "cat $HOME/mine && echo there > file && git --version";
    let call = json!([{"tool_call": {"name": "run_shell_command", "arguments": {"command": command}}}]);
    std::fs::write(&script, json!([call, [{"text": "ok"}]]).to_string()).unwrap();
    let home = program.qwen_home_path().join("hub/tenants/blue/home");
    std::fs::create_dir_all(&home).unwrap();
    std::fs::write(home.join("mine"), "what is mine\n").unwrap();
    let mut run = program.clone().args(["--min-workers", "0", "--", "--yolo"]).start();
    let profile = json!({"user": {"model": {"name": format!("script:{}", script.display())}}});
    run.write_line(open("b", &json!({"settings_profile": profile, "cwd": program.cwd_path()})));
    let answered = answer(&mut run, "o");
    assert!(answered["code"].is_null(), "{answered}");
    let mut line = prompt("b", "go");
    line["tenant"] = json!("blue");
    run.write_line(line);
    let lines: String = allow_until_end(&mut run).iter().map(Value::to_string).collect();
    assert!(lines.contains("what is mine") && lines.contains("git version"), "{lines}");
    run.finish();
    assert_eq!(std::fs::read_to_string(program.cwd_path().join("file")).unwrap(), "there\n");
}

#[test]
fn a_configuration_with_tenants_needs_namespaces_or_says_that_it_does_not() {
    let program = bare();
    let config = program.home_path().join("hub.yaml");
    for (text, expected) in
        [("tenants: {isolation: none, red: {}}", Some(0)), ("tenants: {isolation: some, red: {}}", Some(52))]
    {
        std::fs::write(&config, text).unwrap();
        let ended = program.clone().args(["--config", config.to_str().unwrap(), "--min-workers", "0"]).run();
        assert_eq!(ended.code, expected, "{text}: {ended:?}");
    }
}
