//! A worker that does what it should until a chosen moment, and then what a broken one does. It is this test
//! program again: a script starts it with its protocol on descriptor 3, because the test harness writes to
//! standard output.

use std::fs::File;
use std::io::{BufRead, Write};
use std::os::fd::{FromRawFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::process::Command;

use mock_model::process::Program;
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
        let shown = text(&say("Half", json!({})));
        self.raw(format!("{shown}\n").as_bytes());
        self.at("mid_token");
        let tool = format!(
            "{{\"type\":\"x-qwen-tool-display\",\"tool_call_id\":\"c\",\"session_id\":{session},\"prompt_id\":{prompt},\"status\":\"executing\"}}\n"
        );
        self.raw(tool.as_bytes());
        self.at("mid_tool");
        if self.moment == "awaiting_control" && !self.once.exists() {
            let question = format!(
                "{{\"type\":\"control_request\",\"request_id\":\"q-{}\",\"subtype\":\"can_use_tool\",\"session_id\":{session},\"prompt_id\":{prompt},\"tool\":{{\"name\":\"x\",\"arguments\":{{}}}}}}\n",
                std::process::id()
            );
            self.raw(question.as_bytes());
            self.at("awaiting_control");
            // The answer, where the fault was none that ends us.
            if self.fault != "hub_stop" {
                for line in &mut *input {
                    if line.contains("control_response") {
                        break;
                    }
                    self.heartbeat(&line);
                }
            }
        }
        let usage = json!({"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2});
        let turn = json!({"status": "done", "duration_ms": 1, "model_calls": 1, "tool_calls": 0, "permission_denials": [], "usage_by_model": {}});
        let end = text(&say("Done.", json!({"usage": usage, "metadata": {"turn": turn}})));
        if self.moment == "writing_result" && !self.once.exists() {
            let half = end.len() / 2;
            if ["garbage_line", "long_line", "stderr_flood", "hub_stop"].contains(&self.fault.as_str()) {
                self.at("writing_result");
                self.raw(format!("{end}\n").as_bytes());
            } else {
                self.raw(&end.as_bytes()[..half]);
                self.at("writing_result");
            }
        } else {
            self.raw(format!("{end}\n").as_bytes());
        }
        self.at("between_turns");
    }

    fn heartbeat(&mut self, line: &str) -> bool {
        let Ok(line) = serde_json::from_str::<Value>(line) else { return false };
        let asked = line["type"] == "heartbeat_request";
        if asked {
            let beat = format!(
                "{{\"type\":\"result/heartbeat\",\"session_id\":{},\"status\":\"ok\"}}\n",
                line["session_id"]
            );
            self.raw(beat.as_bytes());
        }
        asked
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
    let mut worker = Worker {
        out: Some(File::from(out)),
        moment,
        fault: variable("FAULT"),
        once: variable("FAULT_ONCE").into(),
    };
    worker.at("spawn");
    worker.raw(b"{\"object\":\"chat.completion\",\"id\":\"x\",\"created\":1,\"model\":\"fault\",\"session_id\":\"x\",\"choices\":[],\"metadata\":{\"protocol_version\":\"1.0\"}}\n");
    worker.at("handshake");
    let mut input = std::io::stdin().lock().lines().map_while(Result::ok);
    while let Some(line) = input.next() {
        if worker.heartbeat(&line) {
            continue;
        }
        let Ok(value) = serde_json::from_str::<Value>(&line) else { continue };
        if value["input"].is_object() {
            worker.turn(&value, &mut input);
        } else if value["type"] == "control_request" {
            let answer = r#""response":{"subtype":"success","result":{"accepted":false}}}"#;
            worker.raw(
                format!("{{\"type\":\"control_response\",\"request_id\":{},{answer}\n", value["request_id"])
                    .as_bytes(),
            );
        }
    }
    worker.at("draining");
    std::process::exit(0);
}
