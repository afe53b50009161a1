//! `qwen serve` and its flags.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use crate::cli::supervision::seconds;

/// `qwen serve`
#[derive(Args, Debug, Default, Clone)]
pub struct ServeArgs {
    /// Listen here: ADDRESS:PORT or unix:PATH
    #[arg(long, value_name = "ADDR", default_value = qwen_serve::DEFAULT_ADDRESS)]
    pub listen: String,
    /// Run sessions in this directory or below it; may be given several times (default: the current directory)
    #[arg(long, value_name = "DIR")]
    pub workspace: Vec<PathBuf>,
    /// Open the page in the browser
    #[arg(long)]
    pub open: bool,
    /// Let pages of this origin use the server, such as https://app.example.com; may be given several times
    #[arg(long, value_name = "ORIGIN")]
    pub allow_origin: Vec<String>,
    /// Allow an address that other machines can reach
    #[arg(long)]
    pub allow_remote: bool,
    /// The certificate of the server and its chain, a PEM file
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    pub tls_cert: Option<PathBuf>,
    /// The key of the certificate, a PEM file
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    pub tls_key: Option<PathBuf>,
    /// With --allow-remote: serve without TLS, for a proxy that has it
    #[arg(long)]
    pub insecure: bool,
    /// Replace the stored tokens
    #[arg(long)]
    pub new_token: bool,
    /// How many sessions may be open at the same time
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub max_sessions: u32,
    /// Deny a permission request that no one has answered after this many seconds (default: no limit)
    #[arg(long, value_name = "SECS", value_parser = seconds)]
    pub approval_timeout: Option<Duration>,
    #[cfg(feature = "fleet")]
    #[command(flatten)]
    pub bus: super::BusFlags,
    /// Read `bus` from this configuration file of a hub or a node
    #[cfg(feature = "fleet")]
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// With --bus: run the sessions on this machine, and not on nodes
    #[cfg(feature = "fleet")]
    #[arg(long)]
    pub local: bool,
    /// Flags for every worker, after '--'
    #[arg(last = true, value_name = "WORKER FLAGS")]
    pub worker_args: Vec<String>,
}
