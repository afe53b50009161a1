//! The events of one session as Qwen Code's clients number them: from 1, without gaps, in an epoch that ends
//! with this server.

use std::cell::{Cell, RefCell};
use std::collections::{HashMap, HashSet, VecDeque};

use bytes::Bytes;
use serde_json::{Value, json};
use tokio::sync::watch;

use crate::sessions::now;

/// How many bytes of events are kept for readers that come back.
const KEPT: usize = 2 * 1024 * 1024;

/// An event that is kept.
#[derive(Debug, Clone)]
pub struct DaemonEvent {
    pub id: u64,
    pub kind: &'static str,
    pub prompt_id: Option<String>,
    /// The envelope as JSON.
    pub envelope: Bytes,
}

impl DaemonEvent {
    /// The event as a frame of the stream.
    pub fn frame(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(format!("id: {}\nevent: {}\ndata: ", self.id, self.kind).as_bytes());
        out.extend_from_slice(&self.envelope);
        out.extend_from_slice(b"\n\n");
    }
}

/// The last events of a session, and its clients.
#[derive(Debug)]
pub struct EventLog {
    pub epoch: String,
    kept: RefCell<VecDeque<DaemonEvent>>,
    bytes: Cell<usize>,
    last: watch::Sender<u64>,
    /// When each client was seen last, in milliseconds since the Unix epoch.
    pub clients: RefCell<HashMap<String, u64>>,
    /// Who answered a permission request.
    pub voters: RefCell<HashMap<String, String>>,
    /// The permission requests that have not been resolved.
    pub open_requests: RefCell<HashSet<String>>,
    /// Prompts that were ended because of their deadline.
    pub overdue: RefCell<HashSet<String>>,
    pub is_closed: Cell<bool>,
}

impl EventLog {
    pub fn new(epoch: String) -> Self {
        Self {
            epoch,
            kept: RefCell::default(),
            bytes: Cell::new(0),
            last: watch::Sender::new(0),
            clients: RefCell::default(),
            voters: RefCell::default(),
            open_requests: RefCell::default(),
            overdue: RefCell::default(),
            is_closed: Cell::new(false),
        }
    }

    /// Appends an event under the next number, and wakes the readers.
    pub fn push(&self, kind: &'static str, data: &Value, prompt_id: Option<&str>, originator: Option<&str>) {
        let id = self.last() + 1;
        let mut envelope =
            json!({"id": id, "v": 1, "type": kind, "data": data, "_meta": {"serverTimestamp": now()}});
        for (name, value) in [("promptId", prompt_id), ("originatorClientId", originator)] {
            if let Some(value) = value {
                envelope[name] = value.into();
            }
        }
        let envelope = Bytes::from(envelope.to_string());
        let mut kept = self.kept.borrow_mut();
        self.bytes.set(self.bytes.get() + envelope.len());
        kept.push_back(DaemonEvent { id, kind, prompt_id: prompt_id.map(str::to_owned), envelope });
        while self.bytes.get() > KEPT
            && kept.len() > 1
            && let Some(oldest) = kept.pop_front()
        {
            self.bytes.set(self.bytes.get() - oldest.envelope.len());
        }
        drop(kept);
        self.last.send_replace(id);
    }

    /// The id of the last event.
    pub fn last(&self) -> u64 {
        *self.last.borrow()
    }

    /// Reports each further event.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.last.subscribe()
    }

    /// The id of the first event that is kept; the next one if there is none.
    pub fn earliest(&self) -> u64 {
        self.kept.borrow().front().map_or(self.last() + 1, |event| event.id)
    }

    /// The events after an id, up to about `limit` bytes; none if they are not all kept.
    pub fn read(&self, after: u64, limit: usize) -> Option<Vec<DaemonEvent>> {
        let kept = self.kept.borrow();
        let skip = usize::try_from((after + 1).checked_sub(self.earliest())?).ok()?;
        let mut bytes = 0;
        let found = kept.iter().skip(skip).take_while(|event| {
            let fits = bytes < limit;
            bytes += event.envelope.len();
            fits
        });
        Some(found.cloned().collect())
    }

    /// Ends the streams of all readers after what they have not read yet.
    pub fn close(&self) {
        self.is_closed.set(true);
        self.last.send_modify(|_| ());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_numbered_without_gaps_and_kept_up_to_a_limit() {
        let log = EventLog::new("e".to_owned());
        assert_eq!(log.read(0, 1000).unwrap().len(), 0);
        let large = json!("x".repeat(10_000));
        for _ in 0..1000 {
            log.push("session_update", &large, None, None);
        }
        assert_eq!(log.last(), 1000);
        assert!(log.read(0, 1000).is_none());
        let ids: Vec<u64> = log.read(998, 1_000_000).unwrap().iter().map(|event| event.id).collect();
        assert_eq!(ids, [999, 1000]);
        assert!(log.read(1000, 1000).unwrap().is_empty());
    }
}
