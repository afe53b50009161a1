//! The kernel as a Rust SDK: the shared behaviours of the SDKs, through the real binary as worker.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use mock_model::{MockModel, Reply, gate, sse};
use qwen_kernel::control_plane::{ControlPlane, HostTool, PermissionResult, PermissionRules, ToolServer};
use qwen_kernel::{AgentError, AgentManager, AgentOptions, PoolLimits, SessionOptions};
use serde_json::{Value, json};

const TOUCH: &str = r#"{"command":"touch done"}"#;

/// Everything a manager needs to run against a scripted model, in places of its own.
struct Stage {
    mock: MockModel,
    home: tempfile::TempDir,
}

impl Stage {
    fn new(replies: impl IntoIterator<Item = Reply>) -> Self {
        Self { mock: MockModel::with(replies), home: tempfile::tempdir().unwrap() }
    }

    fn options(&self) -> AgentOptions {
        AgentOptions {
            binary_path: Some(env!("CARGO_BIN_EXE_qwen").into()),
            worker_args: vec!["--model".to_owned(), "mock".to_owned()],
            worker_pool: PoolLimits { min_workers: 0, ..PoolLimits::default() },
            state_dir: Some(self.home.path().join("state")),
            ..AgentOptions::default()
        }
    }

    fn session(&self) -> SessionOptions {
        let text = |path: &std::path::Path| Some(path.display().to_string());
        SessionOptions {
            cwd: text(self.home.path()),
            env: [
                ("HOME", text(self.home.path())),
                ("QWEN_HOME", text(&self.home.path().join(".qwen"))),
                ("OPENAI_BASE_URL", Some(self.mock.base_url())),
                ("OPENAI_API_KEY", Some("test-key".to_owned())),
            ]
            .into_iter()
            .map(|(name, value)| (name.to_owned(), value))
            .collect(),
            ..SessionOptions::default()
        }
    }

    fn touched(&self) -> bool {
        self.home.path().join("done").exists()
    }
}

fn wait<T>(work: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async { tokio::time::timeout(mock_model::WAIT_LIMIT, work).await.unwrap() })
}

#[test]
fn a_session_streams_turns_and_remembers() {
    let stage = Stage::new([Reply::text("one"), Reply::text("two")]);
    wait(async {
        let manager = AgentManager::start(stage.options()).unwrap();
        let mut session = manager.create_session(stage.session()).await.unwrap();
        let mut stream = session.stream("first").unwrap();
        let mut lines = Vec::new();
        while let Some(line) = stream.next().await.unwrap() {
            lines.push(line);
        }
        assert_eq!(lines.last().unwrap()["metadata"]["turn"]["status"], "done");
        let result = session.run("second").await.unwrap();
        assert_eq!((result.text.as_str(), result.status.as_str()), ("two", "done"));
        session.close().await.unwrap();
        assert_eq!(manager.status().await.unwrap()["sessions"], 0);
        manager.close().await;
    });
    let said: Vec<String> =
        stage.mock.requests()[1].messages().iter().map(|m| m["content"].to_string()).collect();
    assert!(said.iter().any(|text| text.contains("first")), "{said:?}");
}

#[test]
fn permissions_are_decided_by_rules_then_by_the_callback_and_else_denied() {
    let asked = Arc::new(AtomicUsize::new(0));
    let count = asked.clone();
    let plane = |rules: PermissionRules, answer: Option<PermissionResult>| ControlPlane {
        rules,
        on_permission: answer.map(|answer| {
            let count = count.clone();
            Arc::new(move |_| {
                count.fetch_add(1, Ordering::SeqCst);
                let answer = answer.clone();
                Box::pin(async move { answer })
                    as qwen_kernel::control_plane::CallbackFuture<PermissionResult>
            }) as qwen_kernel::control_plane::PermissionCallback
        }),
        ..ControlPlane::default()
    };
    let rule = |word: &str| vec![word.to_owned()];
    let cases = [
        (plane(PermissionRules::default(), None), false, 0),
        (plane(PermissionRules::default(), Some(PermissionResult::Allow)), true, 1),
        (plane(PermissionRules::default(), Some(PermissionResult::Deny("no".to_owned()))), false, 1),
        (
            plane(
                PermissionRules { allow: rule("run_shell_command(touch *)"), ..PermissionRules::default() },
                None,
            ),
            true,
            0,
        ),
        (
            plane(
                PermissionRules { deny: rule("run_shell_command"), ..PermissionRules::default() },
                Some(PermissionResult::Allow),
            ),
            false,
            0,
        ),
        (
            plane(PermissionRules::default(), Some(PermissionResult::AllowWith(json!({"command": "true"})))),
            false,
            1,
        ),
    ];
    for (place, (control, touched, calls)) in cases.into_iter().enumerate() {
        asked.store(0, Ordering::SeqCst);
        let stage = Stage::new([Reply::call("c1", "run_shell_command", TOUCH), Reply::text("ok")]);
        wait(async {
            let options = AgentOptions { control, ..stage.options() };
            let manager = AgentManager::start(options).unwrap();
            let mut session = manager.create_session(stage.session()).await.unwrap();
            let result = session.run("go").await.unwrap();
            assert_eq!(result.status, "done", "{place}");
            manager.close().await;
        });
        assert_eq!((stage.touched(), asked.load(Ordering::SeqCst)), (touched, calls), "case {place}");
    }
}

#[test]
fn tools_and_hooks_that_live_in_the_host_are_called() {
    let stage = Stage::new([Reply::call("c1", "mcp__calc__add", r#"{"a":2,"b":3}"#), Reply::text("five")]);
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
        rules: PermissionRules { allow: vec!["*".to_owned()], ..PermissionRules::default() },
        servers: [("calc".to_owned(), Arc::new(ToolServer::new(vec![add])))].into_iter().collect(),
        hooks: vec![(
            "PreToolUse".to_owned(),
            Arc::new(move |_| {
                count.fetch_add(1, Ordering::SeqCst);
                Box::pin(async { json!({}) })
            }),
        )],
        ..ControlPlane::default()
    };
    wait(async {
        let manager = AgentManager::start(AgentOptions { control, ..stage.options() }).unwrap();
        let mut session = manager.create_session(stage.session()).await.unwrap();
        assert_eq!(session.run("add").await.unwrap().text, "five");
        manager.close().await;
    });
    let told = stage.mock.requests()[1].messages().last().unwrap().to_string();
    assert!(told.contains('5'), "{told}");
    assert_eq!(heard.load(Ordering::SeqCst), 1);
}

#[test]
fn a_turn_can_be_interrupted_and_the_session_goes_on() {
    let stage = Stage::new([Reply::new([sse::text("Half"), gate("held")]), Reply::text("Whole.")]);
    wait(async {
        let manager = AgentManager::start(stage.options()).unwrap();
        let mut session = manager.create_session(stage.session()).await.unwrap();
        let mut stream = session.stream("go").unwrap();
        stage.mock.reached("held");
        stream.interrupt().unwrap();
        let mut last = Value::Null;
        while let Some(line) = stream.next().await.unwrap() {
            last = line;
        }
        assert_eq!(last["metadata"]["turn"]["status"], "cancelled");
        assert_eq!(session.run("again").await.unwrap().text, "Whole.");
        manager.close().await;
    });
}

#[test]
fn a_session_is_resumed_and_forked_by_its_id() {
    let stage = Stage::new([Reply::text("one"), Reply::text("two"), Reply::text("three")]);
    wait(async {
        let manager = AgentManager::start(stage.options()).unwrap();
        let mut session = manager.create_session(stage.session()).await.unwrap();
        session.run("first").await.unwrap();
        let id = session.id().to_owned();
        session.close().await.unwrap();
        let mut resumed = manager.resume_session(&id, stage.session()).await.unwrap();
        assert_eq!(resumed.run("second").await.unwrap().text, "two");
        resumed.close().await.unwrap();
        let mut fork = manager.fork_session(&id, stage.session()).await.unwrap();
        assert_ne!(fork.id(), id);
        assert_eq!(fork.run("third").await.unwrap().text, "three");
        manager.close().await;
    });
    let said: Vec<String> =
        stage.mock.requests()[2].messages().iter().map(|m| m["content"].to_string()).collect();
    assert!(
        ["first", "one", "second", "two", "third"]
            .iter()
            .all(|word| said.iter().any(|text| text.contains(word))),
        "{said:?}"
    );
}

#[test]
fn twenty_sessions_share_a_pool_of_four() {
    let stage = Stage::new((0..20).map(|_| Reply::text("ok")));
    wait(async {
        let mut options = stage.options();
        options.worker_pool.max_workers = 4;
        let manager = Arc::new(AgentManager::start(options).unwrap());
        let runs: Vec<_> = (0..20)
            .map(|_| {
                let (manager, options) = (manager.clone(), stage.session());
                tokio::spawn(async move {
                    let mut session = manager.create_session(options).await.unwrap();
                    let result = session.run("go").await.unwrap();
                    session.close().await.unwrap();
                    result.text
                })
            })
            .collect();
        for run in runs {
            assert_eq!(run.await.unwrap(), "ok");
        }
    });
}

#[test]
fn a_worker_that_is_killed_costs_its_turn_and_not_the_session() {
    let stage = Stage::new([Reply::new([sse::text("Half"), gate("held")]), Reply::text("Again.")]);
    wait(async {
        let manager = AgentManager::start(stage.options()).unwrap();
        let mut session = manager.create_session(stage.session()).await.unwrap();
        let mut stream = session.stream("go").unwrap();
        stage.mock.reached("held");
        let mark = stage.home.path().join(".qwen").display().to_string();
        let workers = mock_model::process::marked(&format!("QWEN_HOME={mark}"));
        assert!(!workers.is_empty());
        for pid in workers {
            let pid = rustix::process::Pid::from_raw(i32::try_from(pid).unwrap()).unwrap();
            // Its guardian may have gone with it already.
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
        }
        let mut last = Value::Null;
        while let Some(line) = stream.next().await.unwrap() {
            last = line;
        }
        assert_eq!(last["metadata"]["turn"]["status"], "interrupted");
        assert_eq!(last["metadata"]["error"]["code"], "worker_lost");
        assert_eq!(session.run("again").await.unwrap().text, "Again.");
        manager.close().await;
    });
}

#[test]
fn a_callback_that_panics_or_never_returns_is_a_denial() {
    let never: qwen_kernel::control_plane::PermissionCallback =
        Arc::new(|_| Box::pin(std::future::pending()));
    let panics: qwen_kernel::control_plane::PermissionCallback =
        Arc::new(|_| Box::pin(async { panic!("on purpose") }));
    for callback in [never, panics] {
        let stage = Stage::new([Reply::call("c1", "run_shell_command", TOUCH), Reply::text("ok")]);
        let control = ControlPlane {
            on_permission: Some(callback),
            deadline: Duration::from_millis(50),
            ..ControlPlane::default()
        };
        wait(async {
            let manager = AgentManager::start(AgentOptions { control, ..stage.options() }).unwrap();
            let mut session = manager.create_session(stage.session()).await.unwrap();
            let result = session.run("go").await.unwrap();
            assert_eq!(result.record["metadata"]["turn"]["permission_denials"].as_array().unwrap().len(), 1);
            manager.close().await;
        });
        assert!(!stage.touched());
    }
}

#[test]
fn a_reader_that_stops_reading_pauses_its_own_worker_only() {
    let script = |stage: &Stage, name: &str, steps: Value| {
        let path = stage.home.path().join(name);
        std::fs::write(&path, json!([steps]).to_string()).unwrap();
        vec![
            "--model".to_owned(),
            format!("script:{}", path.display()),
            "--output-format".to_owned(),
            "stream-chunk-json".to_owned(),
        ]
    };
    let stage = Stage::new([]);
    let flood = script(
        &stage,
        "flood.json",
        json!([{"repeat": 60_000, "text": "a piece of text that is long enough to count "}]),
    );
    let calm = script(&stage, "calm.json", json!([{"text": "calm"}]));
    wait(async {
        let mut options = stage.options();
        options.worker_args = Vec::new();
        let manager = AgentManager::start(options).unwrap();
        let mut slow = manager
            .create_session(SessionOptions { args: flood[..2].to_vec(), ..stage.session() })
            .await
            .unwrap();
        let mut stream = slow.stream("go").unwrap();
        let mut other = manager
            .create_session(SessionOptions { args: calm[..2].to_vec(), ..stage.session() })
            .await
            .unwrap();
        assert_eq!(other.run("go").await.unwrap().text, "calm");
        let mut last = Value::Null;
        while let Some(line) = stream.next().await.unwrap() {
            last = line;
        }
        assert_eq!(last["metadata"]["turn"]["status"], "done", "nothing is lost");
        manager.close().await;
    });
}

#[test]
fn a_program_that_is_not_there_is_named() {
    let stage = Stage::new([]);
    wait(async {
        let options = AgentOptions { binary_path: Some("/nowhere/qwen".into()), ..stage.options() };
        let manager = AgentManager::start(options).unwrap();
        let mut session = manager.create_session(SessionOptions::default()).await.unwrap();
        let result = session.run("go").await.unwrap();
        let (code, _) = result.error.unwrap();
        assert_eq!(code, "worker_circuit_open");
        let refused = manager
            .create_session(SessionOptions {
                cwd: Some("/nowhere/at/all".to_owned()),
                ..SessionOptions::default()
            })
            .await;
        assert!(matches!(refused, Err(AgentError::Refused { code, .. }) if code == "no_working_directory"));
        manager.close().await;
    });
}
