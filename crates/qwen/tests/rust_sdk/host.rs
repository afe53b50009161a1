//! Host programs that end: killed, interrupted, or by leaving `main` with open sessions. The host is this
//! test program again, started with one of the ignored functions below.

use std::path::Path;

use mock_model::process::{Program, Signal};
use mock_model::{MockModel, Reply, gate, sse};
use qwen_kernel::{AgentManager, AgentOptions, SessionOptions};

use crate::harness::wait;

/// This program as the host `function`, with `qwen` found by its environment.
fn host(function: &str) -> Program {
    Program::new(std::env::current_exe().unwrap())
        .args(["--ignored", "--exact", &format!("host::{function}"), "--nocapture", "--test-threads=1"])
        .env("QWEN_BIN", env!("CARGO_BIN_EXE_qwen"))
}

#[test]
fn no_worker_outlives_a_host_that_is_killed_interrupted_or_leaves() {
    for end in ["kill", "interrupt", "exit"] {
        let mock = MockModel::with([Reply::new([sse::text("Half"), gate("held")])]);
        let program = host("act_as_a_host").with_model(&mock).env("HOST_ENDS_BY", end);
        let run = program.start();
        mock.reached("held");
        let mark = format!("QWEN_HOME={}", program.qwen_home_path().display());
        match end {
            "kill" => run.signal(Signal::KILL),
            "interrupt" => run.signal(Signal::INT),
            _ => std::fs::write(program.cwd_path().join("leave"), "").unwrap(),
        }
        let ended = run.wait();
        assert_eq!(ended.signal.is_none(), end == "exit", "{end}: {}", ended.stderr);
        mock_model::process::wait_marked_gone(&mark);
    }
}

#[test]
#[ignore = "not a test: the host that other tests start"]
fn act_as_a_host() {
    let Ok(end) = std::env::var("HOST_ENDS_BY") else { return };
    let session = SessionOptions::default();
    wait(async {
        let manager = AgentManager::start(AgentOptions { session, ..AgentOptions::default() }).unwrap();
        let mut session = manager.create_session(SessionOptions::default()).await.unwrap();
        let mut stream = session.stream("go").unwrap();
        if end == "exit" {
            while !Path::new("leave").exists() {
                std::thread::yield_now();
            }
            // The session is still open, and its turn runs.
            std::process::exit(0);
        }
        while stream.next().await.unwrap().is_some() {}
    });
}

#[test]
fn the_binary_is_looked_up_in_the_option_qwen_bin_and_path_in_this_order() {
    let real = Path::new(env!("CARGO_BIN_EXE_qwen"));
    let directory = real.parent().unwrap().display().to_string();
    // The option, the variable, the path; whether a session can run, or what the error names.
    let missing = "/nowhere/named-by-option";
    let cases = [
        (Some(env!("CARGO_BIN_EXE_qwen")), "/nowhere/variable", "/nowhere", ""),
        (Some(missing), env!("CARGO_BIN_EXE_qwen"), &*directory, missing),
        (None, env!("CARGO_BIN_EXE_qwen"), "/nowhere", ""),
        (None, "/nowhere/variable", &*directory, "QWEN_BIN: /nowhere/variable"),
        (None, "", &*directory, ""),
        (None, "", "/nowhere", "bundled: "),
    ];
    for (option, variable, path, expected) in cases {
        let mut program =
            host("act_as_a_lookup").env("QWEN_BIN", variable).env("PATH", path).env("LOOKUP", "1");
        if let Some(option) = option {
            program = program.env("LOOKUP_OPTION", option);
        }
        let ended = program.run();
        let found =
            ended.stdout.lines().find_map(|line| line.split_once("looked up: ")).map(|(_, word)| word);
        let found = found.unwrap_or_else(|| panic!("{}{}", ended.stdout, ended.stderr));
        assert!(
            if expected.is_empty() { found == "done" } else { found.contains(expected) },
            "{expected}: {found}"
        );
    }
}

#[test]
#[ignore = "not a test: the host that other tests start"]
fn act_as_a_lookup() {
    if std::env::var_os("LOOKUP").is_none() {
        return;
    }
    let options = AgentOptions {
        binary_path: std::env::var_os("LOOKUP_OPTION").map(Into::into),
        session: SessionOptions::default().model("demo"),
        ..AgentOptions::default()
    };
    let outcome = match AgentManager::start(options) {
        Ok(manager) => wait(async { manager.run("Hello").await.unwrap().status }),
        Err(error) => error.to_string(),
    };
    println!("looked up: {outcome}");
}
