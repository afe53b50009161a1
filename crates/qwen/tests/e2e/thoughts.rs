//! Trees and graphs of thoughts whose model, plan or budget is no good: a clear word or a bounded best
//! effort, in every dialect, and always an end.

use mock_model::{MockModel, Reply, Request};

use crate::harness::{judged, qwen};
use crate::wire::{LOOM, STREAMS, Wire, each};

/// A model that answers by the first line of what it is asked.
fn model(answers: impl Fn(&str) -> String + Send + 'static) -> MockModel {
    let mock = MockModel::start();
    mock.answer_with(move |request: &Request| Some(Reply::text(&answers(&request.last_user_text()))));
    mock
}

/// What a bad case comes to.
struct Case {
    name: &'static str,
    flags: &'static str,
    answers: fn(&str) -> String,
    code: i32,
    status: &'static str,
    /// What is said about it.
    said: &'static str,
}

fn with_plan(prompt: &str, plan: &str) -> String {
    if prompt.starts_with("Plan a graph") { plan.to_owned() } else { "42".to_owned() }
}

fn searching(prompt: &str) -> String {
    if prompt.starts_with("Propose") {
        "a\nb".to_owned()
    } else if prompt.starts_with("Value") {
        "1: 5\n2: 4".to_owned()
    } else {
        "The answer.".to_owned()
    }
}

const CASES: [Case; 14] = [
    Case {
        name: "a plan with a cycle",
        flags: "--agent got",
        answers: |prompt| {
            with_plan(
                prompt,
                r#"{"nodes":[{"id":"a","op":"improve","inputs":["b"]},{"id":"b","op":"improve","inputs":["a"]}]}"#,
            )
        },
        code: 0,
        status: "done",
        said: "in a cycle",
    },
    Case {
        name: "an operation that is none",
        flags: "--agent got",
        answers: |prompt| with_plan(prompt, r#"{"nodes":[{"id":"a","op":"meditate"}]}"#),
        code: 0,
        status: "done",
        said: "'meditate'",
    },
    Case {
        name: "an edge to nowhere",
        flags: "--agent got",
        answers: |prompt| with_plan(prompt, r#"{"nodes":[{"id":"a","op":"generate","inputs":["b"]}]}"#),
        code: 0,
        status: "done",
        said: "'a' needs 'b', which is not in it",
    },
    Case {
        name: "ten thousand thoughts",
        flags: "--agent got",
        answers: |prompt| {
            let nodes: Vec<String> =
                (0..10_000).map(|n| format!(r#"{{"id":"n{n}","op":"generate"}}"#)).collect();
            with_plan(prompt, &format!(r#"{{"nodes":[{}]}}"#, nodes.join(",")))
        },
        code: 0,
        status: "done",
        said: "10000 thoughts; 100 are allowed",
    },
    Case {
        name: "a plan that is prose",
        flags: "--agent got",
        answers: |prompt| with_plan(prompt, "I would begin at the beginning."),
        code: 0,
        status: "done",
        said: "no JSON object",
    },
    Case {
        name: "an evaluator that answers prose",
        flags: "--agent tot",
        answers: |prompt| {
            if prompt.starts_with("Value") { "I like them all.".to_owned() } else { searching(prompt) }
        },
        code: 0,
        status: "done",
        said: "I like them all.",
    },
    Case {
        name: "an evaluator of a graph that answers prose",
        flags: "--agent got",
        answers: |prompt| {
            let plan =
                r#"{"nodes":[{"id":"a","op":"generate","k":2},{"id":"s","op":"score","inputs":["a"]}]}"#;
            if prompt.starts_with("Score") { "Lovely.".to_owned() } else { with_plan(prompt, plan) }
        },
        code: 0,
        status: "done",
        said: "Lovely.",
    },
    Case {
        name: "a proposer that proposes nothing",
        flags: "--agent tot",
        answers: |prompt| if prompt.starts_with("Propose") { "---".to_owned() } else { searching(prompt) },
        code: 0,
        status: "done",
        said: "proposed no step",
    },
    Case {
        name: "a proposer that proposes the same for ever, depth first",
        flags: "--agent tot --tot-search dfs --tot-depth 4 --tot-proposals 2 --tot-samples 1",
        answers: |prompt| {
            if prompt.starts_with("Propose") {
                "again\nand again".to_owned()
            } else if prompt.starts_with("Value") {
                "1: 4\n2: 4".to_owned()
            } else {
                "Tired.".to_owned()
            }
        },
        code: 0,
        status: "done",
        said: "",
    },
    Case {
        name: "a thought that is always complex",
        flags: "--agent got --adaptive --got-depth 3 --got-max-nodes 20",
        answers: |prompt| {
            let plan = r#"{"nodes":[{"id":"x","op":"generate"},{"id":"y","op":"generate"}]}"#;
            if prompt.starts_with("Is this thought") {
                "complex".to_owned()
            } else if prompt.starts_with("Expand") {
                plan.to_owned()
            } else {
                "42".to_owned()
            }
        },
        code: 0,
        status: "done",
        said: "",
    },
    Case {
        name: "no calls",
        flags: "--agent tot --max-turns 0",
        answers: searching,
        code: 53,
        status: "max_turns",
        said: "--max-turns",
    },
    Case {
        name: "no calls for a graph",
        flags: "--agent got --max-turns 0",
        answers: searching,
        code: 53,
        status: "max_turns",
        said: "--max-turns",
    },
    Case {
        name: "no tokens",
        flags: "--agent tot --max-tokens-total 0",
        answers: searching,
        code: 55,
        status: "max_tokens",
        said: "--max-tokens-total",
    },
    Case {
        name: "few calls",
        flags: "--agent tot --max-turns 2",
        answers: searching,
        code: 53,
        status: "max_turns",
        said: "--max-turns",
    },
];

#[test]
fn what_makes_no_sense_is_said_and_comes_to_an_end_in_every_dialect() {
    for case in &CASES {
        each(&STREAMS, |wire: Wire| {
            let mock = model(case.answers);
            let program =
                qwen().with_model(&mock).args(["-p", "A problem", "--model", "mock"]).args(wire.flags());
            let ended = program.args(case.flags.split(' ')).run();
            assert_eq!(ended.code, Some(case.code), "{}: {}", case.name, ended.stderr);
            let told = judged(wire, &ended);
            assert_eq!(told.ends.len(), 1, "{}", case.name);
            assert_eq!(told.ends[0].status, case.status, "{}", case.name);
            assert!(ended.stderr.contains(case.said), "{}: {}", case.name, ended.stderr);
        });
    }
}

#[test]
fn no_time_at_all_is_a_limit_like_any_other() {
    let mock = model(searching);
    for agent in ["react", "tot", "got"] {
        let program = qwen().with_model(&mock).args(["-p", "x", "--model", "mock", "--agent", agent]);
        let ended = program.args(["--max-wall-time", "0"]).args(LOOM.flags()).run();
        assert_eq!(ended.code, Some(55), "{agent}: {}", ended.stderr);
        assert_eq!(judged(LOOM, &ended).ends[0].status, "max_wall_time", "{agent}");
    }
}

#[test]
fn at_a_limit_the_best_so_far_is_the_reply() {
    let mock = model(searching);
    let program = qwen().with_model(&mock).args(["-p", "x", "--model", "mock"]);
    // One level is proposed and valued; the limit comes behind it.
    let ended =
        program.args(["--agent", "tot", "--tot-samples", "1", "--max-turns", "2"]).args(LOOM.flags()).run();
    let told = judged(LOOM, &ended);
    assert_eq!(told.ends[0].reply.as_deref(), Some("a"), "{}", ended.stdout);
}

#[test]
fn a_thought_that_takes_too_long_fails_alone_and_is_tried_again() {
    let mock = MockModel::start();
    mock.answer_with(move |request: &Request| {
        let prompt = request.last_user_text();
        let plan = r#"{"nodes":[{"id":"slow","op":"generate","instruction":"slow"},{"id":"quick","op":"generate","instruction":"quick"}]}"#;
        Some(if prompt.contains("## Instruction\nslow") {
            Reply::new([mock_model::gate("never")])
        } else {
            Reply::text(&with_plan(&prompt, plan))
        })
    });
    let program = qwen().with_model(&mock).args(["-p", "x", "--model", "mock", "--agent", "got"]);
    let ended = program.args(["--thought-timeout", "0.2", "--thought-retries", "1"]).args(LOOM.flags()).run();
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let told = judged(LOOM, &ended);
    let failed: Vec<_> = told.lines.iter().filter(|line| line["type"] == "got_node_failed").collect();
    assert_eq!(failed.len(), 1, "{failed:?}");
    assert!(
        failed[0]["id"] == "slow" && failed[0]["error"].as_str().unwrap().contains("--thought-timeout"),
        "{failed:?}"
    );
    let slow = mock
        .requests()
        .iter()
        .filter(|request| request.last_user_text().contains("## Instruction\nslow"))
        .count();
    assert_eq!((slow, told.retries), (2, 1));
}

#[test]
fn sizes_that_make_no_sense_are_refused_by_the_flag_and_by_the_setting() {
    let sizes = [
        ("--tot-breadth", "tot.breadth"),
        ("--tot-proposals", "tot.proposals"),
        ("--tot-depth", "tot.depth"),
        ("--tot-samples", "tot.samples"),
        ("--tot-max-thoughts", "tot.maxThoughts"),
        ("--got-max-nodes", "got.maxNodes"),
        ("--got-depth", "got.maxDepth"),
        ("--got-layers", "got.maxLayers"),
        ("--got-width", "got.maxPerLayer"),
        ("--parallel", "parallel"),
    ];
    for (flag, key) in sizes {
        for value in ["0", "-1", "99999999999999", "1.5", "many"] {
            if (flag, value) == ("--got-depth", "0") {
                continue;
            }
            let ended = qwen().args(["-p", "x", "--model", "demo", flag, value]).run();
            assert_eq!(ended.code, Some(2), "{flag} {value}: {}", ended.stderr);
            assert!(
                ended.stderr.contains(flag) && ended.stderr.contains(value),
                "{flag} {value}: {}",
                ended.stderr
            );
        }
        for value in ["0", "-1", "99999999999999", "1.5", "\"many\""] {
            if (flag, value) == ("--got-depth", "0") {
                continue;
            }
            let nested =
                key.split('.').rev().fold(value.to_owned(), |inner, key| format!("{{\"{key}\":{inner}}}"));
            let settings = format!("{{\"agent\":{nested}}}");
            let ended = qwen().args(["-p", "x", "--model", "demo", "--settings", &settings]).run();
            assert_eq!(ended.code, Some(52), "{settings}: {}", ended.stderr);
            assert!(ended.stderr.contains(&format!("agent.{key}")), "{settings}: {}", ended.stderr);
        }
        let ended = qwen().args(["-p", "x", "--model", "demo", flag, "2"]).run();
        assert_eq!(ended.code, Some(0), "{flag} 2: {}", ended.stderr);
    }
    for value in ["-0.1", "1.1", "NaN"] {
        let ended = qwen().args(["-p", "x", "--model", "demo", "--tot-threshold", value]).run();
        assert_eq!(ended.code, Some(2), "{value}: {}", ended.stderr);
    }
}
