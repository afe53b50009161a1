//! A live worker: a process that is driven line by line, and measured while it lives.

use std::io::{Read, Write};
use std::os::fd::AsFd;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use mock_model::monotonic_ns;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::Pid;
use serde_json::{Value, json};

use crate::output::contains;
use crate::process::Measured;

/// A worker without output for this long hangs.
const TIME_LIMIT: Timespec = Timespec { tv_sec: 60, tv_nsec: 0 };

/// What only the terminal record of a turn contains, in the `qwen` dialect.
const TURN_END: &[u8] = b"\"turn\":{\"status\":";

pub struct Worker {
    process: Child,
    /// None once it was closed.
    input: Option<ChildStdin>,
    output: ChildStdout,
    /// What was read and is not looked at yet.
    ahead: Vec<u8>,
}

impl Measured for Worker {
    fn pid(&self) -> Pid {
        Pid::from_child(&self.process)
    }
}

impl Worker {
    /// Starts a worker with the `qwen` dialect and waits for its first line.
    pub fn start(command: Command) -> Result<Self, String> {
        let mut worker = Self::spawn(command)?;
        worker.read_until("its handshake", |line| contains(line, b"\"protocol_version\""))?;
        Ok(worker)
    }

    /// Starts a program that is driven line by line.
    pub fn spawn(mut command: Command) -> Result<Self, String> {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut process = command.spawn().map_err(|error| format!("cannot start a worker: {error}"))?;
        let pipes = process.stdin.take().zip(process.stdout.take());
        let (input, output) = pipes.ok_or("a worker without pipes")?;
        Ok(Self { process, input: Some(input), output, ahead: Vec::new() })
    }

    /// Sends a line; when it was on its way, on the clock that processes share.
    pub fn send(&mut self, line: &Value) -> Result<u64, String> {
        let now = monotonic_ns();
        let input = self.input.as_mut().ok_or("the worker's input was closed")?;
        let sent = input.write_all(format!("{line}\n").as_bytes());
        sent.map_err(|error| format!("cannot write to a worker: {error}"))?;
        Ok(now)
    }

    /// Reads up to the first line that satisfies `wanted`. Returns it and its arrival time.
    pub fn read_until(
        &mut self,
        what: &str,
        wanted: impl Fn(&[u8]) -> bool,
    ) -> Result<(Vec<u8>, u64), String> {
        let mut now = monotonic_ns();
        loop {
            while let Some(end) = self.ahead.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.ahead.drain(..=end).collect();
                if wanted(&line) {
                    return Ok((line, now));
                }
            }
            let count = self.read().map_err(|error| format!("waiting for {what} of a worker: {error}"))?;
            now = monotonic_ns();
            if count == 0 {
                return Err(format!("the worker ended before {what}"));
            }
        }
    }

    fn read(&mut self) -> std::io::Result<usize> {
        let mut ready = [PollFd::from_borrowed_fd(self.output.as_fd(), PollFlags::IN)];
        if poll(&mut ready, Some(&TIME_LIMIT))? == 0 {
            return Err(std::io::ErrorKind::TimedOut.into());
        }
        let mut buffer = [0; 16 * 1024];
        let count = self.output.read(&mut buffer)?;
        self.ahead.extend_from_slice(&buffer[..count]);
        Ok(count)
    }

    /// Asks for a turn.
    pub fn ask(&mut self, prompt: &str) -> Result<(), String> {
        self.send(&json!({ "messages": [{ "role": "user", "content": prompt }] })).map(drop)
    }

    /// Reads up to the end of the turn; its terminal record.
    pub fn turn_end(&mut self) -> Result<Vec<u8>, String> {
        self.read_until("the end of the turn", |line| contains(line, TURN_END)).map(|(line, _)| line)
    }

    /// A whole turn, which must go well.
    pub fn turn(&mut self, prompt: &str) -> Result<(), String> {
        self.ask(prompt)?;
        let end = self.turn_end()?;
        if contains(&end, b"\"status\":\"done\"") {
            return Ok(());
        }
        Err(format!("a turn went wrong: {}", String::from_utf8_lossy(&end)))
    }
}

impl Worker {
    /// Closes its input and waits for its end.
    pub fn finish(mut self) -> Result<(), String> {
        self.input = None;
        while self.read().map_err(|error| format!("waiting for the end of a worker: {error}"))? > 0 {}
        let status = self.process.wait().map_err(|error| format!("cannot wait for a worker: {error}"))?;
        if status.success() { Ok(()) } else { Err(format!("a worker ended with {status}")) }
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
