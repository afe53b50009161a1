//! The place of an attack: a workspace with a few files, a home, somewhere outside, and a model that says
//! what it is told.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};

use mock_model::process::{self, Ended, Program};
use mock_model::{MockModel, Reply};
use serde_json::{Value, json};

use crate::tool_names::ToolNames;
use crate::tree::Tree;

/// What lies outside the workspace and must not come in.
pub const TREASURE: &str = "the-treasure-outside";
/// What harmless commands print.
pub const TWIN: &str = "twin";

/// How many rows of a table run with Claude's names.
const SAMPLE: usize = 16;

/// The binary in a clean place, where no settings of the machine reach it.
pub fn qwen() -> Program {
    process::qwen(env!("CARGO_BIN_EXE_qwen"))
        .env("QWEN_CODE_SYSTEM_DEFAULTS_PATH", "/nonexistent/defaults.json")
        .env("QWEN_CODE_SYSTEM_SETTINGS_PATH", "/nonexistent/settings.json")
}

/// Writes a file, with the directories that it is in.
pub fn write(path: impl AsRef<Path>, content: impl AsRef<[u8]>) {
    let path = path.as_ref();
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, content).unwrap();
}

/// Writes a program.
pub fn write_program(path: impl AsRef<Path>, script: impl AsRef<[u8]>) {
    write(&path, script);
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

/// Whether this machine can enforce the sandbox; says so where it cannot, for whoever reads the tests'
/// output.
#[expect(clippy::print_stderr, reason = "a test that is passed over says so")]
pub fn has_sandbox() -> bool {
    let enforced = qwen().arg("sandbox").run().code == Some(0);
    if !enforced {
        eprintln!("SKIPPED: no sandbox can be had here");
    }
    enforced
}

/// A workspace under attack.
pub struct Scene {
    pub program: Program,
    pub mock: MockModel,
    /// A directory beside the workspace, with a treasure in it.
    pub outside: tempfile::TempDir,
    /// The names that the model calls tools by.
    pub names: ToolNames,
}

impl Scene {
    /// `file`, `twin`, `sub/deep`, `evil` (a program) and links to the treasure, in no repository.
    pub fn new() -> Self {
        Self::with_names(ToolNames::of_this_run())
    }

    /// The same with the tool names of a vocabulary.
    pub fn with_names(names: ToolNames) -> Self {
        let mock = MockModel::start();
        let program = qwen().with_model(&mock).args(names.flags());
        let outside = tempfile::tempdir().unwrap();
        fs::create_dir(program.qwen_home_path()).unwrap();
        let here = program.cwd_path();
        write(here.join("file"), "alpha\nbeta\n");
        write(here.join(TWIN), format!("{TWIN}\n"));
        write(here.join("sub/deep"), "deep\n");
        let evil = format!("#!/bin/sh\n: > {}/X\n", here.display());
        for program in ["evil", "tools/cat", "tools/git-evil"] {
            write_program(here.join(program), &evil);
        }
        write(here.join("sub/prog"), "BEGIN { system(\"touch X\") }\n");
        write(here.join("options/-oX"), "");
        write(here.join("options/file"), "alpha\n");
        write(outside.path().join("treasure"), TREASURE);
        write(outside.path().join("cave/treasure"), TREASURE);
        symlink(outside.path().join("treasure"), here.join("link")).unwrap();
        symlink(outside.path(), here.join("way-out")).unwrap();
        Self { program, mock, outside, names }
    }

    /// The same, in a repository with one commit, whose message is the harmless word.
    pub fn in_repository() -> Self {
        let scene = Self::new();
        for arguments in [
            &["init", "-q", "."][..],
            &["add", "-A"],
            &["-c", "user.name=a", "-c", "user.email=a@b", "commit", "-q", "-m", TWIN],
            &["config", "alias.logout", "!touch X"],
        ] {
            scene.git(arguments);
        }
        // Something for a difference to show.
        write(scene.here().join("file"), "alpha\nbeta\ntwin\n");
        scene
    }

    /// Runs git in the workspace, as its user would.
    #[track_caller]
    pub fn git(&self, arguments: &[&str]) {
        let status = Command::new("git")
            .args(arguments)
            .current_dir(self.here())
            .env("HOME", self.program.home_path())
            .stdout(Stdio::null())
            .status();
        assert!(status.unwrap().success(), "git {arguments:?}");
    }

    /// Runs a command that says `twin`. Returns an error if it did not run, or if a file is different
    /// afterwards.
    pub fn runs_without_changes(&self, name: &str, command: &str) -> Result<(), String> {
        let before = self.tree();
        let played = self.play(&[("run_shell_command", json!({ "command": command }))]);
        let after = self.tree();
        let changed = after.changed_since(&before);
        if !changed.is_empty() {
            return Err(format!("{name}: changed {changed:?}: {}", played.result("c1")));
        }
        if played.lists("c1") || !played.result("c1").contains("twin") {
            return Err(format!("{name}: did not run: {}", played.result("c1")));
        }
        Ok(())
    }

    /// Runs a subcommand, as the user of the workspace would.
    pub fn subcommand<'a>(&self, cwd: &Path, args: impl IntoIterator<Item = &'a str>) -> Ended {
        let homes = [("HOME", self.program.home_path()), ("QWEN_HOME", &self.program.qwen_home_path())];
        let program = homes.into_iter().fold(qwen(), |program, (name, path)| program.env(name, path));
        program.cwd(cwd).args(args).run()
    }

    /// The binary as a worker that speaks the session protocol.
    pub fn worker(&self) -> Program {
        let wire = ["--input-format", "stream-json", "--output-format", "stream-json", "--dialect", "qwen"];
        self.program.clone().args(wire)
    }

    /// Adds arguments.
    pub fn args<'a>(mut self, args: impl IntoIterator<Item = &'a str>) -> Self {
        self.program = self.program.args(args);
        self
    }

    /// Sets a variable.
    pub fn env(mut self, name: &str, value: impl AsRef<std::ffi::OsStr>) -> Self {
        self.program = self.program.env(name, value);
        self
    }

    /// Writes the user's settings.
    pub fn user_settings(self, settings: &Value) -> Self {
        write(self.program.qwen_home_path().join("settings.json"), settings.to_string());
        self
    }

    /// The workspace.
    pub fn here(&self) -> &Path {
        self.program.cwd_path()
    }

    /// A path outside.
    pub fn out(&self, name: &str) -> PathBuf {
        self.outside.path().join(name)
    }

    /// A text of a table, with the places of this scene filled in.
    pub fn filled(&self, text: &str) -> String {
        let shown = |path: &Path| path.display().to_string();
        text.replace("{here}", &shown(self.here()))
            .replace("{outside}", &shown(self.outside.path()))
            .replace("{home}", &shown(self.program.home_path()))
    }

    /// Everything that an attack could change.
    pub fn tree(&self) -> Tree {
        Tree::of([self.here(), self.program.home_path(), self.outside.path()])
    }

    /// One turn without a listener in which the model makes these calls, `c1` and on, all at once.
    pub fn play(&self, calls: &[(&str, Value)]) -> Played {
        self.play_rounds(&[calls])
    }

    /// One turn without a listener in which the model makes these calls, round after round.
    #[track_caller]
    pub fn play_rounds(&self, rounds: &[&[(&str, Value)]]) -> Played {
        let mut number = 0;
        for calls in rounds.iter().filter(|calls| !calls.is_empty()) {
            self.mock.push(Reply::new(calls.iter().map(|(tool, arguments)| {
                number += 1;
                self.names.call(&format!("c{number}"), tool, arguments.clone())
            })));
        }
        self.mock.push(Reply::text("done"));
        let program =
            self.program.clone().args(["-p", "go", "--dialect", "qwen", "--output-format", "stream-json"]);
        let ended = program.run();
        assert_eq!(ended.code, Some(0), "{ended:?}");
        let told = ended.json_lines();
        let last = told.last().unwrap();
        assert!(last["metadata"]["turn"].is_object(), "a turn ends with its terminal record: {last}");
        let asked: Vec<Value> = self.mock.requests().iter().map(|request| request.full_body()).collect();
        Played { end: last["metadata"]["turn"].clone(), asked, ended }
    }
}

/// What came of it.
pub struct Played {
    /// `metadata.turn` of the terminal record.
    pub end: Value,
    /// What the model was asked, request by request.
    pub asked: Vec<Value>,
    pub ended: Ended,
}

impl Played {
    /// Whether the call is listed among the denials.
    pub fn lists(&self, id: &str) -> bool {
        let denials = self.end["permission_denials"].as_array().unwrap();
        denials.iter().any(|denial| denial["tool_call_id"] == id)
    }

    /// What the model was told about a call.
    pub fn result(&self, id: &str) -> String {
        let messages = self.asked.last().unwrap()["messages"].as_array().unwrap();
        let result = messages.iter().find(|message| message["tool_call_id"] == id);
        match &result.unwrap_or_else(|| panic!("no result of {id}: {messages:#?}"))["content"] {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        }
    }

    /// Whether anything that left the process, to the model or to the reader, holds this text.
    pub fn leaks(&self, text: &str) -> bool {
        self.asked.iter().any(|body| body.to_string().contains(text))
            || self.ended.stdout.contains(text)
            || self.ended.stderr.contains(text)
    }
}

/// Runs the rows of a table on a few threads and tells about all that do not hold. A run with Claude's names
/// takes a sample of the rows: how a command is judged does not depend on the name of its tool.
#[track_caller]
pub fn each<R: Sync>(rows: &[R], check: impl Fn(&R) -> Result<(), String> + Sync) {
    let step = match ToolNames::of_this_run() {
        ToolNames::Qwen => 1,
        ToolNames::Claude => rows.len().div_ceil(SAMPLE).max(1),
    };
    let next = AtomicUsize::new(0);
    let work = || {
        let mut wrong = Vec::new();
        while let Some(row) = rows.get(next.fetch_add(step, Ordering::Relaxed)) {
            wrong.extend(check(row).err());
        }
        wrong
    };
    let wrong: Vec<String> = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..4).map(|_| scope.spawn(work)).collect();
        workers.into_iter().flat_map(|worker| worker.join().unwrap()).collect()
    });
    assert!(wrong.is_empty(), "{} of {} rows do not hold:\n{}", wrong.len(), rows.len(), wrong.join("\n"));
}
