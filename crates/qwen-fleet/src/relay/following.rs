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
/// How often a line is sent to a node that lives and does not take it.
const MAX_ATTEMPTS: u32 = 100;
/// The size of a page of stored lines, in bytes.
const PAGE: usize = 1 << 20;

/// A line that a node has, or will get, and that has no end or answer yet.
pub(super) struct Awaited {
    pub line: ClientLine,
    pub position: u64,
}

/// A session of the client.
pub struct Followed {
    relay: Relay,
    session: SessionId,
    /// The number of the last line that the client has.
    seen: u64,
    /// The process that has the session.
    owner: Option<String>,
    /// Where the files of the session are, for the node on which it continues.
    place: Option<String>,
    /// What the client asked of the node when it opened the session.
    wanted: Wanted,
    awaited: VecDeque<Awaited>,
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
            owner: None,
            place: None,
            wanted: Wanted::default(),
            awaited: VecDeque::new(),
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
                () = tokio::time::sleep(CHECK), if self.is_attached || !self.awaited.is_empty() => {
                    self.check().await;
                },
            }
            let is_busy = !self.awaited.is_empty() || !work.is_empty();
            if !is_busy && self.relay.0.busy.borrow_mut().remove(&self.session) {
                self.relay.0.ready.notify_one();
            }
        }
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
        }
        Some(live)
    }

    async fn handle(&mut self, work: Work) {
        match work {
            Work::Line(line) => {
                let position = self.relay.next_position();
                self.deliver(Awaited { line, position }).await;
            }
            Work::Attach { request_id, nested, after } => self.attach(&request_id, nested, after).await,
            // What a former owner ends was ended by its successor.
            Work::Note { sender, .. } if self.owner.as_ref() != Some(&sender) => {}
            Work::Note { line, .. } => {
                self.note_line(&line);
                let mut out = line.to_vec();
                out.push(b'\n');
                self.relay.write(&out);
            }
        }
    }

    /// Brings a line to the node of the session; without one, the session is placed.
    async fn deliver(&mut self, awaited: Awaited) {
        let waits = awaited.line.is_prompt || awaited.line.request.is_some();
        if let Some(wanted) = &awaited.line.wanted {
            self.wanted = wanted.clone();
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
                Sent::Draining => {
                    excluded.extend(owner.split('/').next().map(str::to_owned));
                    self.owner = None;
                }
                Sent::Unknown => {
                    let is_alive = self.relay.0.parts.bus.is_alive(&owner).await;
                    if matches!(is_alive, Ok(false)) {
                        self.recover().await;
                    } else {
                        tokio::time::sleep(CHECK).await;
                    }
                }
            }
        }
        let message = "no node takes this line, because the bus does not pass it on; send it again";
        let error = ErrorInfo::new(ErrorKind::Network, "bus_unavailable", message);
        let error = ErrorInfo { retryable: true, ..error };
        self.relay.refuse_line(&self.session, &awaited.line, &error);
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

    /// Reads the lines that were stored and not relayed.
    async fn fill_gap(&mut self) {
        loop {
            self.relay.wait_for_room().await;
            let relay = self.relay.clone();
            match relay.0.parts.sessions.events.read(&self.session, self.seen, PAGE).await {
                Read::Lines { lines, last, .. } if !lines.is_empty() => {
                    debug_assert!(count_lines(&lines) > 0);
                    self.emit(lines.strip_suffix(b"\n").unwrap_or(&lines));
                    if self.seen >= last {
                        return;
                    }
                }
                Read::TooOld { oldest } if oldest > self.seen + 1 => {
                    let message = format!("The lines from {} to {} have expired.", self.seen + 1, oldest - 1);
                    let error = ErrorInfo::new(ErrorKind::Internal, "lines_expired", message);
                    self.relay.write(&self.relay.0.parts.writer.error(&self.session, error));
                    self.seen = oldest - 1;
                }
                Read::Lines { .. } | Read::TooOld { .. } | Read::Future { .. } | Read::Failed(_) => return,
            }
        }
    }

    /// Sends lines to the client, with their numbers.
    fn emit(&mut self, lines: &[u8]) {
        let mut out = Vec::with_capacity(lines.len() + 32);
        for line in lines.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
            self.seen += 1;
            push_numbered(&mut out, self.seen, line);
            self.note_line(line);
        }
        self.relay.write(&out);
    }

    /// Notes what a line ends, answers or asks.
    fn note_line(&mut self, line: &[u8]) {
        let contains = |text: &[u8]| line.windows(text.len()).any(|part| part == text);
        let is_control = line.starts_with(b"{\"type\":\"control_re");
        if !is_control && !contains(b"\"turn\":{") {
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
                let prompt_id = line["prompt_id"].as_str();
                let is_named = |awaited: &Awaited| {
                    awaited.line.is_prompt && awaited.line.prompt_id.as_deref() == prompt_id
                };
                let is_unnamed =
                    |awaited: &Awaited| awaited.line.is_prompt && awaited.line.prompt_id.is_none();
                let found = self.awaited.iter().position(is_named);
                if let Some(at) = found.or_else(|| self.awaited.iter().position(is_unnamed)) {
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
        let silence = if self.awaited.is_empty() { IDLE_SILENCE } else { SILENCE };
        if self.heard.elapsed() >= silence {
            self.heard = Instant::now();
            self.fill_gap().await;
        }
    }

    /// The owner is dead: ends its turn, and brings the prompts that had not started to another node.
    async fn recover(&mut self) {
        match self.relay.close_turn(&self.session).await {
            Ok(_) => {}
            // It is tried again with the next check.
            Err(_) => return tokio::time::sleep(CHECK).await,
        }
        self.owner = None;
        self.fill_gap().await;
        let waiting = std::mem::take(&mut self.awaited);
        for awaited in waiting {
            if awaited.line.is_prompt {
                let position = self.relay.next_position();
                Box::pin(self.deliver(Awaited { line: awaited.line, position })).await;
            } else {
                let message = "the machine that had this request is gone; send it again";
                let error = ErrorInfo::new(ErrorKind::Internal, "machine_lost", message);
                let error = ErrorInfo { retryable: true, ..error };
                self.relay.refuse_line(&self.session, &awaited.line, &error);
            }
        }
    }
}
