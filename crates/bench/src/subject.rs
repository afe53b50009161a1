//! The programs that are measured and how they are started.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::mock::Mock;
use crate::output::Mode;

/// The release binary under measurement, with its environment.
pub struct Subject {
    path: PathBuf,
}

impl Subject {
    /// The binary that `QWEN_BIN` names, or the one next to this program.
    pub fn find() -> Result<Self, String> {
        let path = match std::env::var_os("QWEN_BIN") {
            Some(path) => PathBuf::from(path),
            None => std::env::current_exe()
                .map_err(|error| format!("cannot find my own program: {error}"))?
                .with_file_name("qwen"),
        };
        // Runs have separate working directories, so a relative path is made absolute.
        path.canonicalize().map(|path| Self { path }).map_err(|error| {
            format!(
                "there is no program to measure at {}: {error}\n\
                 Build it with `cargo build --release -p qwen`, or say where it is with QWEN_BIN.",
                path.display()
            )
        })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The arguments of one turn with the prompt `hi`.
    fn turn_args(mode: Mode) -> &'static [&'static str] {
        match mode {
            Mode::Claude => {
                &["-p", "hi", "--model", "m", "--output-format", "stream-json", "--dialect", "claude"]
            }
            Mode::ClaudePartial => &[
                "-p",
                "hi",
                "--model",
                "m",
                "--output-format",
                "stream-json",
                "--dialect",
                "claude",
                "--include-partial-messages",
            ],
            Mode::QwenChunks => {
                &["-p", "hi", "--model", "m", "--output-format", "stream-chunk-json", "--dialect", "qwen"]
            }
        }
    }

    /// Returns the command that runs one turn.
    pub fn turn(&self, mode: Mode, mock: &Mock, home: &IsolatedHome) -> Command {
        let mut command = Command::new(&self.path);
        command.args(Self::turn_args(mode));
        home.isolate(&mut command, mock);
        command
    }

    /// A worker with the `qwen` dialect, in whole messages.
    pub fn worker(&self, mock: &Mock, home: &IsolatedHome) -> Command {
        let mut command = Command::new(&self.path);
        command.args(["--input-format", "stream-json", "--dialect", "qwen", "--model", "m"]);
        home.isolate(&mut command, mock);
        command
    }

    /// An interactive session on a separate terminal.
    pub fn terminal(&self, mock: &Mock, home: &IsolatedHome, flags: &[&str]) -> Command {
        let mut command = Command::new(&self.path);
        command.args(["--model", "m"]).args(flags);
        home.isolate(&mut command, mock);
        command.env("TERM", "xterm-256color").env("LANG", "C.UTF-8");
        command
    }

    /// A hub with additional flags, whose workers use the `qwen` dialect.
    pub fn hub(&self, mock: &Mock, home: &IsolatedHome, flags: &[&str]) -> Command {
        let mut command = Command::new(&self.path);
        command.arg("hub").args(flags).args(["--", "--model", "m"]);
        home.isolate(&mut command, mock);
        command
    }
}

/// A temporary home and working directory.
pub struct IsolatedHome {
    dir: tempfile::TempDir,
}

impl IsolatedHome {
    pub fn fresh() -> Result<Self, String> {
        let make = || {
            let dir = tempfile::tempdir()?;
            std::fs::create_dir(dir.path().join("work"))?;
            Ok(Self { dir })
        };
        make().map_err(|error: std::io::Error| format!("cannot make a temporary directory: {error}"))
    }

    pub fn work(&self) -> PathBuf {
        self.dir.path().join("work")
    }

    /// The directory of the stored sessions.
    pub fn sessions(&self) -> PathBuf {
        self.dir.path().join("qwen/sessions")
    }

    /// Writes the user's settings.
    pub fn configure(&self, settings: &Value) -> Result<(), String> {
        let home = self.dir.path().join("qwen");
        let write = || {
            std::fs::create_dir_all(&home)?;
            std::fs::write(home.join("settings.json"), settings.to_string())
        };
        write().map_err(|error: std::io::Error| format!("cannot write settings: {error}"))
    }

    /// Runs a command in these directories, with only the environment variables that a turn needs.
    pub fn isolate(&self, command: &mut Command, mock: &Mock) {
        command.env_clear();
        if let Some(path) = std::env::var_os("PATH") {
            command.env("PATH", path);
        }
        command.current_dir(self.work()).envs(self.variables(mock));
    }

    /// The variables that a turn in this place needs.
    pub fn variables(&self, mock: &Mock) -> [(&'static str, String); 4] {
        let home = self.dir.path();
        [
            ("HOME", home.display().to_string()),
            ("QWEN_HOME", home.join("qwen").display().to_string()),
            ("OPENAI_API_KEY", "x".to_owned()),
            ("OPENAI_BASE_URL", mock.base_url()),
        ]
    }
}

/// The program that only copies.
pub fn copy(mock: &Mock) -> Result<Command, String> {
    program("copy", &mock.base_url())
}

/// One of the harness's own programs.
pub fn program(name: &str, argument: &str) -> Result<Command, String> {
    let me = std::env::current_exe().map_err(|error| format!("cannot find my own program: {error}"))?;
    let mut command = Command::new(me);
    command.args([name, argument]);
    Ok(command)
}
