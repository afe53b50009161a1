//! The options of sessions and turns, under the names of the other SDKs.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use crate::router::{OnCrash, SessionOptions};

/// Bounds of a session. A turn that reaches one ends with the bound as its status.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct SessionLimits {
    /// Model calls for one prompt.
    pub max_turns: Option<u64>,
    /// Model calls in the session.
    pub max_session_turns: Option<u64>,
    pub max_tool_calls: Option<u64>,
    /// Seconds for one prompt.
    pub max_wall_time: Option<f64>,
    pub max_tokens_total: Option<u64>,
    /// US dollars for the session; the model needs a price, built in or in `model.prices`.
    pub max_budget_usd: Option<f64>,
}

/// An agent that the main agent can start for a part of the work.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct SessionAgent {
    pub description: String,
    pub prompt: String,
    /// Only these tools; all of the main agent's if absent.
    pub tools: Option<Vec<String>>,
    pub model: Option<String>,
}

/// The options of one turn.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct TurnOptions {
    /// Another model for this turn.
    pub model: Option<String>,
    /// The only tools that the turn may use.
    pub tool_overrides: Option<Vec<String>>,
    /// The JSON Schema of the answer: [`TurnResult::output`](super::TurnResult::output).
    pub output_schema: Option<Value>,
    /// The host's span, as a W3C `traceparent`.
    pub traceparent: Option<String>,
    /// Runs the turn again in a new worker if its worker dies before a tool has started.
    pub retry: bool,
}

impl SessionOptions {
    fn flag(mut self, name: &str, value: impl std::fmt::Display) -> Self {
        self.remove_flag(name);
        self.args.push(format!("{name}={value}"));
        self
    }

    fn remove_flag(&mut self, name: &str) {
        self.args.retain(|arg| arg.strip_prefix(name).is_none_or(|rest| !rest.starts_with('=')));
    }

    fn announced(mut self, key: &str, value: Value) -> Self {
        self.initialize.insert(key.to_owned(), value);
        self
    }

    /// A model's name; `demo` and `script:FILE` need no server.
    pub fn model(self, name: &str) -> Self {
        self.flag("--model", name)
    }

    /// Replaces the built-in system prompt. It never appears on a command line.
    pub fn system_prompt(self, text: &str) -> Self {
        self.announced("systemPrompt", json!(text))
    }

    pub fn append_system_prompt(self, text: &str) -> Self {
        self.announced("appendSystemPrompt", json!(text))
    }

    /// The host's own rules about tool calls, in plain text for the model: what `can_use_tool` will refuse, and why.
    pub fn policy_description(self, text: &str) -> Self {
        self.announced("policyDescription", json!(text))
    }

    /// `plan`, `default`, `auto-edit` or `yolo`.
    pub fn permission_mode(self, mode: &str) -> Self {
        self.flag("--approval-mode", mode)
    }

    /// How turns are worked on: `react`, `tot`, `got`, `agot`, or one of [`agents`](Self::agents).
    pub fn agent(self, name: &str) -> Self {
        self.flag("--agent", name)
    }

    /// Rules for calls that run without asking, such as `Bash(git log *)`.
    pub fn allowed_tools(self, rules: &[&str]) -> Self {
        self.flag("--allowed-tools", rules.join(","))
    }

    /// Rules for calls that never run.
    pub fn disallowed_tools(self, rules: &[&str]) -> Self {
        self.flag("--exclude-tools", rules.join(","))
    }

    /// The built-in tools on offer.
    pub fn core_tools(self, names: &[&str]) -> Self {
        self.flag("--core-tools", names.join(","))
    }

    pub fn limits(mut self, limits: SessionLimits) -> Self {
        let counts = [
            ("--max-turns", limits.max_turns),
            ("--max-session-turns", limits.max_session_turns),
            ("--max-tool-calls", limits.max_tool_calls),
            ("--max-tokens-total", limits.max_tokens_total),
        ];
        for (flag, count) in counts {
            if let Some(count) = count {
                self = self.flag(flag, count);
            }
        }
        for (flag, number) in
            [("--max-wall-time", limits.max_wall_time), ("--max-budget-usd", limits.max_budget_usd)]
        {
            if let Some(number) = number {
                self = self.flag(flag, number);
            }
        }
        self
    }

    pub fn agents(self, agents: &BTreeMap<String, SessionAgent>) -> Self {
        let agents: Map<String, Value> =
            agents.iter().map(|(name, agent)| (name.clone(), agent.to_json())).collect();
        self.announced("agents", Value::Object(agents))
    }

    /// MCP servers that the worker starts or connects to, by name. Tools of the host are in
    /// [`ControlPlane::servers`](crate::control_plane::ControlPlane::servers).
    pub fn mcp_servers(self, servers: Value) -> Self {
        self.announced("mcpServers", servers)
    }

    /// The JSON Schema of every answer: [`TurnResult::output`](super::TurnResult::output).
    pub fn output_schema(self, schema: Value) -> Self {
        self.announced("jsonSchema", schema)
    }

    /// What happens to a turn whose worker dies. After [`OnCrash::Fork`], [`Session::id`](super::Session::id)
    /// is the id of the fork.
    pub fn on_crash(mut self, policy: OnCrash) -> Self {
        self.on_crash = Some(policy);
        self
    }

    /// These options on top of `base`, whose flags they replace.
    pub(super) fn merge_over(self, base: &Self) -> Self {
        let mut merged = base.clone();
        for arg in &self.args {
            if let Some((name, _)) = arg.split_once('=') {
                merged.remove_flag(name);
            }
        }
        merged.args.extend(self.args);
        merged.cwd = self.cwd.or(merged.cwd);
        merged.env.extend(self.env);
        merged.settings_profile = self.settings_profile.or(merged.settings_profile);
        merged.fork_from = self.fork_from.or(merged.fork_from);
        merged.on_crash = self.on_crash.or(merged.on_crash);
        merged.initialize.extend(self.initialize);
        merged
    }
}

impl SessionAgent {
    fn to_json(&self) -> Value {
        let mut agent = json!({"description": self.description, "prompt": self.prompt});
        if let Some(tools) = &self.tools {
            agent["tools"] = json!(tools);
        }
        if let Some(model) = &self.model {
            agent["model"] = json!(model);
        }
        agent
    }
}

impl TurnOptions {
    /// Adds the options to a prompt.
    pub(super) fn write(&self, prompt: &mut Value) {
        if let Some(model) = &self.model {
            prompt["options"]["model"] = json!(model);
        }
        if let Some(tools) = &self.tool_overrides {
            prompt["options"]["tool_overrides"] = json!(tools);
        }
        if let Some(schema) = &self.output_schema {
            prompt["options"]["response_format"] =
                json!({"type": "json_schema", "json_schema": {"name": "output", "schema": schema}});
        }
        if let Some(traceparent) = &self.traceparent {
            prompt["traceparent"] = json!(traceparent);
        }
        if self.retry {
            prompt["retry"] = json!("safe");
        }
    }
}
