//! Flags that Claude's SDKs give.

use std::path::PathBuf;

use clap::Args;

/// Flags that Claude's SDKs give.
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

    /// What is shown of the reasoning: summarized or omitted
    #[arg(long, value_name = "WORD", help_heading = "Model")]
    pub thinking_display: Option<String>,

    /// Ask an Anthropic server for these beta features; comma-separated
    #[arg(long, value_name = "NAMES", value_delimiter = ',', help_heading = "Model")]
    pub betas: Vec<String>,

    /// Tell an Anthropic model how many tokens a turn may cost
    #[arg(long, value_name = "N", help_heading = "Model")]
    pub task_budget: Option<u64>,

    /// Copy the session's entries to the stream too
    #[arg(long, num_args = 0..=1, default_missing_value = "", hide = true)]
    pub session_mirror: Option<String>,

    /// The prompt whose turn is left out by '--resume-session-at', which is refused where it would leave out more
    #[arg(long, value_name = "ID", num_args = 0..=1, default_missing_value = "", help_heading = "Sessions")]
    pub resume_drops_turn: Option<String>,

    /// The mode 'bypassPermissions' may be chosen while the session runs
    #[arg(long, hide = true)]
    pub allow_dangerously_skip_permissions: bool,

    /// Who answers permission questions: 'host', or 'none' to refuse what needs an answer
    #[arg(long, value_name = "WHO", hide = true)]
    pub permission_prompts: Option<String>,

    /// Settings of the host's that can only forbid: permissions to deny and to ask for, and the sandbox
    #[arg(long, value_name = "JSON", hide = true)]
    pub managed_settings: Option<String>,

    /// Begin with nothing before the host said 'initialize'
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
