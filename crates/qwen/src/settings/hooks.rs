//! Resolves hooks from the settings.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use qwen_dialects::Dialect;
use qwen_engine::hooks::{Announced, HookAction, HookConfig, HookEvent, HookSet, OnFailure};

use super::Invocation;
use super::file::{HookGroup, HookKind, Hooks, Layer, Node, OnFailure as Failure, Sourced, Value};
use super::project::scripts::{NameBase, find_run_files};
use super::rules::tool_names;
use crate::cli::Run;

/// The hooks of a run, and which of their events the reader receives. Claude's SDKs always receive the events
/// of `SessionStart` hooks.
pub(super) fn set(hooks: Vec<HookConfig>, run: &Run, dialect: Dialect) -> Arc<HookSet> {
    let set = HookSet::new(hooks);
    let qwen_sdk = run.channel.as_deref() == Some("SDK");
    set.announce(match dialect {
        Dialect::Claude if run.claude.include_hook_events => Announced::Everything,
        Dialect::Claude if !qwen_sdk => Announced::SessionStart,
        _ => Announced::Nothing,
    });
    Arc::new(set)
}

/// Converts hooks to the engine's type. The settings were validated when they were read, so every hook is
/// complete.
pub(super) fn resolve(hooks: &Hooks, root: &Node) -> Vec<HookConfig> {
    let disabled = root.at("disableAllHooks").filter(|node| node.value == Value::Bool(true));
    let is_disabled = |of_workspace: bool| {
        disabled.is_some_and(|node| of_workspace || node.origin.source.layer != Layer::Workspace)
    };
    let mut configs = Vec::new();
    for (name, groups) in hooks.events().into_iter().filter(|(_, groups)| !groups.is_empty()) {
        let Some(event) = HookEvent::parse(name) else { continue };
        let written = root.at("hooks").and_then(|hooks| hooks.at(name));
        for (number, group) in groups.iter().enumerate() {
            let of_workspace = match written.map(|node| &node.value) {
                Some(Value::List(nodes)) => {
                    nodes.get(number).is_none_or(|node| node.origin.source.layer == Layer::Workspace)
                }
                _ => true,
            };
            if is_disabled(of_workspace) {
                continue;
            }
            let hooks = of_group(event, &group.value).into_iter();
            configs.extend(hooks.map(|hook| HookConfig { of_workspace, ..hook }));
        }
    }
    configs
}

/// The files that hooks run, without links in their paths.
pub(super) fn find_scripts(hooks: &[HookConfig], invocation: &Invocation) -> BTreeSet<PathBuf> {
    let base = NameBase { cwd: &invocation.cwd, home: invocation.var("HOME").map(Path::new) };
    let commands = hooks.iter().filter_map(|hook| match &hook.action {
        HookAction::Command(command) => Some(command),
        HookAction::Http { .. } | HookAction::Host(_) => None,
    });
    // Programs of the system are no one's to change.
    let is_own =
        |file: &PathBuf| [Some(base.cwd), base.home].iter().flatten().any(|own| file.starts_with(own));
    let named = commands.flat_map(|command| find_run_files(command, base)).filter(is_own);
    // The link itself and the file that it leads to are protected.
    named.flat_map(|file| file.canonicalize().ok().into_iter().chain([file])).collect()
}

/// A warning for each tool name in a matcher that no tool has. In a worker the host may declare further
/// tools.
pub(super) fn unknown_tools(hooks: &Hooks, in_worker: bool) -> Vec<String> {
    let mut warnings = Vec::new();
    for (name, groups) in hooks.events().into_iter().filter(|(_, groups)| !groups.is_empty()) {
        if !HookEvent::parse(name).is_some_and(HookEvent::is_about_tools) {
            continue;
        }
        for Sourced { value: group, origin } in groups {
            let matcher = group.matcher.as_deref().unwrap_or_default().trim();
            let matcher = matcher.trim_start_matches(['^', '(']).trim_end_matches(['$', ')']);
            // With parentheses inside, the pieces are parts of an expression.
            let pieces = matcher.split('|').filter(|_| !matcher.contains(['(', ')']));
            let names = pieces.map(str::trim);
            // Anything but a plain name is a pattern.
            let plain = |name: &&str| name.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '-'));
            let problems = names.filter(plain).filter_map(|name| tool_names::problem(name, in_worker));
            warnings.extend(problems.map(|problem| format!("{origin}: hooks.{name}: the matcher {problem}")));
        }
    }
    warnings
}

/// The hooks of one group for one event.
pub(super) fn of_group(event: HookEvent, group: &HookGroup) -> Vec<HookConfig> {
    let matcher: Option<Arc<str>> = group.matcher.as_deref().filter(|text| !text.is_empty()).map(Arc::from);
    let hooks = group.hooks.iter().filter_map(|hook| {
        let action = match (hook.kind, &hook.command, &hook.url) {
            (HookKind::Command, Some(command), _) => HookAction::Command(command.as_str().into()),
            (HookKind::Http, _, Some(url)) => {
                let headers =
                    hook.headers.iter().map(|(name, value)| (name.as_str().into(), value.as_str().into()));
                HookAction::Http { url: url.as_str().into(), headers: headers.collect() }
            }
            _ => return None,
        };
        Some(HookConfig {
            event,
            matcher: matcher.clone(),
            action,
            timeout: hook.timeout.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok()),
            on_failure: match hook.on_failure {
                Failure::Continue => OnFailure::Continue,
                Failure::Block => OnFailure::Block,
            },
            of_workspace: false,
        })
    });
    hooks.collect()
}
