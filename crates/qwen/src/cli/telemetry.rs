//! The flags of traces.

use clap::Args;

/// Whether traces are made, and where they go.
#[derive(Args, Debug, Default)]
#[command(next_help_heading = "Telemetry")]
pub struct TelemetryFlags {
    /// Send traces to an OpenTelemetry collector
    #[arg(long, value_name = "BOOL", num_args = 0..=1, default_missing_value = "true", require_equals = true)]
    pub telemetry: Option<bool>,

    /// Send no traces, whatever the settings say
    #[arg(long)]
    pub no_telemetry: bool,

    /// The collector's address, such as 'http://localhost:4318'
    #[arg(long, value_name = "URL")]
    pub telemetry_otlp_endpoint: Option<String>,

    /// How the collector is spoken to; there is only OTLP over HTTP
    #[arg(long, value_name = "NAME", hide = true)]
    pub telemetry_otlp_protocol: Option<String>,

    /// Write the traces to this file instead
    #[arg(long, value_name = "FILE")]
    pub telemetry_outfile: Option<String>,

    /// Include prompts, answers, tool arguments and tool results in the traces
    #[arg(long, value_name = "BOOL", num_args = 0..=1, default_missing_value = "true", require_equals = true)]
    pub telemetry_log_prompts: Option<bool>,

    /// Where traces go
    #[arg(long, value_name = "NAME", hide = true)]
    pub telemetry_target: Option<String>,
}
