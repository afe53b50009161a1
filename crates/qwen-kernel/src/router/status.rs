//! `hub/status`.

use std::collections::BTreeMap;

use qwen_events::SessionId;
use serde_json::{Value, json};

use super::Router;
use crate::worker_pool::{Stage, Worker};

impl Router {
    /// The state of the hub.
    pub fn status(&self) -> Value {
        let count =
            |wanted: &dyn Fn(&Worker) -> bool| self.pool.workers().filter(|worker| wanted(worker)).count();
        let leaves = |worker: &Worker| matches!(worker.stage, Stage::Discarding | Stage::Ending);
        let mut turns: BTreeMap<&str, usize> = BTreeMap::new();
        for session in self.sessions.values().filter(|session| session.is_busy()) {
            *turns.entry(session.tenant.as_str()).or_default() += 1;
        }
        let oldest = self.admission.iter().filter_map(|id| self.sessions.get(id)?.queued_since()).min();
        json!({
            "hub": {
                "id": self.identity.id,
                "incarnation": self.identity.incarnation,
                "version": self.identity.version,
                "draining": self.ending.drain_until.is_some(),
            },
            "machines": [{
                "name": "local",
                "incarnation": self.identity.incarnation,
                "workers": {
                    "idle": count(&|worker| worker.bound && !worker.busy && !leaves(worker)),
                    "busy": count(&|worker| worker.busy && !leaves(worker)),
                    "warm": count(&|worker| worker.is_spare() && worker.stage == Stage::Ready),
                    "quarantined": count(&|worker| worker.fault.is_some()),
                    "ending": count(&|worker| leaves(worker) && worker.fault.is_none()),
                    "max": self.pool.limits().max_workers,
                },
                "memory": crate::metrics::own_memory(),
                "turns_by_tenant": turns,
                "restarts": self.pool.restarts(),
                "open_circuits": self.pool.open_circuits(self.clock.now),
            }],
            "queue": {
                "length": self.admission.len(),
                "oldest_ms": oldest.map(|at| self.clock.now.saturating_sub(at).as_millis()),
            },
            "sessions": self.sessions.len(),
        })
    }

    /// Returns the sessions that are open, in no order.
    pub fn session_ids(&self) -> Vec<SessionId> {
        self.sessions.keys().cloned().collect()
    }

    /// Returns the state of a session for a report; none if it is not open.
    pub fn session_status(&self, id: &SessionId) -> Option<Value> {
        let session = self.sessions.get(id)?;
        Some(json!({
            "session_id": id.as_str(),
            "owner": session.worker().map(|worker| worker.to_string()),
            "epoch": session.numbering.epoch.or(session.logs.epoch()),
            "seq": session.numbering.last,
            "turn": session.prompts.turn,
            "attached": true,
            "tenant": session.tenant,
            "queued": session.prompts.pending.iter().filter(|prompt| !prompt.sent).count(),
        }))
    }
}
