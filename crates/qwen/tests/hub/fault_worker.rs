//! A worker that does what it should until a chosen moment, and then what a broken one does. It is this test
//! program again: a script starts it with its protocol on descriptor 3, because the test harness writes to
//! standard output.

use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::os::fd::{FromRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::Command;

use mock_model::process::Program;
use qwen_events::EndStatus;
use qwen_kernel::ipc::{CommitReason, HubMessage, Place, Report, ReportedFact, WorkerMessage};
use rustix::process::{Resource, Rlimit, Signal, getpid, kill_process};
use serde_json::{Value, json};

/// The moments of a worker's life.
pub const MOMENTS: [&str; 8] = [
    "spawn",
    "handshake",
    "mid_token",
    "mid_tool",
    "awaiting_control",
    "writing_result",
    "between_turns",
    "draining",
];

/// Makes the script that starts the worker, which fails once, at `moment`, in the way of `fault`.
pub fn script(program: &Program, moment: &str, fault: &str) -> PathBuf {
    let path = program.home_path().join("worker.sh");
    let once = program.home_path().join("failed");
    let text = format!(
        "#!/bin/sh\nexport FAULT_MOMENT={moment} FAULT={fault} FAULT_ONCE='{}'\nexec 3>&1 1>/dev/null\n\
         while [ $# -gt 0 ]; do [ \"$1\" != --commit-fd ] || export COMMIT_FD=$2; shift; done\n\
         exec '{}' --ignored --exact fault_worker::act_as_a_worker --nocapture --test-threads=1\n",
        once.display(),
        std::env::current_exe().unwrap().display(),
    );
    write_script(&path, &text);
    path
}

/// Makes a script.
pub fn write_script(path: &Path, text: &str) {
    // Written by another process, so that no other test's child can hold it open for writing while it is
    // executed.
    let quoted = text.replace('\'', "'\\''");
    let shell = format!("printf '%s' '{quoted}' > '{0}' && chmod 755 '{0}'", path.display());
    assert!(Command::new("/bin/sh").arg("-c").arg(shell).status().unwrap().success());
}

struct Worker {
    out: Option<File>,
    /// The commit socket.
    socket: UnixStream,
    /// The number of lines of output and of input so far.
    lines: u64,
    inputs: u64,
    moment: String,
    fault: String,
    once: PathBuf,
}

impl Worker {
    fn raw(&mut self, bytes: &[u8]) {
        if let Some(out) = &mut self.out {
            // A hub that is gone ends us by signal.
            let _ = out.write_all(bytes);
        }
    }

    fn send(&mut self, message: &WorkerMessage) {
        // A hub that is gone ends us by signal.
        let _ = self.socket.write_all(&message.to_line());
    }

    fn report(&mut self, at: Place, fact: ReportedFact) {
        self.send(&WorkerMessage::Report(Report { at, fact }));
    }

    /// Writes a line, after the report of what it is.
    fn write_reported(&mut self, line: &str, fact: ReportedFact) {
        self.report(Place::Line(self.lines + 1), fact);
        self.write_line(line);
    }

    fn write_line(&mut self, line: &str) {
        self.lines += 1;
        self.raw(format!("{line}\n").as_bytes());
    }

    /// Fails if this is the moment, and nobody failed before.
    fn at(&mut self, moment: &str) {
        if self.moment != moment || File::create_new(&self.once).is_err() {
            return;
        }
        match self.fault.as_str() {
            "exit_0" => std::process::exit(0),
            "exit_1" => std::process::exit(1),
            // The runtime's own handler takes the first one for a fault that will happen again.
            "segv" => signalled(Signal::SEGV),
            "kill" => signalled(Signal::KILL),
            "stop" => signalled(Signal::STOP),
            "stdout_closed" => {
                self.out = None;
                // Until somebody ends it.
                loop {
                    std::thread::park();
                }
            }
            "partial_line" => {
                self.raw(b"{\"object\":\"chat.completion.chunk\",\"partial");
                std::process::exit(1);
            }
            "garbage_line" => self.raw(b"Segmentation fault (not really)\n\xff\xfe\x00\n[1,2\n"),
            "long_line" => {
                self.raw(b"{\"object\":\"chat.completion.chunk\",\"x\":\"");
                let chunk = vec![b'x'; 1024 * 1024];
                for _ in 0..65 {
                    self.raw(&chunk);
                }
                self.raw(b"\"}\n");
                self.lines += 1;
            }
            "stderr_flood" => {
                let mut stderr = std::io::stderr().lock();
                let chunk = vec![b'e'; 64 * 1024];
                for _ in 0..80 {
                    stderr.write_all(&chunk).unwrap();
                    stderr.write_all(b"\n").unwrap();
                }
            }
            "disk_full" => {
                let full =
                    File::options().write(true).open("/dev/full").and_then(|mut file| file.write_all(b"x"));
                failed(&full.unwrap_err());
            }
            "emfile" => {
                limit(Resource::Nofile, 16);
                let mut open = Vec::new();
                loop {
                    match File::open("/dev/null") {
                        Ok(file) => open.push(file),
                        Err(error) => failed(&error),
                    }
                }
            }
            "enomem" => {
                limit(Resource::As, 1);
                let more = vec![1_u8; 1 << 30];
                panic!("{} bytes were there", more.len());
            }
            // The hub is what fails: the test learns that the moment is there, and this worker waits.
            "hub_kill" | "hub_stop" => self.wait_for_the_hub(),
            other => panic!("there is no fault {other}"),
        }
    }

    fn wait_for_the_hub(&self) {
        std::fs::write(self.once.with_extension("reached"), "").unwrap();
        if self.fault == "hub_kill" {
            loop {
                std::thread::park();
            }
        }
        // A hub that was stopped goes on, and so do we: the test says when.
        while !self.once.with_extension("resumed").exists() {
            std::thread::yield_now();
        }
    }

    fn turn(&mut self, line: &Value, input: &mut dyn Iterator<Item = String>) {
        let session = line["session_id"].clone();
        let prompt = line["prompt_id"].clone();
        let object = "chat.completion";
        let say = |content: &str, more: Value| {
            let mut line = json!({"object": object, "id": "x", "created": 1, "model": "fault", "session_id": session,
                "prompt_id": prompt, "choices": [{"index": 0, "message": {"role": "assistant", "content": content},
                "finish_reason": "stop"}]});
            for (key, value) in more.as_object().unwrap() {
                line[key] = value.clone();
            }
            line
        };
        // Keys in the order in which a worker writes them.
        let text = |line: &Value| {
            let rest = line.to_string().replacen(r#""object":"chat.completion","#, "", 1);
            let rest = rest.replacen(r#","object":"chat.completion""#, "", 1);
            format!("{{\"object\":\"chat.completion\",{}", rest.trim_start_matches('{'))
        };
        let prompt_id = prompt.as_str().unwrap_or_default().to_owned();
        self.report(Place::Anywhere, ReportedFact::PromptRead { input: self.inputs });
        self.report(Place::After(self.lines), ReportedFact::TurnStarted { prompt_id: prompt_id.clone() });
        self.write_line(&text(&say("Half", json!({}))));
        self.at("mid_token");
        let reason = CommitReason::Effect { tool: "x".to_owned(), call: "c".to_owned() };
        self.send(&WorkerMessage::Commit { id: 1, session_id: None, bytes: 0, reason });
        let tool = format!(
            "{{\"type\":\"x-qwen-tool-display\",\"tool_call_id\":\"c\",\"session_id\":{session},\"prompt_id\":{prompt},\"status\":\"executing\"}}"
        );
        self.write_line(&tool);
        self.at("mid_tool");
        if self.moment == "awaiting_control" && !self.once.exists() {
            let question = format!(
                "{{\"type\":\"control_request\",\"request_id\":\"q-{}\",\"subtype\":\"can_use_tool\",\"session_id\":{session},\"prompt_id\":{prompt},\"tool\":{{\"name\":\"x\",\"arguments\":{{}}}}}}",
                std::process::id()
            );
            let request_id = format!("q-{}", std::process::id());
            self.write_reported(&question, ReportedFact::QuestionOpened { request_id });
            self.at("awaiting_control");
            // The answer, where the fault was none that ends us.
            if self.fault != "hub_stop" {
                for line in &mut *input {
                    self.inputs += 1;
                    if line.contains("control_response") {
                        break;
                    }
                }
            }
        }
        let usage = json!({"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2});
        let turn = json!({"status": "done", "duration_ms": 1, "model_calls": 1, "tool_calls": 0, "permission_denials": [], "usage_by_model": {}});
        let end = text(&say("Done.", json!({"usage": usage, "metadata": {"turn": turn}})));
        let ended = ReportedFact::turn_ended(&prompt_id, EndStatus::Done, (1, 1));
        if self.moment == "writing_result" && !self.once.exists() {
            let half = end.len() / 2;
            if ["garbage_line", "long_line", "stderr_flood", "hub_stop"].contains(&self.fault.as_str()) {
                self.at("writing_result");
                self.write_reported(&end, ended);
            } else {
                self.report(Place::Line(self.lines + 1), ended);
                self.raw(&end.as_bytes()[..half]);
                self.at("writing_result");
            }
        } else {
            self.write_reported(&end, ended);
        }
        self.at("between_turns");
    }
}

fn limit(resource: Resource, current: u64) {
    let limit = Rlimit { current: Some(current), maximum: Some(current) };
    rustix::process::setrlimit(resource, limit).unwrap();
}

/// Ends as a worker does that cannot go on.
fn failed(error: &std::io::Error) -> ! {
    let _ = writeln!(std::io::stderr(), "the worker cannot go on: {error}");
    std::process::exit(1);
}

fn signalled(signal: Signal) -> ! {
    loop {
        kill_process(getpid(), signal).unwrap();
        std::thread::yield_now();
    }
}

#[test]
#[ignore = "not a test: the worker that the fault matrix starts"]
fn act_as_a_worker() {
    let Ok(moment) = std::env::var("FAULT_MOMENT") else { return };
    // SAFETY: the script that starts this process opened descriptor 3 for it alone.
    #[expect(unsafe_code, reason = "the script hands over a descriptor by number")]
    let out = unsafe { OwnedFd::from_raw_fd(3) };
    let variable = |name: &str| std::env::var(name).unwrap();
    // SAFETY: the hub that started the script opened this descriptor for it alone.
    #[expect(unsafe_code, reason = "the hub hands over a descriptor by number")]
    let socket = unsafe { OwnedFd::from_raw_fd(variable("COMMIT_FD").parse().unwrap()) };
    let socket = UnixStream::from(socket);
    let mut answers = socket.try_clone().unwrap();
    let asked = socket.try_clone().unwrap();
    std::thread::spawn(move || {
        for line in BufReader::new(asked).lines().map_while(Result::ok) {
            if HubMessage::parse(line.as_bytes()) == Some(HubMessage::Ping) {
                let _ = answers.write_all(&WorkerMessage::Pong.to_line());
            }
        }
    });
    let mut worker = Worker {
        out: Some(File::from(out)),
        socket,
        lines: 0,
        inputs: 0,
        moment,
        fault: variable("FAULT"),
        once: variable("FAULT_ONCE").into(),
    };
    worker.at("spawn");
    let handshake = r#"{"object":"chat.completion","id":"x","created":1,"model":"fault","session_id":"x","choices":[],"metadata":{"protocol_version":"1.0"}}"#;
    worker.write_reported(handshake, ReportedFact::Ready { version: "1.0".to_owned() });
    worker.at("handshake");
    let mut input = std::io::stdin().lock().lines().map_while(Result::ok);
    while let Some(line) = input.next() {
        worker.inputs += 1;
        let Ok(value) = serde_json::from_str::<Value>(&line) else { continue };
        if value["input"].is_object() {
            worker.turn(&value, &mut input);
        } else if value["type"] == "control_request" {
            let answer = r#""response":{"subtype":"success","result":{"accepted":false}}}"#;
            let answer =
                format!("{{\"type\":\"control_response\",\"request_id\":{},{answer}", value["request_id"]);
            let request_id = value["request_id"].as_str().unwrap_or_default().to_owned();
            worker.write_reported(&answer, ReportedFact::RequestAnswered { request_id, accepted: false });
        }
    }
    worker.at("draining");
    std::process::exit(0);
}
