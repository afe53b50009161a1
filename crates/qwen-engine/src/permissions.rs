//! Permission decisions for the calls of a session.

use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::sync::{Arc, PoisonError, RwLock};

use qwen_events::{
    ArgumentRole, Behavior, CallId, Confirmation, ErrorInfo, ErrorKind, Json, PermissionUpdate, ToolCall,
    ToolDeclaration, ToolKind, Verdict,
};
use qwen_permissions::shell::{root_commands, subcommands};
use qwen_permissions::{
    DeclaredCall, Judgement, Mode, NetworkJudgement, NetworkRequest, Policy, Rule, RuleSource,
    escape_for_approval,
};
use qwen_tools::{CallContext, Tool};
use serde_json::{Map, Value};
use tokio::sync::Notify;

use crate::{Audience, TOOLS};

/// The maximum length of a command, path or URL in a refusal, in characters.
const MAX_SUBJECT: usize = 200;

/// True for tools that a rule allows by their name alone, because they take neither commands nor paths.
fn is_allowed_by_name(kind: ToolKind) -> bool {
    match kind {
        ToolKind::Fetch | ToolKind::Mcp | ToolKind::Memory | ToolKind::Session | ToolKind::Undeclared => true,
        ToolKind::Read | ToolKind::Edit | ToolKind::Execute | ToolKind::Ask | ToolKind::ExitPlan => false,
    }
}

/// Judges the calls of a session; its rules and mode may change while turns run.
pub struct Permissions {
    policy: RwLock<Policy>,
    cwd: PathBuf,
    /// Wakes questions that a change of the policy may settle.
    changed: Notify,
}

/// A rule in force.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedRule {
    /// `deny`, `ask` or `allow`.
    pub behavior: &'static str,
    /// The rule as written.
    pub text: Arc<str>,
    pub source: RuleSource,
}

/// A call that may not run.
#[derive(Clone, Copy)]
pub struct RefusedCall<'a> {
    pub call: &'a ToolCall,
    pub declaration: Option<&'a ToolDeclaration>,
    /// The path outside the workspace that was the reason.
    pub blocked_path: Option<&'a Path>,
}

impl Permissions {
    /// Judges calls made in `cwd` by `policy`.
    pub fn new(policy: Policy, cwd: PathBuf) -> Self {
        Self { policy: RwLock::new(policy), cwd, changed: Notify::new() }
    }

    /// Judges `call` of a tool with this declaration. A tool without a declaration never runs without a
    /// question.
    pub fn judge(&self, call: &ToolCall, declaration: Option<&ToolDeclaration>) -> Judgement {
        let declared = DeclaredCall::read(call, declaration, &self.cwd);
        self.policy.read().unwrap_or_else(PoisonError::into_inner).judge(&declared)
    }

    /// Records that the command of `call` failed in the read-only sandbox, so that the next time a question
    /// is asked.
    pub fn note_failed_read_only(&self, call: &ToolCall, declaration: Option<&ToolDeclaration>) {
        if let Some(command) = DeclaredCall::read(call, declaration, &self.cwd).command() {
            self.policy.write().unwrap_or_else(PoisonError::into_inner).note_failed_read_only(command);
        }
    }

    /// True if a file may be read without a question.
    pub fn may_read(&self, path: &Path) -> bool {
        self.allows(ToolKind::Read, ArgumentRole::Path, &path.to_string_lossy())
    }

    /// True if a rule denies reading a file.
    pub fn denies_reading(&self, path: &Path) -> bool {
        self.verdict(ToolKind::Read, ArgumentRole::Path, &path.to_string_lossy()) == Verdict::Deny
    }

    /// True if a search that was permitted to start at `start` may show what it finds in `file`.
    pub fn may_show(&self, start: &Path, file: &Path) -> bool {
        self.policy.read().unwrap_or_else(PoisonError::into_inner).may_show(start, file, &self.cwd)
    }

    /// True if a URL may be fetched without a question.
    pub fn may_fetch(&self, url: &str) -> bool {
        self.allows(ToolKind::Fetch, ArgumentRole::Url, url)
    }

    /// True if a call of the first tool of `kind` with this value for the arguments of `role` is allowed
    /// without a question.
    fn allows(&self, kind: ToolKind, role: ArgumentRole, value: &str) -> bool {
        self.verdict(kind, role, value) == Verdict::Allow
    }

    /// The verdict on a call of the first tool of `kind` with this value for the arguments of `role`.
    fn verdict(&self, kind: ToolKind, role: ArgumentRole, value: &str) -> Verdict {
        let Some(tool) = TOOLS.first(kind) else { return Verdict::Ask };
        let arguments: Map<String, Value> =
            tool.with_role(role).map(|argument| (argument.name.to_owned(), value.into())).collect();
        let call = ToolCall::new(
            CallId::new("permission"),
            tool.name.into(),
            Json::trusted(Value::from(arguments).to_string()),
        );
        self.judge(&call, Some(tool)).decision.verdict
    }

    /// Judges a connection of a sandboxed program.
    pub fn judge_network(&self, request: &NetworkRequest<'_>) -> NetworkJudgement {
        self.policy.read().unwrap_or_else(PoisonError::into_inner).judge_network(request)
    }

    /// The rule that denies an address, under whatever name it was found.
    pub fn find_address_rule(&self, address: IpAddr, port: u16) -> Option<Arc<str>> {
        let policy = self.policy.read().unwrap_or_else(PoisonError::into_inner);
        policy.denies_address(address, port).map(|rule| rule.text().clone())
    }

    /// True if a rule opens hosts to sandboxed programs, or asks about them.
    pub fn opens_network(&self) -> bool {
        self.policy.read().unwrap_or_else(PoisonError::into_inner).opens_network()
    }

    /// True if a rule closes hosts to sandboxed programs, or asks about them.
    pub fn restricts_network(&self) -> bool {
        self.policy.read().unwrap_or_else(PoisonError::into_inner).restricts_network()
    }

    /// True if a rule opens a server of this machine under a loopback name.
    pub fn opens_loopback(&self) -> bool {
        self.policy.read().unwrap_or_else(PoisonError::into_inner).opens_loopback()
    }

    /// True if a rule is about single HTTP methods.
    pub fn has_method_rules(&self) -> bool {
        self.policy.read().unwrap_or_else(PoisonError::into_inner).has_method_rules()
    }

    /// The files and directories that no command may read, by the current rules and the current files on
    /// disk.
    pub fn denied_reading(&self) -> Vec<PathBuf> {
        self.policy.read().unwrap_or_else(PoisonError::into_inner).denied_reading(&self.cwd)
    }

    /// The files and directories that no command may change, by the current rules and the current files on
    /// disk.
    pub fn denied_editing(&self) -> Vec<PathBuf> {
        self.policy.read().unwrap_or_else(PoisonError::into_inner).denied_editing(&self.cwd)
    }

    /// The directories that were added during the session and exist.
    pub fn added_directories(&self) -> Vec<PathBuf> {
        let policy = self.policy.read().unwrap_or_else(PoisonError::into_inner);
        policy.added_directories().iter().filter(|directory| directory.is_dir()).cloned().collect()
    }

    /// Adds a worktree that we created to the workspace until it is removed.
    pub(crate) fn add_worktree(&self, directory: &Path, cwd: &Path) {
        self.policy.write().unwrap_or_else(PoisonError::into_inner).add_worktree(directory, cwd);
    }

    /// Removes a directory that was added in the course of the session.
    pub(crate) fn remove_directory(&self, directory: &Path) {
        self.policy.write().unwrap_or_else(PoisonError::into_inner).remove_directory(directory);
    }

    /// True if a rule that denies or asks names paths in the workspace that are absolute.
    pub(crate) fn restricts_fixed_paths(&self) -> bool {
        self.policy.read().unwrap_or_else(PoisonError::into_inner).restricts_fixed_paths()
    }

    /// The confirmation that the user sees for `call`. Characters that could mislead the reader are made
    /// visible.
    pub fn confirmation(&self, call: &ToolCall, tool: &dyn Tool, cx: &CallContext) -> Confirmation {
        if let Some(own) = tool.confirmation(call, cx) {
            return own;
        }
        let declared = DeclaredCall::read(call, tool.declaration(), &self.cwd);
        if let Some(command) = declared.command() {
            return Confirmation::Exec {
                command: escape_for_approval(command).into(),
                root_command: escape_for_approval(&root_commands(command).join(", ")).into(),
            };
        }
        Confirmation::Info {
            prompt: escape_for_approval(&format!("{} {}", call.name, call.arguments.as_str())).into(),
            urls: declared.url().map(Arc::from).into_iter().collect(),
        }
    }

    /// What `audience` can do to allow `call`, which needs a question that no one can answer. The change is
    /// tried on a copy of the policy, so it is known to help. `None` if only an answer can allow the call.
    pub fn remedy(&self, refused: &RefusedCall<'_>, audience: Audience) -> Option<String> {
        let RefusedCall { call, declaration, blocked_path } = *refused;
        let declared = DeclaredCall::read(call, declaration, &self.cwd);
        let policy = self.policy.read().unwrap_or_else(PoisonError::into_inner);
        let allows = |changed: &Policy| changed.judge(&declared).decision.verdict == Verdict::Allow;
        if policy.mode() == Mode::Plan {
            return Some(format!("leave plan mode, which only reads, {}", audience.describe_mode("default")));
        }
        // A host that uses Claude's names for tools uses its names for modes, too.
        let has_claudes_names = declaration.is_some_and(|declaration| *declaration.name != *call.name);
        let named = |mode| match mode {
            "auto-edit" if has_claudes_names && audience == Audience::Program => "acceptEdits",
            "yolo" if has_claudes_names && audience == Audience::Program => "bypassPermissions",
            mode => mode,
        };
        let mut candidates: Vec<Vec<String>> = Vec::new();
        if let Some(command) = declared.command() {
            let rules =
                |commands: Vec<String>| commands.iter().map(|root| format!("Bash({root} *)")).collect();
            candidates.extend([rules(subcommands(command)), rules(root_commands(command))]);
        } else if declaration.is_none_or(|declaration| is_allowed_by_name(declaration.kind)) {
            candidates.push(vec![call.name.to_string()]);
        }
        for rules in candidates {
            let mut changed = policy.clone();
            let added =
                rules.iter().all(|rule| changed.add_rule(Behavior::Allow, rule, RuleSource::Flag).is_ok());
            if added && allows(&changed) {
                let listed = audience.describe_rules(&rules);
                return Some(format!("allow it {listed}, or with permissions.allow in the settings"));
            }
        }
        if let Some(directory) = blocked_path.and_then(Path::parent) {
            let mut changed = policy.clone();
            changed.add_directory(directory);
            for (mode, more) in [(policy.mode(), None), (Mode::AutoEdit, Some("auto-edit"))] {
                changed.set_mode(mode);
                if allows(&changed) {
                    let added = audience.describe_directory(directory);
                    let more = more.map(|mode| format!(" and {}", audience.describe_mode(named(mode))));
                    return Some(format!("allow it {added}{}", more.unwrap_or_default()));
                }
            }
        }
        [(Mode::AutoEdit, "auto-edit"), (Mode::Yolo, "yolo")].into_iter().find_map(|(mode, name)| {
            let mut changed = policy.clone();
            changed.set_mode(mode);
            allows(&changed).then(|| format!("allow it {}", audience.describe_mode(named(name))))
        })
    }

    /// What `audience` can do about a call that `rule`, or the mode, forbids or puts to a question that no one
    /// can answer.
    pub fn rule_remedy(&self, verdict: Verdict, rule: Option<&str>, audience: Audience) -> Option<String> {
        let policy = self.policy.read().unwrap_or_else(PoisonError::into_inner);
        let behavior = match verdict {
            Verdict::Deny => Behavior::Deny,
            Verdict::Ask => Behavior::Ask,
            Verdict::Allow => return None,
        };
        let Some(rule) = rule else {
            return (verdict == Verdict::Deny && policy.mode() == Mode::Plan)
                .then(|| format!("leave plan mode {}", audience.describe_mode("default")));
        };
        let rule = policy.rules(behavior).iter().find(|known| **known.text() == *rule)?;
        match (rule.source(), audience) {
            (RuleSource::Settings(origin), _) => Some(format!("change the rule in {origin}")),
            (RuleSource::Flag, Audience::Program) => {
                Some("change the rule in the option disallowed_tools".to_owned())
            }
            (RuleSource::Flag, Audience::Shell | Audience::Terminal) => {
                Some("change the rule in the flag --exclude-tools".to_owned())
            }
            (RuleSource::Session, _) => None,
        }
    }

    /// The subject of a refusal: the command, path or URL of the call.
    pub fn subject(&self, refused: &RefusedCall<'_>) -> Option<String> {
        let RefusedCall { call, declaration, blocked_path } = *refused;
        let declared = DeclaredCall::read(call, declaration, &self.cwd);
        let path = blocked_path.map(|path| path.display().to_string());
        let named = declared.command().or(declared.url()).map(str::to_owned).or(path).or_else(|| {
            let arguments: Value = serde_json::from_str(call.arguments.as_str()).ok()?;
            let mut paths = declaration?.with_role(ArgumentRole::Path);
            paths.find_map(|argument| arguments[argument.name].as_str().map(str::to_owned))
        })?;
        let mut shown: String = escape_for_approval(&named).chars().take(MAX_SUBJECT).collect();
        if shown.len() < named.len() {
            shown.push('…');
        }
        Some(shown)
    }

    /// Changes the rules for the rest of the session.
    pub fn update(&self, update: &PermissionUpdate) -> Result<(), ErrorInfo> {
        self.update_all(std::slice::from_ref(update))
    }

    /// Applies all of these changes, or none if one of them is invalid.
    pub fn update_all(&self, updates: &[PermissionUpdate]) -> Result<(), ErrorInfo> {
        let mut policy = self.policy.write().unwrap_or_else(PoisonError::into_inner);
        let mut changed = policy.clone();
        for update in updates {
            changed.apply(update).map_err(|error| {
                let message = format!("the permission update cannot be used: {error}");
                ErrorInfo::new(ErrorKind::Input, "invalid_rule", message)
            })?;
        }
        *policy = changed;
        drop(policy);
        self.changed.notify_waiters();
        Ok(())
    }

    /// Waits until a change of rules or mode allows a call that needs approval now. Never ends for a call about which
    /// something else than the policy asks.
    pub(crate) async fn wait_until_allowed(
        &self,
        call: &ToolCall,
        declaration: Option<&ToolDeclaration>,
    ) -> Judgement {
        let mut is_first = true;
        loop {
            let mut changed = pin!(self.changed.notified());
            changed.as_mut().enable();
            let judgement = self.judge(call, declaration);
            if judgement.decision.verdict == Verdict::Allow {
                if is_first {
                    std::future::pending::<()>().await;
                }
                return judgement;
            }
            is_first = false;
            changed.await;
        }
    }

    /// The rules, such as `deny Bash(rm *)`.
    pub fn rules(&self) -> Vec<String> {
        let written = |rule: ListedRule| format!("{} {}", rule.behavior, rule.text);
        self.listed_rules().into_iter().map(written).collect()
    }

    /// The rules with their sources: those that deny, then those that ask, then those that allow.
    pub fn listed_rules(&self) -> Vec<ListedRule> {
        let policy = self.policy.read().unwrap_or_else(PoisonError::into_inner);
        let words = [(Behavior::Deny, "deny"), (Behavior::Ask, "ask"), (Behavior::Allow, "allow")];
        let of = |(kind, behavior): (Behavior, &'static str)| {
            let listed = move |rule: &Rule| ListedRule {
                behavior,
                text: rule.text().clone(),
                source: rule.source().clone(),
            };
            policy.rules(kind).iter().map(listed)
        };
        words.into_iter().flat_map(of).collect()
    }

    /// True if the approval mode denies what other modes ask about.
    pub fn denies_instead_of_asking(&self) -> bool {
        self.policy.read().unwrap_or_else(PoisonError::into_inner).mode() == Mode::DontAsk
    }

    /// The approval mode as it was set: `plan`, `default`, `auto`, `dontAsk`, `auto-edit` or `yolo`.
    pub fn mode(&self) -> &'static str {
        self.policy.read().unwrap_or_else(PoisonError::into_inner).mode().name()
    }
}
