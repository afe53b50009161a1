//! Tools inside thoughts.

use std::fs;
use std::sync::Arc;

use qwen_engine::Session;
use qwen_engine::log::Store;
use qwen_events::{AgentName, Body, Event, Role, ToolStatus};
use qwen_tools::Registry;

use crate::fake::{Fake, Says, is};
use crate::harness::{hear, recorder, session_id, setup};

/// The ids of calls in the order of what `wanted` picks.
fn calls(events: &[Event], wanted: fn(&Body) -> Option<String>) -> Vec<String> {
    events.iter().filter_map(|event| wanted(&event.body)).collect()
}

#[tokio::test]
async fn a_thought_may_use_tools_and_the_conversation_does_not_hear_of_it() {
    let place = tempfile::tempdir().expect("a directory");
    let note = place.path().join("note.txt");
    fs::write(&note, "the number is 24").expect("a file");
    for agent in [AgentName::Tot, AgentName::Got] {
        let path = note.display().to_string();
        let model = Fake::new(move |prompt: &str, results| {
            let thinks = is(prompt, "Propose") || is(prompt, "Generate");
            if thinks && results == 0 {
                return Says::Call("read_file", format!("{{\"file_path\":{path:?}}}"));
            }
            if is(prompt, "Plan") {
                return r#"{"nodes":[{"id":"a","op":"generate"},{"id":"b","op":"generate"}]}"#.into();
            }
            if is(prompt, "Value") { "1: 10".into() } else { "answer: 24".into() }
        });
        let home = tempfile::tempdir().expect("a directory");
        let setup = setup(agent, model, |setup| setup.context.base_tools = Arc::new(Registry::builtin()));
        let mut session = Session::new(setup).with_log(recorder(home.path()));
        let heard = hear(&mut session, Some("a problem")).await;
        let asked = calls(&heard.events, |body| match body {
            Body::ToolCall(call) => Some(call.id.to_string()),
            _ => None,
        });
        let started = calls(&heard.events, |body| match body {
            Body::ToolStart(call) => Some(call.id.to_string()),
            _ => None,
        });
        let mut ended = calls(&heard.events, |body| match body {
            Body::ToolEnd(end) => {
                assert_eq!(end.status, ToolStatus::Success, "{}", end.text);
                assert!(end.text.contains("the number is 24"));
                Some(end.call.id.to_string())
            }
            _ => None,
        });
        ended.sort_unstable();
        let mut sorted = asked.clone();
        sorted.sort_unstable();
        assert_eq!(sorted, ended, "{agent:?}");
        assert_eq!(asked.len(), if agent == AgentName::Tot { 1 } else { 2 });
        assert_eq!(asked.len(), started.len());
        sorted.dedup();
        assert_eq!(sorted.len(), asked.len(), "models may give one name twice, and readers see it once");
        assert_eq!(heard.end.tool_calls, asked.len() as u64);

        let roles: Vec<Role> = session.history().iter().map(|message| message.role).collect();
        assert_eq!(roles, [Role::User, Role::Assistant], "{agent:?}");
        let history = session.history().to_vec();
        drop(session);
        let folded = Store::new(home.path()).fold(&session_id()).expect("a session");
        assert_eq!(folded.messages, history, "the log tells the same conversation");
    }
}
