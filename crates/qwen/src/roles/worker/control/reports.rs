//! Reports that a Claude host asks for: cost, settings, models, rules and the output of tasks.

use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use qwen_dialects::claude::claude_mode;
use qwen_engine::ListedRule;
use qwen_events::{ErrorInfo, SessionReport};
use qwen_permissions::RuleSource;
use serde_json::{Value, json};

use super::{mcp, unknown};
use crate::roles::worker::worker::Worker;
use crate::runtime::exit;
use crate::session::setup;
use crate::settings::load_skills;

/// How much of a task's output one answer has, in bytes.
const MAX_OUTPUT: u64 = 8 * 1024;

impl Worker {
    pub(super) fn report(&self, report: &SessionReport) -> Result<Value, ErrorInfo> {
        Ok(match report {
            SessionReport::Cost => json!({"text": self.usage.session_cost(self.changed_lines())}),
            SessionReport::Usage => self.usage.session_usage(&self.process, self.changed_lines()),
            SessionReport::Settings => self.settings_in_force(),
            SessionReport::Models => json!({"models": self.models()}),
            SessionReport::PermissionRules => json!({"state": self.permission_rules()}),
            // These two are answered in separate tasks, see `control`.
            SessionReport::TaskOutput(id) => return Err(unknown("task", id)),
            SessionReport::Files(_) => json!({"suggestions": []}),
        })
    }

    /// The lines that file tools of the session added and removed.
    pub(super) fn changed_lines(&self) -> (u64, u64) {
        self.resources.upgrade().map(|resources| resources.lines.sums()).unwrap_or_default()
    }

    /// The models that can be chosen.
    pub(super) fn models(&self) -> Value {
        let model = &*self.process.config.model.name;
        json!([{"value": model, "displayName": model, "description": "The configured model"}])
    }

    fn settings_in_force(&self) -> Value {
        let overrides = &self.process.services.overrides;
        let model = overrides.model().unwrap_or_else(|| self.process.config.model.name.clone());
        let effort = overrides.effort();
        let rules = self.process.services.permissions.listed_rules();
        let of = |behavior: &str| -> Vec<&str> {
            rules.iter().filter(|rule| rule.behavior == behavior).map(|rule| &*rule.text).collect()
        };
        json!({
            "effective": {
                "model": &*model,
                "effortLevel": effort.as_deref(),
                "outputStyle": self.process.config.agent.output_style.name,
                "permissions": {
                    "allow": of("allow"),
                    "ask": of("ask"),
                    "deny": of("deny"),
                    "defaultMode": claude_mode(self.process.services.permissions.mode()),
                },
            },
            "sources": [],
            "applied": {"model": &*model, "effort": effort.as_deref()},
        })
    }

    fn permission_rules(&self) -> Value {
        let workspace = &self.process.config.workspace;
        let listed = |ListedRule { behavior, text, source }: &ListedRule| {
            let (source, editability) = self.place_of(source);
            json!({"behavior": behavior, "source": source, "rule": &**text, "editability": editability})
        };
        let rules: Vec<Value> = self.process.services.permissions.listed_rules().iter().map(listed).collect();
        let directory = |path: &Path, source: &str| json!({"path": path.to_string_lossy(), "source": source});
        let added = self.process.services.permissions.added_directories();
        let directories: Vec<Value> = (workspace.extra_roots.iter().map(|path| directory(path, "cliArg")))
            .chain(added.iter().map(|path| directory(path, "session")))
            .collect();
        json!({
            "rules": rules,
            "workspaceDirectories": directories,
            "originalCwd": workspace.cwd.to_string_lossy(),
            "managedOnly": false,
        })
    }

    /// Where a rule comes from and how it can be changed, in Claude's words.
    fn place_of(&self, source: &RuleSource) -> (&'static str, &'static str) {
        let workspace = &self.process.config.workspace;
        match source {
            RuleSource::Flag => ("cliArg", "session"),
            RuleSource::Session => ("session", "session"),
            RuleSource::Settings(origin) => {
                let path = Path::new(&**origin);
                if !path.is_absolute() {
                    ("flagSettings", "readonly")
                } else if origin.contains("settings.local.json") {
                    ("localSettings", "persistent")
                } else if path.starts_with(&workspace.cwd) {
                    ("projectSettings", "persistent")
                } else {
                    ("userSettings", "persistent")
                }
            }
        }
    }

    /// The end of the output of a background command.
    pub(super) async fn task_output(&self, id: &str) -> Result<Value, ErrorInfo> {
        let task = self.resources.upgrade().and_then(|resources| resources.tasks.get(id));
        let Some(task) = task.filter(|task| task.output != Path::new("")) else {
            return Err(unknown("command in the background", id));
        };
        task.catch_up().await;
        let (tail, total) = tail(&task.output).unwrap_or_default();
        Ok(json!({
            "output": String::from_utf8_lossy(&tail),
            "total_bytes": total,
            "truncated": total > MAX_OUTPUT,
        }))
    }

    /// Reads the skills from disk again. The running turn keeps those that it has.
    pub(super) fn reload_skills(&mut self) -> Value {
        let config = Arc::make_mut(&mut self.process.config);
        let mut warnings = Vec::new();
        let mut skills = load_skills(&config.agent.skill_places, &mut warnings);
        for warning in warnings {
            exit::report(&format!("qwen: {warning}"));
        }
        // Skills of plugins, which have the plugin's name in front, are read at the start only.
        skills.extend(config.agent.skills.iter().filter(|skill| skill.name.contains(':')).cloned());
        if let Some(wanted) = &self.control.wanted_skills {
            skills.retain(|skill| wanted.contains(&skill.name));
        }
        config.agent.skills = skills;
        self.process.skills = setup::skills(&self.process.config);
        self.control.skills_changed = true;
        let listed = self.process.skills.iter().flat_map(|skills| skills.skills());
        let listed: Vec<Value> = listed
            .map(
                |skill| json!({"name": &*skill.name, "description": &*skill.description, "argumentHint": ""}),
            )
            .collect();
        json!({"skills": listed})
    }

    /// What the plugins brought.
    pub(super) fn plugin_state(&self) -> Value {
        let plugin =
            |(name, root): &(Arc<str>, PathBuf)| json!({"name": &**name, "path": root.to_string_lossy()});
        let plugins: Vec<Value> = self.process.config.extensions.plugins.iter().map(plugin).collect();
        json!({
            "commands": self.commands(),
            "agents": self.agents(),
            "plugins": plugins,
            "mcpServers": mcp::status(&self.process.services.mcp)["mcpServers"],
            "error_count": 0,
        })
    }
}

/// The last bytes of a file, and how many it has.
fn tail(path: &Path) -> std::io::Result<(Vec<u8>, u64)> {
    let mut file = std::fs::File::open(path)?;
    let total = file.metadata()?.len();
    file.seek(SeekFrom::Start(total.saturating_sub(MAX_OUTPUT)))?;
    let mut tail = Vec::new();
    file.take(MAX_OUTPUT).read_to_end(&mut tail)?;
    Ok((tail, total))
}
