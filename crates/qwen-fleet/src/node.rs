//! A node: the sessions of this machine's workers, for hubs on the bus.

use std::cell::RefCell;
use std::collections::{BTreeSet, HashMap};
use std::rc::Rc;

use async_nats::{HeaderMap, Message};
use bytes::Bytes;
use futures_util::StreamExt;
use qwen_events::SessionId;
use qwen_kernel::Hub;
use qwen_kernel::front::session_id_of;
use tokio::time::Instant;

use crate::bus::{Bus, BusError};
use crate::heartbeat::{INTERVAL, NodeState};
use crate::subjects::{heartbeat_subject, node_subject};

/// The subject to which the hub of a line wants lines without a number.
pub const HUB: &str = "Q-Hub";
/// The session of a line, as a token.
pub const SESSION: &str = "Q-Session";
/// The process that sends a line without a number.
pub const SENDER: &str = "Q-Sender";
/// The position of a line among those of its hub and session; a line that is sent again has the same.
pub const LINE: &str = "Q-Line";
/// The part of a line that one message cannot hold, as `i/n`.
pub const PART: &str = "Q-Part";
/// The answer of a node that has a line.
pub const TAKEN: &[u8] = b"ok";
/// The answer of a node that takes no new sessions.
pub const DRAINING: &[u8] = b"draining";

/// The largest number of hubs per session that receive lines without a number.
const MAX_HUBS: usize = 64;

/// Lines of one hub.
#[derive(Default)]
struct Sender {
    /// The position of the last whole line.
    last: u64,
    parts: Vec<u8>,
}

/// A node on the bus.
pub struct BusNode {
    bus: Rc<Bus>,
    hub: Hub,
    is_draining: Rc<dyn Fn() -> bool>,
    /// By hub and session.
    senders: RefCell<HashMap<(String, String), Sender>>,
    /// The number of the last line of each session that was written.
    written: RefCell<HashMap<SessionId, u64>>,
    /// The hubs that have sent lines to a session.
    hubs: RefCell<HashMap<SessionId, BTreeSet<String>>>,
}

impl BusNode {
    /// Fails if another node with this name lives.
    pub async fn check_name(bus: &Bus) -> Result<(), BusError> {
        let name = &bus.identity.name;
        let lost = |_| BusError::new("bus_unavailable", "The bus does not pass heartbeats on.");
        let mut heartbeats = bus.client.subscribe(heartbeat_subject(name)).await.map_err(lost)?;
        let deadline = Instant::now() + INTERVAL * 3;
        while let Ok(Some(message)) = tokio::time::timeout_at(deadline, heartbeats.next()).await {
            if let Ok(state) = serde_json::from_slice::<NodeState>(&message.payload)
                && state.incarnation != bus.identity.incarnation
            {
                let message =
                    format!("Another node on this bus has the name '{name}'. Choose one with --name.");
                return Err(BusError::new("node_name_in_use", message));
            }
        }
        Ok(())
    }

    /// Serves hubs until the kernel hub ends. It must be called on a `LocalSet`.
    pub async fn serve(bus: Rc<Bus>, hub: Hub, is_draining: Rc<dyn Fn() -> bool>) -> Result<(), BusError> {
        let node = Rc::new(Self {
            bus,
            hub,
            is_draining,
            senders: RefCell::default(),
            written: RefCell::default(),
            hubs: RefCell::default(),
        });
        let identity = &node.bus.identity;
        let subject = node_subject(&identity.name, &identity.incarnation, "input");
        let lost = |_| BusError::new("bus_unavailable", "The bus does not pass lines on.");
        let mut lines = node.bus.client.subscribe(subject).await.map_err(lost)?;
        let reader = node.clone();
        let input = tokio::task::spawn_local(async move {
            while let Some(message) = lines.next().await {
                reader.receive(message).await;
            }
        });
        let beating = node.clone();
        let heartbeats = tokio::task::spawn_local(async move {
            loop {
                beating.beat().await;
                tokio::time::sleep(INTERVAL).await;
            }
        });
        while let Some(output) = node.hub.next_output().await {
            for line in output.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
                node.pass_on(line).await;
            }
        }
        input.abort();
        heartbeats.abort();
        // Lines without a number must reach the bus before the connection ends.
        let _ = node.bus.client.flush().await;
        Ok(())
    }

    async fn beat(&self) {
        let (free, sessions) = self.hub.inspect(|router| {
            let pool = router.pool();
            let busy = pool.workers().filter(|worker| !worker.is_spare()).count();
            (pool.limits().max_workers.saturating_sub(busy), busy)
        });
        let identity = &self.bus.identity;
        let state = NodeState {
            name: identity.name.clone(),
            incarnation: identity.incarnation.clone(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            draining: (self.is_draining)(),
            free,
            sessions,
            workspace: identity.workspace.clone().unwrap_or_default(),
        };
        if let Ok(payload) = serde_json::to_vec(&state) {
            // The next one follows soon.
            let _ = self.bus.client.publish(heartbeat_subject(&state.name), payload.into()).await;
        }
    }

    async fn receive(&self, message: Message) {
        let answer = self.accept(&message.headers.unwrap_or_default(), &message.payload);
        if let Some(reply) = message.reply {
            // A hub that gets no answer sends the line again.
            let _ = self.bus.client.publish(reply, Bytes::from_static(answer)).await;
        }
    }

    /// Takes a line or a part of one.
    fn accept(&self, headers: &HeaderMap, payload: &Bytes) -> &'static [u8] {
        let text = |name: &str| headers.get(name).map(async_nats::HeaderValue::as_str);
        let (Some(hub), Some(line)) = (text(HUB), text(LINE).and_then(|text| text.parse::<u64>().ok()))
        else {
            return b"malformed";
        };
        let (part, parts) = text(PART)
            .and_then(|text| text.split_once('/'))
            .and_then(|(part, parts)| Some((part.parse::<u64>().ok()?, parts.parse::<u64>().ok()?)))
            .unwrap_or((1, 1));
        let whole = {
            let mut senders = self.senders.borrow_mut();
            let key = (hub.to_owned(), text(SESSION).unwrap_or_default().to_owned());
            let sender = senders.entry(key).or_default();
            if line <= sender.last {
                return TAKEN;
            }
            if part == 1 {
                sender.parts.clear();
            }
            sender.parts.extend_from_slice(payload);
            if part < parts {
                return TAKEN;
            }
            sender.last = line;
            std::mem::take(&mut sender.parts)
        };
        let session = session_id_of(&whole);
        if let Some(session) = &session {
            let is_open = self.hub.inspect(|router| router.session_status(session).is_some());
            if (self.is_draining)() && !is_open {
                return DRAINING;
            }
            let mut hubs = self.hubs.borrow_mut();
            let known = hubs.entry(session.clone()).or_default();
            if known.len() < MAX_HUBS {
                known.insert(hub.to_owned());
            }
        }
        self.hub.client_line(&whole);
        TAKEN
    }

    /// Passes a line on that was not stored now; the bus itself repeats those that have one.
    async fn pass_on(&self, line: &[u8]) {
        let Some(session) = session_id_of(line) else { return };
        if let Some(number) = number_of(line) {
            let mut written = self.written.borrow_mut();
            let last = written.entry(session.clone()).or_default();
            if number > *last {
                *last = number;
                return;
            }
            // A client asked for the end of a turn again, which keeps its number.
        }
        let hubs = self.hubs.borrow().get(&session).cloned().unwrap_or_default();
        for hub in hubs {
            let mut headers = HeaderMap::new();
            headers.insert(SENDER, self.bus.identity.to_string());
            // A hub that is gone needs no line.
            let _ = self.bus.client.publish_with_headers(hub, headers, Bytes::copy_from_slice(line)).await;
        }
    }
}

/// Returns the number of a line.
fn number_of(line: &[u8]) -> Option<u64> {
    let digits = line.strip_prefix(b"{\"seq\":")?;
    let end = digits.iter().position(|byte| !byte.is_ascii_digit())?;
    std::str::from_utf8(&digits[..end]).ok()?.parse().ok()
}
