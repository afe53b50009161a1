//! Builds a session out of the configuration.

use std::io::IsTerminal;
use std::num::NonZeroU64;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use qwen_dialects::{Dialect, ModelLimits, StreamInfo, StreamMode, encoder};
use qwen_engine::commands::{CommandDirectories, CommandSet};
use qwen_engine::compaction::Window;
use qwen_engine::memory::{self, Memory};
use qwen_engine::skill::{self, SkillTool};
use qwen_engine::subagent::{self, AgentDefinition};
use qwen_engine::{Emitter, Host, HostServers, Permissions, Place, REACT, SessionContext, SessionOverrides};
use qwen_events::{
    Behavior, CallId, ErrorInfo, ErrorKind, Event, Json, Part, PermissionUpdate, SessionId, ToolCall, Verdict,
};
use qwen_mcp::{Deps, Servers};
use qwen_sandbox::process::{Environment, WITHHELD};
use qwen_tools::{MemoryFiles, Registry, WebAccess, Workbench};
use tokio::sync::mpsc;

use crate::claude_host::session_mirror::Mirrored;
use crate::io::debug_log;
use crate::io::stream::Reader;
use crate::print::Activity;
use crate::runtime::exit;
use crate::session::main_agent;
use crate::session::sandbox_policy;
use crate::session::system_prompt;
use crate::settings::{self, Config, EXPORT_HEADERS};
use crate::telemetry::Server;

/// Who reads the events of this run.
pub fn reader(config: &Config) -> Reader {
    let Some(format) = config.format else { return Reader::text(config.answer_schema.is_some()) };
    let info = StreamInfo {
        dialect: config.dialect,
        format,
        input_format: config.input_format,
        session_id: config.session_id.clone(),
        model: config.model_name.clone(),
        version: env!("CARGO_PKG_VERSION"),
        partial_messages: config.partial_messages,
        session_state: config.session_state,
        qwen_sdk: config.qwen_sdk,
        replay_user_messages: config.replay_user_messages,
        model_limits: model_limits(config),
        plugins: (config.plugins.iter())
            .map(|(name, root)| (name.clone(), root.to_string_lossy().into()))
            .collect(),
        stream_modes: config.stream_modes.clone(),
        seed: fastrand::u64(..),
    };
    let mut encoder = match &config.mirror {
        Some(folder) => Box::new(Mirrored::new(encoder(&info), &info, config, folder)),
        None => encoder(&info),
    };
    if let Some(place) = &config.debug {
        encoder = debug_log::around(encoder, place);
    }
    // A worker's host reads its errors where it reads everything else, and may not read standard error at all.
    let people = (!config.structured_input).then(|| Activity::new(false));
    Reader::Lines(encoder, people)
}

/// What is known of the model, for readers.
fn model_limits(config: &Config) -> ModelLimits {
    ModelLimits {
        context_window: window(config).tokens,
        max_output_tokens: config.sampling.max_tokens.unwrap_or_default(),
    }
}

/// Where the run's events enter the stream. Only the Loom dialects and whoever draws thoughts on a terminal show the
/// graph's state, so only they pay for it.
pub fn emitter(config: &Config, sender: mpsc::Sender<Event>) -> Emitter {
    let mut emitter = Emitter::new(sender).redacting(config.redactor.clone());
    if let Some(tracing) = &config.tracing {
        emitter = emitter.traced(tracing.clone());
    }
    let shown = |mode: StreamMode| config.stream_modes.is_empty() || config.stream_modes.contains(&mode);
    let loom = matches!(config.dialect, Dialect::Loom | Dialect::LoomExport) && config.format.is_some();
    let modes = [StreamMode::Values, StreamMode::Updates, StreamMode::Checkpoints, StreamMode::Debug];
    let drawn = config.format.is_none() && *config.agent != *REACT && std::io::stderr().is_terminal();
    if drawn || loom && modes.into_iter().any(shown) { emitter.with_state() } else { emitter }
}

/// The judgement on calls, by the mode and the rules of this run.
fn permissions(config: &Config) -> Arc<Permissions> {
    Arc::new(Permissions::new(config.policy.clone(), config.cwd.clone()))
}

/// What can be turned while a turn runs, as the settings have it.
fn overrides(config: &Config) -> Arc<SessionOverrides> {
    let overrides = SessionOverrides::default();
    overrides.set_effort(config.settings.model.effort.as_deref().map(Arc::from));
    overrides.set_answer_schema(config.answer_schema.clone());
    overrides.set_reasoning(config.thinking_flags.reasoning);
    overrides.set_thoughts(config.thinking_flags.thoughts);
    Arc::new(overrides)
}

/// The environment of commands: ours, with what the settings add to it.
fn environment(config: &Config) -> Environment {
    let mut env = Environment::inherited();
    for (name, value) in &config.settings.env {
        if env.get(name).is_none() && !WITHHELD.contains(&name.as_str()) {
            env.set(name, value);
        }
    }
    if let Some(key) = &config.settings.model.api_key_env {
        env.remove(key);
    }
    if config.tracing.is_some() {
        // The collector's keys are ours, like the model's.
        for name in EXPORT_HEADERS {
            env.remove(name);
        }
    }
    env
}

/// What the calls of a session share: above all, the sandbox of its commands.
fn workbench(config: &Config, parts: &Parts) -> Workbench {
    Workbench {
        env: parts.env.clone(),
        sandbox: sandbox_policy::for_commands(config, &parts.permissions),
        output_limit: config.settings.tools.shell.output_limit.unwrap_or(Workbench::OUTPUT_LIMIT),
        shell_timeout: config
            .settings
            .tools
            .shell
            .timeout_ms
            .map_or(Workbench::SHELL_TIMEOUT, |time| Duration::from_millis(time.get())),
        redactor: config.redactor.clone(),
        web: web(config, &parts.permissions),
        memory: memory_files(config),
        may_read: Some(Arc::new({
            let permissions = parts.permissions.clone();
            move |path| permissions.may_read(path)
        })),
        ..Workbench::new()
    }
}

/// What of the web may be seen. A redirect to another host is judged like a call with that address: whoever agreed to
/// the first one did not agree to that.
fn web(config: &Config, permissions: &Arc<Permissions>) -> WebAccess {
    let permissions = permissions.clone();
    WebAccess {
        allow_private_hosts: config.settings.tools.web_fetch.allow_private_hosts.clone(),
        may_follow: Some(Arc::new(move |url| {
            let call = ToolCall {
                id: CallId::new("redirect"),
                name: "web_fetch".into(),
                arguments: Json::trusted(serde_json::json!({"url": url, "prompt": ""}).to_string()),
                malformed: None,
            };
            permissions.judge(&call).decision.verdict == Verdict::Allow
        })),
        ..WebAccess::default()
    }
}

/// Where facts are remembered: in the first memory file that is one of ours to write, the user's and the project's.
fn memory_files(config: &Config) -> MemoryFiles {
    let names = config.settings.context.file_name.iter().map(String::as_str);
    let name = names.chain(memory::NAMES).find(|name| name.ends_with(".md")).unwrap_or(memory::NAMES[0]);
    MemoryFiles {
        user: config.qwen_home.as_ref().map(|home| config.cwd.join(home).join(name)),
        project: Some(config.cwd.join(name)),
    }
}

/// What the memory files say.
fn remembered(config: &Config) -> Memory {
    let context = &config.settings.context;
    Memory::load(&memory::Places {
        names: &context.file_name,
        max_file: context.max_file_size.unwrap_or(memory::MAX_TOTAL),
        ..memory::Places::new(config.qwen_home.as_deref(), &config.cwd)
    })
}

/// How much the model can read.
pub fn window(config: &Config) -> Window {
    let window = Window::default();
    Window { tokens: config.settings.model.context_window.map_or(window.tokens, NonZeroU64::get), ..window }
}

/// The sub-agents on offer: the built-in ones, the user's, the project's and the host's.
pub fn agents(config: &Config) -> Vec<AgentDefinition> {
    subagent::gathered(subagent::builtin().into_iter().chain(config.agents.iter().cloned()))
}

/// The tool that reads skills, where there are any and the settings leave it.
pub fn skills(config: &Config) -> Option<Arc<SkillTool>> {
    let skills = SkillTool::new(config.skills.iter().cloned()).map(Arc::new);
    skills.filter(|_| settings::has_tool(&config.settings, skill::TOOL))
}

/// The tools on offer, but for those of MCP servers and the one that starts sub-agents.
pub fn tools(config: &Config, skills: Option<&Arc<SkillTool>>) -> Registry {
    let mut tools = settings::registry(&config.settings, &Registry::builtin());
    if let Some(skills) = skills {
        tools.add(skills.clone());
    }
    tools
}

/// Where the project's own commands are, if there are any and its folder is trusted. Trust is decided only where there
/// is something to trust.
fn project_commands(config: &Config) -> Option<PathBuf> {
    let directory = config.cwd.join(".qwen").join("commands");
    (directory.is_dir() && config.trust.decision().is_trusted()).then_some(directory)
}

/// What a process holds over all its sessions, and may change while a turn runs.
#[derive(Clone)]
pub struct Parts {
    /// Who answers questions.
    pub host: Arc<dyn Host>,
    /// Who judges calls.
    pub permissions: Arc<Permissions>,
    /// What can be turned while a turn runs.
    pub overrides: Arc<SessionOverrides>,
    /// The MCP servers.
    pub mcp: Arc<Servers>,
    /// The commands on offer.
    pub commands: Arc<CommandSet>,
    /// What the memory files say.
    pub memory: Arc<Memory>,
    /// The tool that reads skills, where there are any.
    pub skills: Option<Arc<SkillTool>>,
    /// The environment of commands and servers.
    pub env: Arc<Environment>,
}

impl Parts {
    /// The parts of a run whose questions go to `host`.
    pub fn new(config: &Config, host: Arc<dyn Host>) -> Result<Self, ErrorInfo> {
        let mut deps = Deps::new(config.cwd.clone());
        let env = Arc::new(environment(config));
        deps.env = env.clone();
        deps.sandbox = Some(sandbox_policy::for_servers(config));
        deps.host = Some(Arc::new(HostServers::new(host.clone())));
        let mcp = Servers::new(config.mcp_servers.iter().cloned(), deps)
            .map_err(|error| ErrorInfo::new(ErrorKind::Settings, "invalid_mcp_server", error.to_string()))?;
        let places = CommandDirectories {
            user: config.qwen_home.as_ref().map(|home| home.join("commands")),
            workspace: project_commands(config),
            plugins: config
                .plugins
                .iter()
                .map(|(name, root)| (name.clone(), root.join("commands")))
                .collect(),
        };
        Ok(Self {
            host,
            permissions: permissions(config),
            overrides: overrides(config),
            mcp: Arc::new(mcp),
            commands: Arc::new(CommandSet::load(&places).without(&config.settings.slash_commands.disabled)),
            memory: Arc::new(remembered(config)),
            skills: skills(config),
            env,
        })
    }
}

/// Lets the session be `agent`: its model, unless the command line names one, and without the tools that it must not use.
fn become_agent(agent: &AgentDefinition, config: &Config, parts: &Parts) -> Result<(), ErrorInfo> {
    if !config.names_model && parts.overrides.model().is_none() {
        parts.overrides.set_model(agent.model.clone());
    }
    if agent.disallowed_tools.is_empty() {
        return Ok(());
    }
    let rules = agent.disallowed_tools.clone();
    parts.permissions.update(&PermissionUpdate::AddRules { behavior: Behavior::Deny, rules })
}

/// What the first prompt tells of the place, where the system prompt is the same everywhere.
pub fn place_for_prompt(config: &Config, parts: &Parts) -> Option<Part> {
    if !config.environment_in_prompt || config.system_prompt.is_some() || main_agent::chosen(config).is_some()
    {
        return None;
    }
    let place = format!("The working directory is {}.", config.cwd.display());
    Some(Part::Text(parts.memory.behind(&place).into()))
}

/// What a session of the name `id` works with.
pub fn session(config: &Config, id: SessionId, parts: &Parts) -> Result<SessionContext, ErrorInfo> {
    let model = match config.model.as_ref().map_err(Clone::clone).and_then(qwen_model::build) {
        // A worker's turn still has its beginning and its end, or the host would wait for it for ever.
        Err(error) if config.structured_input => qwen_model::unusable(config.model_name.clone(), error),
        model => model?,
    };
    let model = match &config.tracing {
        Some(tracing) => tracing.watch(model, Server::of(config.model.as_ref().ok())),
        None => model,
    };
    if let Some(store) = config.store.as_ref().filter(|_| config.record) {
        config.hooks.set_transcript_path(store.path(&id).to_string_lossy());
    }
    let main = main_agent::chosen(config);
    match (&main, &config.main_agent) {
        (Some(agent), _) => become_agent(agent, config, parts)?,
        (None, Some(name)) => {
            exit::say(&format!("qwen: --agent: there is no agent '{name}'; the session goes on without one"));
        }
        (None, None) => {}
    }
    let system_prompt = main.as_ref().map(|agent| &*agent.prompt).filter(|prompt| !prompt.is_empty());
    Ok(SessionContext {
        id,
        agent: config.agent.clone(),
        thinking: config.thinking.clone(),
        model,
        tools: Arc::new(tools(config, parts.skills.as_ref())),
        permissions: parts.permissions.clone(),
        host: parts.host.clone(),
        overrides: parts.overrides.clone(),
        mcp: parts.mcp.clone(),
        system: {
            let own = system_prompt.or(config.system_prompt.as_deref());
            let shared = config.environment_in_prompt && own.is_none();
            let place = (!shared).then_some(config.cwd.as_path());
            let text = system_prompt::compose(own, config.append_system_prompt.as_deref(), place);
            if shared { text.into() } else { parts.memory.behind(&text).into() }
        },
        limits: config.limits.clone(),
        place: Place {
            cwd: config.cwd.clone(),
            extra_roots: config.extra_roots.clone().into(),
            bench: Arc::new(workbench(config, parts)),
        },
        key_source: config.key_source.clone(),
        agents: agents(config).into(),
        skills: parts.skills.as_ref().map(|skills| skills.names()).unwrap_or_default(),
        agent_levels: if settings::has_tool(&config.settings, subagent::TOOL) {
            config.settings.agent.max_subagent_depth.unwrap_or(subagent::MAX_DEPTH)
        } else {
            0
        },
        slash_commands: parts.commands.names(),
        hooks: config.hooks.clone(),
        window: window(config),
    })
}
