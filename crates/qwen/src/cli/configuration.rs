//! Flags that say where settings come from.

use clap::Args;

/// Flags that say where settings come from.
#[derive(Args, Debug, Default, Clone)]
pub struct Configuration {
    /// Settings for this run: a file, or JSON
    #[arg(long, value_name = "FILE|JSON", help_heading = "Settings")]
    pub settings: Option<String>,

    /// Which settings files count: user,project; empty for neither
    #[arg(long, value_name = "NAMES", help_heading = "Settings")]
    pub setting_sources: Option<String>,

    /// A whole set of settings that takes the place of all files: a file, JSON, or a name in $QWEN_HOME/profiles
    #[arg(long, value_name = "PROFILE", help_heading = "Settings")]
    pub settings_profile: Option<String>,

    /// Trust this folder for this run: its own settings, hooks and MCP servers count
    #[arg(long, help_heading = "Settings")]
    pub trust_workspace: bool,

    /// Leave out hooks, MCP servers and everything that the project brings
    #[arg(long, help_heading = "Settings")]
    pub safe_mode: bool,
}
