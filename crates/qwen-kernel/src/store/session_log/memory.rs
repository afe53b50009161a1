//! Session logs in memory, for tests and for kernels that do not outlive their clients.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io;
use std::rc::Rc;

use qwen_events::SessionId;

use super::{Judged, LogOwner, SessionLog, judge};
use crate::ipc::CommitReason;
use crate::store::Appended;

/// Logs in memory. Clones share them.
#[derive(Debug, Clone, Default)]
pub struct MemoryLog {
    logs: Rc<RefCell<BTreeMap<String, Log>>>,
}

#[derive(Debug, Default)]
struct Log {
    epoch: u64,
    is_owned: bool,
    bytes: Vec<u8>,
    last: Option<CommitReason>,
}

impl SessionLog for MemoryLog {
    fn take(&self, session: &SessionId) -> io::Result<LogOwner> {
        let mut logs = self.logs.borrow_mut();
        let log = logs.entry(session.to_string()).or_default();
        log.epoch += 1;
        log.is_owned = true;
        Ok(LogOwner { epoch: log.epoch, bytes: log.bytes.len() as u64, last: log.last.clone() })
    }

    fn read(&self, session: &SessionId, from: u64) -> io::Result<Vec<u8>> {
        let logs = self.logs.borrow();
        let log = logs.get(session.as_str()).ok_or(io::ErrorKind::NotFound)?;
        let from = usize::try_from(from).unwrap_or(usize::MAX).min(log.bytes.len());
        Ok(log.bytes[from..].to_vec())
    }

    fn append(&self, id: &SessionId, epoch: u64, at: u64, lines: &[u8], reason: &CommitReason) -> Appended {
        let mut logs = self.logs.borrow_mut();
        let Some(log) = logs.get_mut(id.as_str()).filter(|log| log.is_owned && log.epoch == epoch) else {
            return Appended::Fenced;
        };
        let length = log.bytes.len();
        let start = usize::try_from(at).unwrap_or(usize::MAX).min(length);
        let end = start.saturating_add(lines.len()).min(length);
        match judge(length as u64, at, lines, &log.bytes[start..end]) {
            Judged::Impossible => return Appended::Fenced,
            Judged::Done if end < length => return Appended::Ok,
            Judged::Done => {}
            Judged::New => log.bytes.extend_from_slice(lines),
        }
        log.last = Some(reason.clone());
        Appended::Ok
    }

    fn release(&self, session: &SessionId, epoch: u64) -> Appended {
        match self.logs.borrow_mut().get_mut(session.as_str()) {
            Some(log) if log.epoch == epoch => {
                log.is_owned = false;
                Appended::Ok
            }
            _ => Appended::Fenced,
        }
    }

    fn list(&self) -> io::Result<Vec<SessionId>> {
        Ok(self.logs.borrow().keys().filter_map(|id| SessionId::parse(id).ok()).collect())
    }

    fn delete(&self, session: &SessionId) -> io::Result<()> {
        self.logs.borrow_mut().remove(session.as_str());
        Ok(())
    }
}
