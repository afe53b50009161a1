//! A worker that does what a test writes: this test program again, whose protocol is on descriptor 3 because the
//! test harness writes to standard output.

use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::os::fd::{FromRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use qwen_kernel::ipc::{HubMessage, Place, Report, ReportedFact, WorkerMessage};
use serde::{Deserialize, Serialize};

/// A step of a worker.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub enum Act {
    /// Writes a line.
    Line(String),
    /// Writes this many lines of this length.
    Lines(usize, usize),
    Report(Report),
    /// Reports the turn of the last prompt as started.
    Start,
    /// Reports the end of that turn, and writes its line unless the worker dies first.
    End {
        dies: bool,
    },
    /// Reports the end of that turn; the line follows later.
    ReportEnd,
    /// Writes the line of the end that was reported.
    EndLine,
    /// Reports that it accepts lines, and writes the handshake.
    Greet,
    /// Writes the handshake of a worker that reports nothing.
    GreetWithoutReport,
    /// Reads a line of input.
    Read,
    /// Waits until the file with this name exists.
    Await(String),
    /// Stops answering pings.
    IgnorePings,
    /// Waits for the end of input.
    Serve,
}

/// Makes a program that does the steps, and returns its path.
pub fn program(directory: &Path, acts: &[Act]) -> PathBuf {
    let path = directory.join("worker.sh");
    let steps = serde_json::to_string(acts).unwrap().replace('\'', "'\\''");
    let text = format!(
        "#!/bin/sh\nexport ACTS='{steps}' PLACE='{}'\n\
         while [ $# -gt 0 ]; do [ \"$1\" != --commit-fd ] || export COMMIT_FD=$2; shift; done\n\
         exec 3>&1 1>/dev/null\nexec '{}' --ignored --exact worker::act_as_a_worker --nocapture --test-threads=1\n",
        directory.display(),
        std::env::current_exe().unwrap().display(),
    );
    // Written by another process, so that no child of another test can hold it open for writing while it is
    // executed.
    let quoted = text.replace('\'', "'\\''");
    let shell = format!("printf '%s' '{quoted}' > '{0}' && chmod 755 '{0}'", path.display());
    assert!(std::process::Command::new("/bin/sh").arg("-c").arg(shell).status().unwrap().success());
    path
}

struct Worker {
    out: File,
    socket: UnixStream,
    lines: u64,
    inputs: u64,
    session: String,
    prompt: String,
}

impl Worker {
    fn report(&mut self, at: Place, fact: ReportedFact) {
        let report = WorkerMessage::Report(Report { at, fact });
        self.socket.write_all(&report.to_line()).unwrap();
    }

    fn line(&mut self, line: &str) {
        self.lines += 1;
        self.out.write_all(format!("{line}\n").as_bytes()).unwrap();
    }

    fn report_end(&mut self) {
        let fact = ReportedFact::turn_ended(&self.prompt, qwen_events::EndStatus::Done, (1, 1));
        self.report(Place::Line(self.lines + 1), fact);
    }

    fn end_line(&mut self) {
        self.line(&format!(
            r#"{{"object":"chat.completion","session_id":"{}","prompt_id":"{}","choices":[],"metadata":{{"turn":{{"status":"done"}}}}}}"#,
            self.session, self.prompt
        ));
    }

    fn perform(&mut self, act: Act, input: &mut dyn Iterator<Item = String>) {
        let handshake = r#"{"object":"chat.completion","choices":[],"metadata":{"protocol_version":"1.0"}}"#;
        match act {
            Act::Line(line) => {
                let line = line.replace("$SESSION", &self.session).replace("$PROMPT", &self.prompt);
                self.line(&line);
            }
            Act::Lines(count, length) => {
                let text = "x".repeat(length);
                let line = format!(
                    r#"{{"type":"x-qwen-terminal","session_id":"{}","prompt_id":"{}","text":"{text}"}}"#,
                    self.session, self.prompt
                );
                (0..count).for_each(|_| self.line(&line));
            }
            Act::Report(report) => self.report(report.at, report.fact),
            Act::Start => {
                let fact = ReportedFact::TurnStarted { prompt_id: self.prompt.clone() };
                self.report(Place::After(self.lines), fact);
            }
            Act::End { dies } => {
                self.report_end();
                if dies {
                    std::process::exit(7);
                }
                self.end_line();
            }
            Act::ReportEnd => self.report_end(),
            Act::EndLine => self.end_line(),
            Act::Greet => {
                self.report(Place::Line(1), ReportedFact::Ready { version: "1.0".to_owned() });
                self.line(handshake);
            }
            Act::GreetWithoutReport => self.line(handshake),
            Act::Read => {
                let line: serde_json::Value = serde_json::from_str(&input.next().unwrap()).unwrap();
                self.inputs += 1;
                if line["prompt_id"].is_string() {
                    line["session_id"].as_str().unwrap().clone_into(&mut self.session);
                    line["prompt_id"].as_str().unwrap().clone_into(&mut self.prompt);
                    self.report(Place::Anywhere, ReportedFact::PromptRead { input: self.inputs });
                }
            }
            Act::Await(name) => {
                let file = PathBuf::from(std::env::var("PLACE").unwrap()).join(name);
                while !file.exists() {
                    std::thread::yield_now();
                }
            }
            Act::IgnorePings => IGNORES_PINGS.store(true, std::sync::atomic::Ordering::SeqCst),
            Act::Serve => while input.next().is_some() {},
        }
    }
}

static IGNORES_PINGS: std::sync::atomic::AtomicBool = std::sync::atomic::AtomicBool::new(false);

#[test]
#[ignore = "not a test: the worker that the other tests start"]
fn act_as_a_worker() {
    let Ok(acts) = std::env::var("ACTS") else { return };
    // SAFETY: the script that starts this process opened descriptor 3 for it alone.
    #[expect(unsafe_code, reason = "the script hands over a descriptor by number")]
    let out = unsafe { OwnedFd::from_raw_fd(3) };
    // SAFETY: the hub that started the script opened this descriptor for it alone.
    #[expect(unsafe_code, reason = "the hub hands over a descriptor by number")]
    let socket = unsafe { OwnedFd::from_raw_fd(std::env::var("COMMIT_FD").unwrap().parse().unwrap()) };
    let socket = UnixStream::from(socket);
    let mut pongs = socket.try_clone().unwrap();
    let messages = BufReader::new(socket.try_clone().unwrap());
    std::thread::spawn(move || {
        for line in messages.lines().map_while(Result::ok) {
            let answers = !IGNORES_PINGS.load(std::sync::atomic::Ordering::SeqCst);
            if answers && HubMessage::parse(line.as_bytes()) == Some(HubMessage::Ping) {
                pongs.write_all(&WorkerMessage::Pong.to_line()).unwrap();
            }
        }
    });
    let (session, prompt) = (String::new(), String::new());
    let mut worker = Worker { out: File::from(out), socket, lines: 0, inputs: 0, session, prompt };
    let mut input = std::io::stdin().lock().lines().map_while(Result::ok);
    for act in serde_json::from_str::<Vec<Act>>(&acts).unwrap() {
        worker.perform(act, &mut input);
    }
    std::process::exit(0);
}
