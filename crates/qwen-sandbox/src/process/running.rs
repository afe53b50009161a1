//! A running command and our view of its guardian.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::unix::pipe;
use tokio::time::{Instant, timeout_at};

use super::guardian::{self, Record};
use super::guardians::{Guardian, Guardians, Hook};
use super::output_order::OutputOrder;

/// How long a guardian may take to end its command before we do it ourselves. Longer than the guardian's own
/// limits.
const END_LIMIT: Duration =
    Duration::from_millis((guardian::GRACE_MS + guardian::KILL_LIMIT_MS + 1_000).cast_unsigned());

/// A running command. Dropping it kills the command and everything that it started.
pub struct Running {
    /// The input pipe; present with [`Stdin::Pipe`](super::Stdin::Pipe).
    pub stdin: Option<pipe::Sender>,
    /// `None` once the caller has taken it.
    pub stdout: Option<pipe::Receiver>,
    /// `None` once the caller has taken it.
    pub stderr: Option<pipe::Receiver>,
    /// Present with [`ProcessSpec::ordered_output`](super::ProcessSpec::ordered_output), until the caller has
    /// taken it.
    pub order: Option<OutputOrder>,
    /// `None` once the guardian was returned to the pool.
    guardian: Option<Guardian>,
    /// The pool that the guardian is returned to.
    afterwards: Option<(Arc<Guardians>, Hook)>,
    pid: i32,
    /// The id is one of another namespace and means nothing here.
    pub(super) is_apart: bool,
    exit: Option<Exit>,
    gone: bool,
    /// Deadline for the guardian after it was told to end the command.
    deadline: Option<Instant>,
}

/// How a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// By itself, with this code.
    Code(i32),
    /// Ended by the signal with this number.
    Signal(i32),
    /// Unknown, because its guardian was killed.
    Lost,
}

#[derive(Clone, Copy)]
pub(super) enum GuardianReport {
    Forked(i32),
    Started,
    Failed(i32, i32),
    Exited(Exit),
    Clear(Exit),
    End,
}

impl Running {
    pub(super) fn new(
        guardian: Guardian,
        afterwards: Option<(Arc<Guardians>, Hook)>,
        stdin: Option<pipe::Sender>,
        stdout: pipe::Receiver,
        stderr: pipe::Receiver,
    ) -> Self {
        let (guardian, stdout, stderr) = (Some(guardian), Some(stdout), Some(stderr));
        Self {
            stdin,
            stdout,
            stderr,
            order: None,
            guardian,
            afterwards,
            pid: 0,
            is_apart: false,
            exit: None,
            gone: false,
            deadline: None,
        }
    }

    /// The command's process id, as other commands of its sandbox see it. It is also its process group id.
    pub fn pid(&self) -> i32 {
        self.pid
    }

    /// Sends SIGTERM to the command's group. What still runs shortly after is killed. Returns at once.
    pub fn terminate(&mut self) {
        if let Some(guardian) = &self.guardian {
            guardian.terminate();
            self.deadline.get_or_insert_with(|| Instant::now() + END_LIMIT);
        }
    }

    /// Kills the command and everything that it started. Returns at once; [`Running::gone`] waits for
    /// completion.
    pub fn kill(&mut self) {
        if let Some(guardian) = &mut self.guardian {
            guardian.kill();
            self.deadline.get_or_insert_with(|| Instant::now() + END_LIMIT);
        }
    }

    /// Resumes the guardian in case it was stopped.
    pub(super) fn wake(&self) {
        if let Some(guardian) = &self.guardian {
            guardian.wake();
        }
    }

    /// Waits until the command has ended and nothing that it started is left. Cancel-safe.
    pub async fn wait(&mut self) -> Exit {
        while !self.gone {
            let report = match self.deadline {
                None => self.report().await,
                Some(until) => match timeout_at(until, self.report()).await {
                    Ok(report) => report,
                    Err(_) => {
                        if let Some(guardian) = &self.guardian {
                            guardian.give_up();
                        }
                        Ok(GuardianReport::End)
                    }
                },
            };
            self.note(report.unwrap_or(GuardianReport::End));
        }
        self.exit.unwrap_or(Exit::Lost)
    }

    /// Returns the exit status if the command and all its descendants have ended by now.
    pub fn gone_by_now(&mut self) -> Option<Exit> {
        while !self.gone {
            let message = self.guardian.as_ref().map_or(Ok(None), Guardian::message_by_now);
            match message {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return None,
                message => self.note(message.map_or(GuardianReport::End, report)),
            }
        }
        self.exit.or(Some(Exit::Lost))
    }

    /// Updates the state from a report.
    pub(super) fn note(&mut self, report: GuardianReport) {
        match report {
            GuardianReport::Exited(exit) => self.exit = Some(exit),
            GuardianReport::Clear(exit) => {
                (self.exit, self.gone) = (Some(exit), true);
                if let (Some(guardian), Some((place, hook))) = (self.guardian.take(), self.afterwards.take())
                {
                    place.wait(guardian, hook);
                }
            }
            GuardianReport::End => {
                self.gone = true;
                if let Some(guardian) = &mut self.guardian {
                    guardian.reap();
                }
                if self.exit.is_none() {
                    // The guardian was killed. The command itself died with it; kill its group here in case
                    // no process adopted it.
                    if !self.is_apart {
                        guardian::kill_group(self.pid);
                    }
                }
            }
            GuardianReport::Forked(pid) => self.pid = pid,
            GuardianReport::Started | GuardianReport::Failed(..) => {}
        }
    }

    /// The guardian's next report. Cancel-safe.
    pub(super) async fn report(&mut self) -> io::Result<GuardianReport> {
        match &self.guardian {
            Some(guardian) => Ok(report(guardian.message().await?)),
            None => Ok(GuardianReport::End),
        }
    }
}

fn report(message: Option<Record>) -> GuardianReport {
    match message {
        Some([guardian::FORKED, pid, _]) => GuardianReport::Forked(pid),
        Some([guardian::STARTED, ..]) => GuardianReport::Started,
        Some([guardian::FAILED, step, errno]) => GuardianReport::Failed(step, errno),
        Some([guardian::EXITED, status, _]) => GuardianReport::Exited(exit(status)),
        Some([guardian::CLEAR, status, _]) => GuardianReport::Clear(exit(status)),
        _ => GuardianReport::End,
    }
}

fn exit(status: i32) -> Exit {
    if libc::WIFEXITED(status) {
        Exit::Code(libc::WEXITSTATUS(status))
    } else {
        Exit::Signal(libc::WTERMSIG(status))
    }
}
