//! Settings that a Claude host changes while a session runs: reasoning, model, effort and permission rules.

use std::path::PathBuf;
use std::sync::Arc;

use qwen_events::{
    Behavior, ErrorInfo, ErrorKind, Json, PermissionUpdate, Reasoning, SettingChange, Thoughts,
};
use qwen_permissions::Mode;
use serde_json::{Map, Value, json};

use crate::claude_host::session_mirror;
use crate::roles::worker::worker::Worker;
use crate::session::ProcessContext;

/// The changes that the host's settings made since the session started.
#[derive(Default)]
pub(super) struct HostSettings {
    /// The permission rules that they added.
    rules: Vec<(Behavior, Arc<str>)>,
}

impl HostSettings {
    /// Sets the reasoning budget and how much of it is shown, from the next model call on.
    pub fn set_thinking(
        process: &ProcessContext,
        tokens: &SettingChange<u64>,
        display: &SettingChange<Arc<str>>,
    ) -> Result<Value, ErrorInfo> {
        let overrides = &process.services.overrides;
        match tokens {
            SettingChange::Keep => {}
            SettingChange::Reset => overrides.set_reasoning(process.config.model.thinking.reasoning),
            SettingChange::Be(tokens) => overrides.set_reasoning(Some(Reasoning::of_tokens(*tokens))),
        }
        match display {
            SettingChange::Keep => {}
            SettingChange::Reset => overrides.set_thoughts(process.config.model.thinking.thoughts),
            SettingChange::Be(word) => {
                let thoughts = Thoughts::parse(word).ok_or_else(|| {
                    let word: String = word.chars().take(80).collect();
                    let message = format!("thinking_display '{word}' is not 'summarized' or 'omitted'");
                    ErrorInfo::new(ErrorKind::Input, "invalid_value", message).with_param("thinking_display")
                })?;
                overrides.set_thoughts(Some(thoughts));
            }
        }
        Ok(json!({}))
    }

    /// Applies settings for the rest of the session: all of them, or none if one is invalid.
    pub fn apply(&mut self, process: &ProcessContext, settings: &Json) -> Result<Value, ErrorInfo> {
        let settings: Map<String, Value> = serde_json::from_str(settings.as_str()).unwrap_or_default();
        let text = |key: &str, value: &Value| match value {
            Value::Null => Ok(None),
            Value::String(text) => Ok(Some(Arc::<str>::from(text.as_str()))),
            _ => Err(invalid(format!("{key} is not a text"))),
        };
        let (mut model, mut effort, mut reasoning, mut rules) = (None, None, None, None);
        for (key, value) in &settings {
            match key.as_str() {
                "model" => model = Some(text(key, value)?.filter(|name| &**name != "default")),
                "effortLevel" => effort = Some(text(key, value)?),
                "alwaysThinkingEnabled" => {
                    reasoning = Some(match value {
                        Value::Null => process.config.model.thinking.reasoning,
                        Value::Bool(true) => Some(Reasoning::Adaptive),
                        Value::Bool(false) => Some(Reasoning::Off),
                        _ => return Err(invalid(format!("{key} is not true or false"))),
                    });
                }
                "permissions" => rules = Some(HostRules::read(value)?),
                other => {
                    let other: String = other.chars().take(80).collect();
                    return Err(invalid(format!(
                        "'{other}' cannot be changed while a session runs; model, effortLevel, alwaysThinkingEnabled and \
                         permissions can"
                    )));
                }
            }
        }
        if let Some(rules) = rules {
            self.replace_rules(process, rules)?;
        }
        let overrides = &process.services.overrides;
        if let Some(model) = model {
            overrides.set_model(model);
        }
        if let Some(effort) = effort {
            overrides.set_effort(effort);
        }
        if let Some(reasoning) = reasoning {
            overrides.set_reasoning(reasoning);
        }
        Ok(json!({}))
    }

    /// Replaces the rules that the host's settings added before.
    fn replace_rules(&mut self, process: &ProcessContext, rules: HostRules) -> Result<(), ErrorInfo> {
        let mut updates: Vec<PermissionUpdate> = Vec::new();
        for (behavior, rule) in &self.rules {
            updates.push(PermissionUpdate::RemoveRules { behavior: *behavior, rules: vec![rule.clone()] });
        }
        // A rule that other settings also contain must not be removed later.
        let own: Vec<String> =
            self.rules.iter().map(|(behavior, rule)| format_rule(*behavior, rule)).collect();
        let others: Vec<String> =
            process.services.permissions.rules().into_iter().filter(|rule| !own.contains(rule)).collect();
        let mut added = Vec::new();
        for (behavior, rule) in rules.rules {
            updates.push(PermissionUpdate::AddRules { behavior, rules: vec![rule.clone()] });
            if !others.contains(&format_rule(behavior, &rule)) {
                added.push((behavior, rule));
            }
        }
        updates.extend(rules.mode.map(PermissionUpdate::SetMode));
        if !rules.directories.is_empty() {
            updates.push(PermissionUpdate::AddDirectories(rules.directories));
        }
        process.services.permissions.update_all(&updates)?;
        self.rules = added;
        Ok(())
    }
}

impl Worker {
    /// Adds a directory below the workspace, or below a directory that was added to it.
    pub(super) fn add_directory(&self, directory: &str) -> Result<Value, ErrorInfo> {
        let workspace = &self.process.config.workspace;
        let refuse = |problem: &dyn std::fmt::Display| {
            let shown: String = directory.chars().take(200).collect();
            ErrorInfo::new(ErrorKind::Input, "invalid_value", format!("{shown}: {problem}"))
                .with_param("directory")
        };
        let path = std::fs::canonicalize(workspace.cwd.join(directory)).map_err(|error| refuse(&error))?;
        let mut roots = std::iter::once(&workspace.cwd).chain(&workspace.extra_roots);
        let is_below = |root: &PathBuf| {
            std::fs::canonicalize(root).is_ok_and(|root| path != root && path.starts_with(root))
        };
        if !path.is_dir() || !roots.any(is_below) {
            return Err(refuse(&"it is not a directory below the workspace"));
        }
        let shown = path.to_string_lossy();
        self.process
            .services
            .permissions
            .update(&PermissionUpdate::AddDirectories(vec![shown.as_ref().into()]))?;
        Ok(json!({"directory": shown}))
    }

    /// Has each call of a server's tools asked about, also in modes that would run it, or ends that.
    pub(super) fn set_server_mode(&self, server: &str, mode: Option<&str>) -> Result<Value, ErrorInfo> {
        let rules = vec![Arc::from(format!("mcp__{server}"))];
        let update = match mode {
            None => PermissionUpdate::RemoveRules { behavior: Behavior::Ask, rules },
            Some("default" | "auto") => PermissionUpdate::AddRules { behavior: Behavior::Ask, rules },
            Some(other) => {
                let other: String = other.chars().take(80).collect();
                let message = format!("mode '{other}' is not 'default', 'auto' or null");
                return Err(ErrorInfo::new(ErrorKind::Input, "invalid_value", message).with_param("mode"));
            }
        };
        self.process.services.permissions.update(&update)?;
        if mode.is_none() || self.process.services.mcp.status().iter().any(|known| *known.name == *server) {
            return Ok(json!({}));
        }
        let warning =
            format!("there is no MCP server '{server}' yet; the mode applies as soon as there is one");
        Ok(json!({"warning": warning}))
    }

    /// Names the session in the copy that Claude's SDKs read.
    pub(super) fn rename_session(&self, title: &str) -> Result<Value, ErrorInfo> {
        let session = self.sessions.id();
        session_mirror::rename(&self.process.config, session, title).map_err(|error| {
            let message = format!("the session cannot be named: {error}");
            ErrorInfo::new(ErrorKind::Input, "unnamed_session", message)
        })?;
        Ok(json!({}))
    }
}

/// The `permissions` of the host's settings.
#[derive(Default)]
struct HostRules {
    rules: Vec<(Behavior, Arc<str>)>,
    mode: Option<Arc<str>>,
    directories: Vec<Arc<str>>,
}

impl HostRules {
    fn read(value: &Value) -> Result<Self, ErrorInfo> {
        let fields = match value {
            Value::Null => return Ok(Self::default()),
            Value::Object(fields) => fields,
            _ => return Err(invalid("permissions is not an object".to_owned())),
        };
        let mut rules = Self::default();
        for (key, value) in fields {
            let texts = || {
                let list =
                    value.as_array().map(|list| list.iter().map(Value::as_str).collect::<Option<Vec<_>>>());
                list.flatten().ok_or_else(|| invalid(format!("permissions.{key} is not a list of texts")))
            };
            let behavior = match key.as_str() {
                "allow" => Behavior::Allow,
                "ask" => Behavior::Ask,
                "deny" => Behavior::Deny,
                "additionalDirectories" => {
                    rules.directories = texts()?.into_iter().map(Arc::from).collect();
                    continue;
                }
                "defaultMode" => {
                    let mode = value.as_str().filter(|word| Mode::parse(word).is_some());
                    let mode =
                        mode.ok_or_else(|| invalid("permissions.defaultMode is not a mode".to_owned()))?;
                    rules.mode = Some(mode.into());
                    continue;
                }
                other => {
                    return Err(invalid(format!(
                        "permissions.{other} cannot be changed while a session runs"
                    )));
                }
            };
            rules.rules.extend(texts()?.into_iter().map(|rule| (behavior, Arc::from(rule))));
        }
        Ok(rules)
    }
}

/// A rule in the format of [`qwen_engine::Permissions::rules`].
fn format_rule(behavior: Behavior, rule: &str) -> String {
    let word = match behavior {
        Behavior::Allow => "allow",
        Behavior::Ask => "ask",
        Behavior::Deny => "deny",
    };
    format!("{word} {rule}")
}

fn invalid(message: String) -> ErrorInfo {
    ErrorInfo::new(ErrorKind::Input, "invalid_settings", message).with_param("settings")
}
