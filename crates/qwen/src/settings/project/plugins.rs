//! Plugins that `--plugin-dir` names: directories with commands, agents, skills, hooks and MCP servers.
//!
//! The user's flag names them, so they need no folder trust. Their commands, agents and skills are prefixed
//! with the plugin's name, so that they replace nothing else. An unusable part is left out with a warning.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use qwen_engine::DefinitionSource;
use qwen_engine::hooks::{HookConfig, HookEvent};
use qwen_engine::skill::{self, Skill};
use qwen_engine::subagent::{self, AgentDefinition};
use qwen_mcp::{ServerConfig, parse_server};
use serde_json::Value;

use crate::settings::Invocation;
use crate::settings::file::{HookGroup, read_file};
use crate::settings::hooks;

/// The placeholder in commands for the plugin's directory.
const ROOT: &str = "${CLAUDE_PLUGIN_ROOT}";

/// The paths of hooks and of MCP servers in a plugin.
const HOOKS: &str = "hooks/hooks.json";
const SERVERS: &str = ".mcp.json";

/// The largest file that is read, in bytes.
const MAX_BYTES: u64 = 1024 * 1024;

/// The contents of all plugins.
#[derive(Default)]
pub(crate) struct Plugins {
    /// Their names and directories.
    pub all: Vec<(Arc<str>, PathBuf)>,
    pub agents: Vec<AgentDefinition>,
    pub skills: Vec<Skill>,
    pub hooks: Vec<HookConfig>,
    pub servers: Vec<(Arc<str>, ServerConfig)>,
}

pub(crate) fn load(directories: &[PathBuf], invocation: &Invocation, warnings: &mut Vec<String>) -> Plugins {
    let mut plugins = Plugins::default();
    for directory in directories {
        let root = invocation.cwd.join(directory);
        match root.canonicalize() {
            Ok(root) if root.is_dir() => plugins.add(root, warnings),
            _ => warnings.push(format!("--plugin-dir {}: there is no such directory", directory.display())),
        }
    }
    plugins
}

impl Plugins {
    fn add(&mut self, root: PathBuf, warnings: &mut Vec<String>) {
        let manifest = json(&root, ".claude-plugin/plugin.json", warnings).unwrap_or_default();
        let folder = root.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let name: Arc<str> = manifest["name"].as_str().map_or(folder, str::to_owned).into();
        let own = |thing: &str| -> Arc<str> { format!("{name}:{thing}").into() };
        let agents = subagent::load(&root.join("agents"), DefinitionSource::User, warnings);
        self.agents
            .extend(agents.into_iter().map(|agent| AgentDefinition { name: own(&agent.name), ..agent }));
        let skills = skill::load(&root.join("skills"), DefinitionSource::User, warnings);
        self.skills.extend(skills.into_iter().map(|skill| Skill { name: own(&skill.name), ..skill }));
        self.add_hooks(&root, warnings);
        self.add_servers(&root, warnings);
        self.all.push((name, root));
    }

    fn add_hooks(&mut self, root: &Path, warnings: &mut Vec<String>) {
        let Some(file) = json(root, HOOKS, warnings) else { return };
        let path = root.join(HOOKS);
        for (event, groups) in file["hooks"].as_object().into_iter().flatten() {
            let Some(event) = HookEvent::parse(event) else {
                warnings.push(format!("{}: there is no event '{event}'", path.display()));
                continue;
            };
            for group in groups.as_array().into_iter().flatten() {
                match serde_json::from_value::<HookGroup>(group.clone()) {
                    Ok(group) => self.hooks.extend(hooks::of_group(event, &group)),
                    Err(error) => warnings.push(format!("{}: {error}", path.display())),
                }
            }
        }
    }

    fn add_servers(&mut self, root: &Path, warnings: &mut Vec<String>) {
        let Some(file) = json(root, SERVERS, warnings) else { return };
        let path = root.join(SERVERS);
        let servers = file.get("mcpServers").unwrap_or(&file);
        for (name, config) in servers.as_object().into_iter().flatten() {
            match parse_server(name, config) {
                Ok(config) => self.servers.push((name.as_str().into(), config)),
                Err(error) => warnings.push(format!("{}: {error}", path.display())),
            }
        }
    }
}

/// Reads a JSON file in a plugin's directory `root` and replaces the placeholder with that directory. None if
/// the file does not exist.
fn json(root: &Path, file: &str, warnings: &mut Vec<String>) -> Option<Value> {
    let path = root.join(file);
    let metadata = std::fs::metadata(&path).ok()?;
    let read = if metadata.len() > MAX_BYTES {
        Err("it is longer than 1 MiB".to_owned())
    } else {
        let text = read_file(&path).map_err(|error| error.to_string());
        text.and_then(|text| serde_json::from_str::<Value>(&text).map_err(|error| error.to_string()))
    };
    match read {
        Ok(mut value) => {
            fill(&mut value, &root.to_string_lossy());
            Some(value)
        }
        Err(error) => {
            warnings.push(format!("{}: {error}; it is left out", path.display()));
            None
        }
    }
}

/// Replaces the placeholder with the plugin's directory in every string.
fn fill(value: &mut Value, root: &str) {
    match value {
        Value::String(text) if text.contains(ROOT) => *text = text.replace(ROOT, root),
        Value::Array(items) => items.iter_mut().for_each(|item| fill(item, root)),
        Value::Object(fields) => fields.values_mut().for_each(|field| fill(field, root)),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plugin_is_its_own_directory_whatever_that_is_called() {
        let place = tempfile::tempdir().unwrap();
        let root = place.path().canonicalize().unwrap().join("hooks");
        std::fs::create_dir_all(root.join("hooks")).unwrap();
        let hooks =
            r#"{"hooks":{"Stop":[{"hooks":[{"type":"command","command":"${CLAUDE_PLUGIN_ROOT}/x"}]}]}}"#;
        std::fs::write(root.join(HOOKS), hooks).unwrap();
        let servers = r#"{"mcpServers":{"s":{"command":"${CLAUDE_PLUGIN_ROOT}/y"}}}"#;
        std::fs::write(root.join(SERVERS), servers).unwrap();
        let mut warnings = Vec::new();
        for (file, ends) in [(HOOKS, "x"), (SERVERS, "y")] {
            let read = json(&root, file, &mut warnings).unwrap().to_string();
            assert!(read.contains(&root.join(ends).display().to_string()), "{read}");
        }
        assert_eq!(warnings, Vec::<String>::new());
    }
}
