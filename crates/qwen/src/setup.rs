//! Builds a session out of the configuration.

use std::sync::Arc;

use qwen_dialects::{Dialect, StreamInfo, StreamMode, encoder};
use qwen_engine::commands::{CommandSet, CustomPlaces};
use qwen_engine::compaction::Window;
use qwen_engine::memory::Memory;
use qwen_engine::subagent;
use qwen_engine::{Dials, Emitter, Host, HostServers, Permissions, Place, SessionSetup};
use qwen_events::{Behavior, ErrorInfo, ErrorKind, Event, SessionId};
use qwen_tools::mcp::{Deps, Servers};
use qwen_tools::permissions::{Policy, RuleSource, canonical_tool_name};
use qwen_tools::{Fence, Registry, Workbench};
use tokio::sync::mpsc;

use crate::mirror::Mirrored;
use crate::print::Activity;
use crate::settings::Config;
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

/// Where the run's events enter the stream. Only the Loom dialects show the graph's state, so only they pay for it.
pub fn emitter(config: &Config, sender: mpsc::Sender<Event>) -> Emitter {
    let emitter = Emitter::new(sender).redacting(config.redactor.clone());
    let shown = |mode: StreamMode| config.stream_modes.is_empty() || config.stream_modes.contains(&mode);
    let loom = matches!(config.dialect, Dialect::Loom | Dialect::LoomExport) && config.format.is_some();
    let modes = [StreamMode::Values, StreamMode::Updates, StreamMode::Checkpoints, StreamMode::Debug];
    if loom && modes.into_iter().any(shown) { emitter.with_state() } else { emitter }
}

/// The judgement on calls, by the mode and the rules of this run.
fn permissions(config: &Config) -> Result<Arc<Permissions>, ErrorInfo> {
    let roots = [config.cwd.clone()].into_iter().chain(config.extra_roots.iter().cloned());
    let mut policy = Policy::new(config.mode, roots, config.home.clone());
    policy.set_search_path(config.search_path.clone());
    for (behavior, rule, source) in &config.rules {
        policy.add_rule(*behavior, rule, source.clone()).map_err(|error| {
            ErrorInfo::new(ErrorKind::Settings, "invalid_rule", error.to_string())
        })?;
    }
    Ok(Arc::new(Permissions::new(policy, config.cwd.clone())))
}

/// The built-in tools, or those of them that this run is to have. The model is not told of tools that a rule refuses
/// whatever they are called with.
fn tools(config: &Config) -> Registry {
    let all = Registry::builtin();
    let names: Vec<_> = all.specs().iter().map(|spec| spec.name.clone()).collect();
    all.restricted(names.iter().map(|name| &**name).filter(|name| has_tool(config, name)))
}

/// Whether this run is to have the built-in tool of this name.
fn has_tool(config: &Config, name: &str) -> bool {
    let means = |word: &str| *canonical_tool_name(word) == *name;
    let wanted = config.tools.as_ref().is_none_or(|wanted| wanted.iter().any(|word| means(word)));
    let refused =
        |(behavior, rule, _): &(Behavior, String, RuleSource)| *behavior == Behavior::Deny && means(rule);
    wanted && !config.rules.iter().any(refused)
}

/// What the calls of a session share: above all, the fence around its commands.
fn workbench(config: &Config) -> Workbench {
    let roots = [config.cwd.clone()].into_iter().chain(config.extra_roots.iter().cloned()).collect();
    let fence = Fence::new(config.sandbox, roots, config.private.clone(), config.sandbox_network);
    Workbench { fence, redactor: config.redactor.clone(), ..Workbench::new() }
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
        deps.host = Some(Arc::new(HostServers::new(host.clone())));
        let mcp = Servers::new(config.mcp_servers.iter().cloned(), deps).map_err(|error| {
            ErrorInfo::new(ErrorKind::Settings, "invalid_mcp_server", error.to_string())
        })?;
        let places = CustomPlaces {
            user: config.qwen_home.as_ref().map(|home| home.join("commands")),
            workspace: None,
        };
        Ok(Self {
            host,
            permissions: permissions(config)?,
            dials: Arc::new(Dials::default()),
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
        tools: Arc::new(tools(config)),
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
        agent_levels: if has_tool(config, subagent::TOOL) { subagent::MAX_DEPTH } else { 0 },
        slash_commands: parts.commands.names(),
        hooks: config.hooks.clone(),
        window: Window::default(),
    })
}
