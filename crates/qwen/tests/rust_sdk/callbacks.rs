//! Permissions, hooks and tools that the host runs.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use mock_model::{Reply, sse};
use qwen_kernel::control_plane::{
    CallbackFuture, ControlPlane, HookCallback, HostTool, PermissionCallback, PermissionRequest,
    PermissionResult, PermissionRules, ToolServer,
};
use qwen_kernel::{AgentManager, AgentOptions, SessionOptions, TurnResult};
use serde_json::{Value, json};
use tokio::sync::Notify;

use crate::harness::{Harness, TOUCH, wait};

/// Runs one turn with this control plane.
fn turn(harness: &Harness, control: ControlPlane) -> TurnResult {
    wait(async {
        let manager = AgentManager::start(AgentOptions { control, ..harness.options() }).unwrap();
        let mut session = manager.create_session(SessionOptions::default()).await.unwrap();
        let result = session.run("go").await.unwrap();
        manager.close().await;
        result
    })
}

fn touches() -> Harness {
    Harness::new([Reply::call("c1", "run_shell_command", TOUCH), Reply::text("ok")])
}

/// A callback that gives this answer.
fn answering<F>(answer: impl Fn(PermissionRequest) -> F + Send + Sync + 'static) -> PermissionCallback
where
    F: Future<Output = PermissionResult> + Send + 'static,
{
    Arc::new(move |request| Box::pin(answer(request)) as CallbackFuture<PermissionResult>)
}

fn hook<F>(event: &str, answer: impl Fn(Value) -> F + Send + Sync + 'static) -> (String, HookCallback)
where
    F: Future<Output = Value> + Send + 'static,
{
    (event.to_owned(), Arc::new(move |input| Box::pin(answer(input))))
}

fn allow_all() -> PermissionRules {
    PermissionRules { allow: vec!["*".to_owned()], ..PermissionRules::default() }
}

#[test]
fn permissions_are_decided_by_rules_then_by_the_callback_and_else_denied() {
    let asked = Arc::new(AtomicUsize::new(0));
    let plane = |rules: PermissionRules, answer: Option<PermissionResult>| ControlPlane {
        rules,
        on_permission: answer.map(|answer| {
            let count = asked.clone();
            answering(move |request| {
                count.fetch_add(1, Ordering::SeqCst);
                assert_eq!(request.tool_name, "run_shell_command");
                std::future::ready(answer.clone())
            })
        }),
        ..ControlPlane::default()
    };
    let rule = |word: &str| vec![word.to_owned()];
    let deny = || PermissionRules { deny: rule("run_shell_command"), ..PermissionRules::default() };
    let allow =
        || PermissionRules { allow: rule("run_shell_command(touch *)"), ..PermissionRules::default() };
    let none = PermissionRules::default;
    let changed = PermissionResult::AllowWith(json!({"command": "touch changed"}));
    // The rules and the answer; whether the call ran as it was; questions; denials.
    let cases = [
        (plane(none(), None), false, 0, 1),
        (plane(none(), Some(PermissionResult::Allow)), true, 1, 0),
        (plane(none(), Some(PermissionResult::Deny("no".to_owned()))), false, 1, 1),
        (plane(none(), Some(PermissionResult::Ask)), false, 1, 1),
        (plane(allow(), None), true, 0, 0),
        (plane(deny(), Some(PermissionResult::Allow)), false, 0, 1),
        (plane(none(), Some(changed)), false, 1, 0),
    ];
    for (place, (control, touched, calls, denials)) in cases.into_iter().enumerate() {
        asked.store(0, Ordering::SeqCst);
        let harness = touches();
        let result = turn(&harness, control);
        assert_eq!(result.status, "done", "{place}");
        assert_eq!(result.permission_denials.len(), denials, "case {place}");
        assert_eq!(result.ok(), denials == 0, "case {place}");
        assert_eq!((harness.touched(), asked.load(Ordering::SeqCst)), (touched, calls), "case {place}");
        assert_eq!(harness.home.path().join("changed").exists(), place == 6, "case {place}");
    }
}

#[test]
fn ask_with_nobody_to_ask_is_a_denial() {
    let harness = touches();
    let control = ControlPlane {
        on_permission: Some(answering(|_| std::future::ready(PermissionResult::Ask))),
        ..ControlPlane::default()
    };
    let result = turn(&harness, control);
    assert_eq!(result.permission_denials[0].tool_name, "run_shell_command");
    assert!(!harness.touched());
}

#[test]
fn callbacks_are_served_to_the_last_call_of_a_turn_and_when_nobody_reads() {
    let list = || Reply::call("c", "list_directory", r#"{"path":"."}"#);
    let replies = [list(), list(), list(), Reply::call("c1", "run_shell_command", TOUCH), Reply::text("ok")];
    let harness = Harness::new(replies);
    let asked = Arc::new(Notify::new());
    let heard = asked.clone();
    let control = ControlPlane {
        on_permission: Some(answering(move |_| {
            heard.notify_one();
            std::future::ready(PermissionResult::Allow)
        })),
        ..ControlPlane::default()
    };
    wait(async {
        let manager = AgentManager::start(AgentOptions { control, ..harness.options() }).unwrap();
        let mut session = manager.create_session(SessionOptions::default()).await.unwrap();
        let stream = session.stream("go").unwrap();
        asked.notified().await;
        assert!(stream.result().await.unwrap().ok());
        manager.close().await;
    });
    assert!(harness.touched());
}

#[test]
fn a_hook_refuses_a_call_and_the_model_is_told_why() {
    let harness = touches();
    let control = ControlPlane {
        rules: allow_all(),
        hooks: vec![hook("PreToolUse", |input| {
            assert_eq!(input["tool_name"], "run_shell_command");
            std::future::ready(json!({"decision": "block", "reason": "not on a Monday"}))
        })],
        ..ControlPlane::default()
    };
    assert_eq!(turn(&harness, control).text, "ok");
    assert!(!harness.touched());
    assert!(harness.said(1).iter().any(|text| text.contains("not on a Monday")), "{:?}", harness.said(1));
}

#[test]
fn a_hook_changes_the_input_of_a_call() {
    let harness = touches();
    let control = ControlPlane {
        rules: allow_all(),
        hooks: vec![hook("PreToolUse", |_| {
            let output = json!({"hookEventName": "PreToolUse", "updatedInput": {"command": "touch changed"}});
            std::future::ready(json!({"hookSpecificOutput": output}))
        })],
        ..ControlPlane::default()
    };
    assert!(turn(&harness, control).ok());
    assert_eq!((harness.touched(), harness.home.path().join("changed").exists()), (false, true));
}

#[test]
fn a_session_end_hook_runs_when_the_session_is_closed() {
    let harness = Harness::new([Reply::text("ok")]);
    let ends = Arc::new(AtomicUsize::new(0));
    let count = ends.clone();
    let control = ControlPlane {
        hooks: vec![hook("SessionEnd", move |_| {
            count.fetch_add(1, Ordering::SeqCst);
            std::future::ready(json!({}))
        })],
        ..ControlPlane::default()
    };
    wait(async {
        let manager = AgentManager::start(AgentOptions { control, ..harness.options() }).unwrap();
        let mut session = manager.create_session(SessionOptions::default()).await.unwrap();
        assert!(session.run("go").await.unwrap().ok());
        assert_eq!(ends.load(Ordering::SeqCst), 0);
        session.close().await.unwrap();
        assert_eq!(ends.load(Ordering::SeqCst), 1);
        manager.close().await;
    });
}

#[test]
fn tools_and_hooks_that_live_in_the_host_are_called() {
    let harness =
        Harness::new([Reply::call("c1", "mcp__calc__add", r#"{"a":2,"b":3}"#), Reply::text("five")]);
    let add = HostTool::new(
        "add",
        "Adds two numbers.",
        json!({"type": "object", "properties": {"a": {"type": "number"}, "b": {"type": "number"}}, "required": ["a", "b"]}),
        |arguments: Value| async move {
            Ok((arguments["a"].as_f64().unwrap() + arguments["b"].as_f64().unwrap()).to_string())
        },
    );
    let heard = Arc::new(AtomicUsize::new(0));
    let count = heard.clone();
    let control = ControlPlane {
        rules: allow_all(),
        servers: [("calc".to_owned(), Arc::new(ToolServer::new(vec![add])))].into_iter().collect(),
        hooks: vec![hook("PreToolUse", move |_| {
            count.fetch_add(1, Ordering::SeqCst);
            std::future::ready(json!({}))
        })],
        ..ControlPlane::default()
    };
    assert_eq!(turn(&harness, control).text, "five");
    let told = harness.mock.requests()[1].messages().last().unwrap().to_string();
    assert!(told.contains('5'), "{told}");
    assert_eq!(heard.load(Ordering::SeqCst), 1);
}

#[test]
fn in_process_tools_of_one_message_run_in_the_order_that_the_model_wrote() {
    let calls = [("c1", 0, r#"{"me":0}"#), ("c2", 1, r#"{"me":1}"#)];
    let steps = calls.map(|(id, index, arguments)| sse::call(index, id, "mcp__m__note", arguments));
    let ends = [sse::finish("tool_calls"), sse::done()];
    let harness = Harness::new([Reply::new(steps.into_iter().chain(ends)), Reply::text("Noted.")]);
    let steps: Arc<Mutex<Vec<String>>> = Arc::default();
    let noted = steps.clone();
    let note = HostTool::new(
        "note",
        "Notes when it begins and ends.",
        json!({"type": "object", "properties": {"me": {"type": "number"}}}),
        move |arguments| {
            let noted = noted.clone();
            async move {
                noted.lock().unwrap().push(format!("{} begins", arguments["me"]));
                tokio::task::yield_now().await;
                noted.lock().unwrap().push(format!("{} ends", arguments["me"]));
                Ok("noted".to_owned())
            }
        },
    );
    let control = ControlPlane {
        rules: allow_all(),
        servers: [("m".to_owned(), Arc::new(ToolServer::new(vec![note])))].into_iter().collect(),
        ..ControlPlane::default()
    };
    assert_eq!(turn(&harness, control).text, "Noted.");
    assert_eq!(*steps.lock().unwrap(), ["0 begins", "0 ends", "1 begins", "1 ends"]);
}

#[test]
fn a_callback_that_panics_or_never_returns_is_a_denial() {
    let never: PermissionCallback = Arc::new(|_| Box::pin(std::future::pending()));
    let panics: PermissionCallback = Arc::new(|_| Box::pin(async { panic!("on purpose") }));
    for callback in [never, panics] {
        let harness = touches();
        let control = ControlPlane {
            on_permission: Some(callback),
            deadline: Duration::from_millis(50),
            ..ControlPlane::default()
        };
        assert_eq!(turn(&harness, control).permission_denials.len(), 1);
        assert!(!harness.touched());
    }
}

#[test]
fn an_answer_after_the_deadline_changes_nothing_and_answers_no_other_question() {
    let second = r#"{"command":"touch second"}"#;
    let harness = Harness::new([
        Reply::call("c1", "run_shell_command", TOUCH),
        Reply::call("c2", "run_shell_command", second),
        Reply::text("ok"),
    ]);
    // The first question is answered with yes, but only once the second one is open; the second is answered
    // with no.
    let second_is_open = Arc::new(tokio::sync::Semaphore::new(0));
    let asked = Arc::new(AtomicUsize::new(0));
    let (open, count) = (second_is_open.clone(), asked.clone());
    let control = ControlPlane {
        on_permission: Some(answering(move |_| {
            let (open, is_first) = (open.clone(), count.fetch_add(1, Ordering::SeqCst) == 0);
            async move {
                if !is_first {
                    open.add_permits(1);
                    return PermissionResult::Deny("no".to_owned());
                }
                let late = tokio::spawn(async move { open.acquire().await.map(drop) });
                let _ = late.await;
                PermissionResult::Allow
            }
        })),
        deadline: Duration::from_millis(100),
        ..ControlPlane::default()
    };
    let result = turn(&harness, control);
    assert_eq!((asked.load(Ordering::SeqCst), result.permission_denials.len()), (2, 2));
    assert_eq!((harness.touched(), harness.home.path().join("second").exists()), (false, false));
}
