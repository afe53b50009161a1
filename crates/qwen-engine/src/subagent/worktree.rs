//! The git worktree of a sub-agent that works in isolation.
//!
//! It lies below the state directory and belongs to the workspace while the sub-agent runs. One without changes is
//! removed afterwards; another one stays, and the report names it.

use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use qwen_events::{CallId, Json, ToolCall};
use qwen_tools::{CallContext, DiscardedOutput};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::file_id;
use crate::context::TurnContext;

/// The tool whose sandbox git runs in.
const SHELL: &str = "run_shell_command";

/// Prints the top directory, the working directory in it, and the commit, one line each.
const LOOK: &str = "git rev-parse --show-toplevel --show-prefix HEAD";

/// Adds the worktree without running hooks.
const ADD: &str = "git -c core.hooksPath=/dev/null worktree add -q --detach";

/// The maximum number of worktrees of one call id in one session.
const MAX_SAME_NAME: usize = 100;

/// A worktree in use.
pub(super) struct Worktree {
    /// The directory that only the worktree is in.
    place: PathBuf,
    /// The root of its checked-out files.
    root: PathBuf,
    /// The directory in it that corresponds to the working directory.
    pub cwd: Arc<Path>,
    /// What git keeps about it, in the repository.
    entry: Option<PathBuf>,
    /// The commit that it started from.
    commit: String,
    /// The context of the agent that starts the sub-agent.
    context: Arc<TurnContext>,
}

impl Worktree {
    /// Creates a worktree of the commit that is checked out. Returns the reason if that is not possible.
    pub(super) async fn create(context: &Arc<TurnContext>, call: &CallId) -> Result<Self, String> {
        let permissions = &context.session.process.permissions;
        if permissions.mode() == "plan" {
            return Err("the session is in plan mode, which is read-only".to_owned());
        }
        if permissions.restricts_fixed_paths() {
            // They would not protect the copies of these files.
            return Err("permission rules that deny or ask name absolute paths in the workspace; relative ones cover worktrees too"
                .to_owned());
        }
        let Some(base) = &context.session.resources.worktrees else {
            return Err("this process has no state directory".to_owned());
        };
        let found = run_git(context, LOOK, context.directory()).await?;
        let lines: Vec<&str> = found.trim_end().lines().collect();
        let [top, prefix, commit] = lines.as_slice() else { return Err(found) };
        let name = format!("{}-{}", context.origin.session_id.as_str(), file_id(call));
        let place = create_directory(base, &name)
            .map_err(|error| format!("no directory can be created in {}: {error}", base.display()))?;
        let root = place.join(Path::new(top).file_name().unwrap_or("worktree".as_ref()));
        let cwd: Arc<Path> = if prefix.is_empty() { root.clone() } else { root.join(prefix) }.into();
        let commit = (*commit).to_owned();
        let mut worktree = Self { place, root, cwd, entry: None, commit, context: context.clone() };
        // git needs a directory that does not exist yet, in one that its sandbox can write.
        permissions.add_worktree(&worktree.place, &worktree.place);
        let add = format!("{ADD} {} {}", quoted(&worktree.root), worktree.commit);
        let added = run_git(context, &add, context.directory()).await;
        permissions.remove_directory(&worktree.place);
        match added {
            Ok(_) => {
                worktree.entry = find_entry(&worktree.root);
                permissions.add_worktree(&worktree.root, &worktree.cwd);
                Ok(worktree)
            }
            Err(problem) => {
                worktree.remove().await;
                Err(problem)
            }
        }
    }

    /// The description of the worktree for the sub-agent.
    pub(super) fn describe(&self) -> String {
        format!(
            "you work in a separate git worktree of commit {}. Relative paths and commands start there; do not change \
             files outside of it",
            self.short_commit()
        )
    }

    /// Removes the worktree if it has no changes. Otherwise returns the note for the report.
    pub(super) async fn finish(self) -> Option<String> {
        let state = run_git(&self.context, "git rev-parse HEAD && git status --porcelain", &self.root).await;
        let kept = format!("[The sub-agent worked in the git worktree {}", self.root.display());
        let remedy = format!("`git worktree remove --force {}` removes it", quoted(&self.root));
        match state {
            Ok(state) => {
                let (head, listed) = state.split_once('\n').unwrap_or((&state, ""));
                let count = listed.lines().filter(|line| !line.trim().is_empty()).count();
                if head == self.commit && count == 0 {
                    self.remove().await;
                    return None;
                }
                let changes = if count == 1 { "change" } else { "changes" };
                let commits = if head == self.commit { "" } else { " and new commits" };
                Some(format!(
                    "{kept}, which started at {} and has {count} uncommitted {changes}{commits}. Take over what is needed; {remedy}.]",
                    self.short_commit()
                ))
            }
            Err(problem) => {
                Some(format!("{kept}, whose state cannot be read ({}); {remedy}.]", problem.trim_end()))
            }
        }
    }

    async fn remove(self) {
        let Self { place, root, entry, context, .. } = self;
        // In the sandbox git cannot do that, because files of the worktree and of its entry are mounted there.
        let removal = move || {
            for directory in std::iter::once(place).chain(entry) {
                // What cannot be removed is listed by `git worktree list`.
                let _ = std::fs::remove_dir_all(directory);
            }
        };
        let _ = tokio::task::spawn_blocking(removal).await;
        context.session.process.permissions.remove_directory(&root);
    }

    fn short_commit(&self) -> &str {
        self.commit.get(..8).unwrap_or(&self.commit)
    }
}

/// The directory in which git keeps a new worktree's state, `.git/worktrees/NAME` of the repository.
fn find_entry(root: &Path) -> Option<PathBuf> {
    let link = root.join(".git");
    let text = std::fs::read_to_string(&link).ok()?;
    let entry = PathBuf::from(text.trim_end().strip_prefix("gitdir: ")?);
    let is_named = entry.parent().is_some_and(|parent| parent.ends_with("worktrees"));
    let leads_back =
        std::fs::read_to_string(entry.join("gitdir")).is_ok_and(|back| Path::new(back.trim_end()) == link);
    (is_named && leads_back && entry.canonicalize().is_ok_and(|real| real == entry)).then_some(entry)
}

/// Runs a git command in the sandbox, without the programs that the repository configures. Returns its output.
async fn run_git(context: &Arc<TurnContext>, command: &str, directory: &Path) -> Result<String, String> {
    let Some(tool) = context.tools.get(SHELL) else {
        return Err("this agent cannot run commands".to_owned());
    };
    let call = |command: &str| {
        let arguments = json!({ "command": command, "directory": directory });
        let name = tool.spec().name.clone();
        ToolCall::new(CallId::new("worktree"), name, Json::trusted(arguments.to_string()))
    };
    let resources = context.session.resources.clone();
    let mut cx = CallContext::new(resources, CancellationToken::new(), Arc::new(DiscardedOutput));
    let permissions = &context.session.process.permissions;
    // What is switched off for a command that only reads covers the filters that a checkout would run.
    cx.harden_git = permissions.judge(&call("git diff HEAD"), tool.declaration()).harden_git;
    cx.granted_roots = context
        .session
        .resources
        .extra_roots
        .iter()
        .cloned()
        .chain(permissions.added_directories())
        .collect();
    let outcome = tool.run(&call(command), &cx).await;
    if outcome.error_code.is_some() { Err(outcome.text) } else { Ok(outcome.text) }
}

/// Creates a directory with this name, or with a number after it, that only the user can enter.
fn create_directory(base: &Path, name: &str) -> std::io::Result<PathBuf> {
    DirBuilder::new().recursive(true).mode(0o700).create(base)?;
    let mut count = 1;
    loop {
        let path = if count == 1 { base.join(name) } else { base.join(format!("{name}-{count}")) };
        match DirBuilder::new().mode(0o700).create(&path) {
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists && count < MAX_SAME_NAME => {
                count += 1;
            }
            created => return created.map(|()| path),
        }
    }
}

/// A path as one word of a command line.
fn quoted(path: &Path) -> String {
    format!("'{}'", path.to_string_lossy().replace('\'', r"'\''"))
}
