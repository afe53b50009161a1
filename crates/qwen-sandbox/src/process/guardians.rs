//! Guardians as we hold them: the line to one, and those of a session that wait for another command.

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

/// How many wait at most. More commands than that at once are rare, and each guardian keeps some of our old memory.
const MOST: usize = 4;
/// How long one waits.
const PATIENCE: Duration = Duration::from_secs(5);

/// A guardian: its process id, and the line whose closing tells it to kill.
pub(super) struct Guardian {
    pid: libc::pid_t,
    line: UnixDatagram,
    /// It was told to kill.
    killing: bool,
    reaped: bool,
}

/// Guardians whose command was dropped while it ran: they end by themselves and are reaped when the next one starts.
static UNREAPED: Mutex<Vec<libc::pid_t>> = Mutex::new(Vec::new());

impl Guardian {
    /// The two ends of a line, which keeps messages apart: ours and the guardian's.
    pub(super) fn line() -> io::Result<(OwnedFd, OwnedFd)> {
        let (family, kind) = (AddressFamily::UNIX, SocketType::SEQPACKET);
        let (ours, its) = rustix::net::socketpair(family, kind, SocketFlags::CLOEXEC, None)?;
        Ok((above_stdio(ours)?, above_stdio(its)?))
    }

    pub(super) fn new(pid: libc::pid_t, line: OwnedFd) -> io::Result<Self> {
        UNREAPED.lock().unwrap_or_else(PoisonError::into_inner).retain(|&pid| !guardian::reap(pid, false));
        // Both kinds of socket keep messages apart; this one also tells when the other end is gone.
        let line = std::os::unix::net::UnixDatagram::from(line);
        line.set_nonblocking(true)?;
        let line = UnixDatagram::from_std(line)?;
        Ok(Self { pid, line, killing: false, reaped: false })
    }

    /// Gives it another command. An error means that it is gone.
    fn order(&self, order: &[u8], stdio: [BorrowedFd<'_>; 3]) -> io::Result<()> {
        let mut space = [std::mem::MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(3))];
        let mut descriptors = SendAncillaryBuffer::new(&mut space);
        descriptors.push(SendAncillaryMessage::ScmRights(&stdio));
        let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
        rustix::net::sendmsg(&self.line, &[IoSlice::new(order)], &mut descriptors, flags)?;
        Ok(())
    }

    pub(super) fn terminate(&self) {
        // A guardian that is gone already needs no telling.
        let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
        let _ = rustix::net::send(&self.line, &[guardian::TERMINATE], flags);
        self.go_on();
    }

    pub(super) fn kill(&mut self) {
        self.killing = true;
        // It can still tell us when all is gone.
        let _ = rustix::net::shutdown(&self.line, Shutdown::Write);
        self.go_on();
    }

    /// Kills the guardian itself, which does nothing any more; reaping it ends what it watched over.
    pub(super) fn give_up(&self) {
        if !self.reaped {
            guardian::kill(self.pid);
        }
    }

    /// Has it go on where somebody stopped it.
    pub(super) fn go_on(&self) {
        if !self.reaped {
            guardian::go_on(self.pid);
        }
    }

    /// Its next message; none when it is gone. May be dropped and called again.
    pub(super) async fn message(&self) -> io::Result<Option<Record>> {
        let mut bytes = [0; RECORD_BYTES];
        let got = self.line.recv(&mut bytes).await?;
        Ok(record(&bytes, got))
    }

    /// Its next message, if one is there. It fails with `WouldBlock` if there is none.
    pub(super) fn message_by_now(&self) -> io::Result<Option<Record>> {
        let mut bytes = [0; RECORD_BYTES];
        let got = self.line.try_recv(&mut bytes)?;
        Ok(record(&bytes, got))
    }

    /// Reaps a guardian that has closed its end of the line, which it does by exiting.
    pub(super) fn reap(&mut self) {
        self.reaped = self.reaped || guardian::reap(self.pid, true);
    }

    /// Ends one that has no command, and waits for that: whoever counts what we and ours have cost hears of it through
    /// us. It has nothing to end itself, so it need not be asked, and cannot keep us waiting.
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
        // Closing the line is what tells it, and that comes after this; so it is told now.
        self.kill();
        if !guardian::reap(self.pid, false) {
            UNREAPED.lock().unwrap_or_else(PoisonError::into_inner).push(self.pid);
        }
    }
}

/// The guardians of a session that have no command and wait for one. Forking another one costs more than a command does
/// otherwise. Dropping this ends them; so does our own end.
#[derive(Default)]
pub struct Guardians {
    waiting: Mutex<Waiting>,
}

#[derive(Default)]
struct Waiting {
    idle: Vec<Idle>,
    /// Somebody looks after those who have waited too long.
    watched: bool,
}

struct Idle {
    guardian: Guardian,
    hook: Hook,
    since: Instant,
}

/// What a guardian's commands do to themselves before they start. It holds a copy of our memory as it was, so it knows
/// no other.
#[derive(Clone)]
pub(super) struct Hook(Option<Weak<dyn BeforeExec>>);

impl Hook {
    pub(super) fn of(hook: Option<&Arc<dyn BeforeExec>>) -> Self {
        Self(hook.map(Arc::downgrade))
    }

    fn is(&self, other: &Self) -> bool {
        match (&self.0, &other.0) {
            // What is behind a weak reference may be gone, but no other gets its address.
            (Some(one), Some(other)) => std::ptr::addr_eq(one.as_ptr(), other.as_ptr()),
            (one, other) => one.is_none() && other.is_none(),
        }
    }
}

impl Guardians {
    /// Has one that waits start a command. None when there is none.
    pub(super) fn order(&self, order: &[u8], stdio: [BorrowedFd<'_>; 3], hook: &Hook) -> Option<Guardian> {
        loop {
            let Idle { mut guardian, hook: its, .. } = self.waiting().idle.pop()?;
            // One with another hook is of no use any more; one that somebody has killed is not there.
            if its.is(hook) && guardian.order(order, stdio).is_ok() {
                return Some(guardian);
            }
            guardian.end();
        }
    }

    /// Takes one back whose command is gone.
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

    /// Ends those who have waited too long.
    async fn watch(guardians: Weak<Self>) {
        loop {
            tokio::time::sleep(PATIENCE).await;
            let Some(guardians) = guardians.upgrade() else { return };
            let mut waiting = guardians.waiting();
            for mut idle in waiting.idle.extract_if(.., |idle| idle.since.elapsed() >= PATIENCE) {
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
