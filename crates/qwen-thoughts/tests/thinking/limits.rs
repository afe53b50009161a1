//! Limits: the best so far, and which one it was.

use std::time::Duration;

use qwen_engine::{Cancel, Limits, Session, Stop};
use qwen_events::{AgentName, Body, EndStatus, Thinking};

use crate::harness::{ask, hear_until, oracle, setup};

const PUZZLE: &str = "4 9 10 13";
const LIST: &str = "Sort ascending: 9 3 7 1 30 22 17 4 8 15 26 11 2 19 28 5 6 10 12 14";

#[tokio::test]
async fn at_a_limit_of_calls_the_best_so_far_is_the_reply_and_no_further_call_is_made() {
    for (agent, spec, prompt, limit) in
        [(AgentName::Tot, "game24?seed=2", PUZZLE, 9), (AgentName::Got, "sort?seed=1", LIST, 14)]
    {
        let limits = Limits { turns: Some(limit), ..Limits::default() };
        let heard = ask(setup(agent, oracle(spec), |setup| setup.context.limits = limits), prompt).await;
        assert_eq!(heard.end.status, EndStatus::MaxTurns, "{agent:?}");
        assert_eq!(heard.end.model_calls, limit, "{agent:?}");
        assert!(!heard.end.reply.is_empty(), "{agent:?}");
        let last = heard.events.iter().rev().find(|event| matches!(event.body, Body::NodeEnter));
        let last = last.and_then(|event| event.scope.node.as_ref()).map(|node| &*node.name);
        assert_eq!(last, Some("answer"), "{agent:?}");
    }
}

#[tokio::test]
async fn budgets_of_zero_end_at_once_and_say_so() {
    for agent in [AgentName::Tot, AgentName::Got] {
        for (limits, status) in [
            (Limits { turns: Some(0), ..Limits::default() }, EndStatus::MaxTurns),
            (Limits { session_turns: Some(0), ..Limits::default() }, EndStatus::MaxTurns),
            (Limits { tokens: Some(0), ..Limits::default() }, EndStatus::MaxTokens),
            (Limits { steps: Some(0), ..Limits::default() }, EndStatus::Budget),
        ] {
            let heard =
                ask(setup(agent, oracle("game24"), |setup| setup.context.limits = limits), PUZZLE).await;
            assert_eq!((heard.end.status, heard.end.model_calls), (status, 0), "{agent:?}");
            assert!(heard.end.error.is_some_and(|error| error.message.contains("limit")), "{agent:?}");
        }
    }
}

#[tokio::test]
async fn a_turn_that_runs_out_of_time_ends_with_that() {
    for agent in [AgentName::Tot, AgentName::Got] {
        let limits = Limits { wall_time: Some(Duration::from_millis(20)), ..Limits::default() };
        let setup = setup(agent, oracle("sort?delay=60000"), |setup| setup.context.limits = limits);
        let heard = ask(setup, LIST).await;
        assert_eq!(heard.end.status, EndStatus::MaxWallTime, "{agent:?}");
    }
}

#[tokio::test]
async fn a_cancel_is_heard_while_thoughts_are_thought_and_every_thought_that_started_ends() {
    let mut session = Session::new(setup(AgentName::Got, oracle("sort?seed=1"), |_| {}));
    let cancel = Cancel::default();
    let heard = hear_until(&mut session, Some(LIST), &cancel, |event| {
        if let Body::Thinking(step) = &event.body
            && let Thinking::GotNodeStart { id } = &**step
            && &**id == "sort1"
        {
            cancel.stop(Stop::cancelled());
        }
    })
    .await;
    assert_eq!(heard.end.status, EndStatus::Cancelled);
    let ids = |wanted: fn(&Thinking) -> Option<String>| {
        let mut ids: Vec<String> = heard.steps().into_iter().filter_map(wanted).collect();
        ids.sort_unstable();
        ids
    };
    let started =
        ids(|step| if let Thinking::GotNodeStart { id } = step { Some(id.to_string()) } else { None });
    let ended = ids(|step| match step {
        Thinking::GotNodeComplete { id, .. } | Thinking::GotNodeFailed { id, .. } => Some(id.to_string()),
        _ => None,
    });
    assert_eq!(started, ended);
}

#[tokio::test]
async fn a_tree_keeps_to_its_number_of_thoughts() {
    let setup = setup(AgentName::Tot, oracle("game24?seed=2"), |setup| setup.thinking.tot.max_thoughts = 10);
    let heard = ask(setup, PUZZLE).await;
    assert_eq!(heard.end.status, EndStatus::Done);
    assert_eq!(heard.state()["thoughts"].as_array().expect("thoughts").len(), 10);
}
