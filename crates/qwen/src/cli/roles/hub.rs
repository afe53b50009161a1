//! `qwen hub` and its flags.

use std::path::PathBuf;

use clap::Args;

use crate::cli::TelemetryFlags;

/// `qwen hub`
#[derive(Args, Debug, Default, Clone)]
pub struct HubArgs {
    /// Print the state of the hub that was started with the same --metrics
    #[arg(long)]
    pub status: bool,
    /// Read the configuration from this YAML or JSON file
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// The dialect: qwen or claude
    #[arg(long, value_name = "NAME", default_value = "qwen")]
    pub dialect: String,
    /// What workers write: stream-json (messages) or stream-chunk-json (pieces of messages)
    #[arg(short = 'o', long, value_name = "FORMAT", default_value = "stream-json")]
    pub output_format: String,
    /// Accepted for compatibility; input is always JSON lines
    #[arg(long, value_name = "FORMAT", hide = true)]
    pub input_format: Option<String>,
    /// The program to start workers with; this one by default
    #[arg(long, value_name = "FILE")]
    pub binary_path: Option<PathBuf>,
    /// How many workers are kept ready
    #[arg(long, value_name = "N")]
    pub min_workers: Option<usize>,
    /// The maximum number of workers
    #[arg(long, value_name = "N")]
    pub max_workers: Option<usize>,
    /// How many sessions a worker serves, one after the other, before it is replaced
    #[arg(long, value_name = "N")]
    pub max_sessions_per_worker: Option<u64>,
    /// Behave like a single worker: one session, with the worker's handshake, errors and exit code
    #[arg(long, hide = true)]
    pub stand_for_worker: bool,
    /// Seconds that a session is idle before its worker is released
    #[arg(long, value_name = "SECS")]
    pub idle_timeout: Option<f64>,
    /// Seconds between two health checks of an idle worker
    #[arg(long, value_name = "SECS")]
    pub health_check_interval: Option<f64>,
    /// The directory for numbered lines and tenants' files; below QWEN_HOME by default
    #[arg(long, value_name = "DIR")]
    pub state_dir: Option<PathBuf>,
    /// Serve Prometheus metrics and the hub's state on this loopback address or Unix socket (unix:PATH)
    #[arg(long, value_name = "ADDR")]
    pub metrics: Option<String>,
    /// Record every message of every session in this directory
    #[arg(long, value_name = "DIR")]
    pub record_dir: Option<PathBuf>,
    /// Write structured logs to standard error: json
    #[arg(long, value_name = "FORMAT", value_parser = ["json"])]
    pub log_format: Option<String>,
    #[cfg(feature = "fleet")]
    #[command(flatten)]
    pub bus: super::BusFlags,
    /// With --bus: run the sessions on this machine, and not on nodes
    #[cfg(feature = "fleet")]
    #[arg(long)]
    pub local: bool,
    #[command(flatten)]
    pub telemetry: TelemetryFlags,
    /// Flags for every worker, after '--'
    #[arg(last = true, value_name = "WORKER FLAGS")]
    pub worker_args: Vec<String>,
}
