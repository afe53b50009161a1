//! What releases consist of: the action's script runs, and the image is built from what there is.

use std::fs;

use mock_model::process::{Ended, Program};
use mock_model::{MockModel, Reply};

use crate::page::root;

/// Runs the script of the action's last step as the runner does.
fn act(mock: &MockModel, mode: Option<&str>, rules: &str) -> (Ended, String, Program) {
    let text = fs::read_to_string(root().join("action.yml")).unwrap();
    let default = text.split("approval-mode:").nth(1).unwrap().split("default: ").nth(1).unwrap();
    let default = default.lines().next().unwrap();
    let script = text.rsplit("run: |\n").next().unwrap();
    let base = Program::new("/bin/bash").with_model(mock);
    let output = base.home_path().join("output");
    let program = base
        .env("QWEN_PROMPT", "Do it")
        .env("QWEN_MODEL", "mock")
        .env("QWEN_MODE", mode.unwrap_or(default))
        .env("QWEN_RULES", rules)
        .env("QWEN_TIME", "10m")
        .env("QWEN_BINARY", env!("CARGO_BIN_EXE_qwen"))
        .env("GITHUB_OUTPUT", &output)
        .args(["--noprofile", "--norc", "-eo", "pipefail", "-c", script]);
    let ended = program.run();
    let written = fs::read_to_string(output).unwrap_or_default();
    (ended, written, program)
}

#[test]
fn the_action_only_reads_by_default_and_passes_the_answer_on() {
    let calls = || {
        let write = Reply::call("c1", "write_file", r#"{"file_path":"made","content":"x"}"#);
        MockModel::with([write, Reply::text("One\nQWEN_END\nanswer=evil")])
    };
    for (mode, is_written) in [(None, false), (Some("auto-edit"), true)] {
        let (ended, output, program) = act(&calls(), mode, "");
        assert_eq!(ended.code, Some(0), "{ended:?}");
        assert_eq!(program.cwd_path().join("made").exists(), is_written, "{mode:?}: {ended:?}");
        let lines: Vec<&str> = output.lines().collect();
        let delimiter = lines[0].strip_prefix("answer<<").unwrap();
        assert!(delimiter.len() > 30 && lines.last() == Some(&delimiter), "{output}");
        assert!(lines[1..lines.len() - 1].starts_with(&["One", "QWEN_END", "answer=evil"]), "{output}");
    }
}

#[test]
fn the_image_is_built_with_a_compiler_that_is_new_enough_and_without_what_was_built_here() {
    let read = |path: &str| fs::read_to_string(root().join(path)).unwrap();
    let dockerfile = read("packaging/Dockerfile");
    let number =
        |text: &str| text.split(['.', '-']).nth(1).unwrap().trim_matches('"').parse::<u32>().unwrap();
    let needed = read("Cargo.toml");
    let needed = needed.lines().find_map(|line| line.strip_prefix("rust-version = ")).unwrap();
    let used = dockerfile.lines().find_map(|line| line.strip_prefix("FROM rust:")).unwrap();
    assert!(number(used) >= number(needed), "{used} is older than {needed}");
    assert!(dockerfile.contains("cargo build --release --locked -p qwen"));
    assert!(dockerfile.contains("\nUSER ") && dockerfile.contains("ENTRYPOINT [\"qwen\"]"));
    for folder in ["target", ".git"] {
        assert!(read(".dockerignore").lines().any(|line| line == folder), "{folder} would be sent along");
    }
}
