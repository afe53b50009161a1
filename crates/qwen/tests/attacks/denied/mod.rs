//! Paths that a rule denies to read are present and unreadable: no command finds them deleted, records them as
//! changed, or shows what is in them.

mod everyday;
mod objects;
mod random;
mod recording;

use std::path::Path;
use std::process::Command;

use serde_json::json;

use crate::harness::{Played, Scene, write};

/// The content of every denied file.
pub const SECRET: &str = "9f-secret-content-of-a-denied-file";

/// The output of git in a directory, outside of any sandbox.
#[track_caller]
pub fn git_output(directory: &Path, arguments: &[&str]) -> String {
    let output = Command::new("git")
        .args(["-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "protocol.file.allow=always"])
        .args(arguments)
        .current_dir(directory)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .output()
        .unwrap();
    assert!(output.status.success(), "git {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// A repository with tracked files that rules deny to read, and others.
pub fn denying(rules: &[&str]) -> Scene {
    let scene = Scene::new().user_settings(&json!({ "permissions": { "deny": rules } }));
    let here = scene.here();
    git_output(here, &["init", "-q", "-b", "main", "."]);
    for (name, value) in [("user.name", "a"), ("user.email", "a@example.org"), ("gc.auto", "0")] {
        git_output(here, &["config", name, value]);
    }
    for name in ["private/key", "private/deep/er/key 2", "secret.txt", "conf/.env"] {
        write(here.join(name), format!("{SECRET} {name}\n"));
    }
    write(here.join("private/empty"), "");
    write(here.join("public"), "one\n");
    git_output(here, &["add", "-A"]);
    git_output(here, &["commit", "-qm", "first"]);
    scene
}

/// Runs one command in a mode without questions.
pub fn run(scene: &Scene, command: &str) -> Played {
    let mut scene_program = scene.program.clone();
    scene_program = scene_program.args(["--approval-mode", "yolo"]);
    let scene = Scene {
        program: scene_program,
        mock: mock_model::MockModel::start(),
        outside: tempfile::tempdir().unwrap(),
        names: scene.names,
    };
    let scene = Scene { program: scene.program.clone().with_model(&scene.mock), ..scene };
    scene.play(&[("run_shell_command", json!({ "command": command }))])
}
