//! Flags that Claude's SDKs pass.

use std::path::PathBuf;

use clap::Args;

/// Flags that Claude's SDKs pass.
#[derive(Args, Debug, Default)]
pub struct ClaudeFlags {
    /// Report hooks while they run, in the claude dialect
    #[arg(long, help_heading = "Input and output")]
    pub include_hook_events: bool,

    /// Reasoning of the model: adaptive, enabled or disabled
    #[arg(long, value_name = "KIND", help_heading = "Model")]
    pub thinking: Option<String>,

    /// Limit the reasoning tokens; 0 for none
    #[arg(long, value_name = "N", help_heading = "Model")]
    pub max_thinking_tokens: Option<u64>,

    /// How the reasoning is shown: summarized or omitted
    #[arg(long, value_name = "WORD", help_heading = "Model")]
    pub thinking_display: Option<String>,

    /// Ask an Anthropic server for these beta features; comma-separated
    #[arg(long, value_name = "NAMES", value_delimiter = ',', help_heading = "Model")]
    pub betas: Vec<String>,

    /// Inform an Anthropic model about the token budget of a turn
    #[arg(long, value_name = "N", help_heading = "Model")]
    pub task_budget: Option<u64>,

    /// Copy the session's entries to the stream too
    #[arg(long, num_args = 0..=1, default_missing_value = "", hide = true)]
    pub session_mirror: Option<String>,

    /// The prompt whose turn '--resume-session-at' drops; refused if more than that turn would be dropped
    #[arg(long, value_name = "ID", num_args = 0..=1, default_missing_value = "", help_heading = "Sessions")]
    pub resume_drops_turn: Option<String>,

    /// Allow switching to the mode 'bypassPermissions' during the session
    #[arg(long, hide = true)]
    pub allow_dangerously_skip_permissions: bool,

    /// Who answers permission questions: 'host', or 'none' to refuse what requires approval
    #[arg(long, value_name = "WHO", hide = true)]
    pub permission_prompts: Option<String>,

    /// Restrictions set by the host: deny and ask rules, and the sandbox
    #[arg(long, value_name = "JSON", hide = true)]
    pub managed_settings: Option<String>,

    /// Start nothing before the host has sent 'initialize'
    #[arg(long, hide = true)]
    pub await_initialize: bool,

    /// Write text and thoughts of sub-agents to the stream too, in the claude dialect
    #[arg(long, help_heading = "Input and output")]
    pub forward_subagent_text: bool,

    /// Describe the working directory in the first prompt instead of the system prompt
    #[arg(long, hide = true)]
    pub exclude_dynamic_system_prompt_sections: bool,

    /// Load a plugin: a directory with commands, agents, skills, hooks and MCP servers
    #[arg(long, value_name = "DIR", help_heading = "Settings")]
    pub plugin_dir: Vec<PathBuf>,

    /// Define sub-agents as JSON: '{"NAME":{"description":…,"prompt":…}}'
    #[arg(long, value_name = "JSON", help_heading = "Agent")]
    pub agents: Option<String>,
}
