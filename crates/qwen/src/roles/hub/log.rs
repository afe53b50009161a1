//! `--log-format json`: structured records on standard error. A separate thread writes them, so that a
//! reader that stops reading costs records and never holds the hub up.

use std::cell::{Cell, RefCell};
use std::sync::mpsc::{Receiver, SyncSender, channel, sync_channel};
use std::time::Duration;
use std::{io, thread};

use serde_json::{Value, json};

use crate::print;
use crate::runtime::{clock, exit};

/// How many records may wait for the reader.
const WAITING: usize = 1024;

/// How long the end of the hub waits until the last records are written.
const SHUTDOWN_LIMIT: Duration = Duration::from_secs(1);

pub struct LogWriter {
    lines: RefCell<Option<SyncSender<String>>>,
    /// Disconnected once everything is written.
    written: Receiver<()>,
    /// Records that found no room since the last one that did.
    dropped: Cell<u64>,
}

impl LogWriter {
    pub fn start() -> io::Result<Self> {
        let (lines, waiting) = sync_channel::<String>(WAITING);
        let (done, written) = channel::<()>();
        thread::Builder::new().name("log".to_owned()).spawn(move || {
            for line in waiting {
                exit::write_log(&line);
            }
            drop(done);
        })?;
        Ok(Self { lines: RefCell::new(Some(lines)), written, dropped: Cell::new(0) })
    }

    /// Writes a record, whose `event` says what happened.
    pub fn write(&self, record: &Value) {
        let dropped = self.dropped.get();
        if dropped > 0 && self.send(&json!({"event": "records_dropped", "count": dropped})) {
            self.dropped.set(0);
        }
        if !self.send(record) {
            self.dropped.set(self.dropped.get() + 1);
        }
    }

    fn send(&self, record: &Value) -> bool {
        let mut fields = record.clone();
        let event = fields.as_object_mut().and_then(|fields| fields.remove("event"));
        let event = event.as_ref().and_then(Value::as_str).unwrap_or_default();
        let level = if event == "error" { "error" } else { "info" };
        let line = print::json_line(clock::now(), level, event, fields);
        self.lines.borrow().as_ref().is_some_and(|lines| lines.try_send(line).is_ok())
    }

    /// Waits until the records are written, unless no one reads them.
    pub fn finish(&self) {
        self.lines.borrow_mut().take();
        // An error either way: the thread has ended, or the time is over.
        let _ = self.written.recv_timeout(SHUTDOWN_LIMIT);
    }
}
