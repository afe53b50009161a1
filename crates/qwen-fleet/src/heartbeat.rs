//! Signs of life of nodes, over core NATS: they do not wait for the servers' agreement, so that a pause of the
//! streams ends nothing.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;
use std::time::Duration;

use futures_util::StreamExt;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::bus::{Bus, BusError};
use crate::subjects::heartbeat_subject;

/// How far the heartbeats of a node are apart.
pub const INTERVAL: Duration = Duration::from_millis(500);
/// A node that was silent for so long is asked.
pub const SUSPECT_AFTER: Duration = Duration::from_millis(750);
/// A node that was silent for so long gets no new session.
const ABSENT_AFTER: Duration = Duration::from_millis(1500);

/// The content of a heartbeat.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct NodeState {
    pub name: String,
    pub incarnation: String,
    pub version: String,
    pub draining: bool,
    /// Sessions that could be given a worker now.
    pub free: usize,
    pub sessions: usize,
    pub workspace: String,
}

/// The nodes that this process has heard of, by name.
#[derive(Clone, Default)]
pub struct Nodes(Rc<RefCell<HashMap<String, (NodeState, Instant)>>>);

impl Nodes {
    /// Follows the heartbeats of all nodes. It must be called on a `LocalSet`.
    pub async fn follow(bus: &Bus) -> Result<Self, BusError> {
        let lost = |_| BusError::new("bus_unavailable", "The bus does not pass heartbeats on.");
        let mut heartbeats = bus.client.subscribe(heartbeat_subject("*")).await.map_err(lost)?;
        let nodes = Self::default();
        let known = nodes.clone();
        tokio::task::spawn_local(async move {
            while let Some(message) = heartbeats.next().await {
                if let Ok(state) = serde_json::from_slice::<NodeState>(&message.payload) {
                    known.0.borrow_mut().insert(state.name.clone(), (state, Instant::now()));
                }
            }
        });
        Ok(nodes)
    }

    /// Returns true for a process, as NAME/INCARNATION, whose heartbeats have stopped.
    pub fn is_suspect(&self, owner: &str) -> bool {
        let nodes = self.0.borrow();
        let node = owner.split_once('/').and_then(|(name, incarnation)| {
            nodes.get(name).filter(|(state, _)| state.incarnation == incarnation)
        });
        node.is_none_or(|(_, seen)| seen.elapsed() >= SUSPECT_AFTER)
    }

    /// Returns true for a process that is or was a node.
    pub fn is_node(&self, owner: &str) -> bool {
        owner.split_once('/').is_some_and(|(name, _)| self.0.borrow().contains_key(name))
    }

    /// Returns the nodes that live and take sessions, other than those in `excluded`.
    pub fn candidates(&self, workspace: Option<&str>, excluded: &[String]) -> Vec<NodeState> {
        let nodes = self.0.borrow();
        let fits = |state: &&NodeState| {
            !state.draining
                && workspace.is_none_or(|workspace| state.workspace == workspace)
                && !excluded.contains(&state.name)
        };
        let live = nodes.values().filter(|(_, seen)| seen.elapsed() < ABSENT_AFTER);
        live.map(|(state, _)| state).filter(fits).cloned().collect()
    }

    /// Returns the nodes for a report.
    pub fn report(&self) -> Vec<Value> {
        let nodes = self.0.borrow();
        let mut report: Vec<Value> = nodes
            .values()
            .map(|(state, seen)| {
                json!({
                    "name": state.name, "incarnation": state.incarnation, "version": state.version,
                    "draining": state.draining, "free": state.free, "sessions": state.sessions,
                    "workspace": state.workspace, "is_live": seen.elapsed() < ABSENT_AFTER,
                })
            })
            .collect();
        report.sort_by_key(|node| node["name"].to_string());
        report
    }
}
