//! Numbering of a session's lines. A numbered line is sent to the client only after it was appended to the
//! store, so there is nothing to retract when an owner turns out to be stale.

mod following;
mod replay;

use std::collections::VecDeque;
use std::time::Duration;

use qwen_events::{EndStatus, ErrorInfo, ErrorKind, SessionId};

pub(crate) use self::replay::PAGE_BYTES;
use self::replay::Replay;
use super::Router;
use crate::action::RouterAction;
use crate::front::OpenParts;
use crate::store::{Appended, Taken};

/// A batch of consecutive whole lines.
#[derive(Debug, Clone, Default)]
pub(super) struct Batch {
    pub first: u64,
    pub count: u64,
    pub lines: Vec<u8>,
    /// The turn that is open after the batch.
    pub open: Option<String>,
    /// The turns that were open at some line of the batch.
    turns: Vec<String>,
}

impl Batch {
    fn set_open(&mut self, open: Option<&String>) {
        self.open = open.cloned();
        if let Some(turn) = open.filter(|turn| self.turns.last() != Some(turn)) {
            self.turns.push(turn.clone());
        }
    }
}

/// The numbering state of one session.
#[derive(Debug, Default)]
pub(super) struct Numbering {
    /// True if the client asked for numbers.
    pub on: bool,
    /// The epoch of our ownership; none before the store has answered.
    pub epoch: Option<u64>,
    /// True while the store has not answered the take. Until then the worker is sent nothing: a turn that a
    /// former owner left open is ended before the next one starts.
    pub taking: bool,
    /// True while another process drives the session: the numbers are its, and our lines have none.
    pub is_foreign: bool,
    /// The number of the last line.
    pub last: u64,
    /// Batches that are not known to be stored; the first is in flight if `in_flight`.
    pub queue: VecDeque<Batch>,
    pub in_flight: bool,
    /// The turn that is open after the last stored line.
    stored_open: Option<String>,
    /// True once another owner has taken over.
    pub fenced: bool,
    /// Since when appends have had no known outcome.
    pub failing_since: Option<Duration>,
    /// Since when another process was seen to have the session.
    pub in_use_since: Option<Duration>,
    /// The requests for stored lines; the first is answered. Meanwhile new lines are only stored, because they
    /// follow the older ones.
    pub replays: VecDeque<Replay>,
    /// True while the first replay has all stored lines and waits for those that another process stores.
    pub is_polling: bool,
    /// Since when the process that drives the followed session has been dead, with a turn open.
    pub abandoned_since: Option<Duration>,
}

impl Numbering {
    /// Adds a line to the last batch, or to a new one if the last is in flight.
    pub fn push(&mut self, line: &[u8], open: Option<&String>) {
        self.last += 1;
        let joins = self.queue.len() > usize::from(self.in_flight);
        match self.queue.back_mut() {
            Some(batch) if joins && batch.lines.len() < 64 * 1024 => {
                batch.count += 1;
                batch.lines.extend_from_slice(line);
                batch.lines.push(b'\n');
                batch.set_open(open);
            }
            _ => {
                let mut lines = Vec::with_capacity(line.len() + 1);
                lines.extend_from_slice(line);
                lines.push(b'\n');
                self.push_batch(Batch { first: self.last, count: 1, lines, ..Batch::default() }, open);
            }
        }
    }

    /// Notes the turn that is open from now on, so that the next owner ends it even if no line of it was
    /// stored.
    fn note_open(&mut self, open: Option<&String>) {
        let joins = self.queue.len() > usize::from(self.in_flight);
        match self.queue.back_mut().filter(|_| joins) {
            Some(batch) => batch.set_open(open),
            None => self.push_batch(Batch { first: self.last + 1, ..Batch::default() }, open),
        }
    }

    fn push_batch(&mut self, mut batch: Batch, open: Option<&String>) {
        batch.set_open(open);
        self.queue.push_back(batch);
    }

    /// The turns whose end waits for the store, without the one that still runs.
    fn unstored_ends(&self, running: Option<&String>) -> Vec<String> {
        let mut turns: Vec<String> = self.stored_open.iter().cloned().collect();
        for turn in self.queue.iter().flat_map(|batch| &batch.turns) {
            if !turns.contains(turn) {
                turns.push(turn.clone());
            }
        }
        turns.retain(|turn| Some(turn) != running);
        turns
    }

    /// True while another process stores the session's lines.
    pub fn is_driven_elsewhere(&self) -> bool {
        self.is_foreign || self.in_use_since.is_some()
    }

    /// Leaves the numbers to another process, which drives the session.
    pub fn leave_to_other(&mut self) {
        self.in_use_since = None;
        self.taking = false;
        self.in_flight = false;
        self.is_foreign = true;
    }

    /// Removes the lines that wait for the store.
    pub fn take_waiting(&mut self) -> Vec<u8> {
        self.queue.drain(..).flat_map(|batch| batch.lines).collect()
    }

    /// The number of lines that wait for the store.
    fn count(&self) -> u64 {
        self.queue.iter().map(|batch| batch.count).sum()
    }

    /// The number of bytes that wait for the store.
    pub fn waiting_bytes(&self) -> usize {
        self.queue.iter().map(|batch| batch.lines.len()).sum()
    }
}

/// The delay before an append with an unknown outcome is retried.
const RETRY: Duration = Duration::from_millis(50);

/// How long the workers of a hub that was killed may have its sessions open.
const DYING: Duration = Duration::from_secs(1);

/// How long a store may leave outcomes unknown before the session continues without it.
pub(super) const STORE_TIMEOUT: Duration = Duration::from_secs(5);

impl Router {
    /// The store made this hub the owner of the session's numbers, or failed.
    pub fn note_events_taken(&mut self, id: &SessionId, taken: Result<Taken, String>, open: &OpenParts) {
        self.clock.has_changed = true;
        let Some(session) = self.sessions.get_mut(id) else { return };
        session.numbering.taking = false;
        session.numbering.is_foreign = false;
        session.numbering.in_use_since = None;
        match taken {
            Ok(taken) => {
                let was_unstored = self.stores.failed.remove(id);
                // Lines that passed before numbers were requested are not in the store and have none.
                let waiting = session.numbering.count();
                let base = session.numbering.last.saturating_sub(waiting);
                session.numbering.epoch = Some(taken.epoch);
                session.numbering.last = taken.last + waiting;
                for batch in &mut session.numbering.queue {
                    batch.first = batch.first.saturating_sub(base) + taken.last;
                }
                let is_ours = |turn: &String| was_unstored || session.prompts.turn.as_ref() == Some(turn);
                match taken.open.as_ref().filter(|turn| !is_ours(turn)) {
                    Some(turn) => self.close_open_turn(id, turn, taken.end, open),
                    None if taken.open != session.prompts.turn => {
                        session.numbering.note_open(session.prompts.turn.as_ref());
                    }
                    None => {}
                }
            }
            Err(_) if self.stores.are_shared => return self.give_up_unstored(id),
            Err(why) => self.stop_numbering(id, &why),
        }
        self.append_next(id);
        self.resume_replay(id);
        self.pump(id);
    }

    /// The session does not exist yet, so that there is nothing to end: its numbers are taken by the process
    /// whose worker gets its log, or with its first line.
    pub fn note_events_absent(&mut self, id: &SessionId) {
        let Some(session) = self.sessions.get_mut(id) else { return };
        session.numbering.taking = false;
        if !session.numbering.queue.is_empty() {
            self.take_events(id, self.owns_log(id));
        }
        self.pump(id);
    }

    /// Another process has the session, so that its numbers were not taken. After a while they are left to
    /// it, until our worker gets the session's log or the client attaches.
    pub fn note_events_in_use(&mut self, id: &SessionId) {
        self.clock.has_changed = true;
        if self.stores.are_shared {
            return self.refuse_driven_elsewhere(id);
        }
        let Some(session) = self.sessions.get_mut(id) else { return };
        let since = *session.numbering.in_use_since.get_or_insert(self.clock.now);
        if self.clock.now < since + DYING {
            return self.clock.retries.push((self.clock.now + RETRY, id.clone()));
        }
        session.numbering.leave_to_other();
        let waiting = session.numbering.take_waiting();
        self.send_lines(id, &waiting);
        self.pump(id);
    }

    /// Stores that the session's turn has started.
    pub(super) fn store_start(&mut self, id: &SessionId) {
        let Some(session) = self.sessions.get_mut(id).filter(|session| session.numbering.on) else { return };
        session.numbering.note_open(session.prompts.turn.as_ref());
        if session.numbering.epoch.is_none() {
            return self.take_events(id, true);
        }
        self.append_next(id);
    }

    /// Asks the store for ownership of the session's numbers, once numbering is requested.
    pub(super) fn take_events_if_due(&mut self, id: &SessionId) {
        let Some(session) = self.sessions.get_mut(id) else { return };
        let numbering = &mut session.numbering;
        if !numbering.on || numbering.epoch.is_some() || numbering.taking {
            return;
        }
        if session.logs.epoch().is_some() || !numbering.queue.is_empty() {
            return self.take_events(id, self.owns_log(id));
        }
        numbering.taking = true;
        let session = id.clone();
        self.actions.push(RouterAction::TakeEvents { session, from_driver: false, if_stored: true });
    }

    /// Asks the store for ownership; with `from_driver`, even from another process that drives the session.
    pub(super) fn take_events(&mut self, id: &SessionId, from_driver: bool) {
        let Some(session) = self.sessions.get_mut(id) else { return };
        let asks = !std::mem::replace(&mut session.numbering.taking, true);
        let waits = session.numbering.in_use_since.is_some();
        let asked = self.actions.iter_mut().find_map(|action| match action {
            RouterAction::TakeEvents { session, from_driver, if_stored } if session == id => {
                Some((from_driver, if_stored))
            }
            _ => None,
        });
        match asked {
            Some((asked, if_stored)) => {
                *asked |= from_driver;
                *if_stored = false;
            }
            None if asks || from_driver && waits => {
                session.numbering.in_use_since = None;
                self.actions.push(RouterAction::TakeEvents {
                    session: id.clone(),
                    from_driver,
                    if_stored: false,
                });
            }
            None => {}
        }
    }

    /// Continues without numbers: a client that waits for ever for its lines is worse off than one that gets
    /// them without numbers.
    fn stop_numbering(&mut self, id: &SessionId, why: &str) {
        let Some(session) = self.sessions.get_mut(id) else { return };
        session.numbering.on = false;
        session.numbering.in_flight = false;
        self.stores.failed.insert(id.clone());
        let waiting = session.numbering.take_waiting();
        let forgotten = session.is_closed();
        let message = format!("lines cannot be numbered, because they cannot be stored: {why}");
        let error = ErrorInfo::new(ErrorKind::Internal, "store_failed", message);
        let lines = self.writer.error(id, error);
        self.emit(id, &lines);
        self.send_lines(id, &waiting);
        if forgotten {
            self.sessions.remove(id);
        }
    }

    /// A former hub died in this turn: writes its end as recorded in the session's log, or as interrupted. A
    /// prompt that was sent again for that turn has its terminal record with that.
    fn close_open_turn(&mut self, id: &SessionId, turn: &str, end: Option<Vec<u8>>, open: &OpenParts) {
        self.withdraw_resent(id, turn);
        match end {
            Some(end) => self.emit_stored_end(id, turn, &end, open),
            None => {
                let message = "the hub that ran this turn has ended; what its tools did is unknown, and the session continues with the next prompt";
                let error =
                    ErrorInfo { retryable: true, ..ErrorInfo::new(ErrorKind::Internal, "hub_lost", message) };
                let lines = self.writer.turn_end(id, turn, EndStatus::Interrupted, error, 0, open);
                self.metrics.count_end(EndStatus::Interrupted.name());
                self.emit(id, &lines);
            }
        }
    }

    /// Passes the next batch to the store, one at a time.
    pub(super) fn append_next(&mut self, id: &SessionId) {
        let Some(session) = self.sessions.get_mut(id) else { return };
        let numbering = &mut session.numbering;
        if numbering.in_flight || numbering.fenced {
            return;
        }
        let (Some(epoch), Some(batch)) = (numbering.epoch, numbering.queue.front()) else { return };
        numbering.in_flight = true;
        self.actions.push(RouterAction::Append {
            session: id.clone(),
            epoch,
            first: batch.first,
            lines: batch.lines.clone(),
            open: batch.open.clone(),
        });
    }

    /// Handles the outcome of the append that begins with `first`.
    pub fn note_appended(&mut self, id: &SessionId, first: u64, outcome: Appended) {
        let Some(session) = self.sessions.get_mut(id) else { return };
        if session.numbering.queue.front().map(|batch| batch.first) != Some(first)
            || !session.numbering.in_flight
        {
            return;
        }
        session.numbering.in_flight = false;
        match outcome {
            Appended::Ok => {
                session.numbering.failing_since = None;
                let is_replayed = !session.numbering.replays.is_empty();
                if let Some(batch) = session.numbering.queue.pop_front() {
                    session.numbering.stored_open = batch.open;
                    if !is_replayed {
                        self.push_stored(id, batch.first, &batch.lines);
                    }
                }
                self.append_next(id);
                let over = self
                    .sessions
                    .get(id)
                    .is_some_and(|session| session.is_closed() && session.numbering.queue.is_empty());
                if over {
                    self.sessions.remove(id);
                    self.actions.push(RouterAction::ReleaseEvents { session: id.clone() });
                }
                if self.ending.is_input_over || self.ending.drain_until.is_some() {
                    self.finish_if_over();
                }
            }
            Appended::Unknown => {
                self.clock.has_changed = true;
                let since = *session.numbering.failing_since.get_or_insert(self.clock.now);
                if self.stores.are_shared {
                    return self.give_up_unstored(id);
                }
                if self.clock.now >= since + STORE_TIMEOUT {
                    self.stop_numbering(id, "the store did not accept them");
                    return self.finish_if_over();
                }
                session.numbering.in_flight = true;
                self.clock.retries.push((self.clock.now + RETRY, id.clone()));
            }
            Appended::Fenced => self.give_up_fenced(id),
        }
    }

    /// Another hub owns the session now and writes its lines.
    pub(super) fn give_up_fenced(&mut self, id: &SessionId) {
        let message = format!("another hub has taken the session '{id}' over; attach there");
        let error = ErrorInfo::new(ErrorKind::Input, "session_taken_over", message).with_param("session_id");
        self.give_up(id, &error);
    }

    /// The stores of several machines cannot be reached: what is stored decides how the session's turn ended.
    pub(super) fn give_up_unstored(&mut self, id: &SessionId) {
        let message = format!(
            "the bus does not accept the lines of the session '{id}'; the outcome of its turn is unknown, attach later to read it"
        );
        let error =
            ErrorInfo { retryable: true, ..ErrorInfo::new(ErrorKind::Internal, "bus_unavailable", message) };
        self.give_up(id, &error);
    }

    /// Ends what the client of a session waits for, without numbers, and forgets the session.
    fn give_up(&mut self, id: &SessionId, error: &ErrorInfo) {
        self.clock.has_changed = true;
        let Some(session) = self.sessions.get_mut(id) else { return };
        session.numbering.fenced = true;
        let ended = session.numbering.unstored_ends(session.prompts.turn.as_ref());
        session.numbering.queue.clear();
        session.prompts.backlog.clear();
        let worker = session.worker();
        // What the client waits for ends here, without numbers: those are the owner's.
        let mut ends = Vec::new();
        if session.prompts.pending.is_empty() && ended.is_empty() {
            ends.extend(self.writer.error(id, error.clone()));
        }
        for name in ended {
            let open = OpenParts::default();
            let lines = self.writer.turn_end(id, &name, EndStatus::Interrupted, error.clone(), 0, &open);
            ends.extend(lines);
        }
        while let Some(prompt) = session.prompts.pending.pop_front() {
            let name = session.prompts.turn.take().unwrap_or_else(|| session.turn_name(&prompt));
            session.prompts.ended += 1;
            let took =
                u64::try_from(self.clock.now.saturating_sub(prompt.at).as_millis()).unwrap_or(u64::MAX);
            let open = std::mem::take(&mut session.prompts.open_parts);
            let lines = self.writer.turn_end(id, &name, EndStatus::Interrupted, error.clone(), took, &open);
            ends.extend(lines);
        }
        for asked in session.requests.unanswered.drain(..) {
            let result = Err(error.clone());
            let lines = self.writer.control_reply(id, &asked.request_id, asked.nested, result);
            ends.extend(lines);
        }
        self.send_lines(id, &ends);
        if let Some(worker) = worker {
            self.ignore_worker(worker);
            self.pool.kill(worker, "fenced", self.clock.now, &mut self.actions);
        }
        for request_id in self.open_questions(id) {
            self.close_question(id, &request_id);
        }
        self.sessions.remove(id);
        self.admission.remove(id);
        self.finish_if_over();
    }

    /// Gives the numbers of a session that rests up: others may add to it before its next turn. A turn that the store
    /// has as open is still ours to end.
    pub(super) fn release_numbers(&mut self, id: &SessionId) {
        let are_shared = self.stores.are_shared;
        let Some(session) = self.sessions.get_mut(id).filter(|_| are_shared) else { return };
        // One that is closed needs another number for the answer.
        let is_closing = session.is_closing();
        let numbering = &mut session.numbering;
        if !is_closing
            && numbering.queue.is_empty()
            && numbering.stored_open.is_none()
            && session.prompts.turn.is_none()
        {
            numbering.epoch = None;
        }
    }

    /// True for a session that rests without an owner.
    pub(super) fn has_released_numbers(&self, id: &SessionId) -> bool {
        let numbering =
            self.sessions.get(id).filter(|_| self.stores.are_shared).map(|session| &session.numbering);
        numbering.is_some_and(|numbering| {
            numbering.epoch.is_none() && !numbering.taking && numbering.queue.is_empty()
        })
    }

    /// Retries appends with an unknown outcome, and takes of sessions that were in use.
    pub(super) fn retry_appends(&mut self) {
        let now = self.clock.now;
        let (due, later): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.clock.retries).into_iter().partition(|(at, _)| *at <= now);
        self.clock.retries = later;
        for (_, session) in due {
            let Some(numbering) = self.sessions.get_mut(&session).map(|session| &mut session.numbering)
            else {
                continue;
            };
            numbering.in_flight = false;
            if numbering.in_use_since.is_some() {
                let take = RouterAction::TakeEvents { session, from_driver: false, if_stored: false };
                self.actions.push(take);
            } else {
                self.append_next(&session);
            }
        }
    }
}
