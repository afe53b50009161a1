//! What sub-agents do, in the form that the client shows.

use qwen_events::{CallId, SessionId};
use serde_json::{Value, json};

use super::client::{AcpClient, SubAgents};
use super::sizes::{call_id, hash};

/// Before the hash of the call that started a sub-agent, in the id of the sub-agent's session.
const AGENT_SESSION: &str = ".agent-";

/// The id of the session in which the client shows the sub-agent that `parent` started.
pub(super) fn session_of(session_id: &SessionId, parent: &CallId) -> String {
    format!("{session_id}{AGENT_SESSION}{}", hash(parent.as_str()))
}

/// The session that a sub-agent's session belongs to; none if `id` is not the id of one.
pub fn owning_session(id: &str) -> Option<&str> {
    id.rsplit_once(AGENT_SESSION).map(|(owner, _)| owner)
}

/// What names the call that started the sub-agent, for the updates of the sub-agent. The second name is the one
/// that clients of nested transcripts read.
pub(super) fn nested_meta(parent: &CallId, client: AcpClient) -> Value {
    let parent = call_id(parent);
    if client.agents == SubAgents::Transcripts {
        json!({"qwen": {"parentToolCallId": parent}, "claudeCode": {"parentToolUseId": parent}})
    } else {
        json!({"qwen": {"parentToolCallId": parent}})
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_session_of_a_sub_agent_leads_back_to_its_owner() {
        let owner = SessionId::parse("a.b-1").unwrap();
        let id = session_of(&owner, &CallId::new("call \"1\""));
        assert_eq!(owning_session(&id), Some("a.b-1"));
        assert!(SessionId::parse(&id).is_ok(), "{id}");
        assert_eq!(owning_session("a.b-1"), None);
    }
}
