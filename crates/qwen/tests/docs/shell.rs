//! Where the commands of a page run: an empty directory, `qwen` on the path, a scripted model behind it.

use std::fs;
use std::os::unix::fs::symlink;

use mock_model::process::{Ended, Program};
use mock_model::{MockModel, Reply, Request};
use tempfile::TempDir;

use crate::page::root;

/// Addresses that pages name for model servers; the scripted model answers for all of them.
const MODEL_ADDRESSES: &[&str] = &[
    "https://your.server/v1",
    "http://localhost:11434/v1",
    "http://localhost:8000/v1",
    "http://localhost:8080/v1",
    "https://dashscope.aliyuncs.com/compatible-mode/v1",
    "https://openrouter.ai/api/v1",
    "https://generativelanguage.googleapis.com/v1beta/openai",
    "https://api.mistral.ai/v1",
];

/// The project that the commands work on: the one of `examples/repair`.
const PROJECT: &str = "git init -q . && cp -r EXAMPLE/. . && git add -A &&
git -c user.name=a -c user.email=a@example.org commit -qm first && echo 'One more line.' >> README.md";

/// A directory, a home and a model of its own.
pub struct Sandbox {
    mock: MockModel,
    bin: TempDir,
    home: TempDir,
    work: TempDir,
}

impl Sandbox {
    pub fn new() -> Self {
        let mock = MockModel::start();
        mock.answer_with(|_: &Request| Some(Reply::text("Done.")));
        let (bin, home, work) =
            (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        symlink(env!("CARGO_BIN_EXE_qwen"), bin.path().join("qwen")).unwrap();
        let sandbox = Self { mock, bin, home, work };
        let example = root().join("examples/repair").display().to_string();
        let prepared = sandbox.bash(&PROJECT.replace("EXAMPLE", &example));
        assert_eq!(prepared.code, Some(0), "{prepared:?}");
        sandbox
    }

    fn program(&self, path: &str) -> Program {
        let search = format!("{}:{}", self.bin.path().display(), std::env::var("PATH").unwrap());
        Program::new(path)
            .with_model(&self.mock)
            .env("PATH", search)
            .env("HOME", self.home.path())
            .env("QWEN_HOME", self.home.path().join(".qwen"))
            .env("ANTHROPIC_BASE_URL", self.mock.origin())
            .cwd(self.work.path())
    }

    /// Runs a script as a page prints it. The release build is the binary under test, and `make` only says
    /// what it would do: the targets have tests of their own.
    pub fn bash(&self, script: &str) -> Ended {
        let mut script = script
            .replace("cargo run --release --", "qwen")
            .replace("./target/release/qwen", "qwen")
            .replace("make ", &format!("make -n -C {} ", root().display()));
        for address in MODEL_ADDRESSES {
            script = script.replace(address, &self.mock.base_url());
        }
        script = script.replace("https://api.anthropic.com", &self.mock.origin());
        self.program("/bin/bash").args(["-euo", "pipefail", "-c", &script]).run()
    }

    /// Runs a program of another language.
    pub fn interpret(&self, interpreter: &str, text: &str) -> Ended {
        let file =
            self.work.path().join(format!("example.{}", if interpreter == "node" { "mjs" } else { "py" }));
        fs::write(&file, text).unwrap();
        self.program("/usr/bin/env").args([interpreter, &file.display().to_string()]).run()
    }

    /// Starts a hub with this configuration and ends it at once.
    pub fn hub(&self, configuration: &str) -> Ended {
        let file = self.work.path().join("hub.yaml");
        fs::write(&file, configuration.replace("/usr/bin/qwen", env!("CARGO_BIN_EXE_qwen"))).unwrap();
        self.program(env!("CARGO_BIN_EXE_qwen")).args(["hub", "--config", &file.display().to_string()]).run()
    }

    /// Writes a command or a sub-agent of the user.
    pub fn define(&self, path: &str, text: &str) {
        let file = self.home.path().join(".qwen").join(path);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, text).unwrap();
    }

    /// The last prompt that the model got.
    pub fn last_prompt(&self) -> String {
        let requests = self.mock.requests();
        requests.last().unwrap().messages().last().unwrap()["content"].as_str().unwrap().to_owned()
    }

    /// Reads a settings file and shows what is in force.
    pub fn settings(&self, text: &str) -> Ended {
        let file = self.work.path().join("settings.json");
        fs::write(&file, text).unwrap();
        self.program(env!("CARGO_BIN_EXE_qwen"))
            .args(["--settings", &file.display().to_string(), "config"])
            .run()
    }
}
