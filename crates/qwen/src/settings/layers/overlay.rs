//! Converts the environment and the flags to settings, so that they are layers like all others.

use std::path::{Path, PathBuf};

use qwen_engine::TOOLS;
use qwen_events::ErrorInfo;
use serde_json::json;

use super::super::file::{self, Layer, Node, Origin, Value};
use super::super::model::{KnownProvider, PROVIDERS};
use super::super::{Invocation, claude, unreadable};
use crate::cli::{Run, items, rules};

/// A key and its value.
pub(super) type Entry = (&'static str, Node);

/// The settings in the environment. Which variables name the model depends on the provider.
pub(super) fn environment(below: &Node, above: &Node, invocation: &Invocation) -> Vec<Entry> {
    let mut entries = Vec::new();
    let mut add = |path: &'static str, name: &str| {
        if let Some(value) = invocation.var(name) {
            entries.push((path, Node::text(Origin::new(Layer::Environment, name), value)));
        }
    };
    if let Some(known) = provider(below, above, invocation) {
        add("model.name", &known.variable("MODEL"));
        add("model.baseUrl", &known.variable("BASE_URL"));
        add("model.apiKey", &known.variable("API_KEY"));
    }
    // An explicitly named key variable takes precedence.
    let named = above.at("model.apiKeyEnv").or_else(|| below.at("model.apiKeyEnv"));
    if let Some(Value::Text(name)) = named.map(|node| &node.value) {
        add("model.apiKey", name);
    }
    add("model.name", "QWEN_MODEL");
    add("output.dialect", "QWEN_DIALECT");
    add("tools.sandbox", "QWEN_SANDBOX");
    add("telemetry.otlpEndpoint", "OTEL_EXPORTER_OTLP_ENDPOINT");
    add("telemetry.otlpEndpoint", "QWEN_TELEMETRY_OTLP_ENDPOINT");
    add("telemetry.outfile", "QWEN_TELEMETRY_OUTFILE");
    add("telemetry.target", "QWEN_TELEMETRY_TARGET");
    for (path, name) in [
        ("telemetry.enabled", "CLAUDE_CODE_ENABLE_TELEMETRY"),
        ("telemetry.enabled", "QWEN_TELEMETRY_ENABLED"),
        ("telemetry.logPrompts", "OTEL_LOG_USER_PROMPTS"),
        ("telemetry.logPrompts", "QWEN_TELEMETRY_LOG_PROMPTS"),
    ] {
        let on = invocation.var(name).and_then(|word| match word {
            "1" | "true" => Some(true),
            "0" | "false" => Some(false),
            _ => None,
        });
        entries.extend(on.map(|on| {
            let origin = Origin::new(Layer::Environment, name);
            (path, Node { origin, value: Value::Bool(on) })
        }));
    }
    entries
}

/// The provider of the model: the one that flags or settings name, else the first that the environment
/// configures.
pub(super) fn provider(
    below: &Node,
    above: &Node,
    invocation: &Invocation,
) -> Option<&'static KnownProvider> {
    let at = |path: &str| above.at(path).or_else(|| below.at(path));
    if let Some(Value::Text(word)) = at("model.authType").map(|node| &node.value) {
        return PROVIDERS.iter().find(|known| known.auth_type == word);
    }
    let is_configured =
        |path: &&str| at(path).is_some_and(|node| node.origin.source.layer != Layer::Environment);
    if ["model.baseUrl", "model.apiKey", "model.apiKeyEnv"].iter().any(is_configured) {
        return Some(&PROVIDERS[0]);
    }
    PROVIDERS.iter().find(|known| known.is_set(invocation))
}

/// Drops the address and the key of the files' provider when the command line names another one. Otherwise
/// they would be sent to the wrong server.
pub(super) fn discard_other_provider(below: &mut Node, above: &Node) {
    let word = |node: Option<&Node>| match node.map(|node| &node.value) {
        Some(Value::Text(word)) => Some(word.clone()),
        _ => None,
    };
    let wanted = word(above.at("model.authType"));
    let configured = word(below.at("model.authType")).unwrap_or_else(|| PROVIDERS[0].auth_type.to_owned());
    if wanted.is_some_and(|wanted| wanted != configured) {
        for path in ["model.baseUrl", "model.apiKey", "model.apiKeyEnv", "model.headers"] {
            below.remove(path);
        }
    }
}

/// The tools that `--restricted` removes unless `--tools` names them.
const RESTRICTED: [&str; 2] = ["run_shell_command", "web_fetch"];

/// Returns the settings in the flags.
pub(super) fn flags(run: &Run, invocation: &Invocation) -> Result<Vec<Entry>, ErrorInfo> {
    let mut flags = FlagEntries(Vec::new());
    flags.add_model(run);
    flags.add_tools(run, invocation);
    flags.add_agent(run);
    flags.add_limits(run);
    flags.add_telemetry(run);
    for (path, value) in claude::managed(&run.claude)?.forbidding {
        flags.add(path, "--managed-settings", Some(value));
    }
    let mut entries = flags.0;
    for given in run.mcp_config.iter().filter(|given| !given.is_empty()) {
        entries.push(("mcpServers", servers(given, invocation)?));
    }
    Ok(entries)
}

/// The settings in the flags so far.
struct FlagEntries(Vec<Entry>);

impl FlagEntries {
    fn add(&mut self, path: &'static str, flag: &str, value: Option<serde_json::Value>) {
        if let Some(value) = value {
            self.0.push((path, Node::of_json(&Origin::new(Layer::Flag, flag), value)));
        }
    }

    fn add_model(&mut self, run: &Run) {
        self.add("model.name", "--model", run.model.as_ref().map(|name| json!(name)));
        self.add("model.authType", "--auth-type", run.auth_type.as_ref().map(|word| json!(word)));
        self.add("model.baseUrl", "--openai-base-url", run.openai_base_url.as_ref().map(|url| json!(url)));
        self.add("model.apiKey", "--openai-api-key", run.openai_api_key.as_ref().map(|key| json!(key)));
        self.add("model.fallbackModels", "--fallback-model", list(&run.fallback_model));
        self.add("model.proxy", "--proxy", run.proxy.as_ref().map(|url| json!(url)));
        self.add("model.insecure", "--insecure", run.insecure.then_some(json!(true)));
        self.add("model.effort", "--effort", run.effort.as_ref().map(|word| json!(word)));
    }

    fn add_tools(&mut self, run: &Run, invocation: &Invocation) {
        let tools = &run.tool_flags;
        let yolo = run.yolo || tools.dangerously_skip_permissions;
        let mode = run.approval_mode.as_deref().or(yolo.then_some("yolo"));
        self.add("permissions.defaultMode", "--approval-mode", mode.map(|word| json!(word)));
        self.add("permissions.allow", "--allowed-tools", rule_list(&run.allowed_tools));
        let only = run.core_tools.as_ref().filter(|list| *list != "default").map(|list| rules([list]));
        let mut excluded = rules(&run.exclude_tools);
        if run.configuration.restricted {
            let named = |tool: &&str| {
                only.iter().flatten().any(|rule| TOOLS.is_same(rule.split('(').next().unwrap_or(rule), tool))
            };
            excluded.extend(RESTRICTED.iter().filter(|tool| !named(tool)).map(|tool| (*tool).to_owned()));
        }
        self.add("tools.exclude", "--exclude-tools", (!excluded.is_empty()).then(|| json!(excluded)));
        self.add("tools.core", "--core-tools", only.map(|list| json!(list)));
        self.add("tools.names", "--tool-names", tools.tool_names.as_ref().map(|word| json!(word)));
        self.add("tools.sandbox", "--sandbox", run.sandbox.as_ref().map(|word| json!(word)));
        self.add("tools.sandboxNetwork", "--sandbox-network", run.sandbox_network.then_some(json!(true)));
        let directories = directories(&run.include_directories, &invocation.cwd);
        self.add(
            "context.includeDirectories",
            "--add-dir",
            (!directories.is_empty()).then(|| json!(directories)),
        );
        self.add("mcp.allowed", "--allowed-mcp-server-names", list(&tools.allowed_mcp_server_names));
        self.add("slashCommands.disabled", "--disabled-slash-commands", list(&tools.disabled_slash_commands));
    }

    fn add_agent(&mut self, run: &Run) {
        self.add("agent.name", "--agent", run.agent.as_ref().map(|name| json!(name)));
        let thinking = &run.thinking;
        self.add("agent.tot.search", "--tot-search", thinking.tot_search.as_ref().map(|word| json!(word)));
        self.add("agent.tot.breadth", "--tot-breadth", thinking.tot_breadth.map(|count| json!(count)));
        self.add("agent.tot.proposals", "--tot-proposals", thinking.tot_proposals.map(|count| json!(count)));
        self.add("agent.tot.depth", "--tot-depth", thinking.tot_depth.map(|count| json!(count)));
        self.add("agent.tot.samples", "--tot-samples", thinking.tot_samples.map(|count| json!(count)));
        self.add("agent.tot.threshold", "--tot-threshold", thinking.tot_threshold.map(|value| json!(value)));
        self.add(
            "agent.tot.maxThoughts",
            "--tot-max-thoughts",
            thinking.tot_max_thoughts.map(|count| json!(count)),
        );
        self.add("agent.got.maxNodes", "--got-max-nodes", thinking.got_max_nodes.map(|count| json!(count)));
        self.add("agent.got.maxDepth", "--got-depth", thinking.got_depth.map(|count| json!(count)));
        self.add("agent.got.maxLayers", "--got-layers", thinking.got_layers.map(|count| json!(count)));
        self.add("agent.got.maxPerLayer", "--got-width", thinking.got_width.map(|count| json!(count)));
        let timeout = thinking.thought_timeout.as_ref();
        self.add("agent.thoughtTimeout", "--thought-timeout", timeout.map(|time| json!(time)));
        self.add(
            "agent.thoughtRetries",
            "--thought-retries",
            thinking.thought_retries.map(|count| json!(count)),
        );
        self.add("agent.adaptive", "--adaptive", thinking.adaptive.then_some(json!(true)));
        self.add("agent.parallel", "--parallel", thinking.parallel.map(|count| json!(count)));
        self.add(
            "agent.maxSubagentDepth",
            "--max-subagent-depth",
            run.tool_flags.max_subagent_depth.map(|depth| json!(depth)),
        );
    }

    fn add_limits(&mut self, run: &Run) {
        self.add(
            "limits.maxSessionTurns",
            "--max-session-turns",
            run.max_session_turns.map(|count| json!(count)),
        );
        self.add("limits.maxTurns", "--max-turns", run.max_turns.map(|count| json!(count)));
        self.add("limits.maxToolCalls", "--max-tool-calls", run.max_tool_calls.map(|count| json!(count)));
        self.add("limits.maxWallTime", "--max-wall-time", run.max_wall_time.as_ref().map(|time| json!(time)));
        self.add(
            "limits.maxTokensTotal",
            "--max-tokens-total",
            run.max_tokens_total.map(|count| json!(count)),
        );
        self.add("limits.maxBudgetUsd", "--max-budget-usd", run.max_budget_usd.map(|dollars| json!(dollars)));
    }

    fn add_telemetry(&mut self, run: &Run) {
        let telemetry = &run.telemetry;
        let on = if telemetry.no_telemetry { Some(false) } else { telemetry.telemetry };
        self.add("telemetry.enabled", "--telemetry", on.map(|on| json!(on)));
        let endpoint = telemetry.telemetry_otlp_endpoint.as_ref();
        self.add("telemetry.otlpEndpoint", "--telemetry-otlp-endpoint", endpoint.map(|url| json!(url)));
        let protocol = telemetry.telemetry_otlp_protocol.as_ref();
        self.add("telemetry.otlpProtocol", "--telemetry-otlp-protocol", protocol.map(|word| json!(word)));
        let outfile = telemetry.telemetry_outfile.as_ref();
        self.add("telemetry.outfile", "--telemetry-outfile", outfile.map(|path| json!(path)));
        let content = telemetry.telemetry_log_prompts;
        self.add("telemetry.logPrompts", "--telemetry-log-prompts", content.map(|on| json!(on)));
        let target = telemetry.telemetry_target.as_ref();
        self.add("telemetry.target", "--telemetry-target", target.map(|word| json!(word)));
    }
}

/// Returns a list without empty items; none if the flag was not given.
fn list(list: &[String]) -> Option<serde_json::Value> {
    (!list.is_empty()).then(|| json!(items(list)))
}

/// Returns a list of rules; none if the flag was not given.
fn rule_list(list: &[String]) -> Option<serde_json::Value> {
    (!list.is_empty()).then(|| json!(rules(list)))
}

/// The directories that `--include-directories` names. A comma separates two directories unless the whole value
/// is one.
fn directories(given: &[PathBuf], cwd: &Path) -> Vec<String> {
    let mut directories = Vec::new();
    for value in given {
        let text = value.to_string_lossy().into_owned();
        if text.contains(',') && !cwd.join(value).is_dir() {
            directories.extend(text.split(',').filter(|path| !path.is_empty()).map(str::to_owned));
        } else {
            directories.push(text);
        }
    }
    directories
}

/// The servers that one `--mcp-config` names.
fn servers(given: &str, invocation: &Invocation) -> Result<Node, ErrorInfo> {
    let (text, name) = if given.trim_start().starts_with('{') {
        (given.to_owned(), "--mcp-config".to_owned())
    } else {
        let path = invocation.cwd.join(given);
        let text =
            std::fs::read_to_string(&path).map_err(|error| unreadable("--mcp-config", &path, &error))?;
        (text, path.to_string_lossy().into_owned())
    };
    let mut root = file::parse_loose(&text, Layer::Given, &name)?;
    let origin = root.origin.clone();
    // Both `{"mcpServers": {…}}` and the bare inner object are in use.
    let inner = root.remove("mcpServers").map_or(root, |field| field.node);
    let mut whole = Node::empty(origin.clone());
    whole.put("mcpServers", &origin, inner);
    let mut checked = file::check(whole)?.root;
    Ok(checked.remove("mcpServers").map_or_else(|| Node::empty(origin), |field| field.node))
}
