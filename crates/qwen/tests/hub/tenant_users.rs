//! Tenants with their own users and limits, in a hub that root started, and what the hub itself reads in places
//! that a tenant can change.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use mock_model::process::{Program, Run};
use serde_json::{Value, json};

use crate::harness::*;

/// What belongs to the tenant red.
const SECRET: &str = "vermilion-4712";

/// True if this process can give workers users and limits; otherwise reports that it cannot.
#[expect(clippy::print_stderr, reason = "a test that is passed over says so")]
fn can_choose_users(program: &Program) -> bool {
    let probe = Path::new("/sys/fs/cgroup").join("memory");
    let groups = if probe.exists() { probe } else { "/sys/fs/cgroup".into() };
    let is_root = rustix::process::geteuid().is_root();
    let is_writable = rustix::fs::access(&groups, rustix::fs::Access::WRITE_OK).is_ok();
    let binary = Path::new(env!("CARGO_BIN_EXE_qwen"));
    let is_open = |path: &Path| fs::metadata(path).is_ok_and(|file| file.permissions().mode() & 0o001 != 0);
    let places = [binary, program.home_path()].into_iter().flat_map(Path::ancestors).skip(1);
    let can = is_root && is_writable && places.filter(|place| *place != program.home_path()).all(is_open);
    if !can {
        eprintln!("SKIPPED: no users or limits can be chosen here");
    }
    can
}

/// Lets every user enter the places of a test.
fn share_places(program: &Program) {
    fs::set_permissions(program.home_path(), fs::Permissions::from_mode(0o755)).unwrap();
    fs::set_permissions(program.cwd_path(), fs::Permissions::from_mode(0o777)).unwrap();
}

fn write_script(program: &Program, name: &str, commands: &[String], end: &str) -> String {
    let call = |command: &String| json!([{"tool_call": {"name": "run_shell_command", "arguments": {"command": command}}}]);
    let mut steps: Vec<Value> = commands.iter().map(call).collect();
    steps.push(json!([{"text": end}]));
    let path = program.home_path().join(name);
    fs::write(&path, json!(steps).to_string()).unwrap();
    format!("script:{}", path.display())
}

fn open(run: &mut Run, tenant: &str, session: &str, model: &str) -> Value {
    let options = json!({"session_id": session, "tenant": tenant, "args": ["--model", model]});
    run.write_line(request("o", "open", options));
    answer(run, "o")
}

fn tenant_prompt(tenant: &str, session: &str) -> Value {
    let mut line = named(session, "p1", "go");
    line["tenant"] = json!(tenant);
    line
}

/// The results of the commands of a turn, in order.
fn results(lines: &[Value]) -> Vec<String> {
    let is_result = |line: &&Value| line["type"] == "x-qwen-terminal" || line["result_display"].is_object();
    lines.iter().filter(is_result).map(Value::to_string).collect()
}

#[test]
fn a_tenant_runs_as_its_user_within_its_limits_and_reaches_no_other() {
    let program = bare();
    if !can_choose_users(&program) {
        return;
    }
    share_places(&program);
    let (home, state) = (program.home_path().to_owned(), program.home_path().join("state"));
    let config = home.join("hub.yaml");
    let limits = "limits: {memory: 268435456, pids: 100, cpu: 1.5}";
    let text = format!(
        "worker_pool: {{min_workers: 0}}\ntenants:\n  red: {{uid: 20011, {limits}}}\n  blue: {{uid: 20012, gid: 20013, {limits}}}\n"
    );
    fs::write(&config, text).unwrap();
    let flags = ["--config", config.to_str().unwrap(), "--state-dir", state.to_str().unwrap()];
    let mut run = program.clone().args(flags).args(["--", "--yolo", "--sandbox=false"]).start();
    let red =
        write_script(&program, "red.json", &["id -u; echo mine > $HOME/own; ls -n $HOME".to_owned()], SECRET);
    let opened = open(&mut run, "red", "a", &red);
    assert!(opened["code"].is_null(), "{opened}");
    run.write_line(tenant_prompt("red", "a"));
    let lines = run.json_until(is_end);
    let said = results(&lines).concat();
    assert!(said.contains("20011") && said.contains("own"), "{lines:?}");

    let worker = children(run.pid())[0];
    let own = state.join("tenants/red/home/own");
    let mut commands: Vec<String> = [
        "id; cat /proc/self/uid_map; grep -c . /proc/self/cgroup; touch in-the-workspace",
        "cat OWN; ls RED; ls -R STATE",
        "cat /proc/WORKER/environ /proc/WORKER/root/OWN /proc/WORKER/cwd/x; ls /proc/WORKER/fd",
        "kill -9 WORKER && echo was-killed",
        "kill -STOP WORKER HUB && echo was-stopped",
        "echo 0 > /sys/fs/cgroup/memory/cgroup.procs; echo 0 > /sys/fs/cgroup/cgroup.procs; cat /sys/fs/cgroup/*/qwen-HUB-red/cgroup.procs && echo > /sys/fs/cgroup/pids/qwen-HUB-blue/pids.max",
        r#"perl -e 'my $n=0; while ($n<400) { my $p=fork; if (!defined $p) { print "stopped-early\n"; exit } if (!$p) { sleep 60; exit } $n++ } print "unlimited\n"'"#,
        r#"perl -e 'my $x = "a" x (600*1024*1024); print length($x) > 1 ? "alloc" . "ated\n" : ""'; echo after"#,
        "unshare --user --map-root-user --mount sh -c 'umount -l STATE; cat OWN'",
        "su -c id; sudo -n id; setpriv --reuid 20011 cat OWN",
    ]
    .map(|command| {
        let replaced = command.replace("OWN", own.to_str().unwrap()).replace("STATE", state.to_str().unwrap());
        let replaced = replaced.replace("RED", state.join("tenants/red").to_str().unwrap());
        replaced.replace("WORKER", &worker.to_string()).replace("HUB", &run.pid().to_string())
    })
    .into();
    commands.push("echo still-here".to_owned());
    let blue = write_script(&program, "blue.json", &commands, "done");
    let opened = open(&mut run, "blue", "b", &blue);
    assert!(opened["code"].is_null(), "{opened}");
    run.write_line(tenant_prompt("blue", "b"));
    let lines = run.json_until(ends("b"));
    let said = results(&lines);
    let all = said.concat();
    assert!(all.contains("uid=20012") && all.contains("gid=20013"), "{lines:?}");
    assert!(all.contains("stopped-early") && all.contains("still-here"), "{said:?}");
    for wrong in [SECRET, "mine", "was-killed", "was-stopped", "unlimited", "allocated", "uid=0", "uid=20011"]
    {
        assert!(!all.contains(wrong), "{wrong}: {said:?}");
    }
    // The neighbour is unharmed.
    let red = write_script(&program, "red2.json", &["cat $HOME/own".to_owned()], "fine");
    open(&mut run, "red", "a2", &red);
    run.write_line(tenant_prompt("red", "a2"));
    let lines = run.json_until(ends("a2"));
    assert!(results(&lines).concat().contains("mine"), "{lines:?}");
    run.finish();
    assert!(program.cwd_path().join("in-the-workspace").exists());
}

#[test]
fn a_tenants_profile_and_sandbox_work_as_its_user() {
    let program = bare();
    if !can_choose_users(&program) {
        return;
    }
    share_places(&program);
    let state = program.home_path().join("state");
    let config = program.home_path().join("hub.yaml");
    fs::write(&config, "worker_pool: {min_workers: 0}\ntenants: {blue: {uid: 20014}}\n").unwrap();
    let flags = ["--config", config.to_str().unwrap(), "--state-dir", state.to_str().unwrap()];
    let mut run = program.clone().args(flags).args(["--", "--yolo"]).start();
    let commands =
        ["id -u; echo written > file; cat file; touch $HOME/x", "cat PROFILE/*/*/user.json; echo tried"];
    let profiles = state.join("profiles");
    let commands = commands.map(|command| command.replace("PROFILE", profiles.to_str().unwrap()));
    let model = write_script(&program, "blue.json", &commands, "done");
    let profile = json!({"user": {"model": {"name": model}, "permissions": {"deny": ["Bash(vermilion)"]}}});
    let options = json!({"session_id": "b", "tenant": "blue", "settings_profile": profile});
    run.write_line(request("o", "open", options));
    let opened = answer(&mut run, "o");
    assert!(opened["code"].is_null(), "{opened}");
    run.write_line(tenant_prompt("blue", "b"));
    let lines = run.json_until(is_end);
    let all = results(&lines).concat();
    assert!(all.contains("20014") && all.contains("written") && all.contains("tried"), "{lines:?}");
    assert!(!all.contains("vermilion"), "{lines:?}");
    // A directory that only root can enter does not exist for the tenant.
    let private = program.home_path().join("private");
    fs::create_dir(&private).unwrap();
    fs::set_permissions(&private, fs::Permissions::from_mode(0o700)).unwrap();
    run.write_line(request("o", "open", json!({"session_id": "c", "tenant": "blue", "cwd": private})));
    assert_eq!(answer(&mut run, "o")["code"], "no_working_directory");
    run.finish();
    let written = fs::metadata(program.cwd_path().join("file")).unwrap();
    assert_eq!(std::os::unix::fs::MetadataExt::uid(&written), 20014);
}

#[test]
fn a_user_that_cannot_be_had_is_refused_at_the_start() {
    let program = bare();
    let config = program.home_path().join("hub.yaml");
    fs::write(&config, "tenants: {red: {uid: 20015}}").unwrap();
    // Its state directory is in a place that only its user can enter.
    fs::set_permissions(program.home_path(), fs::Permissions::from_mode(0o700)).unwrap();
    let ended = program.clone().args(["--config", config.to_str().unwrap(), "--min-workers", "0"]).run();
    assert_eq!(ended.code, Some(52), "{ended:?}");
    assert!(ended.stdout.contains("tenant_user_unavailable"), "{ended:?}");
}

#[test]
fn the_hub_follows_no_link_that_a_tenant_puts_in_place_of_its_log() {
    for place in ["sessions/b.jsonl", "sessions", ""] {
        let program = bare();
        let tenants = program.qwen_home_path().join("hub/tenants");
        fs::create_dir_all(tenants.join("red/home")).unwrap();
        let target = tenants.join("red/home/own");
        fs::write(&target, SECRET).unwrap();
        let ready = program.cwd_path().join("ready");
        assert!(std::process::Command::new("mkfifo").arg(&ready).status().unwrap().success());
        let mut run = program.clone().args(["--min-workers", "0", "--", "--yolo", "--sandbox=false"]).start();
        let red = write_script(&program, "red.json", &[], SECRET);
        open(&mut run, "red", "b2", &red);
        run.write_line(tenant_prompt("red", "b2"));
        run.json_until(is_end);
        run.write_line(request("c", "close", json!({"session_id": "b2", "tenant": "red"})));
        answer(&mut run, "c");
        // The tenant's log leads to the other's, and the file of its owner to one that is to be kept.
        let red = tenants.join("red/qwen");
        fs::copy(red.join("sessions/b2.jsonl"), red.join("sessions/b.jsonl")).unwrap();
        let own = tenants.join("blue/qwen").join(place);
        let own = own.to_str().unwrap().trim_end_matches('/');
        let command = format!(
            "ln -sf {} $QWEN_HOME/sessions/b.owner; mv {own} {own}.old; ln -s {}/{place} {own}; echo planted > ready; exec sleep 60",
            target.display(),
            red.display()
        );
        let blue = write_script(&program, "blue.json", &[command], "done");
        open(&mut run, "blue", "b", &blue);
        run.write_line(tenant_prompt("blue", "b"));
        // It asks, because it writes where state is kept; this tenant's host allows it.
        let asked = run.json_until(|line| line["type"] == "control_request");
        let response = json!({"subtype": "success", "result": {"behavior": "allow"}});
        let id = asked[asked.len() - 1]["request_id"].clone();
        run.write_line(json!({"type": "control_response", "request_id": id, "response": response}));
        assert_eq!(fs::read_to_string(&ready).unwrap(), "planted\n");
        for worker in children(run.pid()) {
            let pid = rustix::process::Pid::from_raw(worker.cast_signed()).unwrap();
            rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
        }
        let lines = run.json_until(ends("b"));
        assert!(!json!(lines).to_string().contains(SECRET), "{place}: {lines:?}");
        run.finish();
        assert_eq!(fs::read_to_string(&target).unwrap(), SECRET, "{place}");
        let owners = fs::read_dir(red.join("sessions")).unwrap().flatten();
        assert!(!owners.map(|entry| entry.file_name()).any(|name| name == "b.owner"), "{place}");
    }
}
