//! Flags for tracing.

use clap::Args;

impl TelemetryFlags {
    /// The flags as they are written on a command line.
    pub fn to_args(&self) -> Vec<String> {
        let truths =
            [("--telemetry", self.telemetry), ("--telemetry-log-prompts", self.telemetry_log_prompts)];
        let texts = [
            ("--telemetry-otlp-endpoint", &self.telemetry_otlp_endpoint),
            ("--telemetry-otlp-protocol", &self.telemetry_otlp_protocol),
            ("--telemetry-outfile", &self.telemetry_outfile),
            ("--telemetry-target", &self.telemetry_target),
        ];
        let truths = truths.into_iter().filter_map(|(flag, on)| Some(format!("{flag}={}", on?)));
        let texts = texts.into_iter().filter_map(|(flag, text)| Some(format!("{flag}={}", text.as_ref()?)));
        let off = self.no_telemetry.then(|| "--no-telemetry".to_owned());
        truths.chain(texts).chain(off).collect()
    }
}

/// Whether traces are recorded and where they are sent.
#[derive(Args, Debug, Default, Clone)]
#[command(next_help_heading = "Telemetry")]
pub struct TelemetryFlags {
    /// Send traces to an OpenTelemetry collector
    #[arg(long, value_name = "BOOL", num_args = 0..=1, default_missing_value = "true", require_equals = true)]
    pub telemetry: Option<bool>,

    /// Send no traces, regardless of the settings
    #[arg(long)]
    pub no_telemetry: bool,

    /// The collector's address, such as 'http://localhost:4318'
    #[arg(long, value_name = "URL")]
    pub telemetry_otlp_endpoint: Option<String>,

    /// The collector's protocol; only OTLP over HTTP is supported
    #[arg(long, value_name = "NAME", hide = true)]
    pub telemetry_otlp_protocol: Option<String>,

    /// Write the traces to this file instead
    #[arg(long, value_name = "FILE")]
    pub telemetry_outfile: Option<String>,

    /// Include prompts, answers, tool arguments and tool results in the traces
    #[arg(long, value_name = "BOOL", num_args = 0..=1, default_missing_value = "true", require_equals = true)]
    pub telemetry_log_prompts: Option<bool>,

    /// The collector that receives traces
    #[arg(long, value_name = "NAME", hide = true)]
    pub telemetry_target: Option<String>,
}
