//! Resolves flags, settings and environment into the [`Config`] of a process, one group after the other.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use qwen_dialects::Dialect;
use qwen_engine::agent::unknown_agent;
use qwen_engine::hooks::{HookConfig, HookSet};
use qwen_engine::subagent::{self, AgentDefinition};
use qwen_engine::{AnswerSchema, Limits};
use qwen_events::{AgentName, ErrorInfo, Sampling};
use qwen_permissions::{Kernel, Mode, Policy};

use super::config::{
    AgentConfig, Config, DebugTarget, DiagnosticsConfig, ExtensionConfig, LogConfig, LogLevel,
    ModelSelection, SandboxConfig, SessionConfig, StreamConfig, WorkspaceConfig,
};
use super::project::config::ProjectConfig;
use super::project::plugins::Plugins;
use super::{
    Invocation, Layered, MemorySources, OutputStyle, OutputWire, Settings, bad_flag, claude, dialect, file,
    hooks, limits, mcp, model, project, rules, sessions, telemetry, thinking, tooling, unreadable,
};
use crate::cli::{InputFormat, LogFormat, Run};
use crate::session::agent_definitions;

/// What the configuration is resolved from, and the warnings so far.
pub(super) struct Resolver<'a> {
    pub run: &'a Run,
    pub invocation: &'a Invocation,
    pub wire: &'a OutputWire,
    pub settings: Settings,
    pub layered: Layered,
    /// Warnings about flags and settings, one sentence each.
    pub warnings: Vec<String>,
}

/// What the project and the plugins contribute, besides hooks and servers.
struct Contributions {
    project: ProjectConfig,
    plugins: Plugins,
    /// Sub-agents of the project, the plugins and the flags.
    agents: Vec<AgentDefinition>,
}

impl Resolver<'_> {
    /// Resolves all groups. The first error ends it.
    pub fn resolve(mut self) -> Result<Config, ErrorInfo> {
        self.restrict_mode()?;
        let stream = self.stream()?;
        let session = self.session()?;
        let redactor = tooling::redactor(&self.settings, self.invocation);
        let model = self.model()?;
        let limits = self.limits(&model)?;
        let mut workspace = self.workspace()?;
        let (mut contributions, servers) = self.contributions()?;
        let hooks = self.hooks(std::mem::take(&mut contributions.plugins.hooks), &mut workspace.policy);
        let tracing = telemetry::resolve(
            &self.settings.telemetry,
            &self.layered,
            self.invocation,
            &redactor,
            &mut self.warnings,
        );
        let sandbox = self.sandbox()?;
        let claude = claude::host_options(self.run, self.invocation, self.settings.general.chat_recording)?;
        let agent = self.agent(&mut contributions, limits)?;
        Ok(Config {
            stream,
            session,
            model,
            agent,
            workspace,
            sandbox,
            extensions: ExtensionConfig {
                user_commands: contributions.project.user_commands,
                project_commands: contributions.project.project_commands,
                plugins: contributions.plugins.all,
                mcp_servers: servers.wanted,
                unwanted_mcp_servers: servers.unwanted,
                settings_files: self.layered.files,
                hooks,
            },
            claude,
            diagnostics: DiagnosticsConfig {
                redactor,
                tracing,
                log: log_config(self.run, self.invocation, self.wire),
                warnings: self.layered.warnings.into_iter().chain(self.warnings).collect(),
            },
            settings: self.settings,
        })
    }

    /// Applies `--restricted`, `permissions.disableBypassPermissionsMode` and `--managed-settings` to the mode.
    fn restrict_mode(&mut self) -> Result<(), ErrorInfo> {
        let permissions = &mut self.settings.permissions;
        if self.run.configuration.restricted && permissions.default_mode == Some(Mode::Yolo) {
            return Err(bad_flag("--restricted refuses the mode yolo (bypassPermissions)".to_owned()));
        }
        // A host could choose the mode later.
        if self.run.configuration.restricted {
            permissions.disable_bypass_permissions_mode = Some(true);
        }
        if permissions.disable_bypass_permissions_mode == Some(true)
            && permissions.default_mode == Some(Mode::Yolo)
        {
            permissions.default_mode = Some(Mode::Default);
            self.warnings.push(
                "the mode yolo (bypassPermissions) is disabled by the setting permissions.disableBypassPermissionsMode; \
                 the mode is default"
                    .to_owned(),
            );
        }
        self.warnings.extend(claude::managed(&self.run.claude)?.ignored.iter().map(|key| {
            format!("--managed-settings: \"{key}\" is ignored: it can only forbid, by permissions.deny, permissions.ask, permissions.disableBypassPermissionsMode and sandbox.enabled")
        }));
        Ok(())
    }

    /// True if input is JSON lines: the process is a worker.
    fn is_worker(&self) -> bool {
        !matches!(self.run.input_format, None | Some(InputFormat::Text))
    }

    fn stream(&self) -> Result<StreamConfig, ErrorInfo> {
        Ok(StreamConfig {
            dialect: self.wire.dialect,
            format: self.wire.format,
            structured_input: self.is_worker(),
            input_format: match self.run.input_format {
                None | Some(InputFormat::Text) => "text",
                Some(InputFormat::StreamJson) => "stream-json",
                Some(InputFormat::StreamChunkJson) => "stream-chunk-json",
            },
            stream_modes: dialect::stream_modes(&self.run.stream_mode)?,
            acp: dialect::acp_client(&self.run.acp)?,
            replay_user_messages: self.run.replay_user_messages,
            supervision: self.run.supervision.clone(),
        })
    }

    fn session(&self) -> Result<SessionConfig, ErrorInfo> {
        let store = sessions::store(self.invocation);
        let (id, start) = sessions::resolve(self.run, self.invocation, self.wire.dialect, store.as_ref())?;
        let record = sessions::record(self.run, self.settings.general.chat_recording);
        Ok(SessionConfig { id, start, store, record })
    }

    fn model(&mut self) -> Result<ModelSelection, ErrorInfo> {
        let model = model::resolve(self.run, self.invocation, &self.layered, &self.settings.model);
        let (config, key_source) = match model {
            Ok((mut model, key_source)) => {
                claude::add_beta_headers(&mut model, &self.run.claude, &mut self.warnings);
                claude::set_user_agent(&mut model, self.invocation);
                (Ok(model), key_source)
            }
            Err(error) => (Err(error), "none".into()),
        };
        let name = match &config {
            Ok(config) => config.model.as_str().into(),
            Err(_) => self.settings.model.name.as_deref().unwrap_or("none").into(),
        };
        Ok(ModelSelection {
            config,
            undecided: None,
            name,
            key_source,
            is_named_by_flag: self.run.model.is_some(),
            sampling: Sampling {
                task_budget: self.run.claude.task_budget,
                ..tooling::sampling(&self.settings)
            },
            thinking: claude::thinking(&self.run.claude)?,
        })
    }

    fn limits(&self, model: &ModelSelection) -> Result<Limits, ErrorInfo> {
        let limits = limits::resolve(&self.settings.limits, limits::prices(&self.settings.model));
        if model.config.is_ok() {
            limits::refuse_unpriced(&limits, &model.name)?;
        }
        Ok(limits)
    }

    fn workspace(&mut self) -> Result<WorkspaceConfig, ErrorInfo> {
        let extra_roots = tooling::directories(&self.settings, self.invocation, &mut self.warnings);
        let policy = self.policy(&extra_roots)?;
        Ok(WorkspaceConfig {
            cwd: self.invocation.cwd.clone(),
            policy,
            extra_roots,
            home: self.invocation.var("HOME").map(PathBuf::from),
            qwen_home: self.invocation.qwen_home(),
            is_trusted: self.layered.trust.decision().is_trusted(),
            memory_files: MemorySources::resolve(&self.settings, self.invocation, &self.layered),
        })
    }

    /// The approval mode and the permission rules.
    fn policy(&mut self, extra_roots: &[PathBuf]) -> Result<Policy, ErrorInfo> {
        let (settings, invocation) = (&self.settings, self.invocation);
        let roots = std::iter::once(invocation.cwd.clone()).chain(extra_roots.iter().cloned());
        let mode = settings.permissions.default_mode.unwrap_or_default();
        let home = invocation.var("HOME").map(PathBuf::from);
        let mut policy = Policy::new(mode, roots, home, qwen_engine::TOOLS);
        policy.set_search_path(invocation.var("PATH").map(std::env::split_paths).into_iter().flatten());
        if settings.tools.sandbox != Some(file::Sandbox::Off) {
            policy.set_kernel(|| {
                let can = qwen_sandbox::guarantees();
                Kernel { hides: can.deny_read, holds: can.protect_settings }
            });
        }
        if settings.permissions.disable_bypass_permissions_mode == Some(true) {
            policy.disable_yolo();
        }
        let is_worker = self.is_worker();
        tooling::add_rules(&mut policy, settings, is_worker, &mut self.warnings)?;
        let supervision = &self.run.supervision;
        let own = supervision.visible_dir.iter().cloned().chain(invocation.qwen_home());
        let own = own.chain(invocation.var("TMPDIR").map(PathBuf::from));
        let own = own.chain([invocation.cwd.clone()]).chain(extra_roots.iter().cloned());
        policy.set_private(supervision.private_dir.iter().cloned(), own);
        if let Some(home) = invocation.qwen_home() {
            policy.set_own_state(&invocation.cwd.join(home));
        }
        Ok(policy)
    }

    /// Loads what the project, the plugins and the flags bring along, and the MCP servers of all of them.
    fn contributions(&mut self) -> Result<(Contributions, mcp::Servers), ErrorInfo> {
        self.warnings.extend(hooks::unknown_tools(&self.settings.hooks, self.is_worker()));
        let mut project = project::config::load(self.invocation, &self.layered, &mut self.warnings);
        let mut servers = mcp::resolve(&self.layered.root, &self.settings)?;
        let wanted: &[PathBuf] =
            if self.run.configuration.safe_mode { &[] } else { &self.run.claude.plugin_dir };
        let mut plugins = project::plugins::load(wanted, self.invocation, &mut self.warnings);
        let of_plugins = std::mem::take(&mut plugins.servers);
        servers.add_those_of_plugins(of_plugins, &self.settings, &mut self.warnings);
        let mut agents = std::mem::take(&mut project.agents);
        agents.append(&mut plugins.agents);
        agents.extend(agent_definitions::of_flag(self.run.claude.agents.as_deref())?);
        self.warnings.extend(tooling::unknown_tools_of_agents(&agents, self.is_worker()));
        Ok((Contributions { project, plugins, agents }, servers))
    }

    /// The hooks of the settings and the plugins. Their scripts become protected.
    fn hooks(&self, of_plugins: Vec<HookConfig>, policy: &mut Policy) -> Arc<HookSet> {
        let mut all = hooks::resolve(&self.settings.hooks, &self.layered.root);
        all.extend(of_plugins);
        policy.set_scripts(hooks::find_scripts(&all, self.invocation));
        hooks::set(all, self.run, self.wire.dialect)
    }

    fn agent(&mut self, contributions: &mut Contributions, limits: Limits) -> Result<AgentConfig, ErrorInfo> {
        let (name, main_agent) = self.agent_names(&contributions.agents)?;
        let mut skills = std::mem::take(&mut contributions.project.skills);
        skills.append(&mut contributions.plugins.skills);
        Ok(AgentConfig {
            tool_names: tooling::vocabulary(self.run, self.invocation, self.settings.tools.names),
            name,
            main_agent,
            thinking: thinking::resolve(&self.settings.agent)?,
            system_prompt: self.system_prompt()?,
            append_system_prompt: self.appended_prompt()?,
            policy_description: self.run.policy_description.clone(),
            output_style: self.output_style(),
            environment_in_prompt: self.run.claude.exclude_dynamic_system_prompt_sections,
            has_agents: true,
            definitions: std::mem::take(&mut contributions.agents),
            skills,
            skill_places: std::mem::take(&mut contributions.project.skill_places),
            limits,
            answer_schema: self.answer_schema()?,
        })
    }

    /// The agent graph that runs turns, and the sub-agent definition that the session itself uses. Claude's SDKs
    /// may name one that arrives only with the handshake.
    fn agent_names(&self, agents: &[AgentDefinition]) -> Result<(AgentName, Option<Arc<str>>), ErrorInfo> {
        let name = self.settings.agent.name.as_deref().unwrap_or(AgentName::React.name());
        if let Some(agent) = AgentName::parse(name) {
            return Ok((agent, None));
        }
        let builtin = subagent::builtin();
        let is_defined = builtin.iter().chain(agents).any(|agent| &*agent.name == name);
        if self.run.agent.is_some() && (is_defined || self.wire.dialect == Dialect::Claude) {
            return Ok((AgentName::React, Some(name.into())));
        }
        let mut error = unknown_agent(name);
        let defined: Vec<&str> = builtin.iter().chain(agents).map(|agent| &*agent.name).collect();
        let mut message = error.message.to_string();
        if !defined.is_empty() {
            message = format!("{message}, and the sub-agents {}", defined.join(", "));
        }
        let mut names = defined;
        names.extend_from_slice(&AgentName::ALL.map(AgentName::name));
        if let Some(similar) = file::nearest(name, names) {
            message = format!("{message}; did you mean '{similar}'?");
        }
        error.message = message.into();
        Err(error)
    }

    fn output_style(&mut self) -> OutputStyle {
        let style = self.settings.output.style.as_deref();
        let is_trusted = self.layered.trust.decision().is_trusted();
        OutputStyle::find(style, &self.layered.claude, is_trusted, &mut self.warnings)
    }

    /// The text that replaces the built-in system prompt.
    fn system_prompt(&mut self) -> Result<Option<String>, ErrorInfo> {
        Ok(match &self.run.system_prompt_file {
            Some(path) => Some(self.read_text("--system-prompt-file", path)?),
            // The SDKs send an empty prompt if their user set none.
            None => self.run.system_prompt.clone().filter(|text| !text.is_empty()),
        })
    }

    /// The text that the flags add to the system prompt.
    fn appended_prompt(&mut self) -> Result<Option<String>, ErrorInfo> {
        let from_file = match &self.run.append_system_prompt_file {
            Some(path) => Some(self.read_text("--append-system-prompt-file", path)?),
            None => None,
        };
        let texts: Vec<String> = self.run.append_system_prompt.clone().into_iter().chain(from_file).collect();
        Ok(Some(texts.join("\n\n")).filter(|text| !text.trim().is_empty()))
    }

    /// Reads a file that a flag names. Bytes that are not UTF-8 are replaced, with a warning.
    fn read_text(&mut self, flag: &str, path: &Path) -> Result<String, ErrorInfo> {
        let bytes = std::fs::read(path).map_err(|error| unreadable(flag, path, &error))?;
        String::from_utf8(bytes).or_else(|error| {
            self.warnings.push(format!(
                "notice: {flag} {}: not UTF-8; invalid sequences were replaced by U+FFFD",
                path.display()
            ));
            Ok(String::from_utf8_lossy(error.as_bytes()).into_owned())
        })
    }

    /// The answer schema of `--json-schema`, given inline or as a file.
    fn answer_schema(&self) -> Result<Option<Arc<AnswerSchema>>, ErrorInfo> {
        let Some(given) = self.run.json_schema.as_deref().filter(|given| !given.trim().is_empty()) else {
            return Ok(None);
        };
        let text = if given.trim_start().starts_with(['{', '[', '"']) {
            given.to_owned()
        } else {
            let path = self.invocation.cwd.join(given.strip_prefix('@').unwrap_or(given));
            std::fs::read_to_string(&path).map_err(|error| unreadable("--json-schema", &path, &error))?
        };
        AnswerSchema::parse(&text).map(|schema| Some(Arc::new(schema)))
    }

    fn sandbox(&self) -> Result<SandboxConfig, ErrorInfo> {
        Ok(SandboxConfig {
            mode: match self.settings.tools.sandbox {
                None | Some(file::Sandbox::Auto) => qwen_sandbox::SandboxMode::Auto,
                Some(file::Sandbox::On) => qwen_sandbox::SandboxMode::Required,
                Some(file::Sandbox::Off) => qwen_sandbox::SandboxMode::Off,
            },
            network: self.settings.tools.sandbox_network.unwrap_or_default(),
            hosts: rules::network::resolve(&self.settings, self.invocation)?,
            private: self.private_directories(),
            visible: self.run.supervision.visible_dir.clone(),
        })
    }

    /// The directories that commands must not read: our state, and what the parent process names. One inside
    /// another is hidden with it.
    fn private_directories(&self) -> Vec<PathBuf> {
        let named = self.run.supervision.private_dir.iter().cloned();
        let all: Vec<PathBuf> = self.invocation.qwen_home().into_iter().chain(named).collect();
        let is_inside = |place: &PathBuf| all.iter().any(|other| place != other && place.starts_with(other));
        all.iter().filter(|place| !is_inside(place)).cloned().collect()
    }
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
