//! Resolves the command line against the world: the only place that reads the environment.

mod built_in;
mod claude;
mod dialect;
pub mod file;
mod hooks;
mod invocation;
mod layers;
mod limits;
mod mcp;
mod model;
mod plugins;
mod project_config;
mod sessions;
mod telemetry;
mod thinking;
mod tooling;
mod trust;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use qwen_dialects::{Dialect, Format, StreamMode};
use qwen_engine::hooks::HookSet;
use qwen_engine::log::Store;
use qwen_engine::skill::Skill;
use qwen_engine::subagent::{self, AgentDefinition};
use qwen_engine::{AnswerSchema, Limits, REACT, ThinkingOptions};
use qwen_events::{ErrorInfo, ErrorKind, Sampling, SessionId};
use qwen_mcp::{ServerConfig, ServerStatus, Status};
use qwen_model::ModelConfig;
use qwen_permissions::{Kernel, Policy};
use qwen_redact::Redactor;

pub use claude::ThinkingFlags;
pub use file::Settings;
pub use invocation::Invocation;
pub use layers::{Layered, Looked};
pub use sessions::{Beginning, store};
pub use telemetry::HEADERS as EXPORT_HEADERS;
pub use tooling::{has_tool, redactor, registry};
pub use trust::{Trust, TrustList};

use crate::cli::{InputFormat, OutputFormat, Run};
use crate::session::agent_definitions;
use crate::telemetry::Tracing;

/// Everything a run needs to know, decided.
pub struct Config {
    /// The wire.
    pub dialect: Dialect,
    /// How output goes out; none means words for people.
    pub format: Option<Format>,
    /// Whether input comes as JSON lines.
    pub structured_input: bool,
    /// The word for the input format.
    pub input_format: &'static str,
    /// The session's name.
    pub session_id: SessionId,
    /// How the session begins.
    pub beginning: Beginning,
    /// Where sessions are kept; none where there is no home.
    pub store: Option<Store>,
    /// Whether this session is kept.
    pub record: bool,
    /// The folder for the copy that Claude's SDKs read; none where none of them started us.
    pub mirror: Option<PathBuf>,
    /// Where Claude's SDKs keep this directory's sessions; none where none of them started us.
    pub transcripts: Option<PathBuf>,
    /// The model; an error only once a turn needs it, so that the handshake and the error record can be written.
    pub model: Result<ModelConfig, ErrorInfo>,
    /// The model's name for readers.
    pub model_name: Arc<str>,
    /// Where the credentials come from, for readers.
    pub key_source: Arc<str>,
    /// Limits.
    pub limits: Limits,
    /// The form that answers must have; none means words.
    pub answer_schema: Option<Arc<AnswerSchema>>,
    /// The judgement on calls: the approval mode, the rules and the workspace.
    pub policy: Policy,
    /// The agent.
    pub agent: Arc<str>,
    /// Whether the command line names a model.
    pub names_model: bool,
    /// The sub-agent that the session itself is.
    pub main_agent: Option<Arc<str>>,
    /// How trees and graphs of thoughts grow.
    pub thinking: ThinkingOptions,
    /// Replaces the system prompt.
    pub system_prompt: Option<String>,
    /// Is added to the system prompt.
    pub append_system_prompt: Option<String>,
    /// What differs from place to place is told with the first prompt, and not in the system prompt.
    pub environment_in_prompt: bool,
    /// The working directory.
    pub cwd: PathBuf,
    /// Further directories that tools may work in.
    pub extra_roots: Vec<PathBuf>,
    /// Sub-agents besides the built-in ones.
    pub agents: Vec<AgentDefinition>,
    /// The skills.
    pub skills: Vec<Skill>,
    /// The plugins: their names and directories.
    pub plugins: Vec<(Arc<str>, PathBuf)>,
    /// The MCP servers.
    pub mcp_servers: Vec<(Arc<str>, ServerConfig)>,
    /// MCP servers that are configured and not wanted.
    unwanted_mcp_servers: Vec<(Arc<str>, ServerConfig)>,
    /// The settings files that were looked for.
    pub files: Vec<Looked>,
    /// What keeps secrets from everyone.
    pub redactor: Arc<Redactor>,
    /// What makes traces; none unless they are wanted.
    pub tracing: Option<Arc<Tracing>>,
    /// Whether commands run in a sandbox.
    pub sandbox: qwen_sandbox::SandboxMode,
    /// Whether commands in the sandbox reach the network.
    pub sandbox_network: bool,
    /// Directories that commands in the sandbox cannot read: ours.
    pub private: Vec<PathBuf>,
    /// How the model samples when a request does not say.
    pub sampling: Sampling,
    /// Whether the model thinks, and what is shown of it, when nothing else is said.
    pub thinking_flags: ThinkingFlags,
    /// All settings, for whoever needs more of them.
    pub settings: Settings,
    /// Whether what the working directory brings along counts.
    pub trust: Trust,
    /// What is odd about the settings, in sentences.
    pub warnings: Vec<String>,
    /// `claude`: pieces of messages too.
    pub partial_messages: bool,
    /// `claude`: nothing begins before the host said `initialize`.
    pub await_initialize: bool,
    /// `claude`: the copy of the session goes to the stream too.
    pub session_mirror: bool,
    /// The prompt whose turn alone may be left out where the session goes on from an earlier place.
    pub resume_drops_turn: Option<String>,
    /// Where everything that is written is kept too.
    pub debug: Option<DebugLog>,
    /// `claude`: the state of the session too.
    pub session_state: bool,
    /// `claude`: the caller is a Qwen Code SDK.
    pub qwen_sdk: bool,
    /// `claude`: permission questions go over the control channel.
    pub permission_prompts: bool,
    /// The tool of an MCP server that answers them instead.
    pub permission_tool: Option<Arc<str>>,
    /// What needs an answer is refused instead.
    pub never_ask: bool,
    /// `claude`: repeat the user's messages.
    pub replay_user_messages: bool,
    /// `loom`: which events.
    pub stream_modes: Vec<StreamMode>,
    /// The user's home.
    pub home: Option<PathBuf>,
    /// Where we keep our own things.
    pub qwen_home: Option<PathBuf>,
    /// Who wants to hear about the work, and may object.
    pub hooks: Arc<HookSet>,
}

/// Where everything that is written is kept too.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DebugLog {
    /// On standard error.
    Stderr,
    /// In this file.
    File(PathBuf),
}

/// How output goes out, decided before anything can go wrong, so that what goes wrong is said in the right words.
pub struct Voice {
    /// The wire.
    pub dialect: Dialect,
    /// The format; none means words for people.
    pub format: Option<Format>,
}

impl Voice {
    /// Decides the wire and the format. Without settings, which may be what went wrong, flags and environment decide.
    pub fn resolve(run: &Run, world: &Invocation, output: Option<&file::Output>) -> Result<Self, ErrorInfo> {
        let format = match run.output_format {
            Some(OutputFormat::Text) => None,
            Some(OutputFormat::Json) => Some(Format::Json),
            Some(OutputFormat::StreamJson) => Some(Format::StreamJson),
            Some(OutputFormat::StreamChunkJson) => Some(Format::StreamChunkJson),
            None if run.json => Some(Format::StreamJson),
            None => match run.input_format {
                Some(InputFormat::StreamJson) => Some(Format::StreamJson),
                Some(InputFormat::StreamChunkJson) => Some(Format::StreamChunkJson),
                None | Some(InputFormat::Text) => match output.and_then(|output| output.format.as_deref()) {
                    Some("json") => Some(Format::Json),
                    Some("stream-json") => Some(Format::StreamJson),
                    Some("stream-chunk-json") => Some(Format::StreamChunkJson),
                    Some(_) => None,
                    // Who names a wire wants to read it; a variable or a setting only says which, once one is wanted.
                    None => run.dialect.is_some().then_some(Format::StreamJson),
                },
            },
        };
        let setting = output.and_then(|output| output.dialect);
        Ok(Self { dialect: dialect::resolve(run, world, setting, format)?, format })
    }
}

impl Config {
    /// Decides everything.
    pub fn resolve(
        run: &Run,
        world: &Invocation,
        settings: Settings,
        layered: Layered,
        voice: &Voice,
    ) -> Result<Self, ErrorInfo> {
        let mut warnings = ignored_flags(run);
        warnings.extend(claude::managed(&run.claude)?.ignored.iter().map(|key| {
            format!("--managed-settings: \"{key}\" is ignored: it can only forbid, by permissions.deny, permissions.ask and sandbox.enabled")
        }));
        let store = sessions::store(world);
        let (session_id, beginning) = sessions::resolve(run, world, voice.dialect, store.as_ref())?;
        let input_format = match run.input_format {
            None | Some(InputFormat::Text) => "text",
            Some(InputFormat::StreamJson) => "stream-json",
            Some(InputFormat::StreamChunkJson) => "stream-chunk-json",
        };
        let model = model::resolve(run, world, &layered, &settings.model);
        let (model, key_source) = match model {
            Ok((mut model, key_source)) => {
                claude::ask_for_betas(&mut model, &run.claude, &mut warnings);
                claude::introduce(&mut model, world);
                (Ok(model), key_source)
            }
            Err(error) => (Err(error), "none".into()),
        };
        let redactor = redactor(&settings, world);
        let model_name: Arc<str> = match &model {
            Ok(config) => config.model.as_str().into(),
            Err(_) => settings.model.name.as_deref().unwrap_or("none").into(),
        };
        let system_prompt = match &run.system_prompt_file {
            Some(path) => {
                let unreadable = |error| unreadable("--system-prompt-file", path, &error);
                Some(std::fs::read_to_string(path).map_err(unreadable)?)
            }
            // The SDKs send an empty prompt when their user set none.
            None => run.system_prompt.clone().filter(|text| !text.is_empty()),
        };
        let limits = limits::resolve(&settings.limits, limits::prices(&settings.model));
        warnings.extend(limits::unpriced(&limits, &model_name));
        let extra_roots = tooling::directories(&settings, world, &mut warnings);
        let brought = project_config::load(world, &layered, &mut warnings);
        let mut servers = mcp::resolve(&layered.root, &settings)?;
        let wanted: &[PathBuf] = if run.configuration.safe_mode { &[] } else { &run.claude.plugin_dir };
        let plugins = plugins::load(wanted, world, &mut warnings);
        servers.add_those_of_plugins(plugins.servers, &settings, &mut warnings);
        let agents: Vec<AgentDefinition> = brought
            .agents
            .into_iter()
            .chain(plugins.agents)
            .chain(agent_definitions::of_flag(run.claude.agents.as_deref())?)
            .collect();
        let (agent, main_agent) = agent(run, &settings, voice.dialect, &agents)?;
        let tracing = telemetry::resolve(&settings.telemetry, &layered, world, &redactor, &mut warnings);
        Ok(Self {
            dialect: voice.dialect,
            format: voice.format,
            structured_input: input_format != "text",
            input_format,
            session_id,
            beginning,
            store,
            mirror: sessions::mirror(run, world, settings.general.chat_recording),
            record: sessions::record(run, settings.general.chat_recording),
            transcripts: sessions::transcripts(world),
            model,
            model_name,
            key_source,
            limits,
            answer_schema: answer_schema(run, world)?,
            policy: policy(&settings, world, &extra_roots)?,
            agent,
            names_model: run.model.is_some(),
            main_agent,
            thinking: thinking::resolve(&settings.agent)?,
            system_prompt,
            append_system_prompt: run.append_system_prompt.clone().filter(|text| !text.is_empty()),
            environment_in_prompt: false,
            cwd: world.cwd.clone(),
            agents,
            skills: brought.skills.into_iter().chain(plugins.skills).collect(),
            plugins: plugins.all,
            mcp_servers: servers.wanted,
            unwanted_mcp_servers: servers.unwanted,
            files: layered.files,
            sandbox: match settings.tools.sandbox {
                None | Some(file::Sandbox::Auto) => qwen_sandbox::SandboxMode::Auto,
                Some(file::Sandbox::On) => qwen_sandbox::SandboxMode::Required,
                Some(file::Sandbox::Off) => qwen_sandbox::SandboxMode::Off,
            },
            sandbox_network: settings.tools.sandbox_network.unwrap_or_default(),
            private: world.qwen_home().into_iter().collect(),
            extra_roots,
            sampling: Sampling { task_budget: run.claude.task_budget, ..tooling::sampling(&settings) },
            thinking_flags: claude::thinking(&run.claude)?,
            partial_messages: run.include_partial_messages,
            await_initialize: run.claude.await_initialize,
            session_mirror: run.claude.session_mirror.is_some(),
            resume_drops_turn: run.claude.resume_drops_turn.clone().filter(|id| !id.is_empty()),
            debug: match &run.claude.debug_file {
                Some(file) => Some(DebugLog::File(world.cwd.join(file))),
                None => run.claude.debug.as_ref().map(|_| DebugLog::Stderr),
            },
            session_state: world.var("CLAUDE_CODE_SDK_READS_SESSION_STATE").is_some_and(|v| v == "1"),
            qwen_sdk: run.channel.as_deref() == Some("SDK"),
            permission_prompts: run.permission_prompt_tool.is_some() && claude::host_answers(&run.claude)?,
            permission_tool: claude::permission_tool(run),
            never_ask: run.approval_mode.as_deref() == Some(NEVER_ASK),
            replay_user_messages: run.replay_user_messages,
            stream_modes: dialect::stream_modes(&run.stream_mode)?,
            home: world.var("HOME").map(PathBuf::from),
            qwen_home: world.qwen_home(),
            hooks: hooks::set(
                hooks::resolve(&settings.hooks).into_iter().chain(plugins.hooks).collect(),
                run,
                voice.dialect,
            ),
            redactor,
            tracing,
            warnings: layered.warnings.into_iter().chain(warnings).collect(),
            trust: layered.trust,
            settings,
        })
    }
}

impl Config {
    /// How the model samples: as the request says, and otherwise as the settings say.
    pub fn sampling_with(&self, request: Sampling) -> Sampling {
        let ours = &self.sampling;
        Sampling {
            temperature: request.temperature.or(ours.temperature),
            top_p: request.top_p.or(ours.top_p),
            max_tokens: request.max_tokens.or(ours.max_tokens),
            task_budget: request.task_budget.or(ours.task_budget),
            ..request
        }
    }
}

impl Config {
    /// The MCP servers that are configured and not used: those that are switched off, and those of a folder that is not
    /// trusted.
    pub fn unused_mcp_servers(&self) -> Vec<ServerStatus> {
        let unwanted = self.unwanted_mcp_servers.iter();
        let unwanted =
            unwanted.map(|(name, server)| ServerStatus::unused(name.clone(), server, Status::Disabled));
        let untrusted = self.files.iter().filter(|file| file.state == Looked::NOT_TRUSTED);
        unwanted.chain(untrusted.flat_map(|file| mcp::untrusted(&file.path))).collect()
    }
}

/// The mode that is the default one, except that nobody is asked.
pub const NEVER_ASK: &str = "dontAsk";

/// The error where a flag names a file that cannot be read.
fn unreadable(flag: &str, path: &Path, error: &std::io::Error) -> ErrorInfo {
    let message = format!("{flag} {}: {error}", path.display());
    ErrorInfo::new(ErrorKind::Input, "unreadable_file", message)
}

/// An error in a flag's value.
fn bad_flag(message: String) -> ErrorInfo {
    ErrorInfo::new(ErrorKind::Usage, "bad_flag", message)
}

/// The judgement on calls.
fn policy(settings: &Settings, world: &Invocation, extra_roots: &[PathBuf]) -> Result<Policy, ErrorInfo> {
    let roots = std::iter::once(world.cwd.clone()).chain(extra_roots.iter().cloned());
    let mode = settings.permissions.default_mode.unwrap_or_default();
    let mut policy = Policy::new(mode, roots, world.var("HOME").map(PathBuf::from));
    policy.set_search_path(world.var("PATH").map(std::env::split_paths).into_iter().flatten());
    if settings.tools.sandbox != Some(file::Sandbox::Off) {
        policy.set_kernel(|| {
            let can = qwen_sandbox::can();
            Kernel { hides: can.deny_read, holds: can.protect_settings }
        });
    }
    tooling::add_rules(&mut policy, settings)?;
    Ok(policy)
}

/// The form of answers that `--json-schema` describes, in place or in a file.
fn answer_schema(run: &Run, world: &Invocation) -> Result<Option<Arc<AnswerSchema>>, ErrorInfo> {
    let Some(given) = run.json_schema.as_deref().filter(|given| !given.trim().is_empty()) else {
        return Ok(None);
    };
    let text = if given.trim_start().starts_with(['{', '[', '"']) {
        given.to_owned()
    } else {
        let path = world.cwd.join(given.strip_prefix('@').unwrap_or(given));
        std::fs::read_to_string(&path).map_err(|error| unreadable("--json-schema", &path, &error))?
    };
    AnswerSchema::parse(&text).map(|form| Some(Arc::new(form)))
}

/// What is said about flags that change nothing here.
fn ignored_flags(run: &Run) -> Vec<String> {
    let note = |flag: &&str| format!("--{flag} is accepted and changes nothing here");
    run.ignored.given.iter().map(note).collect()
}

/// How turns are worked on, and which sub-agent the session itself is. Claude's SDKs name one that may come only with the
/// handshake.
fn agent(
    run: &Run,
    settings: &Settings,
    dialect: Dialect,
    agents: &[AgentDefinition],
) -> Result<(Arc<str>, Option<Arc<str>>), ErrorInfo> {
    let name = settings.agent.name.as_deref().unwrap_or(REACT);
    if qwen_engine::AGENTS.contains(&name) {
        return Ok((name.into(), None));
    }
    let known = subagent::builtin().iter().chain(agents).any(|agent| &*agent.name == name);
    if run.agent.is_some() && (known || dialect == Dialect::Claude) {
        return Ok((REACT.into(), Some(name.into())));
    }
    Err(qwen_engine::unknown_agent(name))
}
