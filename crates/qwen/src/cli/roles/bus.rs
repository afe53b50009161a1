//! The flags of programs that use a bus.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand};
use qwen_kernel::config::parse_duration;

/// How to reach the bus.
#[derive(Args, Debug, Clone, Default)]
pub struct BusFlags {
    /// Share sessions over this bus (NATS JetStream): nats://HOST:PORT or tls://HOST:PORT, several separated by commas
    #[arg(long, global = true, value_name = "URL")]
    pub bus: Option<String>,
    /// Read the credentials of the bus from this file: a credentials document, an NKey seed or USER:PASSWORD
    #[arg(long, global = true, value_name = "FILE")]
    pub bus_credentials: Option<PathBuf>,
    /// Allow plain text to a bus that is not on this machine
    #[arg(long, global = true)]
    pub insecure_bus: bool,
    /// Refuse a bus without TLS
    #[arg(long, global = true)]
    pub bus_tls: bool,
    /// Trust the certificates in this PEM file for the bus; implies --bus-tls
    #[arg(long, global = true, value_name = "FILE")]
    pub bus_tls_ca: Option<PathBuf>,
    /// The certificate of this process for the bus, a PEM file; implies --bus-tls
    #[arg(long, global = true, value_name = "FILE", requires = "bus_tls_key")]
    pub bus_tls_cert: Option<PathBuf>,
    /// The key of that certificate, a PEM file
    #[arg(long, global = true, value_name = "FILE", requires = "bus_tls_cert")]
    pub bus_tls_key: Option<PathBuf>,
    /// What the names of streams and subjects begin with, to use one account for several buses
    #[arg(long, global = true, value_name = "NAME")]
    pub bus_prefix: Option<String>,
    /// The time between two heartbeats of a node: seconds, or '500ms'
    #[arg(long, global = true, value_name = "TIME", value_parser = duration)]
    pub bus_heartbeat_interval: Option<Duration>,
    /// A node is dead after so much silence: seconds, or '2s'
    #[arg(long, global = true, value_name = "TIME", value_parser = duration)]
    pub bus_dead_after: Option<Duration>,
    /// How long after one append further lines of a session are collected: seconds, or '40ms', the default
    #[arg(long, global = true, value_name = "TIME", value_parser = duration)]
    pub bus_events_coalesce: Option<Duration>,
    /// Nodes delete sessions that are idle for longer: seconds, or '30d', the default
    #[arg(long, global = true, value_name = "TIME", value_parser = duration)]
    pub bus_log_retention: Option<Duration>,
    /// How long a line may wait for the bus before its turn is given up: seconds, or '90s'
    #[arg(long, global = true, value_name = "TIME", value_parser = duration)]
    pub bus_commit_timeout: Option<Duration>,
}

/// Parses a duration.
pub(super) fn duration(text: &str) -> Result<Duration, String> {
    parse_duration(text).ok_or_else(|| "give seconds, or a time such as '90s', '1h' or '30d'".to_owned())
}

/// `qwen bus`
#[derive(Subcommand, Debug)]
pub enum BusAction {
    /// Create the streams of a bus, or verify those that exist
    Init(BusInitArgs),
    /// Print the streams, their leaders and what they contain
    Status(BusArgs),
    /// Check versions, replicas, sync policy and round trips, with advice
    Check(BusCheckArgs),
    /// Write every message of the streams to DIR/streams.jsonl, for `qwen check --history`
    Export(BusExportArgs),
}

/// A bus.
#[derive(Args, Debug)]
pub struct BusArgs {
    #[command(flatten)]
    pub bus: BusFlags,
    /// Read `bus` from this configuration file of a hub or a node
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// `qwen bus export`
#[derive(Args, Debug)]
pub struct BusExportArgs {
    #[command(flatten)]
    pub common: BusArgs,
    /// The directory; it is created if it does not exist
    #[arg(value_name = "DIR")]
    pub directory: PathBuf,
}

/// `qwen bus init`
#[derive(Args, Debug)]
pub struct BusInitArgs {
    #[command(flatten)]
    pub common: BusArgs,
    /// The number of streams that share the sessions, 3 by default; it cannot change later
    #[arg(long, value_name = "N")]
    pub shards: Option<u32>,
    /// The number of servers that keep each message; 3, or 1 on a bus with fewer servers, by default
    #[arg(long, value_name = "N")]
    pub replicas: Option<u32>,
    /// How long numbered lines can be read: seconds, or '1h', the default
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub events_retention: Option<Duration>,
}

/// `qwen bus check`
#[derive(Args, Debug)]
pub struct BusCheckArgs {
    #[command(flatten)]
    pub common: BusArgs,
    /// The monitoring address of a server, such as http://127.0.0.1:8222, from which its sync policy is read
    #[arg(long, value_name = "URL")]
    pub monitor: Option<String>,
}
