//! Models that do not do what they are asked.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use qwen_events::{AgentName, EndStatus, Thinking};
use qwen_thoughts::{GotOptions, Search};
use tokio::sync::Barrier;

use crate::fake::{Fake, Says, is};
use crate::harness::{Heard, ask, setup};

/// A graph agent whose model plans `plan` and answers thoughts by `think`.
async fn graph(plan: &str, think: impl Fn(&str) -> Says + Send + Sync + 'static) -> Heard {
    let plan = plan.to_owned();
    let model = Fake::new(
        move |prompt: &str, _| {
            if is(prompt, "Plan a graph") { Says::Text(plan.clone()) } else { think(prompt) }
        },
    );
    ask(setup(AgentName::Got, model, |_| {}), "a problem").await
}

fn failed(heard: &Heard) -> Vec<(String, String)> {
    let failed = heard.steps().into_iter().filter_map(|step| match step {
        Thinking::GotNodeFailed { id, error } => Some((id.to_string(), error.to_string())),
        _ => None,
    });
    failed.collect()
}

#[tokio::test]
async fn a_plan_that_cannot_be_used_is_given_back_once_and_then_done_without() {
    for plan in [
        r#"{"nodes":[{"id":"a","op":"improve","inputs":["b"]},{"id":"b","op":"improve","inputs":["a"]}]}"#,
        r#"{"nodes":[{"id":"a","op":"meditate"}]}"#,
        r#"{"nodes":[{"id":"a","op":"generate","inputs":["nowhere"]}]}"#,
        r#"{"nodes":[]}"#,
        "I would start by thinking about it.",
        "",
    ] {
        let heard = graph(plan, |_| "42".into()).await;
        assert_eq!(heard.end.status, EndStatus::Done, "{plan}");
        assert_eq!(heard.errors(), ["bad_plan"], "{plan}");
        assert_eq!(&*heard.end.reply, "42");
        // Two plans, one thought, one answer.
        assert_eq!(heard.end.model_calls, 4);
    }
}

#[tokio::test]
async fn the_model_is_told_what_was_wrong_with_its_plan() {
    let model = Fake::new(|prompt: &str, _| {
        if is(prompt, "Plan a graph") {
            let told = prompt.contains("'a' needs 'b', which is not in it");
            let good = r#"{"nodes":[{"id":"a","op":"generate"}]}"#;
            let bad = r#"{"nodes":[{"id":"a","op":"generate","inputs":["b"]}]}"#;
            return if told { good } else { bad }.into();
        }
        "42".into()
    });
    let heard = ask(setup(AgentName::Got, model, |_| {}), "a problem").await;
    assert!(heard.errors().is_empty());
    assert!(heard.steps().iter().any(|step| matches!(step, Thinking::GotNodeStart { id } if &**id == "a")));
}

#[tokio::test]
async fn ten_thousand_thoughts_are_refused_and_a_bound_is_kept() {
    let nodes: Vec<String> = (0..10_000).map(|n| format!(r#"{{"id":"n{n}","op":"generate"}}"#)).collect();
    let heard = graph(&format!("{{\"nodes\":[{}]}}", nodes.join(",")), |_| "42".into()).await;
    assert_eq!((heard.errors(), heard.end.model_calls), (vec!["bad_plan"], 4));
}

#[tokio::test]
async fn a_failed_thought_skips_what_needs_it_and_its_error_is_never_fed_on() {
    let plan = r#"{"nodes":[{"id":"good","op":"generate","instruction":"good"},
        {"id":"bad","op":"generate","instruction":"bad"},
        {"id":"both","op":"aggregate","inputs":["good","bad"]},
        {"id":"more","op":"improve","inputs":["both"]},
        {"id":"alone","op":"improve","instruction":"alone","inputs":["good"]}]}"#;
    let model = Fake::new(move |prompt: &str, _| {
        if is(prompt, "Plan a graph") {
            return plan.into();
        }
        assert!(!prompt.contains("SECRET ERROR"), "an error was fed on: {prompt}");
        if prompt.contains("## Instruction\nbad") { Says::Error("SECRET ERROR") } else { "fine".into() }
    });
    let heard = ask(setup(AgentName::Got, model, |_| {}), "a problem").await;
    assert_eq!(
        failed(&heard),
        [
            ("bad".to_owned(), "SECRET ERROR".to_owned()),
            ("both".to_owned(), "skipped: it needs 'bad'".to_owned()),
            ("more".to_owned(), "skipped: it needs 'both'".to_owned()),
        ]
    );
    assert_eq!((heard.end.status, &*heard.end.reply), (EndStatus::Done, "fine"));
    let done = |step: &&&Thinking| matches!(step, Thinking::GotNodeComplete { .. });
    assert_eq!(heard.steps().iter().filter(done).count(), 2);
}

#[tokio::test]
async fn when_every_thought_fails_the_turn_says_why() {
    let heard = graph(r#"{"nodes":[{"id":"a","op":"generate"}]}"#, |_| Says::Error("out of order")).await;
    let error = heard.end.error.expect("an error");
    assert_eq!((heard.end.status, error.code), (EndStatus::Error, "no_result"));
    assert!(error.message.contains("'a': out of order"), "{error}");
}

#[tokio::test]
async fn an_evaluator_that_answers_prose_makes_all_candidates_equal_and_is_reported() {
    for search in [Search::Bfs, Search::Dfs] {
        let model = Fake::new(|prompt: &str, _| {
            if is(prompt, "Propose") {
                "one\ntwo".into()
            } else if is(prompt, "Value") {
                "They are all lovely.".into()
            } else {
                "done".into()
            }
        });
        let heard =
            ask(setup(AgentName::Tot, model, |setup| setup.thinking.tot.search = search), "a problem").await;
        assert_eq!(heard.end.status, EndStatus::Done);
        assert!(heard.errors().iter().all(|code| *code == "unreadable_values"), "{:?}", heard.errors());
        let scores = heard.steps().into_iter().filter_map(|step| match step {
            Thinking::TotEvaluate { scores, .. } => Some(scores.clone()),
            _ => None,
        });
        assert!(scores.flatten().all(|score| (score - 0.5).abs() < f64::EPSILON));
    }
}

#[tokio::test]
async fn a_proposer_that_answers_nothing_leads_to_a_direct_answer() {
    for search in [Search::Bfs, Search::Dfs] {
        let model =
            Fake::new(|prompt: &str, _| if is(prompt, "Propose") { "\n---\n".into() } else { "42".into() });
        let heard =
            ask(setup(AgentName::Tot, model, |setup| setup.thinking.tot.search = search), "a problem").await;
        assert_eq!((heard.end.status, &*heard.end.reply, heard.end.model_calls), (EndStatus::Done, "42", 2));
        assert_eq!(heard.state()["shortfall"], "No further step was proposed.");
    }
}

#[tokio::test]
async fn a_search_that_finds_nothing_tries_all_that_seems_worth_it_and_ends() {
    // Every step is promising and no solution is right.
    let model = Fake::new(|prompt: &str, _| {
        if is(prompt, "Propose") {
            "one\ntwo\nthree".into()
        } else if is(prompt, "Value") {
            let leaf = prompt.contains("\n2. ") && prompt.contains("## Steps so far\n1. ") && {
                prompt.split("## Candidates").next().is_some_and(|before| before.contains("\n2. "))
            };
            if leaf { "1: 0\n2: 0\n3: 0".into() } else { "1: 9\n2: 9\n3: 9".into() }
        } else {
            "no solution".into()
        }
    });
    let heard =
        ask(setup(AgentName::Tot, model, |setup| setup.thinking.tot.search = Search::Dfs), "a problem").await;
    assert_eq!(heard.end.status, EndStatus::Done);
    // 1 + 3 + 9 expansions of 1 + 3 calls, and the answer.
    assert_eq!(heard.end.model_calls, 13 * 4 + 1);
    assert_eq!(heard.state()["shortfall"], "The search tried every branch that seemed worth it.");
    assert_eq!(heard.state()["backtracks"], 8);
}

#[tokio::test]
async fn a_thought_that_always_calls_itself_complex_is_bounded() {
    let model = Fake::new(|prompt: &str, _| {
        if is(prompt, "Is this thought complex?") {
            "complex".into()
        } else if is(prompt, "Expand") {
            r#"{"nodes":[{"id":"a","op":"generate"},{"id":"b","op":"generate"},{"id":"c","op":"generate"}]}"#
                .into()
        } else {
            "42".into()
        }
    });
    let options = GotOptions { adaptive: true, max_depth: 50, max_nodes: 20, ..GotOptions::default() };
    let heard = ask(setup(AgentName::Got, model, |setup| setup.thinking.got = options), "a problem").await;
    assert_eq!((heard.end.status, &*heard.end.reply), (EndStatus::Done, "42"));
    assert!(heard.state()["thoughts"].as_array().expect("thoughts").len() <= 20);
}

#[tokio::test]
async fn independent_thoughts_really_overlap() {
    // Ten thoughts that only come to an end when all ten are being thought.
    let nodes: Vec<String> = (0..10).map(|n| format!(r#"{{"id":"n{n}","op":"generate"}}"#)).collect();
    let plan = format!("{{\"nodes\":[{}]}}", nodes.join(","));
    let model = Arc::new(Gathering { plan, barrier: Arc::new(Barrier::new(10)), met: Arc::default() });
    let heard = ask(setup(AgentName::Got, model.clone(), |_| {}), "a problem").await;
    assert_eq!(heard.end.status, EndStatus::Done);
    assert_eq!(model.met.load(Ordering::Relaxed), 10);
}

struct Gathering {
    plan: String,
    barrier: Arc<Barrier>,
    met: Arc<AtomicUsize>,
}

impl qwen_model::Model for Gathering {
    fn name(&self) -> &'static str {
        "gathering"
    }

    fn call(&self, request: qwen_model::Request) -> qwen_model::Pieces {
        use futures_util::StreamExt;
        use qwen_events::{Finish, Part};
        use qwen_model::Piece;
        let Some(Part::Text(prompt)) = request.messages.last().and_then(|message| message.parts.first())
        else {
            panic!("a prompt")
        };
        let (plan, barrier, met) = (self.plan.clone(), self.barrier.clone(), self.met.clone());
        let (planning, thinking) = (is(prompt, "Plan"), is(prompt, "Generate"));
        let text = async move {
            if thinking {
                barrier.wait().await;
                met.fetch_add(1, Ordering::Relaxed);
            }
            Ok(Piece::Text(if planning { plan } else { "42".to_owned() }.into()))
        };
        let end = async { Ok(Piece::Finish(Finish::Stop)) };
        futures_util::stream::once(text).chain(futures_util::stream::once(end)).boxed()
    }
}
