//! What hosts of Claude's SDKs turn while a session runs, and what they look up in it.

use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::sync::Arc;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use qwen_events::{
    Behavior, ErrorInfo, ErrorKind, Json, PermissionUpdate, Reasoning, SessionControl, SettingChange,
    Thoughts,
};
use qwen_mcp::{ServerConfig, Transport, parse_server};
use qwen_permissions::Mode;
use serde_json::{Map, Value, json};

use super::mcp::Change;
use super::serve::{Flow, Worker};

/// The most of a file that is shown unless the host says otherwise.
const MAX_FILE: u64 = 1024 * 1024;

/// What the host has turned since the session began.
#[derive(Default)]
pub(super) struct Turned {
    /// The MCP servers that it brought, and how each is configured.
    servers: Vec<(Arc<str>, Json)>,
    /// The rules that its settings added.
    rules: Vec<(Behavior, Arc<str>)>,
}

impl Worker {
    /// Does what the host wishes, and answers.
    pub(super) async fn steer(&mut self, request_id: Arc<str>, nested: bool, wish: SessionControl) -> Flow {
        let result = match wish {
            SessionControl::McpServers(servers) => {
                let change = self.replace_servers(servers);
                return self.change_mcp(request_id, nested, change);
            }
            SessionControl::Thinking { tokens, display } => self.think(&tokens, &display),
            SessionControl::FlagSettings(settings) => self.apply(&settings),
            SessionControl::SeenFile { path, mtime_ms } => {
                self.seen(&path, mtime_ms);
                Ok(json!({}))
            }
            SessionControl::ReadFile { path, max_bytes, base64 } => self.read_file(&path, max_bytes, base64),
            SessionControl::ReloadOutputStyles => Ok(json!({"available_output_styles": ["default"]})),
            SessionControl::WithdrawPrompt(uuid) => Ok(json!({"cancelled": self.forget_prompt(&uuid)})),
            SessionControl::Watched => Ok(json!({})),
        };
        self.reply(request_id, nested, result.map(|value| Json::trusted(value.to_string()))).await;
        Flow::On
    }

    /// Thinks so much from the next model call on, and shows so much of it.
    fn think(
        &self,
        tokens: &SettingChange<u64>,
        display: &SettingChange<Arc<str>>,
    ) -> Result<Value, ErrorInfo> {
        let overrides = &self.parts.overrides;
        match tokens {
            SettingChange::Keep => {}
            SettingChange::Reset => overrides.set_reasoning(self.config.thinking_flags.reasoning),
            SettingChange::Be(tokens) => overrides.set_reasoning(Some(Reasoning::of_tokens(*tokens))),
        }
        match display {
            SettingChange::Keep => {}
            SettingChange::Reset => overrides.set_thoughts(self.config.thinking_flags.thoughts),
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

    /// What must happen so that the host's servers are these: those that it brought before, and all that live in the
    /// host, go where they are not named again.
    fn replace_servers(&mut self, servers: Vec<(Arc<str>, Json)>) -> Change {
        let before = std::mem::take(&mut self.turned.servers);
        let there = self.parts.mcp.status();
        let hosted = there.iter().filter(|server| server.transport == "sdk").map(|server| &server.name);
        let brought = before.iter().map(|(name, _)| name);
        let mut gone: Vec<Arc<str>> = Vec::new();
        for name in hosted.chain(brought) {
            if !gone.contains(name) && !servers.iter().any(|(wanted, _)| wanted == name) {
                gone.push(name.clone());
            }
        }
        let mut come: Vec<(Arc<str>, ServerConfig)> = Vec::new();
        let mut errors = Map::new();
        for (name, json) in &servers {
            let value: Value = serde_json::from_str(json.as_str()).unwrap_or_default();
            let in_host = value["type"] == "sdk";
            let known = there.iter().find(|server| server.name == *name);
            let same = before.contains(&(name.clone(), json.clone()));
            if known.is_some_and(|server| same || in_host && server.transport == "sdk") {
                continue;
            }
            let config =
                if in_host { Ok(ServerConfig::new(Transport::Host)) } else { parse_server(name, &value) };
            match config {
                Ok(config) => come.push((name.clone(), config)),
                Err(error) => {
                    errors.insert(name.to_string(), error.to_string().into());
                }
            }
        }
        self.turned.servers = servers;
        Change::Replace { gone, come, errors }
    }

    /// Applies settings for the rest of the session: all of them, or none where one cannot be used.
    fn apply(&mut self, settings: &Json) -> Result<Value, ErrorInfo> {
        let settings: Map<String, Value> = serde_json::from_str(settings.as_str()).unwrap_or_default();
        let text = |key: &str, value: &Value| match value {
            Value::Null => Ok(None),
            Value::String(text) => Ok(Some(Arc::<str>::from(text.as_str()))),
            _ => Err(unusable(format!("{key} is not a text"))),
        };
        let (mut model, mut effort, mut reasoning, mut rules) = (None, None, None, None);
        for (key, value) in &settings {
            match key.as_str() {
                "model" => model = Some(text(key, value)?.filter(|name| &**name != "default")),
                "effortLevel" => effort = Some(text(key, value)?),
                "alwaysThinkingEnabled" => {
                    reasoning = Some(match value {
                        Value::Null => self.config.thinking_flags.reasoning,
                        Value::Bool(true) => Some(Reasoning::Adaptive),
                        Value::Bool(false) => Some(Reasoning::Off),
                        _ => return Err(unusable(format!("{key} is not true or false"))),
                    });
                }
                "permissions" => rules = Some(Rules::read(value)?),
                other => {
                    let other: String = other.chars().take(80).collect();
                    return Err(unusable(format!(
                        "'{other}' cannot be changed while a session runs; model, effortLevel, alwaysThinkingEnabled and \
                         permissions can"
                    )));
                }
            }
        }
        if let Some(rules) = rules {
            self.rule(rules)?;
        }
        let overrides = &self.parts.overrides;
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

    /// Follows these rules in the place of those that the host's settings added before.
    fn rule(&mut self, rules: Rules) -> Result<(), ErrorInfo> {
        let mut updates: Vec<PermissionUpdate> = Vec::new();
        for (behavior, rule) in &self.turned.rules {
            updates.push(PermissionUpdate::RemoveRules { behavior: *behavior, rules: vec![rule.clone()] });
        }
        // What stands there for other reasons stays when the host changes its mind.
        let own: Vec<String> =
            self.turned.rules.iter().map(|(behavior, rule)| shown(*behavior, rule)).collect();
        let others: Vec<String> =
            self.parts.permissions.rules().into_iter().filter(|rule| !own.contains(rule)).collect();
        let mut added = Vec::new();
        for (behavior, rule) in rules.rules {
            updates.push(PermissionUpdate::AddRules { behavior, rules: vec![rule.clone()] });
            if !others.contains(&shown(behavior, &rule)) {
                added.push((behavior, rule));
            }
        }
        updates.extend(rules.mode.map(PermissionUpdate::SetMode));
        if !rules.directories.is_empty() {
            updates.push(PermissionUpdate::AddDirectories(rules.directories));
        }
        self.parts.permissions.update_all(&updates)?;
        self.turned.rules = added;
        Ok(())
    }

    /// Notes that the model has seen a file, unless it changed since. What cannot be looked at was not seen.
    fn seen(&self, path: &str, mtime_ms: u64) {
        let path = self.config.cwd.join(path);
        let (Some(bench), Ok(metadata)) = (self.bench.upgrade(), std::fs::metadata(&path)) else { return };
        let mtime = metadata.mtime().saturating_mul(1000).saturating_add(metadata.mtime_nsec() / 1_000_000);
        if metadata.is_file()
            && u64::try_from(mtime) == Ok(mtime_ms)
            && let Ok(content) = std::fs::read(&path)
        {
            bench.ledger.note(&path, &metadata, &content);
        }
    }

    /// What is in a file, where the model might read it unasked.
    fn read_file(&self, path: &str, max_bytes: Option<u64>, base64: bool) -> Result<Value, ErrorInfo> {
        let failed = |error: &dyn std::fmt::Display| {
            let message = format!("{}: {error}", path.chars().take(200).collect::<String>());
            ErrorInfo::new(ErrorKind::Input, "unreadable_file", message).with_param("path")
        };
        let absolute: PathBuf =
            std::fs::canonicalize(self.config.cwd.join(path)).map_err(|error| failed(&error))?;
        if !self.parts.permissions.may_read(&absolute) {
            return Err(failed(&"it may not be read without asking"));
        }
        // A pipe that nobody writes to would be waited for.
        if !absolute.is_file() {
            return Err(failed(&"it is not a file"));
        }
        let limit = max_bytes.unwrap_or(MAX_FILE).min(MAX_FILE);
        let mut content = Vec::new();
        let read = std::fs::File::open(&absolute).and_then(|file| {
            std::io::Read::read_to_end(&mut std::io::Read::take(file, limit + 1), &mut content)
        });
        read.map_err(|error| failed(&error))?;
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        let truncated = content.len() > limit;
        content.truncate(limit);
        let mut answer = json!({"absPath": absolute.to_string_lossy(), "truncated": truncated});
        if base64 {
            answer["contents"] = BASE64_STANDARD.encode(&content).into();
            answer["encoding"] = "base64".into();
        } else {
            answer["lossy"] = std::str::from_utf8(&content).is_err().into();
            answer["contents"] = String::from_utf8_lossy(&content).into();
        }
        Ok(answer)
    }

    /// Forgets a prompt that waits, as if it had never been sent; false where none of that id waits.
    fn forget_prompt(&mut self, uuid: &str) -> bool {
        let waits = |queued: &super::serve::Queued| {
            !queued.withdrawn && !queued.goes_on && queued.prompt.uuid.as_deref() == Some(uuid)
        };
        let Some(at) = self.queue.iter().position(waits) else { return false };
        if let Some(claim) = self.queue.remove(at).and_then(|queued| queued.claim) {
            self.prompt_ids.remove(&claim);
        }
        true
    }
}

/// The permissions of the host's settings.
#[derive(Default)]
struct Rules {
    rules: Vec<(Behavior, Arc<str>)>,
    mode: Option<Arc<str>>,
    directories: Vec<Arc<str>>,
}

impl Rules {
    fn read(value: &Value) -> Result<Self, ErrorInfo> {
        let fields = match value {
            Value::Null => return Ok(Self::default()),
            Value::Object(fields) => fields,
            _ => return Err(unusable("permissions is not an object".to_owned())),
        };
        let mut rules = Self::default();
        for (key, value) in fields {
            let texts = || {
                let list =
                    value.as_array().map(|list| list.iter().map(Value::as_str).collect::<Option<Vec<_>>>());
                list.flatten().ok_or_else(|| unusable(format!("permissions.{key} is not a list of texts")))
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
                        mode.ok_or_else(|| unusable("permissions.defaultMode is no mode".to_owned()))?;
                    rules.mode = Some(mode.into());
                    continue;
                }
                other => {
                    return Err(unusable(format!(
                        "permissions.{other} cannot be changed while a session runs"
                    )));
                }
            };
            rules.rules.extend(texts()?.into_iter().map(|rule| (behavior, Arc::from(rule))));
        }
        Ok(rules)
    }
}

/// A rule as [`qwen_engine::Permissions::rules`] shows it.
fn shown(behavior: Behavior, rule: &str) -> String {
    let word = match behavior {
        Behavior::Allow => "allow",
        Behavior::Ask => "ask",
        Behavior::Deny => "deny",
    };
    format!("{word} {rule}")
}

fn unusable(message: String) -> ErrorInfo {
    ErrorInfo::new(ErrorKind::Input, "invalid_settings", message).with_param("settings")
}
