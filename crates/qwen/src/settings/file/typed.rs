//! The keys of a settings file. An absent key is taken from a source with lower precedence, finally from the
//! defaults.

use std::collections::BTreeMap;
use std::fmt;
use std::net::IpAddr;
use std::num::NonZeroU64;
use std::time::Duration;

use qwen_dialects::Dialect;
use qwen_permissions::{Mode, Rule, RuleSource};
use qwen_tools::ToolVocabulary;
use schemars::JsonSchema;
use serde::Deserialize;
use serde::de::{Deserializer, Error, Unexpected, Visitor};

use super::{Hooks, McpServer, Sourced, words};

/// The settings of qwen.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Settings {
    /// The model and its server.
    pub model: Model,
    /// The output format.
    pub output: Output,
    /// Permission rules and the approval mode.
    pub permissions: Permissions,
    /// The tools.
    pub tools: Tools,
    /// MCP servers, by name.
    pub mcp_servers: BTreeMap<String, McpServer>,
    /// Which of the MCP servers are used.
    pub mcp: Mcp,
    /// Programs and URLs that are called at events.
    pub hooks: Hooks,
    /// Disable all hooks. A workspace can only disable its own.
    pub disable_all_hooks: Option<bool>,
    /// The agent.
    pub agent: Agent,
    /// Limits for a prompt or a session.
    pub limits: Limits,
    /// Other settings.
    pub general: General,
    /// Traces.
    pub telemetry: Telemetry,
    /// Trusted folders and variables.
    pub security: Security,
    /// Memory files and further directories.
    pub context: Context,
    /// How long stored sessions are kept.
    pub sessions: Sessions,
    /// Which slash commands are offered.
    pub slash_commands: SlashCommands,
    /// The interactive terminal.
    pub terminal: TerminalSettings,
    /// Editors, which use the Agent Client Protocol.
    pub acp: Acp,
    /// Environment variables that are used if the environment does not set them.
    pub env: BTreeMap<String, String>,
}

/// The model and its server.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Model {
    /// The model's name, or `demo`, `script:FILE` or `replay:FILE`, which a workspace cannot choose.
    pub name: Option<String>,
    /// The protocol of its server: `openai`, `dashscope` or `anthropic`. A workspace cannot set this.
    #[serde(deserialize_with = "auth_type")]
    #[schemars(with = "Option<String>", extend("enum" = ["openai", "dashscope", "anthropic"]))]
    pub auth_type: Option<String>,
    /// The address of its server. A workspace cannot set this.
    pub base_url: Option<String>,
    /// Its API key; prefer an environment variable. A workspace cannot set this.
    pub api_key: Option<String>,
    /// The environment variable that contains the API key. A workspace cannot set this.
    pub api_key_env: Option<String>,
    /// Additional headers of every request. A workspace cannot set this.
    pub headers: BTreeMap<String, String>,
    /// The proxy for requests to its server. A workspace cannot set this.
    pub proxy: Option<String>,
    /// Accept any TLS certificate. A workspace cannot set this.
    pub insecure: Option<bool>,
    /// How often a failed call is retried.
    pub max_retries: Option<u32>,
    /// Seconds to wait for the connection.
    #[serde(deserialize_with = "words::time")]
    #[schemars(with = "Option<f64>")]
    pub connect_timeout: Option<Duration>,
    /// Seconds to wait for the first token.
    #[serde(deserialize_with = "words::time")]
    #[schemars(with = "Option<f64>")]
    pub first_token_timeout: Option<Duration>,
    /// Seconds without data after which a stream counts as stalled.
    #[serde(deserialize_with = "words::time")]
    #[schemars(with = "Option<f64>")]
    pub stall_timeout: Option<Duration>,
    /// The longest time, in seconds, to wait for the reset of a limit that its server reports (429 and 529 with a
    /// known reset time).
    #[serde(deserialize_with = "words::time")]
    #[schemars(with = "Option<f64>")]
    pub max_wait: Option<Duration>,
    /// The size of its context window in tokens. When it is nearly full, the conversation is replaced by a
    /// summary.
    pub context_window: Option<NonZeroU64>,
    /// Models to continue with when this one fails.
    pub fallback_models: Option<Vec<String>>,
    /// The maximum length of an answer, in tokens. Default: the model's limit.
    pub max_tokens: Option<u64>,
    /// Whether tool calls that the model prints as text are recognised: `auto` (in answers without structured
    /// calls), `on` or `off`.
    #[serde(deserialize_with = "text_tool_calls")]
    #[schemars(with = "Option<String>", extend("enum" = ["auto", "on", "off"]))]
    pub text_tool_calls: Option<String>,
    /// The sampling temperature (`temperature` of the request).
    pub temperature: Option<f64>,
    /// The nucleus sampling threshold (`top_p` of the request).
    pub top_p: Option<f64>,
    /// The reasoning effort: `low`, `medium`, `high`, …
    pub effort: Option<String>,
    /// Prices by model name, in addition to those of common models. A name applies to all models whose names
    /// start with it, `*` to all others. A workspace cannot set this.
    pub prices: BTreeMap<String, Price>,
}

/// The price of a model, in US dollars per million tokens.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Price {
    /// Input tokens.
    pub input: f64,
    /// Output tokens.
    pub output: f64,
    /// Tokens read from the provider's cache; the same as `input` if absent.
    pub cache_read: Option<f64>,
    /// Tokens written to the provider's cache; the same as `input` if absent.
    pub cache_write: Option<f64>,
}

fn auth_type<'a, D: Deserializer<'a>>(deserializer: D) -> Result<Option<String>, D::Error> {
    let known = |word: &str| ["openai", "dashscope", "anthropic"].contains(&word).then(|| word.to_owned());
    words::word(deserializer, "\"openai\", \"dashscope\" or \"anthropic\"", known).map(Some)
}

fn text_tool_calls<'a, D: Deserializer<'a>>(deserializer: D) -> Result<Option<String>, D::Error> {
    let known = |word: &str| ["auto", "on", "off"].contains(&word).then(|| word.to_owned());
    words::word(deserializer, "\"auto\", \"on\" or \"off\"", known).map(Some)
}

/// The output format.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Output {
    /// The dialect: qwen, claude, claude-lite, loom, loom-export, core or acp.
    #[serde(deserialize_with = "dialect")]
    #[schemars(with = "Option<String>", extend("enum" = ["qwen", "claude", "claude-lite", "loom", "loom-export", "core", "acp"]))]
    pub dialect: Option<Dialect>,
    /// `text`, `json`, `stream-json` or `stream-chunk-json`.
    #[serde(deserialize_with = "format")]
    #[schemars(with = "Option<String>", extend("enum" = ["text", "json", "stream-json", "stream-chunk-json"]))]
    pub format: Option<String>,
    /// The style of answers: `default`, `Explanatory`, `Learning`, or a file of `output-styles` in Claude's
    /// configuration.
    pub style: Option<String>,
}

fn dialect<'a, D: Deserializer<'a>>(deserializer: D) -> Result<Option<Dialect>, D::Error> {
    let expected = "\"qwen\", \"claude\", \"claude-lite\", \"loom\", \"loom-export\" or \"core\"";
    words::word(deserializer, expected, Dialect::parse).map(Some)
}

fn format<'a, D: Deserializer<'a>>(deserializer: D) -> Result<Option<String>, D::Error> {
    let known = ["text", "json", "stream-json", "stream-chunk-json"];
    let parse = |word: &str| known.contains(&word).then(|| word.to_owned());
    words::word(deserializer, "\"text\", \"json\", \"stream-json\" or \"stream-chunk-json\"", parse).map(Some)
}

/// Permission rules and the approval mode.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Permissions {
    /// Rules for calls that run without approval, such as `Bash(git log *)`.
    pub allow: Vec<Sourced<String>>,
    /// Rules for calls that need approval.
    pub ask: Vec<Sourced<String>>,
    /// Rules for calls that are denied.
    pub deny: Vec<Sourced<String>>,
    /// The approval mode. `auto` is the same as `default`, and `dontAsk` denies what `default` asks about. A workspace
    /// cannot choose `auto-edit` or `yolo`.
    #[serde(deserialize_with = "mode")]
    #[schemars(with = "Option<String>", extend("enum" = ["plan", "default", "auto", "dontAsk", "auto-edit", "yolo"]))]
    pub default_mode: Option<Mode>,
    /// `disable` makes the mode `yolo` (`bypassPermissions`) unavailable, for flags and hosts too.
    #[serde(deserialize_with = "disable")]
    #[schemars(with = "Option<String>", extend("enum" = ["disable"]))]
    pub disable_bypass_permissions_mode: Option<bool>,
}

fn disable<'a, D: Deserializer<'a>>(deserializer: D) -> Result<Option<bool>, D::Error> {
    words::word(deserializer, "\"disable\"", |word| (word == "disable").then_some(true)).map(Some)
}

fn mode<'a, D: Deserializer<'a>>(deserializer: D) -> Result<Option<Mode>, D::Error> {
    let modes = "\"plan\", \"default\", \"auto\", \"dontAsk\", \"auto-edit\" or \"yolo\"";
    words::word(deserializer, modes, Mode::parse).map(Some)
}

/// The tools.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Tools {
    /// Whether commands run in a sandbox: `auto` if the machine supports one, `true` always. A workspace can
    /// only make
    /// this stricter.
    pub sandbox: Option<Sandbox>,
    /// Give sandboxed commands network access. A workspace cannot set this.
    pub sandbox_network: Option<bool>,
    /// If the sandbox is required (`tools.sandbox` is `true`), run commands in it without approval. A
    /// workspace cannot
    /// set this.
    pub sandbox_unasked: Option<bool>,
    /// How many bytes the schemas of MCP and host tools may have; beyond that, requests list them by name and
    /// the model loads them with `tool_search`.
    pub schema_budget: Option<usize>,
    /// The names of tools and their arguments: `qwen` or `claude`. By default, Claude's own hosts get
    /// Claude's names.
    #[serde(deserialize_with = "vocabulary")]
    #[schemars(with = "Option<String>", extend("enum" = ["qwen", "claude"]))]
    pub names: Option<ToolVocabulary>,
    /// Offer only these tools.
    pub core: Option<Vec<String>>,
    /// Tools that run without approval; the same as `permissions.allow`.
    pub allowed: Vec<Sourced<String>>,
    /// Do not offer these tools.
    pub exclude: Vec<Sourced<String>>,
    /// The shell.
    pub shell: Shell,
    /// Reading web pages.
    pub web_fetch: WebFetch,
    /// The hosts that sandboxed programs reach by `Network` rules. A workspace cannot set this.
    pub network: Network,
}

fn vocabulary<'a, D: Deserializer<'a>>(deserializer: D) -> Result<Option<ToolVocabulary>, D::Error> {
    words::word(deserializer, "\"qwen\" or \"claude\"", ToolVocabulary::parse).map(Some)
}

/// Whether commands run in a sandbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sandbox {
    /// If the machine supports one.
    Auto,
    /// Always.
    On,
    /// Never.
    Off,
}

impl<'a> Deserialize<'a> for Sandbox {
    fn deserialize<D: Deserializer<'a>>(deserializer: D) -> Result<Self, D::Error> {
        struct Word;

        impl Visitor<'_> for Word {
            type Value = Sandbox;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("\"auto\", true or false")
            }

            fn visit_bool<E: Error>(self, on: bool) -> Result<Sandbox, E> {
                Ok(if on { Sandbox::On } else { Sandbox::Off })
            }

            fn visit_str<E: Error>(self, word: &str) -> Result<Sandbox, E> {
                match word {
                    "auto" => Ok(Sandbox::Auto),
                    // Qwen Code names the program that makes its sandbox.
                    "" | "true" | "1" | "docker" | "podman" | "sandbox-exec" => Ok(Sandbox::On),
                    "false" | "0" | "off" | "none" => Ok(Sandbox::Off),
                    _ => Err(E::invalid_value(Unexpected::Str(word), &self)),
                }
            }
        }

        deserializer.deserialize_any(Word)
    }
}

impl JsonSchema for Sandbox {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Sandbox".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({"enum": ["auto", true, false]})
    }
}

/// The shell.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Shell {
    /// The default time limit of a command, in milliseconds.
    pub timeout_ms: Option<NonZeroU64>,
    /// How many bytes of a command's output the model receives.
    pub output_limit: Option<usize>,
}

/// Reading web pages.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct WebFetch {
    /// Private addresses that may be fetched, as `host:port`. A workspace cannot set this.
    pub allow_private_hosts: Vec<String>,
}

/// The hosts that sandboxed programs reach by `Network` rules.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Network {
    /// Secrets that requests to a host get outside the sandbox, where its programs cannot see them.
    pub credentials: Vec<Credential>,
    /// Addresses of host names, which are then not resolved.
    pub resolve: BTreeMap<String, Vec<IpAddr>>,
}

/// A header with a secret for the requests to a host.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Credential {
    /// The host's name. It must be reached by TLS.
    pub host: String,
    /// The header's name, or its name and what precedes the secret: `Authorization: Bearer`.
    pub header: String,
    /// The environment variable of `qwen` that contains the secret. Commands do not get it.
    #[serde(alias = "from_env")]
    pub from_env: String,
}

/// Which of the MCP servers are used.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Mcp {
    /// Use only these servers.
    pub allowed: Option<Vec<String>>,
    /// Do not use these servers.
    pub excluded: Vec<String>,
}

/// The agent.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Agent {
    /// `react`, `tot`, `got` or `agot`.
    pub name: Option<String>,
    /// The tree of thoughts.
    pub tot: Tot,
    /// The graph of thoughts.
    pub got: Got,
    /// Expand thoughts according to the difficulty of the task.
    pub adaptive: Option<bool>,
    /// How many thoughts may run at the same time.
    pub parallel: Option<Sourced<i64>>,
    /// The time limit of each attempt at a thought: seconds, or `90s`, `5m`.
    #[serde(deserialize_with = "words::time")]
    #[schemars(schema_with = "time_schema")]
    pub thought_timeout: Option<Duration>,
    /// How often a thought is retried after a transient failure.
    pub thought_retries: Option<Sourced<i64>>,
    /// How deep sub-agents may start sub-agents.
    pub max_subagent_depth: Option<u32>,
}

/// The tree of thoughts.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Tot {
    /// `bfs` or `dfs`.
    pub search: Option<String>,
    /// How many thoughts are kept at each step.
    pub breadth: Option<Sourced<i64>>,
    /// How many thoughts are proposed for each.
    pub proposals: Option<Sourced<i64>>,
    /// How many steps a solution has at most.
    pub depth: Option<Sourced<i64>>,
    /// How many votes value each thought.
    pub samples: Option<Sourced<i64>>,
    /// Thoughts with a lower value are dropped.
    pub threshold: Option<Sourced<f64>>,
    /// How many thoughts a tree may have.
    pub max_thoughts: Option<Sourced<i64>>,
}

/// The graph of thoughts.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Got {
    /// How many thoughts a graph may have.
    pub max_nodes: Option<Sourced<i64>>,
    /// How deep graphs nest below the first one.
    pub max_depth: Option<Sourced<i64>>,
    /// How many layers a nested graph has at most.
    pub max_layers: Option<Sourced<i64>>,
    /// How many thoughts a layer of a nested graph has at most.
    pub max_per_layer: Option<Sourced<i64>>,
}

/// Limits for a prompt or a session. A negative number means no limit.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Limits {
    /// Model calls in a session.
    pub max_session_turns: Option<i64>,
    /// Model calls for one prompt.
    pub max_turns: Option<i64>,
    /// Tool calls for one prompt.
    pub max_tool_calls: Option<i64>,
    /// Time for one prompt: seconds, or `90s`, `5m`, `1h`.
    #[serde(deserialize_with = "words::time")]
    #[schemars(schema_with = "time_schema")]
    pub max_wall_time: Option<Duration>,
    /// Tokens for one prompt.
    pub max_tokens_total: Option<u64>,
    /// US dollars for the session; the model needs a price, built in or in `model.prices`.
    pub max_budget_usd: Option<f64>,
}

fn time_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({"type": ["number", "string", "null"]})
}

/// Other settings.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct General {
    /// Store sessions on disk.
    pub chat_recording: Option<bool>,
}

/// How long stored sessions are kept. Sessions beyond a limit are deleted when a session starts, oldest
/// first, unless
/// they are in use. A workspace cannot set any of this.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Sessions {
    /// Delete sessions without activity for this many days. A workspace cannot set this.
    pub max_age_days: Option<u64>,
    /// Keep only this many sessions, the latest ones. A workspace cannot set this.
    pub max_count: Option<usize>,
    /// Keep only the latest sessions, up to this total size in MiB. A workspace cannot set this.
    pub max_size_mb: Option<u64>,
}

/// The interactive terminal. A workspace cannot set any of this.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct TerminalSettings {
    /// Other keys for actions, by the action's name: `{"submit": "ctrl+s", "suspend": ""}`. docs/terminal-parity.md lists the names.
    pub keys: BTreeMap<String, String>,
    /// Vim keys in the prompt editor.
    pub vim: Option<bool>,
    /// What the footer shows, in this order: `model`, `mode`, `context`, `cost`, `directory`, `branch`, `queue`.
    pub footer: Option<Vec<String>>,
    /// How prose is wrapped: `words` breaks lines between words, `terminal` leaves wrapping to the terminal.
    #[schemars(extend("enum" = ["words", "terminal"]))]
    pub wrap: Option<String>,
    /// How many lines of a call's output are printed.
    pub output_lines: Option<usize>,
    /// Only append lines and number the answers of questions, as `--screen-reader` does.
    pub screen_reader: Option<bool>,
    /// Ring the bell and send desktop notifications.
    pub notifications: Option<bool>,
}

/// Editors that use the Agent Client Protocol. A workspace cannot set any of this.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Acp {
    /// Seconds after which a permission request without an answer is refused. By default there is no deadline.
    #[serde(deserialize_with = "words::time")]
    #[schemars(with = "Option<f64>")]
    pub permission_timeout: Option<Duration>,
}

/// Traces. A workspace cannot set any of this.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Telemetry {
    /// Send traces to an OpenTelemetry collector.
    pub enabled: Option<bool>,
    /// Where traces are sent: only `local`, the configured endpoint, is supported.
    pub target: Option<String>,
    /// The collector's address; `/v1/traces` is added to it.
    pub otlp_endpoint: Option<String>,
    /// The collector's protocol: only `http` is supported.
    pub otlp_protocol: Option<String>,
    /// Write the traces to this file instead, one line of OTLP JSON per batch.
    pub outfile: Option<String>,
    /// Include prompts, answers, tool arguments and tool results in the traces, without secrets.
    pub log_prompts: Option<bool>,
}

/// Trusted folders and variables. A workspace cannot set any of this.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Security {
    /// Folders whose settings apply, including their subfolders.
    pub trusted_folders: Vec<String>,
    /// Environment variables that the configuration of a trusted workspace may reference (`${NAME}`) and that
    /// its hooks
    /// and servers receive although their names look like secrets.
    pub workspace_variables: Vec<String>,
}

/// Memory files and further directories.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Context {
    /// The names of memory files, without directories. `save_memory` writes to the first one that ends in `.md`.
    #[serde(deserialize_with = "words::texts")]
    #[schemars(schema_with = "texts_schema")]
    pub file_name: Vec<String>,
    /// Further directories of the workspace. A workspace cannot set this.
    pub include_directories: Vec<String>,
    /// How many bytes of each memory file are read.
    pub max_file_size: Option<usize>,
}

fn texts_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({"type": ["string", "array"], "items": {"type": "string"}})
}

/// Which slash commands are offered.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct SlashCommands {
    /// Do not offer these commands, by name or alias.
    pub disabled: Vec<String>,
}

impl Settings {
    /// Values that are valid separately but not together: the key and the problem.
    pub(super) fn check(&self) -> Result<(), (String, String)> {
        for (list, rules) in [
            ("allow", &self.permissions.allow),
            ("ask", &self.permissions.ask),
            ("deny", &self.permissions.deny),
        ] {
            for rule in rules {
                if let Err(error) = Rule::parse(&rule.value, RuleSource::Flag, qwen_engine::TOOLS) {
                    return Err((format!("permissions.{list}"), error.to_string()));
                }
            }
        }
        for name in &self.context.file_name {
            if name.is_empty() || name.contains('/') || name.starts_with("..") {
                let problem = format!("expected the name of a file without directories, found \"{name}\"");
                return Err(("context.fileName".to_owned(), problem));
            }
        }
        if self.limits.max_budget_usd.is_some_and(|dollars| !dollars.is_finite()) {
            return Err(("limits.maxBudgetUsd".to_owned(), "must be a finite number".to_owned()));
        }
        for (model, price) in &self.model.prices {
            let parts = [Some(price.input), Some(price.output), price.cache_read, price.cache_write];
            if parts.into_iter().flatten().any(|dollars| !dollars.is_finite() || dollars < 0.0) {
                return Err((format!("model.prices.{model}"), "a price must not be below 0".to_owned()));
            }
        }
        for (event, groups) in self.hooks.events() {
            for hook in groups.iter().flat_map(|group| &group.value.hooks) {
                if let Some(problem) = hook.problem() {
                    return Err((format!("hooks.{event}"), problem.to_owned()));
                }
            }
        }
        Ok(())
    }
}
