//! Our side of guardians: the line to one, and the session's pool of idle guardians.

use std::io::{self, IoSlice};
use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use rustix::net::{
    AddressFamily, SendAncillaryBuffer, SendAncillaryMessage, SendFlags, Shutdown, SocketFlags, SocketType,
};
use tokio::net::UnixDatagram;

use super::BeforeExec;
use super::guardian::{self, RECORD_BYTES, Record};
use super::spawn::above_stdio;

/// Most idle guardians. More concurrent commands are rare, and each guardian holds copies of our memory
/// pages.
const MOST: usize = 4;
/// How long a guardian stays idle before it is ended.
const IDLE_LIMIT: Duration = Duration::from_secs(5);

/// A guardian: its process id, and the line. Closing the line makes it kill its command.
pub(super) struct Guardian {
    pid: libc::pid_t,
    line: UnixDatagram,
    /// True once it was told to kill its command.
    killing: bool,
    reaped: bool,
}

/// Guardians whose command was dropped while it ran: they end by themselves and are reaped when the next one
/// starts.
static UNREAPED: Mutex<Vec<libc::pid_t>> = Mutex::new(Vec::new());

impl Guardian {
    /// Creates a line that preserves message boundaries. Returns our end and the guardian's end.
    pub(super) fn line() -> io::Result<(OwnedFd, OwnedFd)> {
        let (family, kind) = (AddressFamily::UNIX, SocketType::SEQPACKET);
        let (ours, its) = rustix::net::socketpair(family, kind, SocketFlags::CLOEXEC, None)?;
        Ok((above_stdio(ours)?, above_stdio(its)?))
    }

    pub(super) fn new(pid: libc::pid_t, line: OwnedFd) -> io::Result<Self> {
        UNREAPED.lock().unwrap_or_else(PoisonError::into_inner).retain(|&pid| !guardian::reap(pid, false));
        // Both socket types preserve message boundaries; the underlying one also reports that the other end
        // is closed.
        let line = std::os::unix::net::UnixDatagram::from(line);
        line.set_nonblocking(true)?;
        let line = UnixDatagram::from_std(line)?;
        Ok(Self { pid, line, killing: false, reaped: false })
    }

    /// Sends it another command. An error means that it has ended.
    fn order(&self, order: &[u8], stdio: [BorrowedFd<'_>; 3]) -> io::Result<()> {
        let mut space = [std::mem::MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(3))];
        let mut descriptors = SendAncillaryBuffer::new(&mut space);
        descriptors.push(SendAncillaryMessage::ScmRights(&stdio));
        let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
        rustix::net::sendmsg(&self.line, &[IoSlice::new(order)], &mut descriptors, flags)?;
        Ok(())
    }

    pub(super) fn terminate(&self) {
        // A guardian that has already ended needs no message.
        let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
        let _ = rustix::net::send(&self.line, &[guardian::TERMINATE], flags);
        self.wake();
    }

    pub(super) fn kill(&mut self) {
        self.killing = true;
        // The guardian can still report the end.
        let _ = rustix::net::shutdown(&self.line, Shutdown::Write);
        self.wake();
    }

    /// Kills a guardian that no longer responds. Reaping it kills the processes it supervised.
    pub(super) fn give_up(&self) {
        if !self.reaped {
            guardian::kill(self.pid);
        }
    }

    /// Resumes it in case it was stopped.
    pub(super) fn wake(&self) {
        if !self.reaped {
            guardian::wake(self.pid);
        }
    }

    /// Returns its next message, or `None` if it has ended. Cancel-safe.
    pub(super) async fn message(&self) -> io::Result<Option<Record>> {
        let mut bytes = [0; RECORD_BYTES];
        let got = self.line.recv(&mut bytes).await?;
        Ok(record(&bytes, got))
    }

    /// Returns its next message without waiting. Fails with `WouldBlock` if there is none.
    pub(super) fn message_by_now(&self) -> io::Result<Option<Record>> {
        let mut bytes = [0; RECORD_BYTES];
        let got = self.line.try_recv(&mut bytes)?;
        Ok(record(&bytes, got))
    }

    /// Reaps a guardian that has closed its end of the line, which it does by exiting.
    pub(super) fn reap(&mut self) {
        self.reaped = self.reaped || guardian::reap(self.pid, true);
    }

    /// Kills a guardian without a command and waits for it, so that its resource usage is included in ours.
    /// It has no processes to end, so killing it is immediate.
    fn end(&mut self) {
        if !self.reaped {
            guardian::end(self.pid);
            self.reaped = true;
        }
    }
}

fn record(bytes: &[u8; RECORD_BYTES], got: usize) -> Option<Record> {
    let mut record: Record = [0; 3];
    for (number, bytes) in record.iter_mut().zip(bytes.as_chunks().0) {
        *number = i32::from_ne_bytes(*bytes);
    }
    (got == RECORD_BYTES).then_some(record)
}

impl Drop for Guardian {
    fn drop(&mut self) {
        if self.reaped {
            return;
        }
        // The line closes only after this, so send the request now.
        self.kill();
        if !guardian::reap(self.pid, false) {
            UNREAPED.lock().unwrap_or_else(PoisonError::into_inner).push(self.pid);
        }
    }
}

/// The session's idle guardians. Reusing one is cheaper, because forking a guardian costs more than the rest
/// of a command. They end when this is dropped or our process ends.
#[derive(Default)]
pub struct Guardians {
    waiting: Mutex<Waiting>,
}

#[derive(Default)]
struct Waiting {
    idle: Vec<Idle>,
    /// True while a task ends guardians that were idle too long.
    watched: bool,
}

struct Idle {
    guardian: Guardian,
    hook: Hook,
    since: Instant,
}

/// Identifies the `before_exec` of a guardian's commands. A guardian holds an old copy of our memory, so it
/// can only run the hook it was forked with.
#[derive(Clone)]
pub(super) struct Hook(Option<Weak<dyn BeforeExec>>);

impl Hook {
    pub(super) fn from_hook(hook: Option<&Arc<dyn BeforeExec>>) -> Self {
        Self(hook.map(Arc::downgrade))
    }

    fn is(&self, other: &Self) -> bool {
        match (&self.0, &other.0) {
            // The target of a weak reference may be dropped, but its address is not reused.
            (Some(one), Some(other)) => std::ptr::addr_eq(one.as_ptr(), other.as_ptr()),
            (one, other) => one.is_none() && other.is_none(),
        }
    }
}

impl Guardians {
    /// Starts a command with an idle guardian. Returns `None` if there is none.
    pub(super) fn order(&self, order: &[u8], stdio: [BorrowedFd<'_>; 3], hook: &Hook) -> Option<Guardian> {
        loop {
            let Idle { mut guardian, hook: its, .. } = self.waiting().idle.pop()?;
            // Drop guardians with an outdated hook and those that were killed.
            if its.is(hook) && guardian.order(order, stdio).is_ok() {
                return Some(guardian);
            }
            guardian.end();
        }
    }

    /// Returns a guardian to the pool after its command has ended.
    pub(super) fn wait(self: &Arc<Self>, mut guardian: Guardian, hook: Hook) {
        let mut waiting = self.waiting();
        if guardian.killing || waiting.idle.len() >= MOST {
            guardian.end();
        } else {
            waiting.idle.push(Idle { guardian, hook, since: Instant::now() });
            if !std::mem::replace(&mut waiting.watched, true) {
                tokio::spawn(Self::watch(Arc::downgrade(self)));
            }
        }
    }

    /// Ends guardians that were idle too long.
    async fn watch(guardians: Weak<Self>) {
        loop {
            tokio::time::sleep(IDLE_LIMIT).await;
            let Some(guardians) = guardians.upgrade() else { return };
            let mut waiting = guardians.waiting();
            for mut idle in waiting.idle.extract_if(.., |idle| idle.since.elapsed() >= IDLE_LIMIT) {
                idle.guardian.end();
            }
            if waiting.idle.is_empty() {
                waiting.watched = false;
                return;
            }
        }
    }

    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Guardians {
    fn drop(&mut self) {
        for mut idle in self.waiting().idle.drain(..) {
            idle.guardian.end();
        }
    }
}
