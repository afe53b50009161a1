//! Random faults under load: every prompt has its end, and the recorded history is correct.
//!
//! `QWEN_CHAOS_SECONDS` (12 by default; with 60 or more, sixty sessions) and `QWEN_CHAOS_SEED` choose the run.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use mock_model::bus::BusServers;
use mock_model::process::{ProcessHandle, Program, Run, Signal};
use mock_model::{MockModel, Reply, Request, sse};
use serde_json::{Value, json};

use crate::harness::*;
use crate::link::Link;
use crate::matrix::fleet::check_history;

fn number_of(variable: &str, default: u64) -> u64 {
    std::env::var(variable).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

/// Every third prompt runs a tool, which notes that it ran.
fn reply(request: &Request) -> Option<Reply> {
    let messages = request.body["messages"].as_array()?;
    let last = messages.last()?;
    let prompt = last["content"].to_string();
    let Some((_, call)) = prompt.split_once("[run ").filter(|_| last["role"] == "user") else {
        let pieces =
            [sse::text("One "), sse::text("two "), sse::text("three."), sse::finish("stop"), sse::done()];
        return Some(Reply::new(pieces));
    };
    let (call, _) = call.split_once(']')?;
    let session = call.split('-').next()?;
    let entry = json!({"session_id": session, "call": call});
    let command = format!("echo '{entry}' >> tools.jsonl");
    Some(Reply::call(call, "run_shell_command", &json!({"command": command}).to_string()))
}

/// What a client knows of a session.
#[derive(Default)]
struct Driven {
    /// The number of the last line.
    seen: u64,
    prompts: u64,
    /// The text of the prompt that has no end yet.
    open: Option<String>,
    is_finished: bool,
}

/// A client that drives some sessions, and starts its hub again if it dies.
struct Driver {
    name: String,
    url: String,
    history: std::path::PathBuf,
    handle: Arc<Mutex<Option<ProcessHandle>>>,
    sessions: BTreeMap<String, Driven>,
    hubs: u32,
}

impl Driver {
    fn start_hub(&mut self) -> Run {
        self.hubs += 1;
        let record = self.history.join(format!("{}-{}", self.name, self.hubs));
        let run = qwen().args(["hub", "--bus", &self.url, "--record-dir"]).arg(record).start();
        *self.handle.lock().unwrap() = Some(run.handle());
        run
    }

    /// Drives the sessions until the time is over and each has a turn that was not disturbed.
    fn drive(mut self, is_over: &AtomicBool) {
        let mut run = self.start_hub();
        let names: Vec<String> = self.sessions.keys().cloned().collect();
        for name in &names {
            self.prompt(&mut run, name);
        }
        while self.sessions.values().any(|driven| !driven.is_finished) {
            match run.line() {
                Some(line) => self.read(&mut run, &serde_json::from_str(&line).unwrap(), is_over),
                None => {
                    run = self.start_hub();
                    self.reconnect(&mut run);
                }
            }
        }
        *self.handle.lock().unwrap() = None;
        assert_eq!(run.finish().code, Some(0));
    }

    fn prompt(&mut self, run: &mut Run, session: &str) {
        let driven = self.sessions.get_mut(session).unwrap();
        driven.prompts += 1;
        let id = format!("{session}-{}", driven.prompts);
        let text = if driven.prompts.is_multiple_of(3) { format!("go [run {id}]") } else { "go".to_owned() };
        run.write_line(named(session, &id, &text));
        driven.open = Some(text);
    }

    /// Attaches to every session, and sends prompts again that have no end.
    fn reconnect(&mut self, run: &mut Run) {
        for (session, driven) in &self.sessions {
            let attach = json!({"session_id": session, "after": driven.seen});
            run.write_line(request(&format!("at-{session}"), "attach", attach));
            if let Some(text) = &driven.open {
                let mut again = named(session, &format!("{session}-{}", driven.prompts), text);
                again["resend"] = json!(true);
                run.write_line(again);
            }
        }
    }

    fn read(&mut self, run: &mut Run, line: &Value, is_over: &AtomicBool) {
        let session = line["session_id"].as_str().unwrap_or_default().to_owned();
        let Some(driven) = self.sessions.get_mut(&session) else { return };
        driven.seen = driven.seen.max(line["seq"].as_u64().unwrap_or(0));
        let current = format!("{session}-{}", driven.prompts);
        if !is_end(line) || driven.open.is_none() || line["prompt_id"] != current.as_str() {
            return;
        }
        driven.open = None;
        if status(line) != "done" {
            let is_retryable = line["metadata"]["error"]["retryable"] == true;
            assert!(status(line) == "interrupted" || is_retryable, "{line}");
        } else if is_over.load(Ordering::Relaxed) {
            driven.is_finished = true;
            return;
        }
        self.prompt(run, &session);
    }
}

/// A node and its links to the servers.
struct Machine {
    program: Program,
    run: Option<Run>,
    links: Vec<Link>,
}

impl Machine {
    fn start(servers: &BusServers, mock: &MockModel, name: &str, history: &Path) -> Self {
        let links: Vec<Link> = servers.ports().into_iter().map(Link::to).collect();
        let url = links.iter().map(Link::url).collect::<Vec<_>>().join(",");
        let args = ["node", "--bus", &url, "--name", name, "--min-workers", "0", "--max-workers", "40"];
        let program = qwen()
            .args(args)
            .arg("--record-dir")
            .arg(history.join(name))
            .args(["--shared-workspace", "w", "--", "--model", "mock", "--yolo"])
            .with_model(mock);
        let run = Some(program.start());
        Self { program, run, links }
    }

    /// Starts the node again if it could not start while the bus had no leader, as a supervisor does.
    fn revive(&mut self) {
        if self.run.as_ref().unwrap().has_ended() {
            self.run = Some(self.program.start());
        }
    }
}

/// Lets something fail for about a second.
fn fail_once(
    random: &mut fastrand::Rng,
    machines: &mut [Machine],
    servers: &mut BusServers,
    hubs: &[Arc<Mutex<Option<ProcessHandle>>>],
) {
    let pause = || std::thread::park_timeout(Duration::from_secs(1));
    let machine = random.usize(..machines.len());
    let machine = &mut machines[machine];
    let run = machine.run.as_ref().unwrap();
    match random.u32(..7) {
        0 => {
            run.signal(Signal::KILL);
            pause();
            machine.run = Some(machine.program.start());
        }
        1 => {
            run.signal(Signal::STOP);
            pause();
            run.signal(Signal::CONT);
        }
        2 => {
            for worker in children(run.pid()) {
                let pid = rustix::process::Pid::from_raw(i32::try_from(worker).unwrap()).unwrap();
                // It may have ended meanwhile.
                let _ = rustix::process::kill_process(pid, Signal::KILL);
            }
            pause();
        }
        3 => {
            machine.links.iter().for_each(Link::cut);
            pause();
            machine.links.iter().for_each(Link::open);
        }
        4 => {
            machine.links.iter().for_each(Link::hold);
            pause();
            machine.links.iter().for_each(Link::open);
        }
        5 => {
            let hub = hubs[random.usize(..hubs.len())].lock().unwrap().clone();
            if let Some(hub) = hub {
                hub.signal(Signal::KILL);
            }
            pause();
        }
        _ => {
            let server = random.usize(..3);
            servers.kill(server);
            pause();
            servers.restart(server);
        }
    }
}

#[test]
#[ignore = "needs nats-server: make test-fleet"]
fn every_prompt_ends_once_while_a_random_part_fails_each_second() {
    let (seconds, seed) = (number_of("QWEN_CHAOS_SECONDS", 12), number_of("QWEN_CHAOS_SEED", 28));
    let sessions = if seconds >= 60 { 60 } else { 16 };
    let mut servers = bus(3);
    let mock = MockModel::start();
    mock.answer_with(reply);
    let history = tempfile::tempdir().unwrap();
    let mut machines: Vec<Machine> =
        ["a", "b", "c"].iter().map(|name| Machine::start(&servers, &mock, name, history.path())).collect();
    for machine in &machines {
        machine.run.as_ref().unwrap().wait_for_stderr("is on the bus");
    }
    let is_over = Arc::new(AtomicBool::new(false));
    let mut clients = Vec::new();
    let mut hubs = Vec::new();
    for client in 0..2 {
        let handle = Arc::new(Mutex::new(None));
        hubs.push(handle.clone());
        let mine = (0..sessions).filter(|n| n % 2 == client).map(|n| (format!("s{n}"), Driven::default()));
        let driver = Driver {
            name: format!("h{client}"),
            url: servers.url(),
            history: history.path().to_owned(),
            handle,
            sessions: mine.collect(),
            hubs: 0,
        };
        let is_over = is_over.clone();
        clients.push(std::thread::spawn(move || driver.drive(&is_over)));
    }
    let mut random = fastrand::Rng::with_seed(seed);
    for _ in 0..seconds {
        machines.iter_mut().for_each(Machine::revive);
        fail_once(&mut random, &mut machines, &mut servers, &hubs);
    }
    machines.iter_mut().for_each(Machine::revive);
    is_over.store(true, Ordering::Relaxed);
    for client in clients {
        client.join().unwrap();
    }
    for (index, mut machine) in machines.into_iter().enumerate() {
        let run = machine.run.take().unwrap();
        if !run.has_ended() {
            run.signal(Signal::TERM);
            assert_eq!(run.wait().code, Some(143));
        }
        let ran = machine.program.cwd_path().join("tools.jsonl");
        if ran.exists() {
            let directory = history.path().join(format!("tools-{index}"));
            std::fs::create_dir_all(&directory).unwrap();
            std::fs::copy(ran, directory.join("tools.jsonl")).unwrap();
        }
    }
    check_history(&servers, history.path());
}
