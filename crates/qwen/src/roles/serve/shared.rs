//! A server's sessions on a bus: on nodes, or with `--local` on workers of this process. The numbered lines are also
//! kept in the server's own store, from which its clients read.

use std::cell::RefCell;
use std::collections::HashMap;
use std::io;
use std::rc::Rc;

use qwen_engine::log::Store;
use qwen_events::SessionId;
use qwen_fleet::{BusOptions, BusSessions, Nodes, Relay};
use qwen_kernel::Hub;
use qwen_kernel::front::{push_numbered, session_id_of, split_number};
use qwen_kernel::store::{Events, FileEvents, Read, SharedSessions};
use qwen_serve::{NextOutput, SessionHub, StoredSessions};
use serde_json::Value;

use super::stored::Logs;
use crate::roles::bus::{self, LogCopies};

/// The size of a page of stored lines, in bytes.
const PAGE: usize = 1 << 20;

/// The workers of a server on a bus.
pub enum SharedWorkers {
    /// Those of a hub in this process.
    Local(Hub),
    /// Those of the nodes on the bus.
    Nodes(Relay),
}

/// The hub of a server on a bus.
pub struct SharedHub {
    workers: SharedWorkers,
    nodes: Nodes,
    sessions: Rc<BusSessions>,
    store: Rc<FileEvents>,
    /// The number of the last kept line of each session, and the epoch with which lines are kept.
    kept: RefCell<HashMap<SessionId, (u64, u64)>>,
}

impl SharedHub {
    pub fn new(
        workers: SharedWorkers,
        nodes: Nodes,
        sessions: Rc<BusSessions>,
        store: Rc<FileEvents>,
    ) -> Self {
        Self { workers, nodes, sessions, store, kept: RefCell::default() }
    }

    async fn next(&self) -> Option<Vec<u8>> {
        let bytes = match &self.workers {
            SharedWorkers::Local(hub) => hub.next_output().await?,
            SharedWorkers::Nodes(relay) => relay.next_output().await?,
        };
        let mut out = Vec::with_capacity(bytes.len());
        for line in bytes.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
            if let (Some((number, content)), Some(session)) = (split_number(line), session_id_of(line)) {
                self.fill_gap(&session, number, &mut out).await;
                // A line that cannot be kept is read from the bus by the next server.
                let _ = self.keep(&session, number, &content);
            }
            out.extend_from_slice(line);
            out.push(b'\n');
        }
        Some(out)
    }

    /// The state of a session in the server's store.
    fn kept(&self, session: &SessionId) -> io::Result<(u64, u64)> {
        if let Some(kept) = self.kept.borrow().get(session) {
            return Ok(*kept);
        }
        let taken = Events::take(&*self.store, session)?;
        self.kept.borrow_mut().insert(session.clone(), (taken.last, taken.epoch));
        Ok((taken.last, taken.epoch))
    }

    fn keep(&self, session: &SessionId, number: u64, content: &[u8]) -> io::Result<()> {
        let (last, epoch) = self.kept(session)?;
        if number == last + 1 {
            let line = [content, b"\n"].concat();
            Events::append(&*self.store, session, epoch, number, &line, None);
            self.kept.borrow_mut().insert(session.clone(), (number, epoch));
        }
        Ok(())
    }

    /// Reads the lines that other hubs caused before the line with this number.
    async fn fill_gap(&self, session: &SessionId, number: u64, out: &mut Vec<u8>) {
        while let Ok((last, _)) = self.kept(session)
            && last + 1 < number
        {
            let Read::Lines { first, lines, .. } = self.sessions.events().read(session, last, PAGE).await
            else {
                return;
            };
            if lines.is_empty() {
                return;
            }
            for (at, line) in (first..number).zip(lines.split(|byte| *byte == b'\n')) {
                if self.keep(session, at, line).is_err() {
                    return;
                }
                push_numbered(out, at, line);
            }
        }
    }
}

impl SessionHub for SharedHub {
    fn client_line(&self, line: &[u8]) {
        match &self.workers {
            SharedWorkers::Local(hub) => hub.client_line(line),
            SharedWorkers::Nodes(relay) => relay.client_line(line),
        }
    }

    fn session_line(&self, session: &SessionId, line: &[u8]) {
        match &self.workers {
            SharedWorkers::Local(hub) => hub.session_line(session, line),
            SharedWorkers::Nodes(relay) => relay.session_line(session, line),
        }
    }

    fn next_output(&self) -> NextOutput<'_> {
        Box::pin(self.next())
    }

    fn drain(&self, exit_code: u8) {
        match &self.workers {
            SharedWorkers::Local(hub) => hub.drain(exit_code),
            SharedWorkers::Nodes(relay) => relay.end(exit_code, true),
        }
    }

    fn kill_all(&self) {
        match &self.workers {
            SharedWorkers::Local(hub) => hub.kill_all(),
            // Turns continue on their nodes.
            SharedWorkers::Nodes(_) => {}
        }
    }

    fn exit_code(&self) -> Option<u8> {
        match &self.workers {
            SharedWorkers::Local(hub) => hub.exit_code(),
            SharedWorkers::Nodes(relay) => Some(relay.exit_code()),
        }
    }

    fn nodes(&self) -> Option<Vec<Value>> {
        Some(self.nodes.report())
    }
}

/// The conversations on a bus. Each call uses a separate connection in another thread, because the server asks
/// synchronously and rarely.
pub struct SharedLogs(pub BusOptions);

impl SharedLogs {
    fn with_copy<T>(
        &self,
        session: &SessionId,
        work: impl FnOnce(&Logs) -> Result<T, String>,
    ) -> Result<T, String> {
        let copies = LogCopies::create().map_err(|error| error.to_string())?;
        let (options, id, home) = (self.0.clone(), session.clone(), copies.home().to_owned());
        bus::run_apart(move || async move {
            let (_, sessions) = bus::open(&options, bus::identity("qwen-serve")).await?;
            sessions.save_log(&id, &home.join("sessions")).await.map_err(|error| bus::unreadable(&error))
        })?;
        work(&Logs(Store::new(copies.home())))
    }
}

impl StoredSessions for SharedLogs {
    fn messages(&self, session: &SessionId) -> Result<Value, String> {
        self.with_copy(session, |logs| logs.messages(session))
    }

    fn holds(&self, session: &SessionId) -> bool {
        self.with_copy(session, |logs| Ok(logs.holds(session))).unwrap_or(false)
    }

    fn fork(&self, _: &SessionId, _: &str, _: &SessionId) -> Result<(), String> {
        Err("sessions on a bus cannot be forked at an earlier point".to_owned())
    }

    fn delete(&self, session: &SessionId) -> Result<(), String> {
        let (options, id) = (self.0.clone(), session.clone());
        let deleted = bus::run_apart(move || async move {
            let (_, sessions) = bus::open(&options, bus::identity("qwen-serve")).await?;
            sessions.delete(&id).await.map_err(|error| bus::unreadable(&error))
        })?;
        match deleted {
            None => Ok(()),
            Some(owner) => Err(format!("{owner} is using it")),
        }
    }
}
