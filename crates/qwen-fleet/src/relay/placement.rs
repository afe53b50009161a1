//! Which node a line goes to.

use std::time::Duration;

use async_nats::{HeaderMap, Request, RequestErrorKind};
use bytes::Bytes;
use qwen_events::{ErrorInfo, ErrorKind, SessionId};

use super::Relay;
use super::following::Awaited;
use crate::headers::escape;
use crate::node::workspaces::Wanted;
use crate::node::{DRAINING, EVENT, FORMAT, HUB, LINE, PART, PLACE, PROMPT, SESSION, TAKEN};
use crate::session_log::PART_BYTES;
use crate::subjects::token;

/// How long a hub that has just started waits for the first heartbeats.
const FIRST_HEARTBEATS: u32 = 4;

/// The outcome of sending a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sent {
    Taken,
    /// The node ends and takes no new sessions.
    Draining,
    /// No answer came: the node may be dead.
    Unknown,
}

/// The process for a session.
pub struct Placed {
    /// The process, written as NAME/INCARNATION.
    pub owner: String,
    /// Where the files of the session are, if it has some already.
    pub place: Option<String>,
}

impl Relay {
    /// Returns the process that has the session, or the node that it is to run on.
    pub(super) async fn place(
        &self,
        session: &SessionId,
        wanted: &Wanted,
        excluded: &[String],
    ) -> Result<Placed, ErrorInfo> {
        let parts = &self.0.parts;
        let unreachable = |error: &dyn std::fmt::Display| ErrorInfo {
            retryable: true,
            ..ErrorInfo::new(ErrorKind::Network, "bus_unavailable", error.to_string())
        };
        let end = parts.sessions.log.await_end(session).await.map_err(|error| unreachable(&error))?;
        let headers = end.map(|end| end.headers);
        if let Some(headers) =
            headers.as_ref().filter(|headers| headers.is_owned_by_other(&parts.bus.identity))
            && !excluded.iter().any(|name| headers.owner.starts_with(&format!("{name}/")))
        {
            let is_live = !self.0.nodes.is_suspect(&headers.owner)
                || parts.bus.is_alive(&headers.owner).await.map_err(|error| unreachable(&error))?;
            if is_live && (headers.workspace.is_some() || self.0.nodes.is_node(&headers.owner)) {
                return Ok(Placed { owner: headers.owner.clone(), place: headers.workspace.clone() });
            }
            if is_live {
                let message = format!(
                    "The session '{session}' is in use by {}, a hub with its own workers. End it there first.",
                    headers.owner
                );
                return Err(ErrorInfo::new(ErrorKind::Input, "session_in_use", message));
            }
        }
        let place = headers.and_then(|headers| headers.workspace);
        // The files of a session stay where they are, whatever a later `open` asks for.
        let any = Wanted::default();
        let wanted = if place.is_none() { wanted } else { &any };
        for attempt in 0..=FIRST_HEARTBEATS {
            let mut nodes = self.0.nodes.candidates(place.as_deref(), wanted, excluded);
            if !nodes.is_empty() {
                // Two at random, of which the less loaded one: hubs that decide at the same time do not all
                // choose the same node.
                let first = nodes.swap_remove(fastrand::usize(..nodes.len()));
                let second = (!nodes.is_empty()).then(|| nodes.swap_remove(fastrand::usize(..nodes.len())));
                let chosen = second.filter(|second| second.free > first.free).unwrap_or(first);
                return Ok(Placed { owner: format!("{}/{}", chosen.name, chosen.incarnation), place });
            }
            if attempt < FIRST_HEARTBEATS {
                tokio::time::sleep(parts.bus.timing.interval / 2).await;
            }
        }
        Err(self.refuse_placement(session, place.as_deref(), wanted, excluded))
    }

    /// Describes why no node takes a session.
    fn refuse_placement(
        &self,
        session: &SessionId,
        place: Option<&str>,
        wanted: &Wanted,
        excluded: &[String],
    ) -> ErrorInfo {
        let has_nodes = !self.0.nodes.candidates(None, &Wanted::default(), excluded).is_empty();
        let (kind, code, message) = match place {
            Some(place) if has_nodes => {
                let (kind, name) = place.split_once(':').unwrap_or(("local", place));
                let machines = if kind == "shared" { "that announce the workspace" } else { "named" };
                let message = format!(
                    "The session '{session}' is stranded: its files are on machines {machines} '{name}', of which none is there. Its history stays readable with `attach`. Start `qwen node` there and send the prompt again."
                );
                (ErrorKind::Input, "stranded", message)
            }
            None if has_nodes => {
                let message = format!(
                    "No node has {}. Start one that announces it with --label or --workspace, or open the session with another choice.",
                    wanted.describe()
                );
                (ErrorKind::Input, "no_matching_node", message)
            }
            _ => {
                let message = "no node takes sessions; start `qwen node` with the same --bus".to_owned();
                (ErrorKind::Overloaded, "no_nodes", message)
            }
        };
        ErrorInfo { retryable: true, ..ErrorInfo::new(kind, code, message) }
    }

    /// Sends a line to a process. A line that is sent again under the same `position` is taken once.
    pub(super) async fn send(
        &self,
        session: &SessionId,
        owner: &str,
        place: Option<&str>,
        awaited: &Awaited,
    ) -> Sent {
        let Awaited { line, position, .. } = awaited;
        let Some((name, incarnation)) = owner.split_once('/') else { return Sent::Unknown };
        let subject = self.0.parts.bus.names.node_subject(name, incarnation, "input");
        let count = line.bytes.len().div_ceil(PART_BYTES).max(1);
        for part in 0..count {
            let range = part * PART_BYTES..line.bytes.len().min((part + 1) * PART_BYTES);
            let mut headers = HeaderMap::new();
            headers.insert(HUB, self.0.inbox.as_str());
            headers.insert(SESSION, token(session));
            headers.insert(LINE, position.to_string());
            headers.insert(PART, format!("{}/{count}", part + 1));
            headers.insert(FORMAT, self.0.parts.front.format().name());
            if let Some(place) = place {
                headers.insert(PLACE, escape(place));
            }
            if line.is_event {
                headers.insert(EVENT, "1");
            }
            if line.is_prompt {
                headers.insert(PROMPT, "1");
            }
            let request = Request::new()
                .headers(headers)
                .payload(Bytes::copy_from_slice(&line.bytes[range]))
                .timeout(Some(Duration::from_secs(2)));
            match self.0.parts.bus.client.send_request(subject.clone(), request).await {
                Ok(reply) if reply.payload.as_ref() == TAKEN => {}
                Ok(reply) if reply.payload.as_ref() == DRAINING => return Sent::Draining,
                Ok(_) => return Sent::Unknown,
                Err(error) => {
                    if error.kind() == RequestErrorKind::NoResponders {
                        // It may be connecting again.
                        tokio::time::sleep(Duration::from_millis(50)).await;
                    }
                    return Sent::Unknown;
                }
            }
        }
        Sent::Taken
    }

    /// Returns the position for a new line.
    pub(super) fn next_position(&self) -> u64 {
        self.0.sent.set(self.0.sent.get() + 1);
        self.0.sent.get()
    }
}
