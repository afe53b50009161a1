//! The policy of a session: its mode, its rules and its workspace, and the judgement on a call.

mod command;
mod coverage;
mod exclusions;
mod git_objects;
pub(crate) mod mode;
pub(crate) mod network;
mod private_directories;
mod reach;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use qwen_events::{Behavior, Decision, PermissionUpdate, ToolCatalogue, ToolKind, Verdict};

use crate::git::hardening::GitHardening;
use crate::paths::protected::{is_behind_protected, is_protected};
use crate::paths::workspace::{ResolvedPath, Workspace};
use crate::policy::private_directories::PrivateDirectories;
use crate::rules::{Rule, RuleError, RuleSource, Scope};
use crate::{DeclaredCall, Mode};

/// File systems in which the kernel shows processes and devices.
const KERNEL_DIRECTORIES: [&str; 3] = ["/proc", "/sys", "/dev"];

/// A judgement on a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Judgement {
    /// Whether it runs, and why.
    pub decision: Decision,
    /// The command is allowed only because it reads: it must run in the read-only sandbox.
    pub read_only: bool,
    /// The command is read-only git: it must run with this hardening.
    pub harden_git: Option<GitHardening>,
    /// The path that is out of bounds, where that is the reason.
    pub blocked_path: Option<PathBuf>,
    /// The paths outside the workspace that an allowed call may read: in the mode yolo, or because a rule
    /// names them.
    pub granted_paths: Vec<PathBuf>,
}

/// What a session may do.
#[derive(Debug, Clone)]
pub struct Policy {
    /// The declared tools, by which rules are understood.
    pub(crate) tools: ToolCatalogue,
    mode: Mode,
    allow: Vec<Rule>,
    ask: Vec<Rule>,
    deny: Vec<Rule>,
    /// If not empty, other commands do not run, regardless of the mode and the other rules.
    only: Vec<Rule>,
    pub(crate) workspace: Workspace,
    pub(crate) search_path: Vec<PathBuf>,
    /// Directories that updates added.
    added: Vec<PathBuf>,
    /// Those of them that are worktrees of sub-agents.
    worktrees: Vec<PathBuf>,
    /// Commands that failed in the read-only sandbox. They ask when they are repeated.
    failed_read_only: Vec<Arc<str>>,
    /// Whether the kernel keeps commands from what rules deny to read and to edit.
    kernel: Option<fn() -> Kernel>,
    /// The mode `yolo` cannot be chosen.
    is_yolo_disabled: bool,
    private: PrivateDirectories,
    /// Our own settings and stored sessions. Commands cannot read them; file tools ask in every mode.
    own_state: PrivateDirectories,
    /// Files that hooks run, without links in their paths.
    scripts: Vec<PathBuf>,
}

/// How many commands are remembered that failed in the read-only sandbox.
const MAX_FAILED_READ_ONLY: usize = 64;

/// What the kernel prevents commands from doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Kernel {
    /// Reading what rules deny to read.
    pub hides: bool,
    /// Changing what rules deny to edit.
    pub holds: bool,
}

impl Policy {
    /// A policy without rules. `roots` are the directories of the workspace, `home` is what `~` means, and
    /// `tools` are those that rules can name.
    pub fn new(
        mode: Mode,
        roots: impl IntoIterator<Item = PathBuf>,
        home: Option<PathBuf>,
        tools: ToolCatalogue,
    ) -> Self {
        Self::empty(mode, Workspace::new(roots, home), tools)
    }

    fn empty(mode: Mode, workspace: Workspace, tools: ToolCatalogue) -> Self {
        Self {
            tools,
            mode,
            allow: Vec::new(),
            ask: Vec::new(),
            deny: Vec::new(),
            only: Vec::new(),
            workspace,
            search_path: Vec::new(),
            added: Vec::new(),
            worktrees: Vec::new(),
            failed_read_only: Vec::new(),
            kernel: None,
            is_yolo_disabled: false,
            private: PrivateDirectories::default(),
            own_state: PrivateDirectories::default(),
            scripts: Vec::new(),
        }
    }

    /// Sets the entries of `PATH`, so that a program in the workspace is not mistaken for the system's.
    pub fn set_search_path(&mut self, search_path: impl IntoIterator<Item = PathBuf>) {
        self.search_path = search_path.into_iter().collect();
    }

    /// Sets the function that reports what the kernel prevents. It is called only when needed; without it no
    /// kernel enforcement is assumed.
    pub fn set_kernel(&mut self, kernel: fn() -> Kernel) {
        self.kernel = Some(kernel);
    }

    /// Keeps file tools out of `hidden`, which belongs to others, such as the tenants of a hub, whatever
    /// rules, modes and answers say, except for the places of `shown` inside.
    pub fn set_private(
        &mut self,
        hidden: impl IntoIterator<Item = PathBuf>,
        shown: impl IntoIterator<Item = PathBuf>,
    ) {
        self.private = PrivateDirectories::new(hidden, shown);
    }

    /// Makes file tools ask about everything in `directory`, where our settings and sessions are stored,
    /// except for the texts in it that are written for the model.
    pub fn set_own_state(&mut self, directory: &Path) {
        self.own_state = PrivateDirectories::of_own_state(directory);
    }

    /// Makes every tool ask before it changes one of these files, which hooks run.
    pub fn set_scripts(&mut self, scripts: impl IntoIterator<Item = PathBuf>) {
        self.scripts = scripts.into_iter().collect();
    }

    /// The files that hooks run.
    pub fn scripts(&self) -> &[PathBuf] {
        &self.scripts
    }

    /// True if a path is a file that a hook runs, or a directory that contains one.
    fn is_script(&self, place: &ResolvedPath) -> bool {
        let is_inside = |path: &Path| {
            let roots = self.workspace.roots().iter();
            roots.into_iter().any(|root| path != root && path.starts_with(root))
        };
        let is_it = |path: &Path| {
            let mut scripts = self.scripts.iter();
            scripts.any(|script| script == path || (script.starts_with(path) && is_inside(path)))
        };
        !self.scripts.is_empty() && place.forms().any(is_it)
    }

    /// True for our own settings and sessions, unless the user chose to work in that directory.
    fn is_own_state(&self, place: &ResolvedPath) -> bool {
        let is_chosen = |path: &Path| {
            let roots = self.workspace.roots().iter();
            roots.into_iter().any(|root| self.own_state.contain(root) && path.starts_with(root))
        };
        place.forms().any(|path| self.own_state.contain(path) && !is_chosen(path))
    }

    /// True if a search that was permitted to start at `start` may show what it finds in `file`.
    pub fn may_show(&self, start: &Path, file: &Path, cwd: &Path) -> bool {
        let Some(reader) = self.tools.first(ToolKind::Read) else { return false };
        let restricting = || self.deny.iter().chain(&self.ask).filter(|rule| rule.concerns(reader.name));
        // Most searches meet nothing that is kept from them, and the links in a path need not be followed.
        let is_open = !self.private.overlap(start) && !self.own_state.overlap(start);
        if is_open && restricting().next().is_none() {
            return true;
        }
        let place = self.workspace.place(file, cwd);
        let is_private = place.forms().any(|path| self.private.contain(path))
            || (self.is_own_state(&place) && !self.is_own_state(&self.workspace.place(start, cwd)));
        let call = DeclaredCall::new(reader.name, reader.kind, cwd);
        let places = [place];
        !is_private && !restricting().any(|rule| self.forbids(rule, reader.name, &call, &places))
    }

    /// What the kernel keeps commands from.
    pub(crate) fn kernel(&self) -> Kernel {
        self.kernel.map(|kernel| kernel()).unwrap_or_default()
    }

    pub fn mode(&self) -> Mode {
        self.mode
    }

    /// Sets the mode; `yolo` has no effect where it is disabled.
    pub fn set_mode(&mut self, mode: Mode) {
        if !(self.is_yolo_disabled && mode == Mode::Yolo) {
            self.mode = mode;
        }
    }

    /// Disables the mode `yolo` for the rest of the session.
    pub fn disable_yolo(&mut self) {
        self.is_yolo_disabled = true;
        if self.mode == Mode::Yolo {
            self.mode = Mode::Default;
        }
    }

    /// Adds a directory to the workspace.
    pub fn add_directory(&mut self, directory: &Path) {
        self.workspace.add(directory);
    }

    /// Adds a worktree that we created to the workspace. It lies below our own state, whose name is protected
    /// elsewhere.
    /// `cwd` is the directory in it that corresponds to the working directory.
    pub fn add_worktree(&mut self, directory: &Path, cwd: &Path) {
        self.add_directory(directory);
        self.workspace.add_mirror(cwd);
        self.added.push(directory.to_owned());
        self.worktrees.push(directory.to_owned());
    }

    /// Removes a directory that was added in the course of the session.
    pub fn remove_directory(&mut self, directory: &Path) {
        self.added.retain(|added| added != directory);
        self.worktrees.retain(|added| added != directory);
        self.workspace.remove(directory);
    }

    /// True if a rule that denies or asks names absolute paths in the workspace: it does not cover a worktree.
    pub fn restricts_fixed_paths(&self) -> bool {
        let is_fixed =
            |rule: &Rule| matches!(&rule.scope, Scope::Path(pattern) if pattern.is_fixed_in(&self.workspace));
        self.deny.iter().chain(&self.ask).any(is_fixed)
    }

    /// Records that a command considered read-only failed because it needs write or network access. The next
    /// attempt asks.
    pub fn note_failed_read_only(&mut self, command: &str) {
        if self.failed_read_only.len() == MAX_FAILED_READ_ONLY {
            self.failed_read_only.remove(0);
        }
        self.failed_read_only.push(command.into());
    }

    /// The directories that were added in the course of the session.
    pub fn added_directories(&self) -> &[PathBuf] {
        &self.added
    }

    pub fn add_rule(&mut self, behavior: Behavior, text: &str, source: RuleSource) -> Result<(), RuleError> {
        let rule = Rule::parse(text, source, self.tools)?;
        self.rules_mut(behavior).push(rule);
        Ok(())
    }

    /// Limits a tool to commands that a rule such as `Bash(git *)` covers, and to read-only ones. A rule
    /// without a command limits nothing.
    pub fn limit_to(&mut self, text: &str, source: RuleSource) -> Result<(), RuleError> {
        let rule = Rule::parse(text, source, self.tools)?;
        if matches!(rule.scope, Scope::Command(_)) {
            self.only.push(rule);
        }
        Ok(())
    }

    /// True if a command exceeds the limits of its tool.
    fn is_beyond_limits(&self, tool: &str, command: &str, cwd: &Path) -> bool {
        let only: Vec<Rule> = self.only.iter().filter(|rule| rule.concerns(tool)).cloned().collect();
        if only.is_empty() {
            return false;
        }
        let mut limits = Self::empty(Mode::Default, self.workspace.clone(), self.tools);
        limits.allow = only;
        limits.search_path.clone_from(&self.search_path);
        limits.judge_command(tool, command, cwd).decision.verdict != Verdict::Allow
    }

    /// Removes a rule. A deny rule stays unless it was added during the session.
    pub fn remove_rule(&mut self, behavior: Behavior, text: &str) {
        let text = text.trim();
        let any_source = behavior == Behavior::Allow;
        self.rules_mut(behavior)
            .retain(|rule| &**rule.text() != text || !(any_source || *rule.source() == RuleSource::Session));
    }

    /// The rules of one kind, in their order.
    pub fn rules(&self, behavior: Behavior) -> &[Rule] {
        match behavior {
            Behavior::Allow => &self.allow,
            Behavior::Ask => &self.ask,
            Behavior::Deny => &self.deny,
        }
    }

    fn rules_mut(&mut self, behavior: Behavior) -> &mut Vec<Rule> {
        match behavior {
            Behavior::Allow => &mut self.allow,
            Behavior::Ask => &mut self.ask,
            Behavior::Deny => &mut self.deny,
        }
    }

    /// Applies an update from the response to a permission request. It lasts for the session.
    pub fn apply(&mut self, update: &PermissionUpdate) -> Result<(), RuleError> {
        match update {
            PermissionUpdate::SetMode(word) => {
                let mode =
                    Mode::parse(word).ok_or_else(|| RuleError::new(word, "it names no approval mode"))?;
                if self.is_yolo_disabled && mode == Mode::Yolo {
                    return Err(RuleError::new(word, "it is disabled by settings or flags"));
                }
                self.mode = mode;
            }
            PermissionUpdate::AddRules { behavior, rules } => {
                for rule in rules {
                    self.add_rule(*behavior, rule, RuleSource::Session)?;
                }
            }
            PermissionUpdate::RemoveRules { behavior, rules } => {
                for rule in rules {
                    self.remove_rule(*behavior, rule);
                }
            }
            PermissionUpdate::AddDirectories(directories) => {
                for directory in directories {
                    let base = self.workspace.roots().first().cloned().unwrap_or_default();
                    let place = self.workspace.place(Path::new(&**directory), &base);
                    self.add_directory(&place.written);
                    self.added.push(place.written);
                }
            }
        }
        Ok(())
    }

    /// Judges a call: deny beats ask beats allow, then the mode decides.
    pub fn judge(&self, call: &DeclaredCall<'_>) -> Judgement {
        let tool = &*call.tool;
        match (call.kind, call.command()) {
            (ToolKind::Execute, Some(command)) if self.is_beyond_limits(tool, command, &call.cwd) => {
                judgement(Verdict::Deny, "The list of tools has only other commands.".into(), None)
            }
            (ToolKind::Execute, Some(command)) => self.judge_command(tool, command, &call.cwd),
            (ToolKind::Execute, None) => ask("It runs something that is not known."),
            _ => self.judge_call(tool, call),
        }
    }

    /// True if writing a path always asks, under any name for it.
    pub(crate) fn is_protected(&self, place: &ResolvedPath) -> bool {
        let roots = self.workspace.roots().iter().map(PathBuf::as_path);
        let below_worktree = |path: &Path| {
            self.worktrees.iter().find_map(|root| path.strip_prefix(root).ok().map(Path::to_owned))
        };
        place.forms().any(|path| match below_worktree(path) {
            Some(below) => is_protected(&below),
            None => is_protected(path),
        }) || self.is_own_state(place)
            || self.is_script(place)
            || place
                .real
                .as_deref()
                .is_some_and(|real| is_behind_protected(real, roots, self.workspace.home()))
    }

    fn judge_call(&self, tool: &str, call: &DeclaredCall<'_>) -> Judgement {
        let places: Vec<ResolvedPath> =
            call.paths.iter().map(|path| self.workspace.place(path, &call.cwd)).collect();
        if let Some(rule) = self.deny.iter().find(|rule| self.forbids(rule, tool, call, &places)) {
            return ruled(Verdict::Deny, format!("The rule {} denies it.", rule.text()), rule);
        }
        if let Some(place) = places.iter().find(|place| place.forms().any(|path| self.private.contain(path)))
        {
            let reason = format!("{} is private to others.", place.written.display());
            return judgement(Verdict::Deny, reason.into(), None);
        }
        if self.mode == Mode::Plan
            && let Some(refusal) = plan_refuses(call.kind)
        {
            return refusal;
        }
        if let Some(rule) = self.deny.iter().find(|rule| self.edits_unreadable(rule, call, &places)) {
            let reason = format!("An edit shows what the rule {} denies to read.", rule.text());
            return ruled(Verdict::Ask, reason, rule);
        }
        if let Some(rule) = self.ask.iter().find(|rule| self.forbids(rule, tool, call, &places)) {
            return ruled(Verdict::Ask, format!("The rule {} requires approval.", rule.text()), rule);
        }
        if call.kind == ToolKind::Ask {
            return ask("It is a question to the user.");
        }
        if call.kind == ToolKind::Read
            && let Some(place) = places.iter().find(|place| self.is_own_state(place))
        {
            let reason = format!("{} is where qwen stores settings and sessions.", place.written.display());
            return blocked(reason, place);
        }
        if call.kind != ToolKind::Read
            && let Some(place) = places.iter().find(|place| self.is_protected(place))
        {
            let reason = format!("Writing {} always requires approval.", place.written.display());
            return blocked(reason, place);
        }
        if self.mode == Mode::Plan && call.kind == ToolKind::ExitPlan {
            return ask("Leaving plan mode requires approval of the plan.");
        }
        let outside = places.iter().find(|place| !self.workspace.contains(place));
        if self.mode != Mode::Plan
            && let Some(rule) = self.allow.iter().find(|rule| self.allows(rule, tool, call, &places))
        {
            let judgement = ruled(Verdict::Allow, format!("The rule {} allows it.", rule.text()), rule);
            return Judgement { granted_paths: self.readable_outside(call, &places), ..judgement };
        }
        match (self.mode, call.kind, outside) {
            (Mode::Yolo, ..) => Judgement {
                granted_paths: self.readable_outside(call, &places),
                ..allow("The mode yolo allows everything.")
            },
            (_, ToolKind::Session | ToolKind::ExitPlan, _) => {
                allow("It touches nothing outside of the session.")
            }
            (_, ToolKind::Read, None) => allow("Reading in the workspace is allowed."),
            (Mode::AutoEdit, ToolKind::Edit, None) if !places.is_empty() => {
                allow("The mode auto-edit allows editing in the workspace.")
            }
            (_, ToolKind::Read | ToolKind::Edit, Some(place)) => {
                blocked(format!("{} is outside the workspace.", place.written.display()), place)
            }
            (_, ToolKind::Edit, None) => ask("Changing files requires approval."),
            (_, ToolKind::Fetch, _) => ask("It fetches from the network."),
            (_, ToolKind::Mcp, _) => ask("It is a tool of an MCP server."),
            (_, ToolKind::Memory, _) => ask("Saving a memory requires approval."),
            (_, ToolKind::Ask | ToolKind::Execute | ToolKind::Undeclared, _) => ask("It requires approval."),
        }
    }

    /// The paths of a reading call that openly name a place outside the workspace; a link in the workspace
    /// that leads out of it does not. Writing outside takes an approved question or an added directory. The
    /// kernel's views of processes and devices are never granted, because they show our own memory and
    /// variables.
    fn readable_outside(&self, call: &DeclaredCall<'_>, places: &[ResolvedPath]) -> Vec<PathBuf> {
        if call.kind != ToolKind::Read {
            return Vec::new();
        }
        let is_granted = |place: &&ResolvedPath| {
            // The root is not granted either, because a search of it would reach them.
            let is_of_kernel = place.forms().any(|path| {
                KERNEL_DIRECTORIES
                    .iter()
                    .any(|kernel| path.starts_with(kernel) || Path::new(kernel).starts_with(path))
            });
            !is_of_kernel && !self.workspace.roots().iter().any(|root| place.written.starts_with(root))
        };
        let granted = places.iter().filter(is_granted);
        granted.flat_map(|place| place.forms().map(Path::to_owned).collect::<Vec<_>>()).collect()
    }

    /// True if a rule is about reading or editing files as such, so that it holds for commands too. A rule
    /// about searching alone (`Grep`) is not about reading.
    pub(crate) fn concerns_kind(&self, rule: &Rule, kind: ToolKind) -> bool {
        match kind {
            ToolKind::Read => self.tools.first(kind).is_some_and(|declared| rule.concerns(declared.name)),
            _ => self.tools.of_kind(kind).any(|declared| rule.concerns(declared.name)),
        }
    }

    /// True if a rule of the deny or ask list is about a call.
    fn forbids(&self, rule: &Rule, tool: &str, call: &DeclaredCall<'_>, places: &[ResolvedPath]) -> bool {
        rule.concerns(tool)
            && rule.action().is_none_or(|action| call.action.as_deref().is_none_or(|called| called == action))
            && match &rule.scope {
                Scope::All | Scope::Unknown | Scope::Command(_) => true,
                Scope::Path(pattern) => {
                    places.iter().any(|place| pattern.forbids(place, &self.workspace, self.anchor(&call.cwd)))
                }
                Scope::Host(pattern) => call.url.as_deref().is_none_or(|url| pattern.forbids(url)),
                Scope::Network(_) => false,
            }
    }

    /// True if a call edits a file that a rule keeps from being read: the difference shows what was in it, and
    /// a failed edit what was not.
    fn edits_unreadable(&self, rule: &Rule, call: &DeclaredCall<'_>, places: &[ResolvedPath]) -> bool {
        let Scope::Path(pattern) = &rule.scope else { return false };
        // Outside, the answer must not tell whether there is a file.
        let has_content = |place: &ResolvedPath| !self.workspace.contains(place) || place.written.exists();
        let is_denied =
            |place: &ResolvedPath| pattern.forbids(place, &self.workspace, self.anchor(&call.cwd));
        call.kind == ToolKind::Edit
            && self.concerns_kind(rule, ToolKind::Read)
            && places.iter().any(|place| is_denied(place) && has_content(place))
    }

    /// True if a rule of the allow list is about a call, to its last path.
    fn allows(&self, rule: &Rule, tool: &str, call: &DeclaredCall<'_>, places: &[ResolvedPath]) -> bool {
        rule.concerns(tool)
            && rule.action().is_none_or(|action| call.action.as_deref() == Some(action))
            && match &rule.scope {
                // A tool as a whole is allowed in the workspace; what lies outside must be named.
                Scope::All => {
                    !matches!(call.kind, ToolKind::Read | ToolKind::Edit)
                        || places.iter().all(|place| self.workspace.contains(place))
                }
                Scope::Unknown | Scope::Command(_) | Scope::Network(_) => false,
                Scope::Path(pattern) => {
                    let anchor = self.anchor(&call.cwd);
                    !places.is_empty()
                        && places.iter().all(|place| pattern.allows(place, &self.workspace, anchor))
                }
                Scope::Host(pattern) => call.url.as_deref().is_some_and(|url| pattern.allows(url)),
            }
    }
}

/// What planning refuses outright.
fn plan_refuses(kind: ToolKind) -> Option<Judgement> {
    let reads = matches!(kind, ToolKind::Read | ToolKind::Session | ToolKind::Ask | ToolKind::ExitPlan);
    (!reads).then(|| judgement(Verdict::Deny, "The session is in plan mode, which only reads.".into(), None))
}

pub(crate) fn judgement(verdict: Verdict, reason: Arc<str>, rule: Option<Arc<str>>) -> Judgement {
    Judgement {
        decision: Decision { verdict, reason, rule },
        read_only: false,
        harden_git: None,
        blocked_path: None,
        granted_paths: Vec::new(),
    }
}

pub(crate) fn allow(reason: &str) -> Judgement {
    judgement(Verdict::Allow, reason.into(), None)
}

pub(crate) fn ask(reason: &str) -> Judgement {
    judgement(Verdict::Ask, reason.into(), None)
}

pub(crate) fn ruled(verdict: Verdict, reason: String, rule: &Rule) -> Judgement {
    judgement(verdict, reason.into(), Some(rule.text().clone()))
}

pub(crate) fn blocked(reason: String, place: &ResolvedPath) -> Judgement {
    Judgement { blocked_path: Some(place.written.clone()), ..judgement(Verdict::Ask, reason.into(), None) }
}
