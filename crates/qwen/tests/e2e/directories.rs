//! The directory of shell commands: a `cd` carries over to later commands while it stays in the workspace.

use mock_model::{MockModel, Reply};
use serde_json::{Value, json};

use crate::harness::{judged, qwen};
use crate::wire::{CLAUDE, QWEN, Wire};

/// Runs commands one message after the other, and returns their results.
fn run(wire: Wire, commands: &[&str], prepare: impl FnOnce(&std::path::Path)) -> Vec<String> {
    let tool = if wire.dialect == "claude" { "Bash" } else { "run_shell_command" };
    let calls = commands
        .iter()
        .enumerate()
        .map(|(at, command)| Reply::call(&format!("c{at}"), tool, &json!({"command": command}).to_string()));
    let mock = MockModel::with(calls.chain([Reply::text("done")]));
    let program = qwen().with_model(&mock).args(["-p", "x", "--model", "mock", "--yolo"]).args(wire.flags());
    prepare(program.cwd_path());
    let names: &[&str] = if wire.dialect == "claude" { &["--tool-names", "claude"] } else { &[] };
    let ended = program.args(names).run();
    assert_eq!(ended.code, Some(0), "{ended:?}");
    judged(wire, &ended);
    let requests = mock.requests();
    let messages = requests.last().unwrap().body["messages"].as_array().unwrap().clone();
    let is_result = |message: &&Value| message["role"] == "tool";
    messages.iter().filter(is_result).map(|message| message["content"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn a_cd_carries_over_to_later_commands_and_the_model_is_told() {
    for wire in [QWEN, CLAUDE] {
        let results = run(
            wire,
            &["cd sub/deep && pwd", "pwd; ls", "cat <<< x | cat && cd ..", "pwd", "cd ../..", "pwd"],
            |workspace| {
                std::fs::create_dir_all(workspace.join("sub/deep")).unwrap();
                std::fs::write(workspace.join("sub/deep/here"), "").unwrap();
            },
        );
        assert!(results[0].contains("[The next command runs in sub/deep."), "{results:?}");
        assert!(results[1].contains("/sub/deep\nhere"), "{results:?}");
        assert!(results[2].contains("[The next command runs in sub."), "{results:?}");
        assert!(results[3].ends_with("/sub\n") || results[3].ends_with("/sub"), "{results:?}");
        assert!(
            results[4].contains("outside the workspace. The next command runs in sub again"),
            "{results:?}"
        );
        assert!(results[5].contains("/sub"), "{results:?}");
    }
}

#[test]
fn a_directory_that_a_subshell_a_background_command_or_a_deletion_leaves_is_not_carried_over() {
    let results = run(QWEN, &["(cd sub && pwd)", "pwd", "cd sub", "rmdir ../sub", "pwd"], |workspace| {
        std::fs::create_dir(workspace.join("sub")).unwrap();
    });
    assert!(!results[0].contains("next command"), "{results:?}");
    assert!(!results[1].contains("/sub"), "{results:?}");
    assert!(results[2].contains("runs in sub"), "{results:?}");
    assert!(!results[4].contains("/sub"), "{results:?}");
}
