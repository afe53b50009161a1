//! Resolves the command line against the world: the only place that reads the environment.

mod dialect;
mod limits;
mod mcp;
mod model;
mod rules;
mod thinking;
mod sessions;
mod world;

use std::path::PathBuf;
use std::sync::Arc;

use qwen_dialects::{Dialect, Format, StreamMode};
use qwen_engine::{Limits, ThinkingOptions};
use qwen_engine::hooks::HookSet;
use qwen_engine::log::Store;
use qwen_engine::subagent::AgentDefinition;
use qwen_events::{Behavior, ErrorInfo, ErrorKind, SessionId};
use qwen_model::ModelConfig;
use qwen_tools::mcp::ServerConfig;
use qwen_tools::permissions::{Mode, RuleSource};
use qwen_tools::redact::Redactor;
use qwen_tools::sandbox;

pub use sessions::{Beginning, store};
pub use world::World;

use crate::cli::{InputFormat, OutputFormat, Run};

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
    /// The model; an error only once a turn needs it, so that the handshake and the error record can be written.
    pub model: Result<ModelConfig, ErrorInfo>,
    /// The model's name for readers.
    pub model_name: Arc<str>,
    /// Where the credentials come from, for readers.
    pub key_source: Arc<str>,
    /// Limits.
    pub limits: Limits,
    /// The approval mode.
    pub mode: Mode,
    /// The agent.
    pub agent: Arc<str>,
    /// How trees and graphs of thoughts grow.
    pub thinking: ThinkingOptions,
    /// Replaces the system prompt.
    pub system_prompt: Option<String>,
    /// Is added to the system prompt.
    pub append_system_prompt: Option<String>,
    /// The working directory.
    pub cwd: PathBuf,
    /// Further directories that tools may work in.
    pub extra_roots: Vec<PathBuf>,
    /// Permission rules.
    pub rules: Vec<(Behavior, String, RuleSource)>,
    /// The built-in tools on offer; none means all.
    pub tools: Option<Vec<String>>,
    /// Sub-agents besides the built-in ones.
    pub agents: Vec<AgentDefinition>,
    /// The MCP servers.
    pub mcp_servers: Vec<(Arc<str>, ServerConfig)>,
    /// What keeps secrets from everyone.
    pub redactor: Arc<Redactor>,
    /// Whether commands run in a sandbox.
    pub sandbox: sandbox::Mode,
    /// Whether commands in the sandbox reach the network.
    pub sandbox_network: bool,
    /// Directories that commands in the sandbox cannot read: ours.
    pub private: Vec<PathBuf>,
    /// What `~` means.
    pub home: Option<PathBuf>,
    /// Where the shell looks for programs.
    pub search_path: Vec<PathBuf>,
    /// `claude`: pieces of messages too.
    pub partial_messages: bool,
    /// `claude`: the state of the session too.
    pub session_state: bool,
    /// `claude`: the caller is a Qwen Code SDK.
    pub qwen_sdk: bool,
    /// `claude`: permission questions go over the control channel.
    pub permission_prompts: bool,
    /// What needs an answer is refused instead.
    pub never_ask: bool,
    /// `claude`: repeat the user's messages.
    pub replay_user_messages: bool,
    /// `loom`: which events.
    pub stream_modes: Vec<StreamMode>,
    /// Where we keep our own things.
    pub qwen_home: Option<PathBuf>,
    /// Who wants to hear about the work, and may object.
    pub hooks: Arc<HookSet>,
}

/// How output goes out, decided before anything can go wrong, so that what goes wrong is said in the right words.
pub struct Voice {
    /// The wire.
    pub dialect: Dialect,
    /// The format; none means words for people.
    pub format: Option<Format>,
}

impl Voice {
    /// Decides the wire and the format from flags and environment alone.
    pub fn resolve(run: &Run, world: &World) -> Result<Self, ErrorInfo> {
        let format = match run.output_format {
            Some(OutputFormat::Text) => None,
            Some(OutputFormat::Json) => Some(Format::Json),
            Some(OutputFormat::StreamJson) => Some(Format::StreamJson),
            Some(OutputFormat::StreamChunkJson) => Some(Format::StreamChunkJson),
            None if run.json => Some(Format::StreamJson),
            None => match run.input_format {
                None | Some(InputFormat::Text) => None,
                Some(InputFormat::StreamJson) => Some(Format::StreamJson),
                Some(InputFormat::StreamChunkJson) => Some(Format::StreamChunkJson),
            },
        };
        Ok(Self { dialect: dialect::resolve(run, world, format)?, format })
    }
}

impl Config {
    /// Decides everything.
    pub fn resolve(run: &Run, world: &World, voice: &Voice) -> Result<Self, ErrorInfo> {
        let store = sessions::store(world);
        let (session_id, beginning) = sessions::resolve(run, world, voice.dialect, store.as_ref())?;
        let input_format = match run.input_format {
            None | Some(InputFormat::Text) => "text",
            Some(InputFormat::StreamJson) => "stream-json",
            Some(InputFormat::StreamChunkJson) => "stream-chunk-json",
        };
        let model = model::resolve(run, world);
        let (model, key_source) = match model {
            Ok((model, key_source)) => (Ok(model), key_source),
            Err(error) => (Err(error), "none".into()),
        };
        let model_name = match &model {
            Ok(config) => config.model.as_str().into(),
            Err(_) => run.model.as_deref().unwrap_or("none").into(),
        };
        let system_prompt = match &run.system_prompt_file {
            Some(path) => Some(std::fs::read_to_string(path).map_err(|error| {
                let message = format!("--system-prompt-file {}: {error}", path.display());
                ErrorInfo::new(ErrorKind::Input, "unreadable_file", message)
            })?),
            // The SDKs send an empty prompt when their user set none.
            None => run.system_prompt.clone().filter(|text| !text.is_empty()),
        };
        Ok(Self {
            dialect: voice.dialect,
            format: voice.format,
            structured_input: input_format != "text",
            input_format,
            session_id,
            beginning,
            store,
            record: sessions::record(run),
            mirror: sessions::mirror(run, world),
            model,
            model_name,
            key_source,
            limits: limits::resolve(run)?,
            mode: approval_mode(run)?,
            agent: agent(run)?,
            thinking: thinking::resolve(&run.thinking)?,
            system_prompt,
            append_system_prompt: run.append_system_prompt.clone().filter(|text| !text.is_empty()),
            cwd: world.cwd.clone(),
            extra_roots: run.include_directories.iter().map(|dir| world.cwd.join(dir)).collect(),
            rules: rules::resolve(run),
            tools: rules::tools(run),
            agents: Vec::new(),
            mcp_servers: mcp::resolve(run)?,
            redactor: Arc::new(Redactor::new(world.secrets(run.openai_api_key.as_deref()))),
            sandbox: sandbox_mode(run)?,
            sandbox_network: run.sandbox_network,
            private: world.qwen_home().into_iter().collect(),
            home: world.var("HOME").map(PathBuf::from),
            search_path: world
                .var("PATH")
                .map(|path| std::env::split_paths(path).collect())
                .unwrap_or_default(),
            partial_messages: run.include_partial_messages,
            session_state: world.var("CLAUDE_CODE_SDK_READS_SESSION_STATE").is_some_and(|v| v == "1"),
            qwen_sdk: run.channel.as_deref() == Some("SDK"),
            permission_prompts: run.permission_prompt_tool.is_some(),
            never_ask: run.approval_mode.as_deref() == Some(NEVER_ASK),
            replay_user_messages: run.replay_user_messages,
            stream_modes: dialect::stream_modes(&run.stream_mode)?,
            qwen_home: world.qwen_home(),
            hooks: Arc::new(HookSet::default()),
        })
    }
}

/// The mode that is the default one, except that nobody is asked.
pub const NEVER_ASK: &str = "dontAsk";

/// An error in a flag's value.
fn bad_flag(message: String) -> ErrorInfo {
    ErrorInfo::new(ErrorKind::Usage, "bad_flag", message)
}

fn approval_mode(run: &Run) -> Result<Mode, ErrorInfo> {
    let Some(word) = run.approval_mode.as_deref() else {
        return Ok(if run.yolo { Mode::Yolo } else { Mode::Default });
    };
    Mode::parse(word).ok_or_else(|| {
        bad_flag(format!("--approval-mode '{word}': the modes are plan, default, auto-edit and yolo"))
    })
}

fn sandbox_mode(run: &Run) -> Result<sandbox::Mode, ErrorInfo> {
    match run.sandbox.as_deref() {
        None | Some("auto") => Ok(sandbox::Mode::Auto),
        Some("" | "true" | "1") => Ok(sandbox::Mode::Required),
        Some("false" | "0" | "off" | "none") => Ok(sandbox::Mode::Off),
        Some(other) => Err(bad_flag(format!("--sandbox '{other}': give auto, true or false"))),
    }
}

fn agent(run: &Run) -> Result<Arc<str>, ErrorInfo> {
    let name = run.agent.as_deref().unwrap_or("react");
    if qwen_engine::AGENTS.contains(&name) { Ok(name.into()) } else { Err(qwen_engine::unknown_agent(name)) }
}
