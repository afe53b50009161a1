//! Permission requests that wait for an answer, across all sessions.

use std::collections::{HashMap, VecDeque};

use qwen_events::SessionId;
use serde_json::Value;

/// How many finished approvals are remembered, so that a second answer learns the first one's decision.
const REMEMBERED: usize = 4096;

/// A permission request that waits for an answer.
#[derive(Debug, Clone)]
pub struct Approval {
    pub session: SessionId,
    pub prompt_id: Option<String>,
    /// The request as the worker wrote it.
    pub request: Value,
    /// Milliseconds since the Unix epoch.
    pub asked_at: u64,
}

/// The open permission requests by their id, and how the last ones ended.
#[derive(Debug, Default)]
pub struct Approvals {
    open: HashMap<String, Approval>,
    ended: HashMap<String, EndedApproval>,
    order: VecDeque<String>,
}

/// How a permission request ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EndedApproval {
    pub session: SessionId,
    /// `allow`, `deny` or `withdrawn`
    pub decision: &'static str,
}

impl Approvals {
    pub fn ask(&mut self, id: &str, approval: Approval) {
        self.open.insert(id.to_owned(), approval);
    }

    pub fn get(&self, id: &str) -> Option<&Approval> {
        self.open.get(id)
    }

    /// How a request ended that is no longer open.
    pub fn ended(&self, id: &str) -> Option<&EndedApproval> {
        self.ended.get(id)
    }

    /// Ends a request; none if it is not open.
    pub fn end(&mut self, id: &str, decision: &'static str) -> Option<Approval> {
        let approval = self.open.remove(id)?;
        self.ended.insert(id.to_owned(), EndedApproval { session: approval.session.clone(), decision });
        self.order.push_back(id.to_owned());
        if self.order.len() > REMEMBERED
            && let Some(oldest) = self.order.pop_front()
        {
            self.ended.remove(&oldest);
        }
        Some(approval)
    }

    /// Withdraws the requests of a session, or of one of its turns.
    pub fn withdraw(&mut self, session: &SessionId, prompt_id: Option<&str>) {
        let is_meant = |approval: &Approval| {
            approval.session == *session
                && prompt_id.is_none_or(|prompt_id| approval.prompt_id.as_deref() == Some(prompt_id))
        };
        let ids: Vec<String> =
            self.open.iter().filter(|(_, approval)| is_meant(approval)).map(|(id, _)| id.clone()).collect();
        for id in ids {
            self.end(&id, "withdrawn");
        }
    }

    /// The open requests in the order in which they were asked.
    pub fn list(&self, session: Option<&SessionId>) -> Vec<(&str, &Approval)> {
        let mut open: Vec<(&str, &Approval)> = self
            .open
            .iter()
            .filter(|(_, approval)| session.is_none_or(|session| approval.session == *session))
            .map(|(id, approval)| (id.as_str(), approval))
            .collect();
        open.sort_by(|a, b| (a.1.asked_at, a.0).cmp(&(b.1.asked_at, b.0)));
        open
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_answer_wins_and_is_remembered() {
        let mut approvals = Approvals::default();
        let session = SessionId::parse("s").unwrap();
        for id in ["a", "b"] {
            let prompt_id = Some("p".to_owned());
            approvals
                .ask(id, Approval { session: session.clone(), prompt_id, request: Value::Null, asked_at: 1 });
        }
        assert!(approvals.end("a", "allow").is_some());
        assert!(approvals.end("a", "deny").is_none());
        assert_eq!(approvals.ended("a").unwrap().decision, "allow");
        approvals.withdraw(&session, Some("other"));
        assert_eq!(approvals.list(None).len(), 1);
        approvals.withdraw(&session, Some("p"));
        assert!(approvals.list(None).is_empty());
        assert_eq!(approvals.ended("b").unwrap().decision, "withdrawn");
    }
}
