//! Diagnostic output, and how the process reports its end.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

/// The format of standard error.
#[derive(ValueEnum, Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogFormat {
    /// Readable text
    Text,
    /// One JSON object per line
    Json,
}

/// Diagnostic output, and how the process reports its end.
#[derive(Args, Debug, Default)]
pub struct DiagnosticFlags {
    /// Do not read standard input
    #[arg(long, help_heading = "Input and output")]
    pub no_stdin: bool,

    /// Also write the final message to this file
    #[arg(long, value_name = "FILE", help_heading = "Input and output")]
    pub output_last_message: Option<PathBuf>,

    /// Exit with 54 when a tool call was denied
    #[arg(long, help_heading = "Permissions")]
    pub fail_on_denied: bool,

    /// Print one line per step to standard error; with '--output-format stream-json' it selects the claude
    /// dialect instead
    #[arg(long, help_heading = "Diagnostics")]
    pub verbose: bool,

    /// Print nothing but warnings and errors to standard error
    #[arg(short = 'q', long, conflicts_with = "verbose", help_heading = "Diagnostics")]
    pub quiet: bool,

    /// The format of standard error; 'json' prints every step as a JSON line
    #[arg(long, value_enum, value_name = "FORMAT", help_heading = "Diagnostics")]
    pub log_format: Option<LogFormat>,

    /// Log every event and model request to standard error, without secrets
    #[arg(short = 'd', long, value_name = "FILTER", num_args = 0..=1, default_missing_value = "",
          require_equals = true, help_heading = "Diagnostics")]
    pub debug: Option<String>,

    /// Log every event and model request to this file, without secrets
    #[arg(long, value_name = "FILE", help_heading = "Diagnostics")]
    pub debug_file: Option<PathBuf>,
}
