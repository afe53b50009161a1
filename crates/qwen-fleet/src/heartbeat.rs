//! Signs of life of nodes, over core NATS: they do not wait for the servers' agreement, so that a pause of the
//! streams ends nothing.

use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};
use std::rc::Rc;
use std::time::Duration;

use futures_util::StreamExt;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::bus::{Bus, BusError};
use crate::node::workspaces::{AnnouncedWorkspace, Wanted, WantedWorkspace};

/// How often nodes send heartbeats, and what their absence means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timing {
    /// How far the heartbeats of a node are apart.
    pub interval: Duration,
    /// A node that was silent for so long is dead.
    pub dead_after: Duration,
}

impl Default for Timing {
    fn default() -> Self {
        Self { interval: Duration::from_millis(500), dead_after: Duration::from_secs(2) }
    }
}

impl Timing {
    /// A node that was silent for so long is asked.
    pub fn suspect_after(&self) -> Duration {
        self.interval * 3 / 2
    }

    /// A node that was silent for so long gets no new session, and one that hears itself no longer starts no tool.
    pub fn absent_after(&self) -> Duration {
        self.interval * 3
    }

    /// How long to wait for the answer to one of `pings`, so that all together end at `dead_after`.
    pub fn ping_limit(&self, pings: u32) -> Duration {
        self.dead_after.saturating_sub(self.interval) / pings
    }
}

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
    #[serde(default)]
    pub labels: BTreeMap<String, String>,
    #[serde(default)]
    pub workspaces: Vec<AnnouncedWorkspace>,
    /// For how long it has run, in milliseconds.
    #[serde(default)]
    pub uptime: u64,
}

impl NodeState {
    /// Returns true if the files of a session are or can be on this node. `place` is what its log records.
    fn reaches(&self, place: &str) -> bool {
        if self.workspace == place {
            return true;
        }
        match WantedWorkspace::of_place(place) {
            Some(workspace) if workspace.kind == "shared" => workspace.is_announced(&self.workspaces),
            // It is created where the session continues.
            Some(_) => true,
            None => false,
        }
    }

    /// Returns true if the node has what `open` asks for.
    fn satisfies(&self, wanted: &Wanted) -> bool {
        let has_label = |(key, value): (&String, &String)| self.labels.get(key) == Some(value);
        let has_workspace = |workspace: &WantedWorkspace| {
            workspace.id.is_none()
                || workspace.is_announced(&self.workspaces)
                || workspace.place().is_some_and(|place| place == self.workspace)
        };
        wanted.labels.iter().all(has_label) && wanted.workspace.as_ref().is_none_or(has_workspace)
    }
}

/// The nodes that this process has heard of, by name.
#[derive(Clone, Default)]
pub struct Nodes {
    by_name: Rc<RefCell<HashMap<String, (NodeState, Instant)>>>,
    timing: Timing,
}

impl Nodes {
    /// Follows the heartbeats of all nodes. It must be called on a `LocalSet`.
    pub async fn follow(bus: &Bus) -> Result<Self, BusError> {
        let lost = |_| BusError::new("bus_unavailable", "The bus does not pass heartbeats on.");
        let mut heartbeats = bus.client.subscribe(bus.names.heartbeat_subject("*")).await.map_err(lost)?;
        let nodes = Self { by_name: Rc::default(), timing: bus.timing };
        let known = nodes.clone();
        tokio::task::spawn_local(async move {
            while let Some(message) = heartbeats.next().await {
                if let Ok(state) = serde_json::from_slice::<NodeState>(&message.payload) {
                    known.by_name.borrow_mut().insert(state.name.clone(), (state, Instant::now()));
                }
            }
        });
        Ok(nodes)
    }

    /// Returns true for a process, as NAME/INCARNATION, whose heartbeats have stopped.
    pub fn is_suspect(&self, owner: &str) -> bool {
        let nodes = self.by_name.borrow();
        let node = owner.split_once('/').and_then(|(name, incarnation)| {
            nodes.get(name).filter(|(state, _)| state.incarnation == incarnation)
        });
        node.is_none_or(|(_, seen)| seen.elapsed() >= self.timing.suspect_after())
    }

    /// Returns true for a process that is or was a node.
    pub fn is_node(&self, owner: &str) -> bool {
        owner.split_once('/').is_some_and(|(name, _)| self.by_name.borrow().contains_key(name))
    }

    /// Returns the nodes that live and take sessions, other than those in `excluded`. `place` is where the session's
    /// files are.
    pub fn candidates(&self, place: Option<&str>, wanted: &Wanted, excluded: &[String]) -> Vec<NodeState> {
        let nodes = self.by_name.borrow();
        let fits = |state: &&NodeState| {
            !state.draining
                && place.is_none_or(|place| state.reaches(place))
                && state.satisfies(wanted)
                && !excluded.contains(&state.name)
        };
        let live = nodes.values().filter(|(_, seen)| seen.elapsed() < self.timing.absent_after());
        live.map(|(state, _)| state).filter(fits).cloned().collect()
    }

    /// Returns the nodes for a report.
    pub fn report(&self) -> Vec<Value> {
        let nodes = self.by_name.borrow();
        let mut report: Vec<Value> = nodes
            .values()
            .map(|(state, seen)| {
                json!({
                    "name": state.name, "incarnation": state.incarnation, "version": state.version,
                    "draining": state.draining, "free": state.free, "sessions": state.sessions,
                    "workspace": state.workspace, "labels": state.labels, "workspaces": state.workspaces,
                    "uptime_ms": state.uptime, "is_live": seen.elapsed() < self.timing.absent_after(),
                })
            })
            .collect();
        report.sort_by_key(|node| node["name"].to_string());
        report
    }
}
