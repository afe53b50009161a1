//! Builds a session out of the configuration.

use std::io::IsTerminal;
use std::path::PathBuf;
use std::sync::Arc;

use qwen_dialects::{Dialect, StreamInfo, StreamMode, encoder};
use qwen_engine::commands::{CommandSet, CustomPlaces};
use qwen_engine::compaction::Window;
use qwen_engine::memory::Memory;
use qwen_engine::subagent;
use qwen_engine::{Dials, Emitter, Host, HostServers, Permissions, Place, SessionSetup};
use qwen_events::{ErrorInfo, ErrorKind, Event, SessionId};
use qwen_tools::mcp::{Deps, Servers};
use qwen_tools::process::Environment;
use qwen_tools::{Fence, Registry, Workbench};
use tokio::sync::mpsc;

use crate::mirror::Mirrored;
use crate::print::Activity;
use crate::settings::{self, Config};
use crate::stream::Reader;
use crate::system_prompt;

/// Who reads the events of this run.
pub fn reader(config: &Config) -> Reader {
    let Some(format) = config.format else { return Reader::text() };
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
        stream_modes: config.stream_modes.clone(),
        seed: fastrand::u64(..),
    };
    let encoder = match &config.mirror {
        Some(folder) => Box::new(Mirrored::new(encoder(&info), &info, config, folder)),
        None => encoder(&info),
    };
    // A worker's host reads its errors where it reads everything else, and may not read standard error at all.
    let people = (!config.structured_input).then(|| Activity::new(false));
    Reader::Lines(encoder, people)
}

/// Where the run's events enter the stream. Only the Loom dialects and whoever draws thoughts on a terminal show the
/// graph's state, so only they pay for it.
pub fn emitter(config: &Config, sender: mpsc::Sender<Event>) -> Emitter {
    let emitter = Emitter::new(sender).redacting(config.redactor.clone());
    let shown = |mode: StreamMode| config.stream_modes.is_empty() || config.stream_modes.contains(&mode);
    let loom = matches!(config.dialect, Dialect::Loom | Dialect::LoomExport) && config.format.is_some();
    let modes = [StreamMode::Values, StreamMode::Updates, StreamMode::Checkpoints, StreamMode::Debug];
    let drawn = config.format.is_none() && *config.agent != *"react" && std::io::stderr().is_terminal();
    if drawn || loom && modes.into_iter().any(shown) { emitter.with_state() } else { emitter }
}

/// The judgement on calls, by the mode and the rules of this run.
fn permissions(config: &Config) -> Arc<Permissions> {
    Arc::new(Permissions::new(config.policy.clone(), config.cwd.clone()))
}

/// What can be turned while a turn runs, as the settings have it.
fn dials(config: &Config) -> Arc<Dials> {
    let dials = Dials::default();
    dials.set_effort(config.settings.model.effort.as_deref().map(Arc::from));
    Arc::new(dials)
}

/// The environment of commands: ours, with what the settings add to it.
fn environment(config: &Config) -> Environment {
    let mut env = Environment::inherited();
    for (name, value) in &config.settings.env {
        if env.get(name).is_none() {
            env.set(name, value);
        }
    }
    if let Some(key) = &config.settings.model.api_key_env {
        env.remove(key);
    }
    env
}

/// What the calls of a session share: above all, the fence around its commands.
fn workbench(config: &Config) -> Workbench {
    let roots = [config.cwd.clone()].into_iter().chain(config.extra_roots.iter().cloned()).collect();
    let fence = Fence::new(config.sandbox, roots, config.private.clone(), config.sandbox_network);
    Workbench {
        env: Arc::new(environment(config)),
        fence,
        output_limit: config.settings.tools.shell.output_limit.unwrap_or(Workbench::OUTPUT_LIMIT),
        redactor: config.redactor.clone(),
        ..Workbench::new()
    }
}

/// How much the model can read.
fn window(config: &Config) -> Window {
    let window = Window::default();
    Window { tokens: config.settings.model.context_window.unwrap_or(window.tokens), ..window }
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
    pub dials: Arc<Dials>,
    /// The MCP servers.
    pub mcp: Arc<Servers>,
    /// The commands on offer.
    pub commands: Arc<CommandSet>,
    /// What the memory files say.
    pub memory: Arc<Memory>,
}

impl Parts {
    /// The parts of a run whose questions go to `host`.
    pub fn new(config: &Config, host: Arc<dyn Host>) -> Result<Self, ErrorInfo> {
        let mut deps = Deps::new(config.cwd.clone());
        deps.env = Arc::new(environment(config));
        deps.host = Some(Arc::new(HostServers::new(host.clone())));
        let mcp = Servers::new(config.mcp_servers.iter().cloned(), deps)
            .map_err(|error| ErrorInfo::new(ErrorKind::Settings, "invalid_mcp_server", error.to_string()))?;
        let places = CustomPlaces {
            user: config.qwen_home.as_ref().map(|home| home.join("commands")),
            workspace: project_commands(config),
        };
        Ok(Self {
            host,
            permissions: permissions(config),
            dials: dials(config),
            mcp: Arc::new(mcp),
            commands: Arc::new(CommandSet::load(&places)),
            memory: Arc::new(Memory::load(config.qwen_home.as_deref(), &config.cwd)),
        })
    }
}

/// What a session of the name `id` works with.
pub fn session(config: &Config, id: SessionId, parts: &Parts) -> Result<SessionSetup, ErrorInfo> {
    let model = match config.model.as_ref().map_err(Clone::clone).and_then(qwen_model::build) {
        // A worker's turn still has its beginning and its end, or the host would wait for it for ever.
        Err(error) if config.structured_input => qwen_model::unusable(config.model_name.clone(), error),
        model => model?,
    };
    if let Some(store) = config.store.as_ref().filter(|_| config.record) {
        config.hooks.set_transcript_path(store.path(&id).to_string_lossy());
    }
    Ok(SessionSetup {
        id,
        agent: config.agent.clone(),
        thinking: config.thinking.clone(),
        model,
        tools: Arc::new(settings::registry(&config.settings, &Registry::builtin())),
        permissions: parts.permissions.clone(),
        host: parts.host.clone(),
        dials: parts.dials.clone(),
        mcp: parts.mcp.clone(),
        system: parts
            .memory
            .behind(&system_prompt::compose(
                config.system_prompt.as_deref(),
                config.append_system_prompt.as_deref(),
                &config.cwd,
            ))
            .into(),
        limits: config.limits.clone(),
        place: Place {
            cwd: config.cwd.clone(),
            extra_roots: config.extra_roots.clone().into(),
            bench: Arc::new(workbench(config)),
        },
        key_source: config.key_source.clone(),
        agents: subagent::builtin().into_iter().chain(config.agents.iter().cloned()).collect(),
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
