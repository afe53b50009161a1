//! Resolves the command line against the environment, which no other module reads.

mod built_in;
mod claude;
mod config;
mod dialect;
pub mod file;
mod hooks;
mod invocation;
mod layers;
mod limits;
mod mcp;
mod model;
mod project;
mod resolve;
mod rules;
mod sessions;
mod telemetry;
mod thinking;
mod tooling;

use std::path::Path;

use qwen_dialects::{Dialect, Format};
use qwen_events::{ErrorInfo, ErrorKind};

pub use claude::ThinkingFlags;
pub use claude::config::{MemorySources, OutputStyle};
pub use config::{Config, DebugTarget, LogLevel};
pub use file::Settings;
pub use invocation::Invocation;
pub use layers::{Layered, SettingsFile};
pub use project::config::load_skills;
pub use project::content::{FolderContent, TreeContent, UserDirectories, collect_tree};
pub use project::trust::{Trust, TrustChange, TrustDecision, TrustList};
pub use rules::tool_names::is_tool_rule;
pub(crate) use rules::tool_names::problem as tool_name_problem;
pub use rules::writer::add_allow_rule;
pub use sessions::{SessionStart, session_by_prefix, store};
pub use telemetry::{HEADERS as EXPORT_HEADERS, of_hub as telemetry_of_hub};
pub use tooling::{excluded_actions, has_tool, redactor};

use self::resolve::Resolver;
use crate::cli::{InputFormat, OutputFormat, Run};

/// The output format, decided before anything can fail, so that errors are reported in the right format.
pub struct OutputWire {
    pub dialect: Dialect,
    /// None means plain text.
    pub format: Option<Format>,
}

impl OutputWire {
    /// Decides the dialect and the format. Without settings, whose loading may be what failed, flags and
    /// environment decide.
    pub fn resolve(
        run: &Run,
        invocation: &Invocation,
        output: Option<&file::Output>,
    ) -> Result<Self, ErrorInfo> {
        let format = match run.output_format {
            Some(OutputFormat::Text) => None,
            Some(OutputFormat::Json) => Some(Format::Json),
            Some(OutputFormat::StreamJson) => Some(Format::StreamJson),
            Some(OutputFormat::StreamChunkJson) => Some(Format::StreamChunkJson),
            None if run.json => Some(Format::StreamJson),
            None => match run.input_format {
                Some(InputFormat::StreamJson) => Some(Format::StreamJson),
                Some(InputFormat::StreamChunkJson) => Some(Format::StreamChunkJson),
                None | Some(InputFormat::Text) => match output.and_then(|output| output.format.as_deref()) {
                    Some("json") => Some(Format::Json),
                    Some("stream-json") => Some(Format::StreamJson),
                    Some("stream-chunk-json") => Some(Format::StreamChunkJson),
                    Some(_) => None,
                    // A `--dialect` flag implies structured output. A variable or a setting only selects the
                    // dialect once structured output is requested.
                    None => run.dialect.is_some().then_some(Format::StreamJson),
                },
            },
        };
        let setting = output.and_then(|output| output.dialect);
        Ok(Self { dialect: dialect::resolve(run, invocation, setting, format)?, format })
    }
}

impl Config {
    /// True if no model is configured and the server may say which one it offers.
    pub fn needs_discovery(invocation: &Invocation, settings: &Settings, layered: &Layered) -> bool {
        model::needs_discovery(invocation, layered, &settings.model)
    }

    /// Resolves the complete configuration, after asking the server for its models.
    pub async fn resolve_with_discovery(
        run: &Run,
        invocation: &Invocation,
        mut settings: Settings,
        layered: Layered,
        wire: &OutputWire,
    ) -> Result<Self, ErrorInfo> {
        let undecided = model::discover(run, invocation, &layered, &mut settings.model).await;
        let mut config = Self::resolve(run, invocation, settings, layered, wire)?;
        config.model.undecided = undecided;
        Ok(config)
    }

    /// Resolves the complete configuration.
    pub fn resolve(
        run: &Run,
        invocation: &Invocation,
        settings: Settings,
        layered: Layered,
        wire: &OutputWire,
    ) -> Result<Self, ErrorInfo> {
        Resolver { run, invocation, wire, settings, layered, warnings: ignored_flags(run) }.resolve()
    }
}

/// Warnings about flags that have no effect here.
fn ignored_flags(run: &Run) -> Vec<String> {
    let note = |flag: &&str| format!("--{flag} is accepted and changes nothing here");
    run.ignored.given.iter().map(note).collect()
}

/// The error for a flag that names an unreadable file.
fn unreadable(flag: &str, path: &Path, error: &std::io::Error) -> ErrorInfo {
    let message = format!("{flag} {}: {error}", path.display());
    ErrorInfo::new(ErrorKind::Input, "unreadable_file", message)
}

/// The error for a flag with a value that cannot be used.
fn bad_flag(message: String) -> ErrorInfo {
    ErrorInfo::new(ErrorKind::Usage, "bad_flag", message)
}
