//! A command under way, and its guardian as we see it.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::{Mutex, PoisonError};

use tokio::io::AsyncReadExt;
use tokio::net::unix::pipe;

use super::guardian::{self, RECORD_BYTES};

/// A command under way. Dropping it kills the command and everything that it started.
pub struct Running {
    /// What it reads, where a pipe was asked for.
    pub stdin: Option<pipe::Sender>,
    /// What it writes, until someone takes it.
    pub stdout: Option<pipe::Receiver>,
    /// What it writes about itself, until someone takes it.
    pub stderr: Option<pipe::Receiver>,
    guardian: Guardian,
    status: pipe::Receiver,
    partial: Vec<u8>,
    pid: i32,
    exit: Option<Exit>,
    gone: bool,
}

/// How a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// By itself, with this code.
    Code(i32),
    /// By this signal.
    Signal(i32),
    /// Unknown: someone killed the process that watched it.
    Lost,
}

/// What the guardian says.
#[derive(Clone, Copy)]
pub(super) enum Report {
    Forked(i32),
    Started,
    Failed(i32, i32),
    Exited(Exit),
    End,
}

impl Running {
    pub(super) fn new(
        guardian: Guardian,
        status: pipe::Receiver,
        stdin: Option<pipe::Sender>,
        stdout: pipe::Receiver,
        stderr: pipe::Receiver,
    ) -> Self {
        let (stdout, stderr) = (Some(stdout), Some(stderr));
        Self { stdin, stdout, stderr, guardian, status, partial: Vec::new(), pid: 0, exit: None, gone: false }
    }

    /// The command's process id, which is also that of its group and session.
    pub fn pid(&self) -> i32 {
        self.pid
    }

    /// Asks the command to end (SIGTERM to its group); what is left shortly after is killed. Returns at once.
    pub fn terminate(&mut self) {
        self.guardian.terminate();
    }

    /// Kills the command and everything that it started. Returns at once; [`Running::gone`] tells when it is done.
    pub fn kill(&mut self) {
        self.guardian.kill();
    }

    /// Waits until the command has ended and nothing that it started is left. May be dropped and called again.
    pub async fn gone(&mut self) -> Exit {
        while !self.gone {
            let report = self.report().await;
            self.note(report.unwrap_or(Report::End));
        }
        self.exit.unwrap_or(Exit::Lost)
    }

    /// The end of the command, if it and everything that it started is gone by now.
    pub fn gone_by_now(&mut self) -> Option<Exit> {
        while !self.gone {
            if let Some(report) = self.buffered() {
                self.note(report);
                continue;
            }
            let mut buffer = [0; RECORD_BYTES];
            match self.status.try_read(&mut buffer) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return None,
                Ok(0) | Err(_) => self.note(Report::End),
                Ok(n) => self.partial.extend(buffer.iter().take(n)),
            }
        }
        self.exit.or(Some(Exit::Lost))
    }

    /// Keeps what a report says.
    pub(super) fn note(&mut self, report: Report) {
        match report {
            Report::Exited(exit) => self.exit = Some(exit),
            Report::End => {
                self.gone = true;
                self.guardian.reap();
                if self.exit.is_none() {
                    // The guardian was killed and cannot do it. The command itself died with it; this is its group.
                    guardian::kill_group(self.pid);
                }
            }
            Report::Forked(pid) => self.pid = pid,
            Report::Started | Report::Failed(..) => {}
        }
    }

    /// The guardian's next report. May be dropped and called again.
    pub(super) async fn report(&mut self) -> io::Result<Report> {
        loop {
            if let Some(report) = self.buffered() {
                return Ok(report);
            }
            let mut buffer = [0; RECORD_BYTES];
            let n = self.status.read(&mut buffer).await?;
            if n == 0 {
                return Ok(Report::End);
            }
            self.partial.extend(buffer.iter().take(n));
        }
    }

    /// A whole report that was read already.
    fn buffered(&mut self) -> Option<Report> {
        let record = self.partial.first_chunk::<RECORD_BYTES>()?;
        let number = |at: usize| {
            let mut bytes = [0; 4];
            bytes.copy_from_slice(&record[at * 4..at * 4 + 4]);
            i32::from_ne_bytes(bytes)
        };
        let report = match number(0) {
            guardian::FORKED => Report::Forked(number(1)),
            guardian::STARTED => Report::Started,
            guardian::FAILED => Report::Failed(number(1), number(2)),
            guardian::EXITED => Report::Exited(exit(number(1))),
            _ => Report::End,
        };
        self.partial.drain(..RECORD_BYTES);
        Some(report)
    }
}

fn exit(status: i32) -> Exit {
    if libc::WIFEXITED(status) {
        Exit::Code(libc::WEXITSTATUS(status))
    } else {
        Exit::Signal(libc::WTERMSIG(status))
    }
}

/// The guardian as we hold it: its process id, and the pipe end whose closing tells it to kill.
pub(super) struct Guardian {
    pid: libc::pid_t,
    lifeline: Option<OwnedFd>,
    reaped: bool,
}

/// Guardians whose command was dropped while it ran: they end by themselves and are reaped when the next one starts.
static UNREAPED: Mutex<Vec<libc::pid_t>> = Mutex::new(Vec::new());

impl Guardian {
    pub(super) fn new(pid: libc::pid_t, lifeline: OwnedFd) -> Self {
        UNREAPED.lock().unwrap_or_else(PoisonError::into_inner).retain(|&pid| !guardian::reap(pid, false));
        Self { pid, lifeline: Some(lifeline), reaped: false }
    }

    fn terminate(&mut self) {
        if let Some(lifeline) = &self.lifeline {
            // A guardian that is gone already needs no telling.
            let _ = rustix::io::write(lifeline, &[guardian::TERMINATE]);
        }
    }

    fn kill(&mut self) {
        self.lifeline = None;
    }

    /// Reaps a guardian that has closed its end of the status pipe, which it does by exiting.
    fn reap(&mut self) {
        self.lifeline = None;
        self.reaped = self.reaped || guardian::reap(self.pid, true);
    }
}

impl Drop for Guardian {
    fn drop(&mut self) {
        self.lifeline = None;
        if !self.reaped && !guardian::reap(self.pid, false) {
            UNREAPED.lock().unwrap_or_else(PoisonError::into_inner).push(self.pid);
        }
    }
}
