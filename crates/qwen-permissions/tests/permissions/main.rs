//! What the policy promises, one row a promise.

#![expect(clippy::unwrap_used, reason = "what a test needs and does not get fails it")]

mod attacks;
mod calls;
mod denials;
mod properties;
mod reach;
mod reading;
mod repositories;
mod session;
mod side_effects;

use std::path::{Path, PathBuf};

use qwen_events::{Behavior, ToolKind, Verdict};
use qwen_permissions::{DeclaredCall, Judgement, Mode, Policy, RuleSource};

/// A workspace on disk and a policy for it.
const TOOLS: qwen_events::ToolCatalogue = qwen_events::ToolCatalogue::new(&[qwen_tools::DECLARATIONS]);

/// A policy and the workspace that it is about.
struct Desk {
    directory: tempfile::TempDir,
    policy: Policy,
}

impl Desk {
    /// A desk with a few files: `file`, `src/main.rs`, `secret/key`, a link that leads outside and a name
    /// like an option.
    fn new(mode: Mode) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path().join("workspace");
        for file in ["file", "src/main.rs", "secret/key", "sub/deep/x"] {
            let path = root.join(file);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, "").unwrap();
        }
        std::fs::write(directory.path().join("outside"), "").unwrap();
        std::fs::create_dir(root.join("links")).unwrap();
        std::os::unix::fs::symlink(directory.path().join("outside"), root.join("links/out")).unwrap();
        std::os::unix::fs::symlink(directory.path(), root.join("up")).unwrap();
        let policy = Policy::new(mode, [root], Some(PathBuf::from("/nonexistent/home")), TOOLS);
        Self { directory, policy }
    }

    fn allow(self, rules: &[&str]) -> Self {
        self.with(Behavior::Allow, rules)
    }

    fn ask(self, rules: &[&str]) -> Self {
        self.with(Behavior::Ask, rules)
    }

    fn deny(self, rules: &[&str]) -> Self {
        self.with(Behavior::Deny, rules)
    }

    fn with(mut self, behavior: Behavior, rules: &[&str]) -> Self {
        for rule in rules {
            self.policy.add_rule(behavior, rule, RuleSource::Flag).unwrap();
        }
        self
    }

    fn root(&self) -> PathBuf {
        self.directory.path().join("workspace")
    }

    fn run(&self, command: &str) -> Judgement {
        self.run_in(&self.root(), command)
    }

    fn run_in(&self, cwd: &Path, command: &str) -> Judgement {
        let call = DeclaredCall::new("run_shell_command", ToolKind::Execute, cwd).with_command(command);
        self.policy.judge(&call)
    }

    fn call(&self, tool: &str, kind: ToolKind, paths: &[&str]) -> Judgement {
        let root = self.root();
        let call = DeclaredCall::new(tool, kind, &root).with_paths(paths.iter().map(PathBuf::from));
        self.policy.judge(&call)
    }

    /// Checks that every command gets the same verdict.
    fn all(&self, verdict: Verdict, commands: &[&str]) {
        let wrong: Vec<String> = commands
            .iter()
            .filter_map(|command| {
                let decision = self.run(command).decision;
                (decision.verdict != verdict)
                    .then(|| format!("{command:?}: {:?}, {}", decision.verdict, decision.reason))
            })
            .collect();
        assert!(wrong.is_empty(), "expected {verdict:?}:\n{}", wrong.join("\n"));
    }
}
