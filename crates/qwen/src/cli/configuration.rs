//! Flags for the sources of settings.

use clap::Args;

/// Flags for the sources of settings.
#[derive(Args, Debug, Default, Clone)]
pub struct Configuration {
    /// Add settings for this run: a file, or JSON
    #[arg(long, value_name = "FILE|JSON", help_heading = "Settings")]
    pub settings: Option<String>,

    /// Read only these settings files: user,project; empty for neither
    #[arg(long, value_name = "NAMES", help_heading = "Settings")]
    pub setting_sources: Option<String>,

    /// Use this profile instead of all settings files: a file, JSON, or a name in $QWEN_HOME/profiles
    #[arg(long, value_name = "PROFILE", help_heading = "Settings")]
    pub settings_profile: Option<String>,

    /// Trust this directory for this run: its settings, hooks and MCP servers apply
    #[arg(long, help_heading = "Settings")]
    pub trust_workspace: bool,

    /// Remove the tools that run commands or fetch URLs unless '--tools' names them, read no settings files,
    /// and refuse the mode yolo
    #[arg(long, hide = true)]
    pub restricted: bool,

    /// Run without hooks, MCP servers and the project's own settings
    #[arg(long, help_heading = "Settings")]
    pub safe_mode: bool,
}
