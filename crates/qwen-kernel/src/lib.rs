#![doc = include_str!("../README.md")]

mod action;
pub mod config;
pub mod control_plane;
pub mod front;
mod hub;
pub mod ipc;
mod manager;
mod metrics;
pub mod process_manager;
pub mod router;
pub mod store;
mod tenant;
mod turn_span;
pub mod worker_pool;

pub use action::{ClientRequest, ProcessSignal, RouterAction};
pub use hub::{EventStores, Hub, HubParts, SessionLogs, TurnEnds, WorkerStderr, WriteNow};
pub use manager::{
    AgentError, AgentManager, AgentMessage, AgentOptions, Logger, MessageKind, MessageToolCall,
    PermissionDenial, Session, SessionAgent, SessionLimits, SessionStore, SessionTimeouts, StderrCallback,
    SubagentUsage, TurnError, TurnOptions, TurnResult, TurnStream, TurnUsage,
};
pub use metrics::{Histogram, Metric, MetricData, Metrics};
pub use qwen_dialects::qwen::PROTOCOL_VERSION;
pub use router::{
    Identity, LineRecorder, OnCrash, Router, SessionOptions, TracedPrompt, TurnSpan, TurnTracer, WorkerKeys,
};
pub use tenant::is_tenant_name;
pub use worker_pool::{Pool, PoolLimits, WorkerId, WorkerKey};
