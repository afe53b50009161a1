//! Resolves from the settings what the tools of a session may do and see.

use std::path::PathBuf;
use std::sync::Arc;

use qwen_engine::TOOLS;
use qwen_engine::subagent::AgentDefinition;
use qwen_events::{Behavior, ErrorInfo, Sampling};
use qwen_mcp::expand;
use qwen_permissions::{Policy, RuleSource};
use qwen_redact::{Redactor, secret_values, url_password};
use qwen_tools::ToolVocabulary;

use super::claude::config as claude_config;
use super::file::{Sandbox, Settings, Sourced, unusable};
use super::rules::tool_names;
use super::{Invocation, bad_flag, telemetry};
use crate::cli::Run;

/// Adds the rules of the settings to a policy.
pub(super) fn add_rules(
    policy: &mut Policy,
    settings: &Settings,
    in_worker: bool,
    warnings: &mut Vec<String>,
) -> Result<(), ErrorInfo> {
    let permissions = &settings.permissions;
    for (behavior, rules) in [
        (Behavior::Allow, &permissions.allow),
        (Behavior::Allow, &settings.tools.allowed),
        (Behavior::Ask, &permissions.ask),
        (Behavior::Deny, &permissions.deny),
        (Behavior::Deny, &settings.tools.exclude),
    ] {
        for Sourced { value, origin } in rules {
            let from_flag = origin.starts_with("--");
            let in_settings = !from_flag || origin.starts_with("--settings");
            let source = if in_settings { RuleSource::Settings(origin.clone()) } else { RuleSource::Flag };
            if let Some(problem) = tool_names::problem(value, in_worker) {
                let message = format!("{origin}: {problem}");
                if tool_names::is_fatal(behavior) {
                    return Err(if from_flag { bad_flag(message) } else { unusable(message) });
                }
                warnings.push(message);
            }
            policy.add_rule(behavior, value, source).map_err(|error| {
                let message = format!("{origin}: {error}");
                if from_flag { bad_flag(message) } else { unusable(message) }
            })?;
        }
    }
    if settings.tools.sandbox_unasked == Some(true) && settings.tools.sandbox == Some(Sandbox::On) {
        let source = RuleSource::Settings("tools.sandboxUnasked".into());
        policy.add_rule(Behavior::Allow, "Bash", source).map_err(|error| unusable(error.to_string()))?;
    }
    let core = settings.tools.core.iter().flatten();
    let problems = core.clone().filter_map(|wanted| tool_names::problem(wanted, in_worker));
    warnings.extend(problems.map(|problem| format!("tools.core (--core-tools): {problem}")));
    let (bare, limited): (Vec<&String>, Vec<&String>) = core.partition(|wanted| !wanted.contains('('));
    // A rule for a whole tool includes rules for parts of it.
    let is_whole = |wanted: &str| bare.iter().any(|name| same_tool(name, wanted));
    for wanted in limited.into_iter().filter(|wanted| !is_whole(wanted)) {
        let limited = policy.limit_to(wanted, RuleSource::Settings("tools.core".into()));
        limited.map_err(|error| unusable(format!("tools.core: {error}")))?;
    }
    Ok(())
}

/// A warning for each name in the lists of sub-agents that no tool has. In a worker the host may declare
/// further tools.
pub(super) fn unknown_tools_of_agents(agents: &[AgentDefinition], in_worker: bool) -> Vec<String> {
    let mut warnings = Vec::new();
    for agent in agents {
        let listed = agent.tools.iter().flatten().chain(&agent.disallowed_tools);
        let problems = listed.filter_map(|name| tool_names::problem(name, in_worker));
        warnings.extend(problems.map(|problem| format!("the sub-agent '{}': {problem}", agent.name)));
    }
    warnings
}

/// True if two rules concern the same tool, whatever their patterns.
fn same_tool(one: &str, other: &str) -> bool {
    let name = |rule: &str| TOOLS.canonical_name(rule.split('(').next().unwrap_or(rule)).into_owned();
    name(one) == name(other)
}

/// The tool vocabulary of a session: from the command line or the settings, else Claude's for hosts of that
/// family.
pub(super) fn vocabulary(
    run: &Run,
    invocation: &Invocation,
    named: Option<ToolVocabulary>,
) -> ToolVocabulary {
    let of_host = if claude_config::is_claude_family(invocation) && run.channel.is_none() {
        ToolVocabulary::Claude
    } else {
        ToolVocabulary::Qwen
    };
    named.unwrap_or(of_host)
}

/// True if the settings keep the tool with this name.
pub fn has_tool(settings: &Settings, name: &str) -> bool {
    let means = |rule: &str| *TOOLS.canonical_name(rule.split('(').next().unwrap_or(rule)) == *name;
    let tools = &settings.tools;
    // A rule with a pattern forbids some calls; only a bare name removes the tool.
    tools.core.as_ref().is_none_or(|core| core.iter().any(|wanted| means(wanted)))
        && !tools
            .exclude
            .iter()
            .any(|rule| !rule.value.contains('(') && means(&rule.value) && !names_single_action(&rule.value))
}

/// The tools of Claude's vocabulary that do what an excluded one does, where it is only a part of one of
/// ours.
pub fn excluded_actions(settings: &Settings) -> Vec<&'static str> {
    let mut names = Vec::new();
    for rule in settings.tools.exclude.iter().map(|rule| rule.value.as_str()) {
        let Some(declared) = TOOLS.find(rule) else { continue };
        let Some(action) = declared.action_of(rule) else { continue };
        let same = declared.claude.iter().filter(|tool| declared.action_of(tool.name) == Some(action));
        names.extend(same.map(|tool| tool.name));
    }
    names
}

/// True for a name such as `KillShell`, which is one action of a tool of ours.
fn names_single_action(rule: &str) -> bool {
    TOOLS.find(rule).is_some_and(|declared| declared.action_of(rule).is_some())
}

/// Additional directories of the workspace, by their real paths. A missing directory is left out with a
/// warning.
pub(super) fn directories(
    settings: &Settings,
    invocation: &Invocation,
    warnings: &mut Vec<String>,
) -> Vec<PathBuf> {
    let mut directories = Vec::new();
    for directory in &settings.context.include_directories {
        let found = invocation.absolute(directory).and_then(|path| path.canonicalize().ok());
        match found.filter(|path| path.is_dir()) {
            Some(path) => directories.push(path),
            None => warnings.push(format!("there is no directory {directory} to add to the workspace")),
        }
    }
    directories
}

/// The redactor for the secrets of this run: the model's key, variables named like keys, headers, and strings
/// shaped like keys.
pub fn redactor(settings: &Settings, invocation: &Invocation) -> Arc<Redactor> {
    let owned = |text: &str| text.to_owned();
    let mut secrets: Vec<String> = secret_values(invocation.vars()).into_iter().map(owned).collect();
    secrets.extend(settings.model.api_key.as_deref().map(owned));
    let addresses = [&settings.model.base_url, &settings.model.proxy];
    secrets.extend(addresses.iter().copied().flatten().filter_map(|url| url_password(url)).map(owned));
    let servers =
        settings.mcp_servers.values().filter_map(|server| server.http_url.as_ref().or(server.url.as_ref()));
    let addresses = addresses.into_iter().flatten().chain(servers);
    secrets.extend(addresses.flat_map(|url| query_secrets(url)).map(owned));
    let mut headers: Vec<String> = settings.model.headers.values().cloned().collect();
    for server in settings.mcp_servers.values() {
        headers.extend(server.headers.values().cloned());
        let env = server.env.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        secrets.extend(secret_values(env).into_iter().map(|value| filled_in(value, invocation)));
    }
    for value in headers.into_iter().map(|value| filled_in(&value, invocation)) {
        // `Bearer KEY`: the key alone is a secret too.
        if let [_, key] = value.split_whitespace().collect::<Vec<_>>()[..] {
            secrets.push(key.to_owned());
        }
        secrets.push(value);
    }
    let credentials = settings.tools.network.credentials.iter();
    secrets.extend(credentials.filter_map(|credential| invocation.var(&credential.from_env)).map(owned));
    secrets.extend(telemetry::secrets(invocation));
    Arc::new(Redactor::new(secrets))
}

/// The values in the query of an address whose names look like those of keys.
fn query_secrets(url: &str) -> impl Iterator<Item = &str> {
    let query = url.split_once('?').map_or("", |(_, query)| query);
    let query = query.split_once('#').map_or(query, |(query, _)| query);
    let is_secret = |name: &str| {
        let name = name.to_ascii_lowercase();
        let parts =
            ["key", "token", "secret", "password", "passwd", "auth", "signature", "credential", "code"];
        parts.iter().any(|part| name.contains(part)) || matches!(name.as_str(), "sig" | "pw" | "pass" | "sas")
    };
    let pairs = query.split(['&', ';']).filter_map(|pair| pair.split_once('='));
    pairs.filter(move |(name, value)| is_secret(name) && !value.is_empty()).map(|(_, value)| value)
}

/// A string of a server's configuration with its variables expanded.
fn filled_in(text: &str, invocation: &Invocation) -> String {
    expand(text, |name| invocation.var(name).map(str::to_owned)).unwrap_or_else(|_| text.to_owned())
}

/// The sampling parameters for requests that set none.
pub(super) fn sampling(settings: &Settings) -> Sampling {
    Sampling {
        temperature: settings.model.temperature,
        top_p: settings.model.top_p,
        max_tokens: settings.model.max_tokens,
        ..Sampling::default()
    }
}
