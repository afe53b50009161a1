//! A running program.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, ChildStderr, ChildStdin, ChildStdout, ExitStatus};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, SyncSender, channel, sync_channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process, waitid};
use serde_json::Value;

use super::Program;
use crate::{WAIT_LIMIT, fail};

/// The exit status and complete output of a program.
#[derive(Debug, Clone)]
pub struct Ended {
    /// None if a signal ended the program.
    pub code: Option<i32>,
    /// The signal that ended the program.
    pub signal: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

impl Ended {
    /// Standard output, parsed as one JSON value per line.
    #[track_caller]
    pub fn json_lines(&self) -> Vec<Value> {
        self.stdout.lines().map(|line| parse(line).unwrap_or_else(|error| fail(&error))).collect()
    }
}

/// A running program. Dropping it kills it.
///
/// Standard output is read only as fast as the test consumes lines, so a test that reads none acts as a
/// host that does not read. Standard input never blocks the test, and standard error is always read.
pub struct Run {
    what: String,
    pid: Pid,
    input: Input,
    lines: Receiver<Vec<u8>>,
    taken: Vec<u8>,
    watch: Arc<Watch>,
    /// Keeps the directories alive.
    _program: Program,
}

/// The queue to standard input, until it is closed.
type Input = Arc<Mutex<Option<Sender<Vec<u8>>>>>;

/// Signals a program from another thread than the one that reads it.
#[derive(Clone)]
pub struct ProcessHandle {
    pid: Pid,
    input: Input,
    watch: Arc<Watch>,
}

impl ProcessHandle {
    /// Closes standard input after the queued writes.
    pub fn close_stdin(&self) {
        *self.input.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// Sends a signal; does nothing if the program has already ended.
    #[track_caller]
    pub fn signal(&self, signal: Signal) {
        // Under the lock the process is at most a zombie, so its id cannot have been reused.
        let seen = self.watch.lock();
        if seen.status.is_none()
            && let Err(error) = kill_process(self.pid, signal)
        {
            drop(seen);
            fail(&format!("the program could not be sent {signal:?}: {error}"));
        }
    }
}

#[derive(Default)]
struct Watch {
    seen: Mutex<Seen>,
    changed: Condvar,
}

#[derive(Default)]
struct Seen {
    stderr: Vec<u8>,
    stderr_closed: bool,
    status: Option<ExitStatus>,
}

impl Run {
    #[track_caller]
    pub(super) fn new(what: String, mut child: Child, first: &[u8], program: Program) -> Self {
        let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let pid = Pid::from_child(&child);
        let watch = Arc::new(Watch::default());
        let (input, to_write) = channel::<Vec<u8>>();
        let (line_out, lines) = sync_channel(1);
        if let Some(stdin) = stdin {
            thread::spawn(move || feed(stdin, &to_write));
        }
        if let Some(stdout) = stdout {
            thread::spawn(move || split(stdout, &line_out));
        }
        match stderr {
            Some(stderr) => {
                let for_stderr = Arc::clone(&watch);
                thread::spawn(move || collect(stderr, &for_stderr));
            }
            None => watch.update(|seen| seen.stderr_closed = true),
        }
        let for_end = Arc::clone(&watch);
        thread::spawn(move || reap(child, pid, &for_end));
        let mut run = Self {
            what,
            pid,
            input: Arc::new(Mutex::new(Some(input))),
            lines,
            taken: Vec::new(),
            watch,
            _program: program,
        };
        if !first.is_empty() {
            run.write(first);
        }
        run
    }

    pub fn pid(&self) -> u32 {
        self.pid.as_raw_nonzero().get().unsigned_abs()
    }

    /// Writes bytes to standard input.
    pub fn write(&mut self, bytes: &[u8]) {
        if let Some(input) = &*self.input.lock().unwrap_or_else(PoisonError::into_inner) {
            // A program that has ended reads nothing; the test observes its end instead.
            let _ = input.send(bytes.to_vec());
        }
    }

    /// Writes a line to standard input.
    pub fn write_line(&mut self, line: impl std::fmt::Display) {
        self.write(format!("{line}\n").as_bytes());
    }

    /// Closes standard input after the queued writes.
    pub fn close_stdin(&mut self) {
        self.handle().close_stdin();
    }

    /// A handle that can signal the program from another thread.
    pub fn handle(&self) -> ProcessHandle {
        ProcessHandle { pid: self.pid, input: Arc::clone(&self.input), watch: Arc::clone(&self.watch) }
    }

    /// The next line of standard output, without its newline; none at its end.
    #[track_caller]
    pub fn line(&mut self) -> Option<String> {
        match self.lines.recv_timeout(WAIT_LIMIT) {
            Ok(line) => {
                self.taken.extend_from_slice(&line);
                let line = line.strip_suffix(b"\n").unwrap_or(&line);
                match str::from_utf8(line) {
                    Ok(line) => Some(line.to_owned()),
                    Err(error) => self.fail(&format!("wrote a line that is no UTF-8 ({error})")),
                }
            }
            Err(RecvTimeoutError::Disconnected) => None,
            Err(RecvTimeoutError::Timeout) if self.watch.lock().status.is_some() => {
                self.fail("has ended, but something that it started still holds its standard output open")
            }
            Err(RecvTimeoutError::Timeout) => self.fail("wrote no further line and did not end"),
        }
    }

    /// The next line as JSON.
    #[track_caller]
    pub fn json(&mut self) -> Value {
        match self.line() {
            Some(line) => parse(&line).unwrap_or_else(|error| self.fail(&error)),
            None => self.fail("closed its standard output where a line was expected"),
        }
    }

    /// Lines as JSON up to and including the first for which `last` returns true.
    #[track_caller]
    pub fn json_until(&mut self, last: impl Fn(&Value) -> bool) -> Vec<Value> {
        let mut lines = Vec::new();
        loop {
            let line = self.json();
            let found = last(&line);
            lines.push(line);
            if found {
                return lines;
            }
        }
    }

    /// Standard error so far.
    pub fn stderr(&self) -> String {
        String::from_utf8_lossy(&self.watch.lock().stderr).into_owned()
    }

    /// Waits until standard error contains `text`.
    #[track_caller]
    pub fn wait_for_stderr(&self, text: &str) {
        let has = |seen: &Seen| String::from_utf8_lossy(&seen.stderr).contains(text);
        if !self.watch.wait(WAIT_LIMIT, |seen| has(seen) || seen.stderr_closed) || !has(&self.watch.lock()) {
            self.fail(&format!("did not write {text:?} to standard error"));
        }
    }

    /// Sends a signal; does nothing if the program has already ended.
    #[track_caller]
    pub fn signal(&self, signal: Signal) {
        self.handle().signal(signal);
    }

    pub fn has_ended(&self) -> bool {
        self.watch.lock().status.is_some()
    }

    /// Reads the rest of standard output and waits for the end. Standard input stays open: call
    /// [`close_stdin`](Self::close_stdin) first for a program that ends with its input.
    #[track_caller]
    pub fn wait(mut self) -> Ended {
        while self.line().is_some() {}
        if !self.watch.wait(WAIT_LIMIT, |seen| seen.status.is_some() && seen.stderr_closed) {
            self.fail(
                "closed its standard output and did not end, or left its standard error with someone else",
            );
        }
        let seen = self.watch.lock();
        Ended {
            code: seen.status.and_then(|status| status.code()),
            signal: seen.status.and_then(|status| status.signal()),
            stdout: String::from_utf8_lossy(&self.taken).into_owned(),
            stderr: String::from_utf8_lossy(&seen.stderr).into_owned(),
        }
    }

    /// Closes standard input and waits for the end.
    #[track_caller]
    pub fn finish(mut self) -> Ended {
        self.close_stdin();
        self.wait()
    }

    #[track_caller]
    fn fail(&self, what: &str) -> ! {
        let stdout = String::from_utf8_lossy(&self.taken).into_owned();
        let state = match self.watch.lock().status {
            Some(status) => format!("ended, {status}"),
            None => "running".to_owned(),
        };
        let stderr = self.stderr();
        fail(&format!(
            "`{}` {what} ({state}; waits are bounded by {} s)\n--- stdout taken\n{stdout}\n--- stderr\n{stderr}",
            self.what,
            WAIT_LIMIT.as_secs()
        ))
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        let seen = self.watch.lock();
        if seen.status.is_none() {
            let _ = kill_process(self.pid, Signal::KILL);
        }
        drop(seen);
        self.watch.wait(WAIT_LIMIT, |seen| seen.status.is_some());
    }
}

impl Watch {
    fn lock(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn update(&self, change: impl FnOnce(&mut Seen)) {
        change(&mut self.lock());
        self.changed.notify_all();
    }

    /// True if the condition was met in time.
    fn wait(&self, time: Duration, until: impl Fn(&Seen) -> bool) -> bool {
        let deadline = Instant::now() + time;
        let mut seen = self.lock();
        while !until(&seen) {
            let Some(left) = deadline.checked_duration_since(Instant::now()) else { return false };
            seen = self.changed.wait_timeout(seen, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        true
    }
}

fn parse(line: &str) -> Result<Value, String> {
    serde_json::from_str(line)
        .map_err(|error| format!("wrote a line that is not valid JSON ({error}): {line}"))
}

fn feed(mut stdin: ChildStdin, pieces: &Receiver<Vec<u8>>) {
    for piece in pieces {
        if stdin.write_all(&piece).and_then(|()| stdin.flush()).is_err() {
            return;
        }
    }
}

fn split(stdout: ChildStdout, lines: &SyncSender<Vec<u8>>) {
    let mut input = BufReader::new(stdout);
    loop {
        let mut line = Vec::new();
        match input.read_until(b'\n', &mut line) {
            Ok(1..) if lines.send(line).is_ok() => {}
            _ => return,
        }
    }
}

fn collect(mut stderr: ChildStderr, watch: &Watch) {
    let mut buffer = [0; 4096];
    loop {
        match stderr.read(&mut buffer) {
            Ok(0) => break,
            Ok(count) => watch.update(|seen| seen.stderr.extend_from_slice(&buffer[..count])),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => break,
        }
    }
    watch.update(|seen| seen.stderr_closed = true);
}

/// Waits for the end without reaping, then reaps under the lock that `signal` holds too.
fn reap(mut child: Child, pid: Pid, watch: &Watch) {
    let ended = || waitid(WaitId::Pid(pid), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT);
    while matches!(ended(), Err(Errno::INTR)) {}
    watch.update(|seen| seen.status = child.wait().ok());
}
