//! Builds a session from the configuration.

use std::io::IsTerminal;
use std::num::NonZeroU64;
use std::sync::Arc;
use std::time::Duration;

use qwen_dialects::{Dialect, Encoder, Format, ModelLimits, StreamInfo, StreamMode, encoder};
use qwen_engine::compaction::Window;
use qwen_engine::memory::{self};
use qwen_engine::skill::{self, SkillTool};
use qwen_engine::subagent::{self, AgentDefinition};
use qwen_engine::tool_search;
use qwen_engine::{Emitter, Permissions, SessionContext};
use qwen_events::{AgentName, Behavior, ErrorInfo, Event, Part, PermissionUpdate, SessionId};
use qwen_model::find_known_model;
use qwen_thoughts::ThoughtAgents;
use qwen_tools::{MemoryFiles, Registry, SessionResources, ToolVocabulary, WebAccess};
use tokio::sync::mpsc;

use super::context::ProcessContext;
use crate::claude_host::agent_text::AgentTextFilter;
use crate::claude_host::session_mirror::MirroringEncoder;
use crate::io::debug_log::{self, DebugLog, LoggingEncoder};
use crate::io::stream::Renderer;
use crate::print::{ReportStyle, Reporter, TextPrinter, is_dumb_terminal};
use crate::runtime::exit;
use crate::session::gated_model::gated;
use crate::session::main_agent;
use crate::session::sandbox_policy;
use crate::session::surroundings::WorkEnvironment;
use crate::session::system_prompt;
use crate::settings::{self, Config};
use crate::telemetry::Server;

/// Builds the renderer for the events of this run.
pub fn renderer(config: &Config, debug_log: Option<&DebugLog>) -> Renderer {
    let log = &config.diagnostics.log;
    let style = ReportStyle {
        is_terminal: config.stream.format.is_none() && std::io::stderr().is_terminal(),
        is_dumb: is_dumb_terminal(),
        level: log.level,
        is_json: log.is_json,
        is_text_mode: config.stream.format.is_none(),
    };
    let logging = |encoder: Box<dyn Encoder>| -> Box<dyn Encoder> {
        match debug_log {
            Some(log) => Box::new(LoggingEncoder { encoder, log: log.clone() }),
            None => encoder,
        }
    };
    let Some(format) = config.stream.format else {
        let printer = TextPrinter::new(std::io::stdout().is_terminal(), style)
            .result_only(config.agent.answer_schema.is_some());
        let info = StreamInfo { dialect: Dialect::Qwen, ..stream_info(config, Format::StreamChunkJson) };
        let is_read = debug_log.is_some() || config.claude.mirror_folder.is_some();
        let unprinted = is_read.then(|| logging(mirroring(config, &info)));
        return Renderer::Text(Box::new(printer), unprinted);
    };
    let encoder = mirroring(config, &stream_info(config, format));
    let reporter = (!config.stream.structured_input || log.is_json).then(|| Reporter::new(style));
    Renderer::Lines(logging(encoder), reporter)
}

/// The encoder of a stream. For hosts of Claude's family it leaves out the text of sub-agents unless the host
/// wants it, and also writes their transcript.
fn mirroring(config: &Config, info: &StreamInfo) -> Box<dyn Encoder> {
    let encoder: Box<dyn Encoder> = match &config.claude.forwards_agent_text {
        Some(forwards) if info.dialect == Dialect::Claude => {
            Box::new(AgentTextFilter::new(encoder(info), forwards.clone()))
        }
        _ => encoder(info),
    };
    match &config.claude.mirror_folder {
        Some(folder) => Box::new(MirroringEncoder::new(encoder, info, config, folder)),
        None => encoder,
    }
}

fn stream_info(config: &Config, format: Format) -> StreamInfo {
    StreamInfo {
        dialect: config.stream.dialect,
        format,
        input_format: config.stream.input_format,
        session_id: config.session.id.clone(),
        model: config.model.name.clone(),
        version: env!("CARGO_PKG_VERSION"),
        partial_messages: config.claude.partial_messages,
        session_state: config.claude.session_state,
        qwen_sdk: config.claude.qwen_sdk,
        claude_host: config.claude.claude_family,
        replay_user_messages: config.stream.replay_user_messages,
        model_limits: model_limits(config),
        output_style: config.agent.output_style.name.as_str().into(),
        plugins: (config.extensions.plugins.iter())
            .map(|(name, root)| (name.clone(), root.to_string_lossy().into()))
            .collect(),
        stream_modes: config.stream.stream_modes.clone(),
        acp: config.stream.acp,
        seed: fastrand::u64(..),
    }
}

/// The known limits of the model, for readers of the stream.
fn model_limits(config: &Config) -> ModelLimits {
    ModelLimits { context_window: window(config).tokens, max_output_tokens: max_output(config) }
}

/// The entry point of the run's events into the stream. Graph state is emitted only for its readers, which
/// are the Loom dialects and the drawing of thoughts on a terminal, because it costs time.
pub fn emitter(config: &Config, sender: mpsc::Sender<Event>) -> Emitter {
    let mut emitter = Emitter::new(sender).redacting(config.diagnostics.redactor.clone());
    if let Some(tracing) = &config.diagnostics.tracing {
        emitter = emitter.traced(tracing.clone());
    }
    let shown = |mode: StreamMode| {
        config.stream.stream_modes.is_empty() || config.stream.stream_modes.contains(&mode)
    };
    let loom = matches!(config.stream.dialect, Dialect::Loom | Dialect::LoomExport)
        && config.stream.format.is_some();
    let modes = [StreamMode::Values, StreamMode::Updates, StreamMode::Checkpoints, StreamMode::Debug];
    let draws_thoughts = config.stream.format.is_none()
        && config.agent.name != AgentName::React
        && std::io::stderr().is_terminal();
    if draws_thoughts || loom && modes.into_iter().any(shown) { emitter.with_state() } else { emitter }
}

/// The state that the calls of a session share, above all the sandbox of its commands.
fn resources(process: &ProcessContext) -> SessionResources {
    let config = &*process.config;
    SessionResources {
        extra_roots: config.workspace.extra_roots.clone().into(),
        sandbox: sandbox_policy::for_commands(
            config,
            &process.services.permissions,
            &process.services.network,
        ),
        output_limit: config.settings.tools.shell.output_limit.unwrap_or(SessionResources::OUTPUT_LIMIT),
        shell_timeout: config
            .settings
            .tools
            .shell
            .timeout_ms
            .map_or(SessionResources::SHELL_TIMEOUT, |time| Duration::from_millis(time.get())),
        redactor: config.diagnostics.redactor.clone(),
        web: web(config, &process.services.permissions),
        memory: memory_files(config),
        worktrees: config
            .workspace
            .qwen_home
            .as_ref()
            .map(|home| config.workspace.cwd.join(home).join("worktrees")),
        may_show: Some(Arc::new({
            let permissions = process.services.permissions.clone();
            move |start, file| permissions.may_show(start, file)
        })),
        ..SessionResources::new(config.workspace.cwd.clone(), process.env.clone())
    }
}

/// The web access policy. A redirect to another host is checked like a call with that address, because
/// approval of the first address does not cover the second.
fn web(config: &Config, permissions: &Arc<Permissions>) -> WebAccess {
    let permissions = permissions.clone();
    WebAccess {
        allow_private_hosts: config.settings.tools.web_fetch.allow_private_hosts.clone(),
        may_follow: Some(Arc::new(move |url| permissions.may_fetch(url))),
        ..WebAccess::default()
    }
}

/// The memory files that remembered facts are written to, one of the user and one of the project. Their name
/// is the first configured or default name that ends in `.md`.
fn memory_files(config: &Config) -> MemoryFiles {
    let names = config.settings.context.file_name.iter().map(String::as_str);
    let name = names.chain(memory::NAMES).find(|name| name.ends_with(".md")).unwrap_or(memory::NAMES[0]);
    MemoryFiles {
        user: config.workspace.qwen_home.as_ref().map(|home| config.workspace.cwd.join(home).join(name)),
        project: Some(config.workspace.cwd.join(name)),
    }
}

/// The longest answer of the model in tokens; 0 if unknown.
pub fn max_output(config: &Config) -> u64 {
    let known = || find_known_model(&config.model.name).map(|model| model.max_output);
    config.model.sampling.max_tokens.or_else(known).unwrap_or_default()
}

/// The context window of the model.
pub fn window(config: &Config) -> Window {
    let window = Window::default();
    let known = || find_known_model(&config.model.name).map_or(window.tokens, |model| model.context_window);
    Window { tokens: config.settings.model.context_window.map_or_else(known, NonZeroU64::get), ..window }
}

/// The available sub-agents: built-in, the user's, the project's and the host's.
pub fn agents(config: &Config) -> Vec<AgentDefinition> {
    if !config.agent.has_agents {
        return Vec::new();
    }
    subagent::gather(subagent::builtin().into_iter().chain(config.agent.definitions.iter().cloned()))
}

/// The tool that reads skills; none without skills or if the settings remove it.
pub fn skills(config: &Config) -> Option<Arc<SkillTool>> {
    let skills = SkillTool::new(config.agent.skills.iter().cloned()).map(Arc::new);
    skills.filter(|_| settings::has_tool(&config.settings, skill::TOOL))
}

/// The available tools, except those of MCP servers and the one that starts sub-agents.
pub fn tools(config: &Config, skills: Option<&Arc<SkillTool>>) -> Registry {
    let mut tools =
        Registry::builtin_in(config.agent.tool_names, |name| settings::has_tool(&config.settings, name));
    if config.agent.tool_names == ToolVocabulary::Claude {
        tools = tools.without(settings::excluded_actions(&config.settings));
    }
    if let Some(skills) = skills {
        tools.add(skills.clone());
    }
    tools
}

/// Applies `agent` to the session: uses its model unless the command line names one, and removes the tools
/// that it must not use.
fn apply_agent(agent: &AgentDefinition, process: &ProcessContext) -> Result<(), ErrorInfo> {
    if !process.config.model.is_named_by_flag && process.services.overrides.model().is_none() {
        process.services.overrides.set_model(agent.model.clone());
    }
    if agent.disallowed_tools.is_empty() {
        return Ok(());
    }
    let rules = agent.disallowed_tools.clone();
    process.services.permissions.update(&PermissionUpdate::AddRules { behavior: Behavior::Deny, rules })
}

/// The project's instructions for the first prompt, if the system prompt must be the same for all
/// directories.
pub fn workspace_notice(process: &ProcessContext) -> Option<Part> {
    let config = &*process.config;
    if !config.agent.environment_in_prompt
        || config.agent.system_prompt.is_some()
        || main_agent::find_main_agent(config).is_some()
    {
        return None;
    }
    Some(process.memory.text_with_title()).filter(|text| !text.is_empty()).map(|text| Part::Text(text.into()))
}

/// Builds the model of the sessions, with everything that watches or gates its calls.
fn build_model(process: &ProcessContext) -> Result<Arc<dyn qwen_model::Model>, ErrorInfo> {
    let config = &*process.config;
    let model = match config.model.config.as_ref().map_err(Clone::clone).and_then(qwen_model::build) {
        // A worker must still start and end the turn, or the host would wait for it forever.
        Err(error) if config.stream.structured_input => {
            qwen_model::unusable(config.model.name.clone(), error)
        }
        model => model?,
    };
    let model = match &config.model.undecided {
        Some(error) => qwen_model::unchosen(model, error.clone()),
        None => model,
    };
    let model = match &config.diagnostics.tracing {
        Some(tracing) => tracing.watch(model, Server::from_config(config.model.config.as_ref().ok())),
        None => model,
    };
    let model = match &process.debug_log {
        Some(log) => debug_log::logging_model(model, log.clone()),
        None => model,
    };
    Ok(match config.stream.supervision.leash {
        Some(_) => gated(model, process.services.host.clone()),
        None => model,
    })
}

/// Builds the context of the session `id`.
pub fn session(process: &ProcessContext, id: SessionId) -> Result<SessionContext, ErrorInfo> {
    let config = &*process.config;
    let model = build_model(process)?;
    if let Some(store) = config.session.store.as_ref().filter(|_| config.session.record) {
        // Hooks that are written for Claude's CLI read its transcripts.
        let copies = config.claude.mirror_folder.as_ref().filter(|_| config.claude.claude_family);
        let transcript = copies.map_or_else(|| store.path(&id), |folder| folder.join(format!("{id}.jsonl")));
        let hooks = &config.extensions.hooks;
        hooks.set_transcript_path(transcript.to_string_lossy());
        hooks.set_agent_transcripts(copies.map(|folder| folder.join(id.as_str()).join("subagents")));
    }
    let main = main_agent::find_main_agent(config);
    match (&main, &config.agent.main_agent) {
        (Some(agent), _) => apply_agent(agent, process)?,
        (None, Some(name)) => {
            exit::report(&format!(
                "qwen: --agent: there is no agent '{name}'; the session continues without one"
            ));
        }
        (None, None) => {}
    }
    let system_prompt = main.as_ref().map(|agent| &*agent.prompt).filter(|prompt| !prompt.is_empty());
    Ok(SessionContext {
        process: process.services.clone(),
        id,
        agent: config.agent.name,
        search_agents: Arc::new(ThoughtAgents { options: config.agent.thinking.clone() }),
        model,
        base_tools: Arc::new(tools(config, process.skills.as_ref())),
        base_system_prompt: {
            let own = system_prompt.or(config.agent.system_prompt.as_deref());
            let shared = config.agent.environment_in_prompt && own.is_none();
            let append = config.agent.appended_prompt();
            let text = system_prompt::compose(own, append.as_deref());
            if shared { text.into() } else { process.memory.append_to(&text).into() }
        },
        limits: config.agent.limits.clone(),
        resources: Arc::new(resources(process)),
        key_source: config.model.key_source.clone(),
        agents: agents(config).into(),
        skills: process.skills.as_ref().map(|skills| skills.names()).unwrap_or_default(),
        agent_levels: if config.agent.has_agents && settings::has_tool(&config.settings, subagent::TOOL) {
            config.settings.agent.max_subagent_depth.unwrap_or(subagent::MAX_DEPTH)
        } else {
            0
        },
        slash_commands: process.commands.names(),
        schema_budget: config.settings.tools.schema_budget.unwrap_or(tool_search::SCHEMA_BUDGET),
        loaded_tools: Arc::default(),
        cache_watch: Arc::default(),
        instructions: process.memory.text_with_title().into(),
        surroundings: Arc::new(WorkEnvironment {
            config: process.config.clone(),
            permissions: process.services.permissions.clone(),
            memory: process.memory.clone(),
            env: process.env.clone(),
            audience: process.services.audience,
        }),
        window: window(config),
    })
}
