//! Killed at any moment, a run is gone on with and comes to the same.

use qwen_events::AgentName;
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::sync::Arc;

use qwen_engine::log::{Replay, Store};
use qwen_engine::{Session, SessionContext};
use qwen_thoughts::{GotOptions, Search, ThoughtAgents, TotOptions};
use serde_json::Value;

use crate::harness::{Heard, Setup, hear, oracle, recorder, session_id, setup};

/// An agent and something for it to do.
struct Case {
    name: &'static str,
    agent: AgentName,
    oracle: &'static str,
    prompt: &'static str,
    change: fn(&mut Setup),
}

const CASES: [Case; 4] = [
    Case {
        name: "a tree, level by level",
        agent: AgentName::Tot,
        oracle: "game24?seed=3",
        prompt: "4 9 10 13",
        change: |setup| setup.thinking.tot = TotOptions { breadth: 2, proposals: 3, ..TotOptions::default() },
    },
    Case {
        name: "a tree, depth first",
        agent: AgentName::Tot,
        oracle: "game24?seed=2",
        prompt: "1 5 5 5",
        change: |setup| {
            setup.thinking.tot = TotOptions { search: Search::Dfs, proposals: 4, ..TotOptions::default() }
        },
    },
    Case {
        name: "a graph",
        agent: AgentName::Got,
        oracle: "sort?seed=1",
        prompt: "Sort ascending: 9 3 7 1 30 22 17 4 8 15 26 11 2 19 28 5 6 10 12 14 13 16 18 20",
        change: |_| {},
    },
    Case {
        name: "an adaptive graph",
        agent: AgentName::Got,
        oracle: "capacity?cap=8",
        prompt: "Solve a task of size 25",
        change: |setup| {
            setup.thinking.got = GotOptions { adaptive: true, max_depth: 2, ..GotOptions::default() };
        },
    },
];

impl Case {
    fn setup(&self) -> SessionContext {
        setup(self.agent, oracle(self.oracle), self.change)
    }

    /// The whole run, undisturbed, and the log that it leaves.
    async fn undisturbed(&self, home: &Path) -> (Heard, Vec<u8>) {
        let mut session = Session::new(self.setup()).with_log(recorder(home));
        let heard = hear(&mut session, Some(self.prompt)).await;
        drop(session);
        let log = fs::read(Store::new(home).path(&session_id())).expect("a log");
        (heard, log)
    }

    /// Goes on with a log that was cut off.
    async fn gone_on(&self, log: &[u8], home: &Path) -> Option<Heard> {
        let store = Store::new(home);
        fs::create_dir_all(home.join("sessions")).expect("a directory");
        fs::write(store.path(&session_id()), log).expect("a log");
        let (recorder, folded) = store.resume(&session_id()).expect("a session");
        folded.unfinished.as_ref()?;
        let mut session = Session::resume(self.setup(), folded).with_log(recorder);
        Some(hear(&mut session, None).await)
    }
}

/// The thoughts of a run, whatever the order in which they came.
fn thoughts(state: &Value) -> BTreeSet<String> {
    let list = state["thoughts"].as_array().expect("thoughts");
    let name = |thought: &Value| match &thought["id"] {
        Value::String(id) => format!("{id}: {}", thought["results"]),
        _ => format!("{} {} {}", thought["depth"], thought["text"], thought["score"]),
    };
    list.iter().map(name).collect()
}

#[tokio::test]
async fn a_run_that_is_killed_behind_any_line_of_its_log_comes_to_the_same() {
    for case in &CASES {
        let home = tempfile::tempdir().expect("a directory");
        let (whole, log) = case.undisturbed(home.path()).await;
        let expected = (whole.end.reply.to_string(), thoughts(&whole.state()));
        let mut ends: Vec<usize> = (0..log.len()).filter(|at| log[*at] == b'\n').map(|at| at + 1).collect();
        assert!(ends.len() > 20, "{}: {} lines", case.name, ends.len());
        // In the middle of a line too: what was half written when the process died.
        ends.extend(ends.clone().windows(2).map(|pair| usize::midpoint(pair[0], pair[1])));
        let mut resumed = 0;
        for end in ends {
            let home = tempfile::tempdir().expect("a directory");
            let Some(heard) = case.gone_on(&log[..end], home.path()).await else { continue };
            resumed += 1;
            assert_eq!(heard.end.reply.to_string(), expected.0, "{} cut at {end}", case.name);
            let calls = heard.end.model_calls.abs_diff(whole.end.model_calls);
            assert!(calls <= 1, "{} cut at {end}: {} calls", case.name, heard.end.model_calls);
            // Where only the end was missing, nothing was thought and there is nothing to compare.
            if heard.events.iter().any(|event| matches!(event.body, qwen_events::Body::NodeEnter)) {
                assert_eq!(thoughts(&heard.state()), expected.1, "{} cut at {end}", case.name);
            }
        }
        assert!(resumed > 20, "{}: {resumed} resumed", case.name);
    }
}

#[tokio::test]
async fn finished_thoughts_are_not_repeated_after_a_resume() {
    let case = &CASES[2];
    let home = tempfile::tempdir().expect("a directory");
    let (whole, log) = case.undisturbed(home.path()).await;
    let text = String::from_utf8(log).expect("text");
    let effects: Vec<usize> = text.match_indices("{\"effect\":").map(|(at, _)| at).collect();
    for (n, at) in effects.iter().enumerate() {
        let end = at + text[*at..].find('\n').expect("a line") + 1;
        let home = tempfile::tempdir().expect("a directory");
        let heard = case.gone_on(&text.as_bytes()[..end], home.path()).await.expect("an unfinished turn");
        let calls = heard.events.iter().filter(|event| {
            matches!(event.body, qwen_events::Body::ThoughtUsage(_) | qwen_events::Body::MessageEnd(_))
        });
        let left = usize::try_from(whole.end.model_calls).expect("a count") - (n + 1);
        assert_eq!(calls.count(), left, "behind effect {n}");
    }
}

#[tokio::test]
async fn a_log_grows_as_its_run_does() {
    let length = async |depth: usize| {
        let home = tempfile::tempdir().expect("a directory");
        let options = TotOptions { depth, breadth: 1, proposals: 4, samples: 1, ..TotOptions::default() };
        let setup = setup(AgentName::Tot, oracle("sort?seed=1"), |setup| setup.thinking.tot = options);
        let mut session = Session::new(setup).with_log(recorder(home.path()));
        hear(&mut session, Some("Sort ascending: 5 3 9 1 7 2 8")).await;
        drop(session);
        fs::metadata(Store::new(home.path()).path(&session_id())).expect("a log").len()
    };
    let (ten, forty) = (length(10).await, length(40).await);
    assert!(forty < ten * 5, "{ten} bytes for 10 levels, {forty} for 40");
}

#[tokio::test]
async fn a_run_of_another_form_is_refused_with_the_reason() {
    let case = &CASES[0];
    let home = tempfile::tempdir().expect("a directory");
    let (_, log) = case.undisturbed(home.path()).await;
    let text = String::from_utf8(log).expect("text");
    let begun = text.match_indices('\n').nth(8).expect("lines").0 + 1;
    let newer = text[..begun].replace("{\"base\":{\"version\":1,", "{\"base\":{\"version\":7,");
    assert_ne!(newer, text[..begun]);
    let heard = case.gone_on(newer.as_bytes(), home.path()).await.expect("an unfinished turn");
    let error = heard.end.error.expect("an error");
    assert_eq!(error.code, "unusable_checkpoint");
    assert!(error.message.contains("form 7") && error.message.contains("reads form 1"), "{error}");
}

#[tokio::test]
async fn an_exported_log_tells_the_same_states_as_the_stream_did() {
    for case in &CASES {
        let home = tempfile::tempdir().expect("a directory");
        let (whole, _) = case.undisturbed(home.path()).await;
        let reader = Store::new(home.path()).read(&session_id()).expect("a log");
        let mut replay = Replay::new(reader).with_state(Arc::new(ThoughtAgents::default()));
        let mut told = Vec::new();
        while let Some(event) = replay.next_event().expect("an entry") {
            told.push(event.body);
        }
        let states = |bodies: &mut dyn Iterator<Item = &qwen_events::Body>| -> Vec<String> {
            bodies
                .filter_map(|body| match body {
                    qwen_events::Body::State(state) => Some(state.as_str().to_owned()),
                    _ => None,
                })
                .collect()
        };
        let live = states(&mut whole.events.iter().map(|event| &event.body));
        assert_eq!(states(&mut told.iter()), live, "{}", case.name);
    }
}
