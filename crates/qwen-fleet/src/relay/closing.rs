//! Ending the turn of a process that died.

use std::fs;
use std::io;

use qwen_events::{EndStatus, ErrorInfo, ErrorKind, SessionId};
use qwen_kernel::front::OpenParts;
use qwen_kernel::ipc::CommitReason;
use qwen_kernel::process_manager::SpawnSpec;
use qwen_kernel::store::{
    Appended, AsyncEvents, AsyncSessionLog, Claimed, LogPosition, Read, SharedSessions, Taken, count_lines,
};

use super::Relay;
use crate::sessions::write_log;

/// The size of a page of stored lines, in bytes.
const PAGE: usize = 1 << 20;

impl Relay {
    /// Takes a session from an owner that is dead, ends its open turn, and gives the session up again. Several
    /// processes may try: the bus lets one of them append the end. Returns false if a live process has it.
    pub(super) async fn close_turn(&self, session: &SessionId) -> io::Result<bool> {
        let sessions = &self.0.parts.sessions;
        match sessions.claim(session, false).await? {
            Claimed::InUse { .. } => Ok(false),
            Claimed::Ours { position, log, taken } => {
                let closed = self.append_end(session, position, log.as_deref(), &taken).await;
                // The next owner takes it all the same.
                let _ = sessions.log.release(session, position.epoch).await;
                closed.map(|()| true)
            }
        }
    }

    async fn append_end(
        &self,
        session: &SessionId,
        position: LogPosition,
        log: Option<&[u8]>,
        taken: &Taken,
    ) -> io::Result<()> {
        let Some(turn) = &taken.open else { return Ok(()) };
        let sessions = &self.0.parts.sessions;
        let last = sessions.log.read_end(session).await?.and_then(|end| end.headers.last);
        let open = self.open_parts(session).await;
        let is_ended = matches!(&last, Some(CommitReason::End { prompt_id }) if prompt_id == turn);
        let stored = match log.filter(|_| is_ended && position.bytes > 0) {
            Some(log) => self.stored_end(session, turn, log)?,
            None => None,
        };
        let writer = &self.0.parts.writer;
        let lines = match stored {
            Some(end) => {
                let mut lines = writer.before_end(session, turn, &open);
                for line in end.split_inclusive(|byte| *byte == b'\n') {
                    // The end belongs to the message that is open, or else brings its own.
                    if !open.is_message_open || !self.0.parts.front.begins_message(line) {
                        lines.extend_from_slice(line);
                    }
                }
                lines
            }
            None => {
                writer.turn_end(session, turn, EndStatus::Interrupted, lost_error(last.as_ref()), 0, &open)
            }
        };
        let first = taken.last + 1;
        match sessions.events.append(session, taken.epoch, first, &lines, None).await {
            // Another process was faster and ends the turn.
            Appended::Ok | Appended::Fenced => Ok(()),
            Appended::Unknown => Err(io::Error::other("the bus does not accept the end of the turn")),
        }
    }

    /// Reads the end of a turn from a log.
    fn stored_end(&self, session: &SessionId, turn: &str, log: &[u8]) -> io::Result<Option<Vec<u8>>> {
        let parts = &self.0.parts;
        let home = parts.scratch.join(format!("{:016x}", fastrand::u64(..)));
        let directory = home.join("sessions");
        let end = write_log(&directory, session, log)
            .map(|()| (parts.turn_ends)(&directory, &SpawnSpec::default(), session, turn));
        let _ = fs::remove_dir_all(&home);
        end
    }

    /// The parts that are open after a session's stored lines.
    async fn open_parts(&self, session: &SessionId) -> OpenParts {
        let parts = &self.0.parts;
        let mut open = OpenParts::default();
        let mut after = 0;
        loop {
            match parts.sessions.events.read(session, after, PAGE).await {
                Read::Lines { lines, .. } if !lines.is_empty() => {
                    for line in lines.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
                        parts.front.note_parts(line, &mut open);
                    }
                    after += count_lines(&lines);
                }
                Read::TooOld { oldest } if oldest > after + 1 => after = oldest - 1,
                Read::Lines { .. } | Read::TooOld { .. } | Read::Future { .. } | Read::Failed(_) => {
                    return open;
                }
            }
        }
    }
}

/// The error of a turn whose machine is gone. It names the last effect that was started.
fn lost_error(last: Option<&CommitReason>) -> ErrorInfo {
    let effect = match last {
        Some(CommitReason::Effect { tool, call }) => {
            format!("the last that was started is {tool} ({call}), and what it did is unknown")
        }
        _ => "it had started no tool since its last stored step".to_owned(),
    };
    let message = format!(
        "The machine that ran this turn is gone; {effect}. The session continues with the next prompt."
    );
    ErrorInfo { retryable: true, ..ErrorInfo::new(ErrorKind::Internal, "machine_lost", message) }
}
