#![doc = include_str!("../README.md")]

mod action;
pub mod config;
pub mod front;
mod hub;
pub mod ipc;
mod metrics;
pub mod process_manager;
pub mod router;
pub mod store;
mod tenant;
pub mod worker_pool;

pub use action::{Action, ProcessSignal};
pub use hub::{Hub, HubParts, TurnEnds};
pub use metrics::Metrics;
pub use router::{Identity, Router, SessionOptions, WorkerKeys};
pub use tenant::is_tenant_name;
pub use worker_pool::{Pool, PoolLimits, WorkerId, WorkerKey};
