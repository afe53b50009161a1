//! The process context: state shared by all sessions of one process.

use std::sync::Arc;

use qwen_engine::commands::{CommandDirectories, CommandSet};
use qwen_engine::hooks::WorkspaceLimits;
use qwen_engine::memory::{self, Memory};
use qwen_engine::skill::SkillTool;
use qwen_engine::{Audience, Host, HostServers, NetworkGate, Permissions, ProcessServices, SessionOverrides};
use qwen_events::{ErrorInfo, ErrorKind};
use qwen_mcp::{Deps, Servers, WorkspaceServers};
use qwen_redact::is_secret;
use qwen_sandbox::SandboxMode;
use qwen_sandbox::process::{Environment, WITHHELD};
use qwen_tools::ToolVocabulary;

use super::{sandbox_policy, setup};
use crate::io::debug_log::DebugLog;
use crate::runtime::exit;
use crate::settings::{Config, EXPORT_HEADERS};

/// What a process holds over all its sessions. It dereferences to the part that sessions hold too. Cloning is
/// cheap: clones share everything, except that a change of `config` affects only the clone it is made in.
#[derive(Clone)]
pub struct ProcessContext {
    pub config: Arc<Config>,
    /// What sessions need of this context.
    pub services: Arc<ProcessServices>,
    pub commands: Arc<CommandSet>,
    pub memory: Arc<Memory>,
    /// The skill tool; `None` if no skill is defined.
    pub skills: Option<Arc<SkillTool>>,
    /// The environment of commands and MCP servers.
    pub env: Arc<Environment>,
    /// None unless `--debug` or `--debug-file` is given.
    pub debug_log: Option<DebugLog>,
}

impl ProcessContext {
    /// Builds the context of a run whose questions go to `host`.
    pub fn new(
        config: Arc<Config>,
        host: Arc<dyn Host>,
        debug_log: Option<DebugLog>,
    ) -> Result<Self, ErrorInfo> {
        config.sandbox.mode.check()?;
        let mut deps = Deps::new(config.workspace.cwd.clone());
        let env = Arc::new(environment(&config));
        deps.env = env.clone();
        deps.workspace = workspace_servers(&config, &env);
        config.extensions.hooks.limit_workspace(WorkspaceLimits {
            withheld: deps.workspace.withheld.clone(),
            private_hosts: deps.workspace.private_hosts.clone(),
        });
        let permissions = permissions(&config);
        let network = Arc::new(network_gate(&config, &permissions, &host));
        deps.sandbox = Some(sandbox_policy::for_servers(&config, &network));
        deps.host = Some(Arc::new(HostServers::new(host.clone())));
        let mcp = Servers::new(config.extensions.mcp_servers.iter().cloned(), deps)
            .map_err(|error| ErrorInfo::new(ErrorKind::Settings, "invalid_mcp_server", error.to_string()))?;
        let memory = Arc::new(load_memory(&config, &permissions));
        let services = ProcessServices {
            host,
            permissions,
            overrides: overrides(&config),
            mcp: Arc::new(mcp),
            hooks: config.extensions.hooks.clone(),
            network,
            audience: audience(&config),
        };
        Ok(Self {
            services: Arc::new(services),
            commands: Arc::new(commands(&config)),
            memory,
            skills: setup::skills(&config),
            env,
            config,
            debug_log,
        })
    }
}

/// What servers and hooks of a trusted workspace get of the user's variables and of the private network.
fn workspace_servers(config: &Config, env: &Environment) -> WorkspaceServers {
    let variables = &config.settings.security.workspace_variables;
    let withheld =
        env.names().filter(|name| is_secret(name) && !variables.iter().any(|allowed| allowed == name));
    WorkspaceServers {
        withheld: withheld.map(str::to_owned).collect(),
        variables: variables.clone(),
        private_hosts: config.settings.tools.web_fetch.allow_private_hosts.clone(),
    }
}

/// The decisions about the connections of sandboxed programs. Questions have the name that hosts of the
/// vocabulary know.
fn network_gate(config: &Config, permissions: &Arc<Permissions>, host: &Arc<dyn Host>) -> NetworkGate {
    let tool = match config.agent.tool_names {
        ToolVocabulary::Qwen => "network_access",
        ToolVocabulary::Claude => "SandboxNetworkAccess",
    };
    if config.sandbox.mode == SandboxMode::Off && permissions.restricts_network() {
        exit::report(
            "qwen: Network rules hold only in the sandbox, which is switched off: commands reach every host",
        );
    }
    NetworkGate::new(config.sandbox.hosts.clone(), permissions.clone(), host.clone(), audience(config), tool)
}

/// The slash commands: the built-in ones and those of the user, the trusted project and the plugins.
fn commands(config: &Config) -> CommandSet {
    let plugins = config.extensions.plugins.iter();
    let places = CommandDirectories {
        user: config.extensions.user_commands.clone(),
        workspace: config.extensions.project_commands.clone(),
        plugins: plugins.map(|(name, root)| (name.clone(), root.join("commands"))).collect(),
    };
    let commands = CommandSet::load(&places).without(&config.settings.slash_commands.disabled);
    match config.agent.tool_names {
        ToolVocabulary::Qwen => commands,
        ToolVocabulary::Claude => commands.with_claude_names(),
    }
}

/// Who drives this run: the terminal role reads events itself, without an output format.
fn audience(config: &Config) -> Audience {
    let stream = &config.stream;
    match (stream.structured_input, stream.format) {
        (true, Some(_)) => Audience::Program,
        (true, None) if stream.input_format == "text" => Audience::Terminal,
        (_, None) | (false, Some(_)) => Audience::Shell,
    }
}

/// Builds the permission checker from the approval mode and the rules of this run.
fn permissions(config: &Config) -> Arc<Permissions> {
    Arc::new(Permissions::new(config.workspace.policy.clone(), config.workspace.cwd.clone()))
}

/// The initial values of the settings that can change while a turn runs.
fn overrides(config: &Config) -> Arc<SessionOverrides> {
    let overrides = SessionOverrides::default();
    overrides.set_effort(config.settings.model.effort.as_deref().map(Arc::from));
    overrides.set_answer_schema(config.agent.answer_schema.clone());
    overrides.set_reasoning(config.model.thinking.reasoning);
    overrides.set_thoughts(config.model.thinking.thoughts);
    overrides.set_policy_description(config.agent.policy_description.as_deref());
    Arc::new(overrides)
}

/// The environment of commands: the process environment plus the variables of the settings.
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
    for credential in &config.settings.tools.network.credentials {
        env.remove(&credential.from_env);
    }
    if config.diagnostics.tracing.is_some() {
        // The collector's keys are as secret as the model's.
        for name in EXPORT_HEADERS {
            env.remove(name);
        }
    }
    env
}

fn load_memory(config: &Config, permissions: &Permissions) -> Memory {
    let context = &config.settings.context;
    let files = &config.workspace.memory_files;
    let locations = memory::MemoryLocations {
        names: &files.names,
        fallback: files.fallback,
        project: files.project,
        max_file: context.max_file_size.unwrap_or(memory::MAX_TOTAL),
        ..memory::MemoryLocations::new(files.home.as_deref(), &config.workspace.cwd)
    };
    Memory::load(&locations, &|path| !permissions.denies_reading(path))
}
