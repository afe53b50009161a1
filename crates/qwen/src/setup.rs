//! Builds a session out of the configuration.

use std::sync::Arc;

use qwen_dialects::{Dialect, StreamInfo, StreamMode, encoder};
use qwen_engine::subagent;
use qwen_engine::{Dials, Emitter, Host, Permissions, Place, Session, SessionSetup};
use qwen_events::{ErrorInfo, Event, SessionId};
use qwen_tools::process::Environment;
use qwen_tools::{Fence, Registry, Workbench};
use tokio::sync::mpsc;

use crate::print::Activity;
use crate::settings::{self, Config};
use crate::stream::Reader;
use crate::system_prompt;

/// Who reads the events of this run.
pub fn reader(config: &Config) -> Reader {
    let Some(format) = config.format else { return Reader::text() };
    let encoder = encoder(&StreamInfo {
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
    });
    // A worker's host reads its errors where it reads everything else, and may not read standard error at all.
    let people = (!config.structured_input).then(|| Activity::new(false));
    Reader::Lines(encoder, people)
}

/// Where the run's events enter the stream. Only the Loom dialects show the graph's state, so only they pay for it.
pub fn emitter(config: &Config, sender: mpsc::Sender<Event>) -> Emitter {
    let emitter = Emitter::new(sender).redacting(config.redactor.clone());
    let shown = |mode: StreamMode| config.stream_modes.is_empty() || config.stream_modes.contains(&mode);
    let loom = matches!(config.dialect, Dialect::Loom | Dialect::LoomExport) && config.format.is_some();
    if loom && (shown(StreamMode::Values) || shown(StreamMode::Updates) || shown(StreamMode::Debug)) {
        emitter.with_state()
    } else {
        emitter
    }
}

/// The judgement on calls, by the mode and the rules of this run.
pub fn permissions(config: &Config) -> Arc<Permissions> {
    Arc::new(Permissions::new(config.policy.clone(), config.cwd.clone()))
}

/// What can be turned while a turn runs, as the settings have it.
pub fn dials(config: &Config) -> Arc<Dials> {
    let dials = Dials::default();
    dials.set_effort(config.settings.model.effort.as_deref().map(Arc::from));
    Arc::new(dials)
}

/// What the calls of a session share: above all, the fence around its commands.
fn workbench(config: &Config) -> Workbench {
    let roots = std::iter::once(config.cwd.clone()).chain(config.extra_roots.iter().cloned()).collect();
    let fence = Fence::new(config.sandbox, roots, config.private.clone(), config.sandbox_network);
    let mut env = Environment::inherited();
    for (name, value) in &config.settings.env {
        if env.get(name).is_none() {
            env.set(name, value);
        }
    }
    if let Some(key) = &config.settings.model.api_key_env {
        env.remove(key);
    }
    Workbench {
        env: Arc::new(env),
        fence,
        output_limit: config.settings.tools.shell.output_limit.unwrap_or(Workbench::OUTPUT_LIMIT),
        redactor: config.redactor.clone(),
        ..Workbench::new()
    }
}

/// A session of the name `id`.
pub fn session(
    config: &Config,
    id: SessionId,
    host: Arc<dyn Host>,
    permissions: Arc<Permissions>,
    dials: Arc<Dials>,
) -> Result<Session, ErrorInfo> {
    let model_config = config.model.as_ref().map_err(Clone::clone)?;
    Ok(Session::new(SessionSetup {
        id,
        agent: config.agent.clone(),
        model: qwen_model::build(model_config)?,
        tools: Arc::new(settings::registry(&config.settings, &Registry::builtin())),
        permissions,
        host,
        dials,
        system: system_prompt::compose(
            config.system_prompt.as_deref(),
            config.append_system_prompt.as_deref(),
            &config.cwd,
        )
        .into(),
        limits: config.limits.clone(),
        place: Place {
            cwd: config.cwd.clone(),
            extra_roots: config.extra_roots.as_slice().into(),
            bench: Arc::new(workbench(config)),
        },
        key_source: config.key_source.clone(),
        agents: subagent::builtin().into(),
        agent_levels: config.settings.agent.max_subagent_depth.unwrap_or(subagent::MAX_DEPTH),
        slash_commands: Vec::new(),
        mcp_servers: Vec::new(),
    }))
}
