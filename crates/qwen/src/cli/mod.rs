//! The command line as plain data. Nothing here reads the environment, the disk or the terminal; `settings`
//! does that.

mod arguments;
mod auth;
mod claude;
mod configuration;
mod diagnostics;
mod ignored;
mod mcp;
mod roles;
mod sessions;
mod supervision;
mod telemetry;
mod thinking;
mod tools;

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

pub use arguments::{arguments, parsed};
pub use auth::{AuthAction, AuthStatusArgs};
pub use claude::ClaudeFlags;
pub use configuration::Configuration;
pub use diagnostics::{DiagnosticFlags, LogFormat};
pub use ignored::IgnoredFlags;
pub use mcp::{McpAction, McpListArgs, McpServeArgs};
pub use roles::{AcpFlags, HubArgs, ServeArgs};
#[cfg(feature = "fleet")]
pub use roles::{
    BusAction, BusArgs, BusCheckArgs, BusExportArgs, BusFlags, BusInitArgs, NodeArgs, node_label,
    node_workspace,
};
pub use sessions::{DeleteArgs, ForkArgs, ListArgs, SessionsAction};
pub use supervision::{CommitDescriptors, Supervision, descriptors};
pub use telemetry::TelemetryFlags;
pub use thinking::ThinkingArgs;
pub use tools::{ToolFlags, items, rules};

/// An agent for your code, in one small binary.
#[derive(Parser, Debug, Default)]
#[command(
    name = "qwen",
    version,
    args_conflicts_with_subcommands = true,
    disable_help_subcommand = true,
    after_help = "Try it without a key:  qwen -p \"Look around\" --model demo\n\
                  With a model:          OPENAI_API_KEY=… OPENAI_BASE_URL=… qwen -p \"Explain this project\" --model NAME"
)]
pub struct Cli {
    /// What to do instead of running a prompt.
    #[command(subcommand)]
    pub command: Option<Subcommands>,

    /// The flags of a run.
    #[command(flatten)]
    pub run: Run,
}

/// What to do instead of running a prompt.
#[derive(Subcommand, Debug)]
pub enum Subcommands {
    /// Check a stream against the schemas and the ordering rules
    Check(CheckArgs),
    /// Show a stream of any dialect as text, live or from a file
    View(ViewArgs),
    /// Print the graph of an agent as Mermaid
    Graph {
        /// The agent
        #[arg(long, default_value = "react")]
        agent: String,
    },
    /// Report what sandbox this machine can enforce
    Sandbox {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Print the JSON Schemas of the wire formats and of settings files
    Schema {
        /// The schema; lists all names if omitted
        name: Option<String>,
    },
    /// Show every setting and where it comes from
    Config(ConfigArgs),
    /// Trust a directory: its settings, hooks and MCP servers apply from then on
    Trust(TrustArgs),
    /// Show where the model's key comes from: status
    Auth {
        /// What to do
        #[command(subcommand)]
        action: AuthAction,
    },
    /// MCP servers: list those that are configured, or be one
    Mcp {
        /// What to do with them
        #[command(subcommand)]
        action: McpAction,
    },
    /// Manage stored sessions: list, show, export, replay, delete, checkpoints, fork, prune
    Sessions {
        /// What to do with them
        #[command(subcommand)]
        action: SessionsAction,
        /// The bus that has them; without one, those of this machine
        #[cfg(feature = "fleet")]
        #[command(flatten)]
        bus: Box<BusFlags>,
    },
    /// Serve many sessions on a pool of workers, over standard input and output
    Hub(Box<HubArgs>),
    /// Offer this machine's workers to hubs on a bus
    #[cfg(feature = "fleet")]
    Node(Box<NodeArgs>),
    /// Manage the bus that several machines share: init, status, check
    #[cfg(feature = "fleet")]
    Bus {
        /// What to do with it
        #[command(subcommand)]
        action: BusAction,
    },
    /// Serve sessions over HTTP, with a web page
    Serve(Box<ServeArgs>),
    /// List the models that the configured server offers
    Models(ModelsArgs),
    /// Check settings, server, model, tool calls, sandbox, MCP servers and disk
    Doctor(ModelsArgs),
    /// Print the manual page (roff)
    Man,
    /// Print a completion script for a shell
    #[command(alias = "completion")]
    Completions {
        /// The shell
        #[arg(value_enum)]
        shell: clap_complete::Shell,
    },
    /// Print the values that a completion script offers
    #[command(hide = true)]
    CompleteValues {
        /// What is completed
        #[arg(value_enum)]
        kind: CompletionKind,
    },
}

/// Values that are determined when a command line is completed.
#[derive(ValueEnum, Debug, Clone, Copy, PartialEq, Eq)]
pub enum CompletionKind {
    /// The sessions of this directory
    Sessions,
    /// The models of the configured server
    Models,
    /// The agents
    Agents,
}

/// `qwen check`
#[derive(Args, Debug)]
pub struct CheckArgs {
    /// Explain a rule with an example instead of checking; `all` lists the rules
    #[arg(long, value_name = "RULE")]
    pub explain: Option<String>,
    /// The dialect; detected if omitted
    #[arg(long)]
    pub dialect: Option<String>,
    /// Check each line separately, not the order of the stream
    #[arg(long)]
    pub fragment: bool,
    /// Check what hubs, nodes, clients, tools and streams recorded below this directory against each other
    #[arg(long, value_name = "DIR", conflicts_with_all = ["explain", "dialect", "fragment", "file"])]
    pub history: Option<PathBuf>,
    /// The file; standard input if omitted or '-'
    pub file: Option<PathBuf>,
}

/// `qwen view`
#[derive(Args, Debug)]
pub struct ViewArgs {
    /// The dialect; detected if omitted
    #[arg(long)]
    pub dialect: Option<String>,
    /// Render the stream's tree or graph of thoughts as SVG to this file ('-' is standard output) and print
    /// nothing else
    #[arg(long, value_name = "PICTURE")]
    pub svg: Option<PathBuf>,
    /// The file; standard input if omitted or '-'
    pub file: Option<PathBuf>,
}

/// `qwen config`
#[derive(Args, Debug)]
pub struct ConfigArgs {
    /// Print JSON
    #[arg(long)]
    pub json: bool,
    /// Show only this key and its children, such as 'model'
    pub key: Option<String>,
    /// Where settings come from
    #[command(flatten)]
    pub configuration: Configuration,
    /// The flags of a run whose settings are shown.
    #[arg(skip)]
    pub run: Option<Box<Run>>,
}

/// `qwen models` and `qwen doctor`
#[derive(Args, Debug, Default)]
pub struct ModelsArgs {
    /// Print JSON
    #[arg(long)]
    pub json: bool,
    /// The model's name
    #[arg(short = 'm', long, value_name = "NAME")]
    pub model: Option<String>,
    /// The address of the model's server
    #[arg(long, value_name = "URL", alias = "base-url")]
    pub openai_base_url: Option<String>,
    /// The protocol of the model's server: openai, dashscope or anthropic
    #[arg(long, value_name = "TYPE")]
    pub auth_type: Option<String>,
    /// Where settings come from
    #[command(flatten)]
    pub configuration: Configuration,
}

/// `qwen trust`
#[derive(Args, Debug)]
pub struct TrustArgs {
    /// The folder; the working directory if omitted
    pub path: Option<PathBuf>,
    /// Stop trusting it
    #[arg(long, conflicts_with = "list")]
    pub remove: bool,
    /// List the trusted folders
    #[arg(long)]
    pub list: bool,
}

/// The input format.
#[derive(ValueEnum, Debug, Clone, Copy, PartialEq, Eq)]
pub enum InputFormat {
    /// Plain text
    Text,
    /// JSON lines
    StreamJson,
    /// JSON lines
    StreamChunkJson,
}

/// The output format.
#[derive(ValueEnum, Debug, Clone, Copy, PartialEq, Eq)]
pub enum OutputFormat {
    /// Plain text
    Text,
    /// One JSON document at the end
    Json,
    /// JSON lines, one per message
    StreamJson,
    /// JSON lines, one per piece of a message
    StreamChunkJson,
}

/// The flags of a run.
#[derive(Args, Debug, Default)]
pub struct Run {
    /// The prompt; with -p it is added to it
    #[arg(value_name = "PROMPT")]
    pub words: Vec<String>,

    /// Run this prompt, print the final message and exit
    #[arg(short = 'p', long, value_name = "TEXT", alias = "print", num_args = 0..=1, default_missing_value = "")]
    pub prompt: Option<String>,

    /// The model: a name, or 'demo', 'script:FILE', 'replay:FILE' or 'oracle:TASK'
    #[arg(short = 'm', long, value_name = "NAME")]
    pub model: Option<String>,

    /// The output format
    #[arg(short = 'o', long, value_enum, value_name = "FORMAT", help_heading = "Input and output")]
    pub output_format: Option<OutputFormat>,

    /// The input format; a JSON format starts a worker
    #[arg(long, value_enum, value_name = "FORMAT", help_heading = "Input and output")]
    pub input_format: Option<InputFormat>,

    /// The dialect of JSON output: qwen, claude, claude-lite, loom, loom-export, core or acp; implies
    /// '--output-format stream-json'
    #[arg(long, value_name = "NAME", help_heading = "Input and output")]
    pub dialect: Option<String>,

    /// Short for '--output-format stream-json --dialect loom'
    #[arg(long, help_heading = "Input and output")]
    pub json: bool,

    /// Stream pieces of messages in the claude dialect
    #[arg(long, help_heading = "Input and output")]
    pub include_partial_messages: bool,

    /// Which Loom events are written: values,updates,messages,custom,checkpoints,tasks,tools,debug, or their
    /// types
    #[arg(long, value_name = "MODES", value_delimiter = ',', help_heading = "Input and output")]
    pub stream_mode: Vec<String>,

    /// Repeat the user's messages in the output
    #[arg(long, help_heading = "Input and output")]
    pub replay_user_messages: bool,

    #[command(flatten)]
    pub acp: AcpFlags,

    #[command(flatten)]
    pub supervision: Supervision,

    /// The agent: react, tot (a tree of thoughts), got (a graph of thoughts) or agot (got with --adaptive)
    #[arg(long, value_name = "NAME", help_heading = "Agent")]
    pub agent: Option<String>,

    /// Replace the system prompt
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true, help_heading = "Agent")]
    pub system_prompt: Option<String>,

    /// Replace the system prompt with the text of a file
    #[arg(long, value_name = "FILE", help_heading = "Agent")]
    pub system_prompt_file: Option<PathBuf>,

    /// Add to the system prompt
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true, help_heading = "Agent")]
    pub append_system_prompt: Option<String>,

    /// Describe to the model what the host allows beyond the permission rules
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true, help_heading = "Permissions")]
    pub policy_description: Option<String>,

    /// Add the text of a file to the system prompt
    #[arg(long, value_name = "FILE", hide = true)]
    pub append_system_prompt_file: Option<PathBuf>,

    /// Approval mode: plan, default, auto-edit or yolo; dontAsk denies what default asks about
    #[arg(long, value_name = "MODE", alias = "permission-mode", help_heading = "Permissions")]
    pub approval_mode: Option<String>,

    /// Short for '--approval-mode yolo'
    #[arg(short = 'y', long, help_heading = "Permissions")]
    pub yolo: bool,

    /// Allow these calls without approval, such as 'Read' or 'Bash(git log *)'; comma-separated
    #[arg(long, value_name = "RULES", alias = "allowedTools", help_heading = "Permissions")]
    pub allowed_tools: Vec<String>,

    /// Deny these tools and calls; comma-separated
    #[arg(
        long,
        value_name = "RULES",
        alias = "disallowedTools",
        alias = "disallowed-tools",
        help_heading = "Permissions"
    )]
    pub exclude_tools: Vec<String>,

    /// Offer only these built-in tools; comma-separated
    #[arg(long, value_name = "NAMES", alias = "tools", help_heading = "Permissions")]
    pub core_tools: Option<String>,

    /// Add these directories to the workspace; a value that is not itself a directory may list several, with commas
    #[arg(long, value_name = "DIRS", alias = "add-dir", help_heading = "Permissions")]
    pub include_directories: Vec<PathBuf>,

    /// Add MCP servers: a file, or JSON like '{"mcpServers":{…}}'
    #[arg(long, value_name = "FILE|JSON", help_heading = "MCP")]
    pub mcp_config: Vec<String>,

    /// Require the sandbox for commands (exit code 44 without one); 'false' switches it off
    #[arg(short = 's', long, value_name = "auto|true|false", num_args = 0..=1, default_missing_value = "true",
          require_equals = true, help_heading = "Permissions")]
    pub sandbox: Option<String>,

    /// Give sandboxed commands network access
    #[arg(long, help_heading = "Permissions")]
    pub sandbox_network: bool,

    /// Limit the model calls of the session
    #[arg(long, value_name = "N", allow_negative_numbers = true, help_heading = "Limits")]
    pub max_session_turns: Option<i64>,

    /// Limit the model calls of one prompt
    #[arg(long, value_name = "N", allow_negative_numbers = true, help_heading = "Limits")]
    pub max_turns: Option<i64>,

    /// Limit the tool calls of one prompt
    #[arg(long, value_name = "N", allow_negative_numbers = true, help_heading = "Limits")]
    pub max_tool_calls: Option<i64>,

    /// Limit the time of one prompt: seconds, or '90s', '5m', '1h'
    #[arg(long, value_name = "TIME", help_heading = "Limits")]
    pub max_wall_time: Option<String>,

    /// Limit the tokens of one prompt
    #[arg(long, value_name = "N", help_heading = "Limits")]
    pub max_tokens_total: Option<u64>,

    /// Limit the cost of the session in US dollars; needs the model's price, built in or in 'model.prices'
    #[arg(long, value_name = "USD", allow_negative_numbers = true, help_heading = "Limits")]
    pub max_budget_usd: Option<f64>,

    /// Return data that matches this JSON Schema, given as JSON or a file
    #[arg(long, value_name = "FILE|JSON", allow_hyphen_values = true, help_heading = "Agent")]
    pub json_schema: Option<String>,

    /// The protocol of the model's server: openai, dashscope or anthropic
    #[arg(long, value_name = "TYPE", help_heading = "Model")]
    pub auth_type: Option<String>,

    /// The address of the model's server
    #[arg(long, value_name = "URL", alias = "base-url", help_heading = "Model")]
    pub openai_base_url: Option<String>,

    /// The model's API key; prefer an environment variable
    #[arg(long, value_name = "KEY", hide = true)]
    pub openai_api_key: Option<String>,

    /// Continue with these models when the first one fails; comma-separated
    #[arg(long, value_name = "NAMES", value_delimiter = ',', help_heading = "Model")]
    pub fallback_model: Vec<String>,

    /// Reach the model's server through this proxy
    #[arg(long, value_name = "URL", help_heading = "Model")]
    pub proxy: Option<String>,

    /// The reasoning effort: low, medium, high, …
    #[arg(long, value_name = "LEVEL", help_heading = "Model")]
    pub effort: Option<String>,

    /// Accept any TLS certificate
    #[arg(long, hide = true)]
    pub insecure: bool,

    /// Record the model's answers in this file, for 'replay:FILE'
    #[arg(long, value_name = "FILE", help_heading = "Model")]
    pub record: Option<PathBuf>,

    /// Use this id for the new session; an id that is in use is refused
    #[arg(long, value_name = "ID", help_heading = "Sessions")]
    pub session_id: Option<String>,

    /// The session of a worker that the hub starts: stored or new
    #[arg(long, value_name = "ID", hide = true)]
    pub bind_session: Option<String>,

    /// Resume a session: with a new prompt, or with its unfinished turn
    #[arg(short = 'r', long, value_name = "ID", num_args = 0..=1, default_missing_value = "", help_heading = "Sessions")]
    pub resume: Option<String>,

    /// Resume the latest session of this directory
    #[arg(short = 'c', long = "continue", help_heading = "Sessions")]
    pub continue_latest: bool,

    /// Resume into a new session and leave the old one unchanged
    #[arg(long, help_heading = "Sessions")]
    pub fork_session: bool,

    /// Resume from this message, prompt or checkpoint (see 'qwen sessions checkpoints'), and not from the end
    #[arg(long, visible_alias = "at", value_name = "ID", help_heading = "Sessions")]
    pub resume_session_at: Option<String>,

    /// Stop at a call that needs approval, and leave the question for '--resume ID --answer …'
    #[arg(long, help_heading = "Sessions")]
    pub ask_later: bool,

    /// Answer a question that '--ask-later' left: allow, deny, text, or another input as a JSON object
    #[arg(long, value_name = "CALL=ANSWER", help_heading = "Sessions")]
    pub answer: Vec<String>,

    /// Do not store the session
    #[arg(long, alias = "no-chat-recording", help_heading = "Sessions")]
    pub no_session_persistence: bool,

    /// Whether to keep the session
    #[arg(long, value_name = "BOOL", num_args = 0..=1, default_missing_value = "true", hide = true)]
    pub chat_recording: Option<bool>,

    /// How the caller shows itself
    #[arg(long, hide = true)]
    pub channel: Option<String>,

    /// Where permission questions go
    #[arg(long, hide = true)]
    pub permission_prompt_tool: Option<String>,

    /// A prompt to begin an interactive session with
    #[arg(short = 'i', long, value_name = "TEXT", hide = true)]
    pub prompt_interactive: Option<String>,

    /// Only append lines to the terminal and number the answers of questions, for screen readers
    #[arg(long, alias = "ax-screen-reader")]
    pub screen_reader: bool,

    /// Diagnostics
    #[command(flatten)]
    pub diagnostics: DiagnosticFlags,

    /// Tools and their permissions
    #[command(flatten)]
    pub tool_flags: ToolFlags,

    /// Where settings come from
    #[command(flatten)]
    pub configuration: Configuration,

    /// Flags that Claude's SDKs give
    #[command(flatten)]
    pub claude: ClaudeFlags,

    /// What changes nothing here
    #[command(flatten)]
    pub ignored: IgnoredFlags,

    /// Tracing. After the groups that set their own headings, because this heading would apply to them.
    #[command(flatten)]
    pub telemetry: TelemetryFlags,

    /// Trees and graphs of thoughts. Last, because its heading would apply to what follows.
    #[command(flatten)]
    pub thinking: ThinkingArgs,
}
