//! State shared by the server's threads and the test: queue, requests, gates. One lock, one condition
//! variable.

use std::collections::{HashMap, HashSet, VecDeque};
use std::fs::File;
use std::io::Write;
use std::net::TcpStream;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::{Reply, Request, Source, WAIT_LIMIT};

/// The state of an exchange.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stage {
    /// The reply is being played or held.
    Playing,
    /// The reply was played to its end.
    Complete,
    /// The peer closed the connection before that.
    PeerGone,
}

/// A request and the progress of its reply.
pub(crate) struct Exchange {
    pub request: Arc<Request>,
    pub stage: Stage,
}

#[derive(Default)]
pub(crate) struct State {
    pub queue: VecDeque<Reply>,
    pub source: Option<Box<dyn Source>>,
    /// What `GET …/models` lists; a 404 without it.
    pub models: Option<Vec<String>>,
    pub exchanges: Vec<Exchange>,
    /// Counts resets, so that a reply from before a reset does not affect later exchanges.
    pub era: usize,
    /// Other requests: unknown paths, and bodies that are not JSON.
    pub unexpected_requests: Vec<String>,
    pub reached: HashMap<String, usize>,
    pub open: HashSet<String>,
    pub connections: HashMap<usize, TcpStream>,
    pub gone: HashSet<usize>,
    pub log: Option<File>,
    pub stopping: bool,
}

/// Identifies an exchange across resets.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ticket {
    era: usize,
    number: usize,
}

#[derive(Default)]
pub(crate) struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

impl Shared {
    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        // A panicking closure of the test has already failed the test; the rest only has to shut down.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes the state and wakes all waiters.
    pub(crate) fn update<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        let result = change(&mut self.lock());
        self.changed.notify_all();
        result
    }

    /// Waits for a condition; none after the time limit.
    pub(crate) fn wait<T>(
        &self,
        time: Duration,
        mut ready: impl FnMut(&mut State) -> Option<T>,
    ) -> Option<T> {
        let deadline = Instant::now() + time;
        let mut state = self.lock();
        loop {
            if let Some(value) = ready(&mut state) {
                return Some(value);
            }
            let left = deadline.checked_duration_since(Instant::now())?;
            state = self.changed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Waits without a time limit.
    pub(crate) fn hold(&self, mut until: impl FnMut(&mut State) -> bool) {
        let mut state = self.lock();
        while !until(&mut state) {
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Waits up to [`crate::WAIT_LIMIT`] for a condition that a test relies on.
    pub(crate) fn expect<T>(
        &self,
        what: &str,
        ready: impl FnMut(&mut State) -> Option<Result<T, String>>,
    ) -> Result<T, String> {
        let result = self.wait(WAIT_LIMIT, ready);
        result.unwrap_or_else(|| {
            let seen = self.lock().describe();
            Err(format!("{what} did not happen within {} s; {seen}", WAIT_LIMIT.as_secs()))
        })
    }

    pub(crate) fn begin(&self, request: Request) -> (Ticket, Arc<Request>, Option<Reply>) {
        self.update(|state| {
            let request = Arc::new(request);
            if let Some(log) = &mut state.log {
                // A log that cannot be written is noticed by its absence; the exchange continues.
                let _ = writeln!(log, "{}", request.to_json());
            }
            let ticket = Ticket { era: state.era, number: state.exchanges.len() };
            state.exchanges.push(Exchange { request: Arc::clone(&request), stage: Stage::Playing });
            let reply = state.queue.pop_front();
            let reply = reply.or_else(|| state.source.as_mut().and_then(|source| source.reply(&request)));
            (ticket, request, reply)
        })
    }

    pub(crate) fn end(&self, ticket: Ticket, stage: Stage) {
        self.update(|state| {
            if state.era == ticket.era
                && let Some(exchange) = state.exchanges.get_mut(ticket.number)
            {
                exchange.stage = stage;
            }
        });
    }

    pub(crate) fn reset(&self) {
        self.update(|state| {
            state.exchanges.clear();
            state.era += 1;
            state.unexpected_requests.clear();
            state.reached.clear();
            state.open.clear();
            if let Some(source) = &mut state.source {
                source.reset();
            }
        });
    }

    pub(crate) fn await_request(&self, number: usize) -> Result<Arc<Request>, String> {
        self.expect(&format!("request {number} (counted from 0)"), |state| {
            state.exchanges.get(number).map(|exchange| Ok(Arc::clone(&exchange.request)))
        })
    }

    pub(crate) fn await_gate(&self, name: &str) -> Result<(), String> {
        self.expect(&format!("gate {name:?}"), |state| state.reached.contains_key(name).then_some(Ok(())))
    }

    pub(crate) fn await_disconnect(&self, number: usize) -> Result<(), String> {
        self.expect(&format!("the peer of request {number} closing its connection"), |state| {
            match state.exchanges.get(number)?.stage {
                Stage::Playing => None,
                Stage::PeerGone => Some(Ok(())),
                Stage::Complete => Some(Err(format!(
                    "the reply to request {number} was played to its end, so its peer did not leave during it"
                ))),
            }
        })
    }
}

impl State {
    /// The exchanges so far, for the message of a failure.
    fn describe(&self) -> String {
        let stages: Vec<String> =
            self.exchanges.iter().map(|e| format!("{} {:?}", e.request.path, e.stage)).collect();
        format!(
            "requests: {stages:?}, gates reached: {:?}, gates open: {:?}, other requests: {:?}",
            self.reached, self.open, self.unexpected_requests
        )
    }
}
