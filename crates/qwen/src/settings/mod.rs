//! Resolves the command line against the environment, which no other module reads.

mod built_in;
mod claude;
mod config;
mod dialect;
pub mod file;
mod hooks;
mod invocation;
mod layers;
mod limits;
mod mcp;
mod model;
mod project;
mod rules;
mod sessions;
mod telemetry;
mod thinking;
mod tooling;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use qwen_dialects::{Dialect, Format};
use qwen_engine::subagent::{self, AgentDefinition};
use qwen_engine::{AnswerSchema, REACT};
use qwen_events::{ErrorInfo, ErrorKind, Sampling};
use qwen_permissions::{Kernel, Mode, Policy};

pub use claude::ThinkingFlags;
pub use claude::config::{MemorySources, OutputStyle};
pub use config::{
    AgentConfig, Config, DebugTarget, DiagnosticsConfig, ExtensionConfig, LogConfig, LogLevel,
    ModelSelection, SandboxConfig, SessionConfig, StreamConfig, WorkspaceConfig,
};
pub use file::Settings;
pub use invocation::Invocation;
pub use layers::{Layered, SettingsFile};
pub use project::config::load_skills;
pub use project::content::{FolderContent, TreeContent, UserDirectories, collect_tree};
pub use project::trust::{Trust, TrustChange, TrustDecision, TrustList};
pub use rules::tool_names::is_tool_rule;
pub(crate) use rules::tool_names::problem as tool_name_problem;
pub use rules::writer::add_allow_rule;
pub use sessions::{SessionStart, session_by_prefix, store};
pub use telemetry::{HEADERS as EXPORT_HEADERS, of_hub as telemetry_of_hub};
pub use tooling::{excluded_actions, has_tool, redactor};

use crate::cli::{InputFormat, LogFormat, OutputFormat, Run};
use crate::session::agent_definitions;

/// The output format, decided before anything can fail, so that errors are reported in the right format.
pub struct OutputWire {
    pub dialect: Dialect,
    /// None means plain text.
    pub format: Option<Format>,
}

impl OutputWire {
    /// Decides the dialect and the format. Without settings, whose loading may be what failed, flags and
    /// environment decide.
    pub fn resolve(
        run: &Run,
        invocation: &Invocation,
        output: Option<&file::Output>,
    ) -> Result<Self, ErrorInfo> {
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
                    // A `--dialect` flag implies structured output. A variable or a setting only selects the
                    // dialect once structured output is requested.
                    None => run.dialect.is_some().then_some(Format::StreamJson),
                },
            },
        };
        let setting = output.and_then(|output| output.dialect);
        Ok(Self { dialect: dialect::resolve(run, invocation, setting, format)?, format })
    }
}

impl Config {
    /// True if no model is configured and the server may say which one it offers.
    pub fn needs_discovery(invocation: &Invocation, settings: &Settings, layered: &Layered) -> bool {
        model::needs_discovery(invocation, layered, &settings.model)
    }

    /// Resolves the complete configuration, after asking the server for its models.
    pub async fn resolve_with_discovery(
        run: &Run,
        invocation: &Invocation,
        mut settings: Settings,
        layered: Layered,
        wire: &OutputWire,
    ) -> Result<Self, ErrorInfo> {
        let undecided = model::discover(run, invocation, &layered, &mut settings.model).await;
        let mut config = Self::resolve(run, invocation, settings, layered, wire)?;
        config.model.undecided = undecided;
        Ok(config)
    }

    /// Resolves the complete configuration.
    pub fn resolve(
        run: &Run,
        invocation: &Invocation,
        mut settings: Settings,
        layered: Layered,
        wire: &OutputWire,
    ) -> Result<Self, ErrorInfo> {
        if run.configuration.restricted && settings.permissions.default_mode == Some(Mode::Yolo) {
            return Err(bad_flag("--restricted refuses the mode yolo (bypassPermissions)".to_owned()));
        }
        // A host could choose the mode later.
        if run.configuration.restricted {
            settings.permissions.disable_bypass_permissions_mode = Some(true);
        }
        let mut warnings = ignored_flags(run);
        if settings.permissions.disable_bypass_permissions_mode == Some(true)
            && settings.permissions.default_mode == Some(Mode::Yolo)
        {
            settings.permissions.default_mode = Some(Mode::Default);
            warnings.push(
                "the mode yolo (bypassPermissions) is disabled by the setting permissions.disableBypassPermissionsMode; \
                 the mode is default"
                    .to_owned(),
            );
        }
        warnings.extend(claude::managed(&run.claude)?.ignored.iter().map(|key| {
            format!("--managed-settings: \"{key}\" is ignored: it can only forbid, by permissions.deny, permissions.ask, permissions.disableBypassPermissionsMode and sandbox.enabled")
        }));
        let store = sessions::store(invocation);
        let (session_id, start) = sessions::resolve(run, invocation, wire.dialect, store.as_ref())?;
        let input_format = match run.input_format {
            None | Some(InputFormat::Text) => "text",
            Some(InputFormat::StreamJson) => "stream-json",
            Some(InputFormat::StreamChunkJson) => "stream-chunk-json",
        };
        let model = model::resolve(run, invocation, &layered, &settings.model);
        let (model, key_source) = match model {
            Ok((mut model, key_source)) => {
                claude::add_beta_headers(&mut model, &run.claude, &mut warnings);
                claude::set_user_agent(&mut model, invocation);
                (Ok(model), key_source)
            }
            Err(error) => (Err(error), "none".into()),
        };
        let redactor = redactor(&settings, invocation);
        let model_name: Arc<str> = match &model {
            Ok(config) => config.model.as_str().into(),
            Err(_) => settings.model.name.as_deref().unwrap_or("none").into(),
        };
        let system_prompt = match &run.system_prompt_file {
            Some(path) => Some(text_file("--system-prompt-file", path, &mut warnings)?),
            // The SDKs send an empty prompt if their user set none.
            None => run.system_prompt.clone().filter(|text| !text.is_empty()),
        };
        let limits = limits::resolve(&settings.limits, limits::prices(&settings.model));
        if model.is_ok() {
            limits::refuse_unpriced(&limits, &model_name)?;
        }
        let extra_roots = tooling::directories(&settings, invocation, &mut warnings);
        let mut policy = policy(&settings, invocation, &extra_roots, input_format != "text", &mut warnings)?;
        let own = run.supervision.visible_dir.iter().cloned().chain(invocation.qwen_home());
        let own = own.chain(invocation.var("TMPDIR").map(PathBuf::from));
        let own = own.chain([invocation.cwd.clone()]).chain(extra_roots.iter().cloned());
        policy.set_private(run.supervision.private_dir.iter().cloned(), own);
        if let Some(home) = invocation.qwen_home() {
            policy.set_own_state(&invocation.cwd.join(home));
        }
        warnings.extend(hooks::unknown_tools(&settings.hooks, input_format != "text"));
        let project = project::config::load(invocation, &layered, &mut warnings);
        let style = settings.output.style.as_deref();
        let is_trusted = layered.trust.decision().is_trusted();
        let output_style = OutputStyle::find(style, &layered.claude, is_trusted, &mut warnings);
        let memory_files = MemorySources::of(&settings, invocation, &layered);
        let mut servers = mcp::resolve(&layered.root, &settings)?;
        let wanted: &[PathBuf] = if run.configuration.safe_mode { &[] } else { &run.claude.plugin_dir };
        let plugins = project::plugins::load(wanted, invocation, &mut warnings);
        servers.add_those_of_plugins(plugins.servers, &settings, &mut warnings);
        let agents: Vec<AgentDefinition> = project
            .agents
            .into_iter()
            .chain(plugins.agents)
            .chain(agent_definitions::of_flag(run.claude.agents.as_deref())?)
            .collect();
        warnings.extend(tooling::unknown_tools_of_agents(&agents, input_format != "text"));
        let (agent, main_agent) = agent(run, &settings, wire.dialect, &agents)?;
        let hooks = hooks::resolve(&settings.hooks, &layered.root);
        let hooks: Vec<_> = hooks.into_iter().chain(plugins.hooks).collect();
        policy.set_scripts(hooks::find_scripts(&hooks, invocation));
        let tracing = telemetry::resolve(&settings.telemetry, &layered, invocation, &redactor, &mut warnings);
        Ok(Self {
            stream: StreamConfig {
                dialect: wire.dialect,
                format: wire.format,
                structured_input: input_format != "text",
                input_format,
                stream_modes: dialect::stream_modes(&run.stream_mode)?,
                replay_user_messages: run.replay_user_messages,
                supervision: run.supervision.clone(),
            },
            session: SessionConfig {
                id: session_id,
                start,
                store,
                record: sessions::record(run, settings.general.chat_recording),
            },
            model: ModelSelection {
                config: model,
                undecided: None,
                name: model_name,
                key_source,
                is_named_by_flag: run.model.is_some(),
                sampling: Sampling { task_budget: run.claude.task_budget, ..tooling::sampling(&settings) },
                thinking: claude::thinking(&run.claude)?,
            },
            agent: AgentConfig {
                tool_names: tooling::vocabulary(run, invocation, settings.tools.names),
                name: agent,
                main_agent,
                thinking: thinking::resolve(&settings.agent)?,
                system_prompt,
                append_system_prompt: appended_prompt(run, &mut warnings)?,
                policy_description: run.policy_description.clone(),
                output_style,
                environment_in_prompt: run.claude.exclude_dynamic_system_prompt_sections,
                has_agents: true,
                definitions: agents,
                skills: project.skills.into_iter().chain(plugins.skills).collect(),
                skill_places: project.skill_places,
                limits,
                answer_schema: answer_schema(run, invocation)?,
            },
            workspace: WorkspaceConfig {
                cwd: invocation.cwd.clone(),
                policy,
                extra_roots,
                home: invocation.var("HOME").map(PathBuf::from),
                qwen_home: invocation.qwen_home(),
                is_trusted,
                memory_files,
            },
            sandbox: SandboxConfig {
                mode: match settings.tools.sandbox {
                    None | Some(file::Sandbox::Auto) => qwen_sandbox::SandboxMode::Auto,
                    Some(file::Sandbox::On) => qwen_sandbox::SandboxMode::Required,
                    Some(file::Sandbox::Off) => qwen_sandbox::SandboxMode::Off,
                },
                network: settings.tools.sandbox_network.unwrap_or_default(),
                private: private_directories(run, invocation),
                visible: run.supervision.visible_dir.clone(),
            },
            extensions: ExtensionConfig {
                user_commands: project.user_commands,
                project_commands: project.project_commands,
                plugins: plugins.all,
                mcp_servers: servers.wanted,
                unwanted_mcp_servers: servers.unwanted,
                settings_files: layered.files,
                hooks: hooks::set(hooks, run, wire.dialect),
            },
            claude: claude::host_options(run, invocation, settings.general.chat_recording)?,
            diagnostics: DiagnosticsConfig {
                redactor,
                tracing,
                log: log_config(run, invocation, wire),
                warnings: layered.warnings.into_iter().chain(warnings).collect(),
            },
            settings,
        })
    }
}

/// The error for a flag that names an unreadable file. The directories that commands must not read: our
/// state, and what the parent process names. One inside another is hidden with it.
fn private_directories(run: &Run, invocation: &Invocation) -> Vec<PathBuf> {
    let all: Vec<PathBuf> =
        invocation.qwen_home().into_iter().chain(run.supervision.private_dir.iter().cloned()).collect();
    let is_inside = |place: &PathBuf| all.iter().any(|other| place != other && place.starts_with(other));
    all.iter().filter(|place| !is_inside(place)).cloned().collect()
}

fn unreadable(flag: &str, path: &Path, error: &std::io::Error) -> ErrorInfo {
    let message = format!("{flag} {}: {error}", path.display());
    ErrorInfo::new(ErrorKind::Input, "unreadable_file", message)
}

/// Reads a file that a flag names. Bytes that are not UTF-8 are replaced, with a warning.
fn text_file(flag: &str, path: &Path, warnings: &mut Vec<String>) -> Result<String, ErrorInfo> {
    let bytes = std::fs::read(path).map_err(|error| unreadable(flag, path, &error))?;
    String::from_utf8(bytes).or_else(|error| {
        warnings.push(format!(
            "notice: {flag} {}: not UTF-8; invalid sequences were replaced by U+FFFD",
            path.display()
        ));
        Ok(String::from_utf8_lossy(error.as_bytes()).into_owned())
    })
}

/// The text that the flags add to the system prompt.
fn appended_prompt(run: &Run, warnings: &mut Vec<String>) -> Result<Option<String>, ErrorInfo> {
    let from_file = match &run.append_system_prompt_file {
        Some(path) => Some(text_file("--append-system-prompt-file", path, warnings)?),
        None => None,
    };
    let texts: Vec<String> = run.append_system_prompt.clone().into_iter().chain(from_file).collect();
    Ok(Some(texts.join("\n\n")).filter(|text| !text.trim().is_empty()))
}

/// What is written to standard error and to the debug log.
fn log_config(run: &Run, invocation: &Invocation, wire: &OutputWire) -> LogConfig {
    let flags = &run.diagnostics;
    let is_text = wire.format.is_none();
    LogConfig {
        level: match () {
            () if flags.quiet => LogLevel::Warnings,
            // Claude hosts always pass `--verbose`, because the stream format requires it.
            () if flags.log_format == Some(LogFormat::Json) || flags.verbose && is_text => LogLevel::Steps,
            () => LogLevel::Summary,
        },
        is_json: flags.log_format == Some(LogFormat::Json),
        debug: match &flags.debug_file {
            Some(file) => Some(DebugTarget::File(invocation.cwd.join(file))),
            None => flags.debug.as_ref().map(|_| DebugTarget::Stderr),
        },
    }
}

fn bad_flag(message: String) -> ErrorInfo {
    ErrorInfo::new(ErrorKind::Usage, "bad_flag", message)
}

/// The permission policy.
fn policy(
    settings: &Settings,
    invocation: &Invocation,
    extra_roots: &[PathBuf],
    in_worker: bool,
    warnings: &mut Vec<String>,
) -> Result<Policy, ErrorInfo> {
    let roots = std::iter::once(invocation.cwd.clone()).chain(extra_roots.iter().cloned());
    let mode = settings.permissions.default_mode.unwrap_or_default();
    let mut policy = Policy::new(mode, roots, invocation.var("HOME").map(PathBuf::from), qwen_engine::TOOLS);
    policy.set_search_path(invocation.var("PATH").map(std::env::split_paths).into_iter().flatten());
    if settings.tools.sandbox != Some(file::Sandbox::Off) {
        policy.set_kernel(|| {
            let can = qwen_sandbox::can();
            Kernel { hides: can.deny_read, holds: can.protect_settings }
        });
    }
    if settings.permissions.disable_bypass_permissions_mode == Some(true) {
        policy.disable_yolo();
    }
    tooling::add_rules(&mut policy, settings, in_worker, warnings)?;
    Ok(policy)
}

/// The answer schema of `--json-schema`, given inline or as a file.
fn answer_schema(run: &Run, invocation: &Invocation) -> Result<Option<Arc<AnswerSchema>>, ErrorInfo> {
    let Some(given) = run.json_schema.as_deref().filter(|given| !given.trim().is_empty()) else {
        return Ok(None);
    };
    let text = if given.trim_start().starts_with(['{', '[', '"']) {
        given.to_owned()
    } else {
        let path = invocation.cwd.join(given.strip_prefix('@').unwrap_or(given));
        std::fs::read_to_string(&path).map_err(|error| unreadable("--json-schema", &path, &error))?
    };
    AnswerSchema::parse(&text).map(|form| Some(Arc::new(form)))
}

/// Warnings about flags that have no effect here.
fn ignored_flags(run: &Run) -> Vec<String> {
    let note = |flag: &&str| format!("--{flag} is accepted and changes nothing here");
    run.ignored.given.iter().map(note).collect()
}

/// The agent graph that runs turns, and the sub-agent definition that the session itself uses. Claude's SDKs
/// may name one that arrives only with the handshake.
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
    let mut error = qwen_engine::unknown_agent(name);
    let builtin = subagent::builtin();
    let defined: Vec<&str> = builtin.iter().chain(agents).map(|agent| &*agent.name).collect();
    let mut message = error.message.to_string();
    if !defined.is_empty() {
        message = format!("{message}, and the sub-agents {}", defined.join(", "));
    }
    if let Some(similar) = file::nearest(name, defined.into_iter().chain(qwen_engine::AGENTS.iter().copied()))
    {
        message = format!("{message}; did you mean '{similar}'?");
    }
    error.message = message.into();
    Err(error)
}
