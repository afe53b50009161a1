//! The flags of programs that use a bus.

use std::path::PathBuf;

use clap::{Args, Subcommand};

/// How to reach the bus.
#[derive(Args, Debug, Clone, Default)]
pub struct BusFlags {
    /// Share sessions over this bus (NATS JetStream): nats://HOST:PORT or tls://HOST:PORT, several separated by commas
    #[arg(long, value_name = "URL")]
    pub bus: Option<String>,
    /// Read the credentials of the bus from this file: a credentials document, an NKey seed or USER:PASSWORD
    #[arg(long, value_name = "FILE")]
    pub bus_credentials: Option<PathBuf>,
    /// Allow plain text to a bus that is not on this machine
    #[arg(long)]
    pub insecure_bus: bool,
    /// Seconds that a line may wait for the bus before its turn is given up
    #[arg(long, value_name = "SECS")]
    pub bus_commit_timeout: Option<f64>,
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
}

/// A bus.
#[derive(Args, Debug)]
pub struct BusArgs {
    #[command(flatten)]
    pub bus: BusFlags,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// `qwen bus init`
#[derive(Args, Debug)]
pub struct BusInitArgs {
    #[command(flatten)]
    pub common: BusArgs,
    /// The number of streams that share the sessions; it cannot change later
    #[arg(long, value_name = "N", default_value_t = 3)]
    pub shards: u32,
    /// The number of servers that keep each message; 3, or 1 on a bus with fewer servers, by default
    #[arg(long, value_name = "N")]
    pub replicas: Option<u32>,
    /// Seconds for which numbered lines can be read
    #[arg(long, value_name = "SECS", default_value_t = 3600)]
    pub events_retention: u64,
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
