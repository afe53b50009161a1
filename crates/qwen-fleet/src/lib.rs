//! Sessions on several machines: the kernel's stores over NATS JetStream.
//!
//! The *bus* is a NATS cluster. A session has two append-only subjects in replicated streams: its log (`QLOG-k`) and
//! its numbered lines (`QEV-k`). Every append names the message that it must follow, so that the store refuses an
//! owner that was replaced; no clock is involved. `subjects` and `headers` are pure; `bus` connects and asks,
//! `stream` appends and reads, `session_log`, `events` and `sessions` implement the kernel's traits, `streams`
//! creates and verifies the streams. `workspaces` is where files of sessions are, `suspension` stops commands of a node
//! that is cut off, `metrics` counts. `node` offers a machine's workers, `relay` is a hub without workers, and
//! `heartbeat` is how it learns which nodes live.

mod bus;
mod events;
mod export;
mod headers;
mod heartbeat;
mod metrics;
mod node;
mod relay;
mod session_log;
mod sessions;
mod stream;
mod streams;
mod subjects;

pub use bus::{Bus, BusError, BusIdentity, BusOptions, TlsOptions, is_supported};
pub use events::BusEvents;
pub use export::export_streams;
pub use heartbeat::{Nodes, Timing};
pub use node::workspaces::AnnouncedWorkspace;
pub use node::{BusNode, NodeParts};
pub use relay::{Relay, RelayParts};
pub use session_log::BusLog;
pub use sessions::BusSessions;
pub use streams::{Shards, StreamOptions, StreamReport, init, report, shards};
pub use subjects::{is_bus_name, shard_of};

#[cfg(test)]
mod tests;
