//! One session of the client: its lines go to a node, and what is stored comes back in the order of its numbers.

use std::collections::VecDeque;
use std::time::Duration;

use async_nats::{Message, Subscriber};
use futures_util::StreamExt;
use qwen_events::{ErrorInfo, ErrorKind, Json, SessionId};
use qwen_kernel::front::push_numbered;
use qwen_kernel::store::{AsyncEvents, Read, count_lines};
use serde_json::Value;
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::placement::{Placed, Sent};
use super::{ClientLine, Relay, Work};
use crate::headers::EventHeaders;
use crate::node::workspaces::Wanted;
use crate::subjects::token;

/// How often a session that waits looks after its node.
const CHECK: Duration = Duration::from_millis(250);
/// After so much silence the last number is asked for: a loss at the end shows no gap.
const SILENCE: Duration = Duration::from_secs(2);
/// The same for a session in which the client awaits nothing.
const IDLE_SILENCE: Duration = Duration::from_secs(10);
/// A session that was silent for so long may be on another node.
const RESTING: Duration = Duration::from_secs(1);
/// How often a line is sent to a node that lives and does not take it.
const MAX_ATTEMPTS: u32 = 100;
/// The size of a page of stored lines, in bytes.
const PAGE: usize = 1 << 20;

/// A line that a node has, or will get, and that has no end or answer yet.
pub(super) struct Awaited {
    pub line: ClientLine,
    pub position: u64,
    /// The highest number of the session when the line was sent; its end comes later.
    pub after: u64,
}

/// A session of the client.
pub struct Followed {
    relay: Relay,
    session: SessionId,
    /// The number of the last line that the client has.
    seen: u64,
    /// The highest number that this process has seen. A client that attaches gets earlier lines again.
    highest: u64,
    /// The process that has the session.
    owner: Option<String>,
    /// Where the files of the session are, for the node on which it continues.
    place: Option<String>,
    /// What the client asked of the node when it opened the session.
    wanted: Wanted,
    awaited: VecDeque<Awaited>,
    /// Prompts for the node after the one that drains and still has the session.
    postponed: VecDeque<ClientLine>,
    /// How often prompts were brought to another node since the last stored line.
    moves: u32,
    /// The line that precedes a terminal record without a number.
    exit_line: Vec<u8>,
    heard: Instant,
    /// True if the client follows what others do in the session.
    is_attached: bool,
}

impl Followed {
    pub fn new(relay: Relay, session: SessionId) -> Self {
        Self {
            relay,
            session,
            seen: 0,
            highest: 0,
            owner: None,
            place: None,
            wanted: Wanted::default(),
            awaited: VecDeque::new(),
            postponed: VecDeque::new(),
            moves: 0,
            exit_line: Vec::new(),
            heard: Instant::now(),
            is_attached: false,
        }
    }

    /// Serves the session until the process ends.
    pub async fn run(mut self, mut work: mpsc::UnboundedReceiver<Work>) {
        let mut live: Option<Subscriber> = None;
        loop {
            let next_live = async {
                match &mut live {
                    Some(live) => live.next().await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                Some(message) = next_live => self.relay_live(&message).await,
                next = work.recv() => {
                    let Some(next) = next else { return };
                    if live.is_none() {
                        live = self.subscribe(&next).await;
                    }
                    self.handle(next).await;
                }
                () = tokio::time::sleep(CHECK), if self.is_attached || self.is_waiting() => {
                    self.check().await;
                },
            }
            let is_busy = self.is_waiting() || !work.is_empty();
            if !is_busy && self.relay.0.busy.borrow_mut().remove(&self.session) {
                self.relay.0.ready.notify_one();
            }
        }
    }

    /// True while the client waits for an end or an answer.
    fn is_waiting(&self) -> bool {
        !self.awaited.is_empty() || !self.postponed.is_empty()
    }

    /// Follows new lines, from the last one that is stored.
    async fn subscribe(&mut self, first: &Work) -> Option<Subscriber> {
        let parts = &self.relay.0.parts;
        let shard = parts.sessions.shards.shard_of(&self.session);
        let subject = parts.bus.names.live_subject(shard, &token(&self.session));
        let live = parts.bus.client.subscribe(subject).await.ok()?;
        parts.bus.client.flush().await.ok()?;
        if !matches!(first, Work::Attach { .. }) {
            self.seen = parts.sessions.events.last(&self.session).await.ok()?;
            self.highest = self.seen;
        }
        Some(live)
    }

    async fn handle(&mut self, work: Work) {
        match work {
            Work::Line(line) if line.is_prompt && !self.postponed.is_empty() => {
                self.postponed.push_back(line);
            }
            Work::Line(line) => {
                let position = self.relay.next_position();
                self.deliver(Awaited { line, position, after: self.highest }).await;
            }
            Work::Attach { request_id, nested, after } => self.attach(&request_id, nested, after).await,
            // What a former owner ends was ended by its successor.
            Work::Note { sender, .. } if self.owner.as_ref() != Some(&sender) => {}
            Work::Note { line, .. } => self.handle_note(&line).await,
        }
    }

    /// Handles a line without a number. Ends are for the hub that awaits them, and what a node ends because others
    /// have taken the session continues with its new owner.
    async fn handle_note(&mut self, line: &[u8]) {
        let value: Value = serde_json::from_slice(line).unwrap_or_default();
        let mut out = std::mem::take(&mut self.exit_line);
        if value["exit_code"].is_number() {
            self.exit_line = [line, b"\n"].concat();
            return;
        }
        if value["metadata"]["turn"].is_object() {
            let prompt_id = value["prompt_id"].as_str();
            let Some(at) = self.find_awaited(prompt_id, None) else { return };
            // A node that has lost the session or drains, and one that was asked while its owner was thought dead.
            let code = value["metadata"]["error"]["code"].as_str();
            let is_elsewhere = matches!(code, Some("session_taken_over" | "session_in_use" | "draining"));
            if is_elsewhere && self.moves < MAX_ATTEMPTS {
                self.moves += 1;
                self.owner = None;
                tokio::time::sleep(CHECK).await;
                self.fill_gap().await;
                if let Some(awaited) =
                    self.find_awaited(prompt_id, None).and_then(|at| self.awaited.remove(at))
                {
                    self.deliver_again(awaited.line).await;
                }
                return;
            }
            self.awaited.remove(at);
        } else {
            self.note_line(line, None);
        }
        out.extend_from_slice(line);
        out.push(b'\n');
        self.relay.write(&out);
    }

    /// The prompt that a terminal record ends. A prompt without an id is named by the worker; its end is not one that
    /// a client reads again.
    fn find_awaited(&self, prompt_id: Option<&str>, number: Option<u64>) -> Option<usize> {
        let is_named =
            |awaited: &Awaited| awaited.line.is_prompt && awaited.line.prompt_id.as_deref() == prompt_id;
        let default = format!("{}########", self.session);
        let is_default = prompt_id.is_none_or(|id| id.starts_with(&default));
        let is_unnamed = |awaited: &Awaited| {
            let is_new = number.is_none_or(|number| number > awaited.after);
            is_default && is_new && awaited.line.is_prompt && awaited.line.prompt_id.is_none()
        };
        let found = self.awaited.iter().position(|awaited| prompt_id.is_some() && is_named(awaited));
        found.or_else(|| self.awaited.iter().position(is_unnamed))
    }

    /// Brings a prompt to a node that does not have it.
    async fn deliver_again(&mut self, line: ClientLine) {
        let position = self.relay.next_position();
        let after = self.highest;
        Box::pin(self.deliver(Awaited { line, position, after })).await;
    }

    /// Brings a line to the node of the session; without one, the session is placed.
    async fn deliver(&mut self, mut awaited: Awaited) {
        let waits = awaited.line.is_prompt || awaited.line.request.is_some();
        if let Some(wanted) = &awaited.line.wanted {
            self.wanted = wanted.clone();
        }
        if self.awaited.is_empty() && self.heard.elapsed() >= RESTING && self.has_moved().await {
            self.owner = None;
        }
        let mut excluded = Vec::new();
        for _ in 0..MAX_ATTEMPTS {
            let owner = match self.owner.clone() {
                Some(owner) => owner,
                None => match self.relay.place(&self.session, &self.wanted, &excluded).await {
                    Ok(Placed { owner, place }) => {
                        self.place = place;
                        owner
                    }
                    Err(error) => return self.relay.refuse_line(&self.session, &awaited.line, &error),
                },
            };
            match self.relay.send(&self.session, &owner, self.place.as_deref(), &awaited).await {
                Sent::Taken => {
                    self.owner = Some(owner);
                    self.heard = Instant::now();
                    if waits {
                        self.awaited.push_back(awaited);
                    }
                    return;
                }
                Sent::Draining if awaited.line.is_prompt && self.is_held_by(&owner).await => {
                    self.owner = Some(owner);
                    self.postponed.push_back(awaited.line);
                    return;
                }
                Sent::Draining => {
                    excluded.extend(owner.split('/').next().map(str::to_owned));
                    self.owner = None;
                }
                Sent::Unknown => {
                    let is_alive = self.relay.0.parts.bus.is_alive(&owner).await;
                    if !matches!(is_alive, Ok(false)) {
                        tokio::time::sleep(CHECK).await;
                        continue;
                    }
                    // The dead process may have processed the line: its end may be among the stored lines.
                    let position = awaited.position;
                    self.awaited.push_back(awaited);
                    let is_closed = self.close_turn_of_dead().await;
                    let at = self.awaited.iter().position(|awaited| awaited.position == position);
                    let unanswered = at.and_then(|at| self.awaited.remove(at));
                    if is_closed {
                        self.deliver_awaited_again().await;
                    }
                    match unanswered {
                        Some(unanswered) => awaited = unanswered,
                        None => return,
                    }
                }
            }
        }
        let message = "no node takes this line, because the bus does not pass it on; send it again";
        let error = ErrorInfo::new(ErrorKind::Network, "bus_unavailable", message);
        let error = ErrorInfo { retryable: true, ..error };
        self.relay.refuse_line(&self.session, &awaited.line, &error);
    }

    /// True if the log says that another process than the one that had the session last is its owner, or none is.
    async fn has_moved(&self) -> bool {
        let Some(owner) = &self.owner else { return false };
        // A session that has no log yet is where it was opened.
        let end = self.relay.0.parts.sessions.log.read_end(&self.session).await.ok().flatten();
        end.is_some_and(|end| end.headers.is_released || end.headers.owner != *owner)
    }

    /// True unless a process has given the session up, or is dead.
    async fn is_held_by(&self, owner: &str) -> bool {
        let parts = &self.relay.0.parts;
        // Without an answer, it is asked again with the next check.
        let Ok(end) = parts.sessions.log.read_end(&self.session).await else { return true };
        let is_owner = end.is_some_and(|end| !end.headers.is_released && end.headers.owner == owner);
        let is_suspect = is_owner && self.relay.0.nodes.is_suspect(owner);
        is_owner && !(is_suspect && matches!(parts.bus.is_alive(owner).await, Ok(false)))
    }

    /// Brings prompts to another node once the one that drains has given the session up.
    async fn deliver_postponed(&mut self) {
        if let Some(owner) = self.owner.clone()
            && self.is_held_by(&owner).await
        {
            return;
        }
        self.owner = None;
        for line in std::mem::take(&mut self.postponed) {
            self.deliver_again(line).await;
        }
    }

    async fn attach(&mut self, request_id: &str, nested: bool, after: u64) {
        let parts = &self.relay.0.parts;
        // A turn that a dead process left open has an end for whoever attaches.
        let end = parts.sessions.log.read_end(&self.session).await.ok().flatten();
        let owner = end.map(|end| end.headers).filter(|end| end.is_owned_by_other(&parts.bus.identity));
        if let Some(owner) = owner {
            if self.relay.0.nodes.is_suspect(&owner.owner)
                && matches!(parts.bus.is_alive(&owner.owner).await, Ok(false))
            {
                // Without it, the client still gets the lines that are stored.
                let _ = self.relay.close_turn(&self.session).await;
            } else if owner.workspace.is_some() {
                self.owner = Some(owner.owner);
            }
        }
        let parts = &self.relay.0.parts;
        let refuse =
            |code, message: String| Err(ErrorInfo::new(ErrorKind::Input, code, message).with_param("after"));
        let result = match parts.sessions.events.read(&self.session, after, 1).await {
            Read::Lines { last, .. } => {
                self.seen = after;
                let id = self.session.as_str();
                Ok(Json::trusted(format!("{{\"session_id\":\"{id}\",\"after\":{after},\"last\":{last}}}")))
            }
            Read::TooOld { oldest } => refuse(
                "after_too_old",
                format!(
                    "The lines after {after} are not all kept; the oldest that is kept is {oldest}. Attach after {}.",
                    oldest - 1
                ),
            ),
            Read::Future { last } => refuse(
                "after_in_future",
                format!("`after` is {after}, but the last line of the session is {last}"),
            ),
            Read::Failed(why) => refuse("store_failed", format!("the stored lines cannot be read: {why}")),
        };
        let is_attached = result.is_ok();
        self.relay.write(&parts.writer.control_reply(&self.session, request_id, nested, result));
        if is_attached {
            self.is_attached = true;
            self.fill_gap().await;
        }
    }

    /// Relays a message that the bus has stored.
    async fn relay_live(&mut self, message: &Message) {
        self.heard = Instant::now();
        self.relay.wait_for_room().await;
        let Some(headers) = message.headers.as_ref().and_then(EventHeaders::parse) else { return };
        if headers.is_incomplete() || headers.last() <= self.seen {
            return;
        }
        if headers.first == self.seen + 1 && headers.part.is_none() {
            self.emit(&message.payload);
        } else {
            self.relay.0.parts.bus.metrics.repairs.increment();
            self.fill_gap().await;
        }
    }

    /// Reads the lines that were stored and not relayed. Returns false if they cannot be read now.
    async fn fill_gap(&mut self) -> bool {
        loop {
            self.relay.wait_for_room().await;
            let relay = self.relay.clone();
            match relay.0.parts.sessions.events.read(&self.session, self.seen, PAGE).await {
                Read::Lines { lines, last, .. } if !lines.is_empty() => {
                    debug_assert!(count_lines(&lines) > 0);
                    self.emit(lines.strip_suffix(b"\n").unwrap_or(&lines));
                    if self.seen >= last {
                        return true;
                    }
                }
                Read::TooOld { oldest } if oldest > self.seen + 1 => {
                    let message = format!("The lines from {} to {} have expired.", self.seen + 1, oldest - 1);
                    let error = ErrorInfo::new(ErrorKind::Internal, "lines_expired", message);
                    self.relay.write(&self.relay.0.parts.writer.error(&self.session, error));
                    self.seen = oldest - 1;
                }
                Read::Lines { .. } | Read::TooOld { .. } | Read::Future { .. } => return true,
                Read::Failed(_) => return false,
            }
        }
    }

    /// Sends lines to the client, with their numbers.
    fn emit(&mut self, lines: &[u8]) {
        let mut out = Vec::with_capacity(lines.len() + 32);
        for line in lines.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
            self.seen += 1;
            push_numbered(&mut out, self.seen, line);
            self.highest = self.highest.max(self.seen);
            self.moves = 0;
            self.note_line(line, Some(self.seen));
        }
        self.relay.write_numbered(&self.session, &out);
    }

    /// Notes what a line ends, answers or asks.
    fn note_line(&mut self, line: &[u8], number: Option<u64>) {
        let contains = |text: &[u8]| line.windows(text.len()).any(|part| part == text);
        let is_control = line.starts_with(b"{\"type\":\"control_re");
        if !is_control && !contains(b"\"turn\":{") && !contains(b"\"metadata\":{\"error\"") {
            return;
        }
        let Ok(line) = serde_json::from_slice::<Value>(line) else { return };
        let request_id = line["request_id"].as_str().or_else(|| line["response"]["request_id"].as_str());
        match (line["type"].as_str(), request_id) {
            (Some("control_request"), Some(id)) => {
                self.relay.0.questions.borrow_mut().insert(id.to_owned(), self.session.clone());
            }
            (Some("control_response"), Some(id)) => {
                let is_answered = |awaited: &Awaited| {
                    awaited.line.request.as_ref().is_some_and(|(request, _)| request == id)
                };
                self.awaited.retain(|awaited| !is_answered(awaited));
            }
            _ if line["metadata"]["turn"].is_object() => {
                if let Some(at) = self.find_awaited(line["prompt_id"].as_str(), number) {
                    self.awaited.remove(at);
                }
            }
            // A line that was no prompt after all, such as one whose id was used before.
            _ if line["metadata"]["error"].is_object() && line["prompt_id"].is_string() => {
                let refused = line["prompt_id"].as_str();
                let is_refused = |awaited: &Awaited| {
                    awaited.line.is_prompt && awaited.line.prompt_id.as_deref() == refused
                };
                if let Some(at) = self.awaited.iter().rposition(is_refused) {
                    self.awaited.remove(at);
                }
            }
            _ => {}
        }
    }

    /// Looks after the node while something is awaited.
    async fn check(&mut self) {
        if let Some(owner) = self.owner.clone()
            && self.relay.0.nodes.is_suspect(&owner)
            && matches!(self.relay.0.parts.bus.is_alive(&owner).await, Ok(false))
        {
            self.recover().await;
        }
        if !self.postponed.is_empty() {
            self.deliver_postponed().await;
        }
        let silence = if self.awaited.is_empty() { IDLE_SILENCE } else { SILENCE };
        if self.heard.elapsed() >= silence {
            self.heard = Instant::now();
            self.fill_gap().await;
        }
    }

    /// The owner is dead: ends its turn, and brings the prompts that had not started to another node.
    async fn recover(&mut self) {
        if self.close_turn_of_dead().await {
            self.deliver_awaited_again().await;
        }
    }

    /// Ends the turn of the dead owner and relays what it has stored. Returns false if that is to be tried again.
    async fn close_turn_of_dead(&mut self) -> bool {
        if self.relay.close_turn(&self.session).await.is_err() || !self.fill_gap().await {
            tokio::time::sleep(CHECK).await;
            return false;
        }
        self.owner = None;
        true
    }

    /// Brings prompts to another node, and refuses the requests that the former one had.
    async fn deliver_awaited_again(&mut self) {
        let waiting = std::mem::take(&mut self.awaited);
        for awaited in waiting {
            if awaited.line.is_prompt {
                self.deliver_again(awaited.line).await;
            } else {
                let message = "the machine that had this request is gone; send it again";
                let error = ErrorInfo::new(ErrorKind::Internal, "machine_lost", message);
                let error = ErrorInfo { retryable: true, ..error };
                self.relay.refuse_line(&self.session, &awaited.line, &error);
            }
        }
    }
}
