//! Sessions and turns. A [`Session`] holds a conversation; a turn runs an agent, which is a small typed
//! [`graph`] of named nodes, and reports everything that happens as events.

pub mod agent;
mod background_tasks;
mod budget;
mod cancel;
pub mod commands;
pub mod compaction;
mod context;
mod edit;
mod emitter;
mod front_matter;
pub mod graph;
pub mod hooks;
mod host;
mod in_flight_calls;
pub mod log;
pub mod memory;
mod network;
mod permissions;
mod react;
pub mod redact;
mod session;
pub mod skill;
mod state_json;
mod steering;
mod structured;
pub mod subagent;
mod tools;
mod trace;

pub use budget::prices::{Price, Prices};
pub use budget::{Budget, Limits};
pub use cancel::{Cancel, Stop};
pub use context::{Audience, ProcessServices, SessionContext};
pub use edit::Edit;
pub use emitter::Emitter;
pub use front_matter::DefinitionSource;
pub use host::{
    DeferredAnswers, HeadlessHost, Host, HostAnswer, HostHookCall, HostServers, Question, QuestionOrigin,
    SyncPoint, SyncReason, denial,
};
pub use in_flight_calls::InFlightCalls;
pub use network::{HostCredential, NetworkGate, NetworkSettings, SandboxGateway};
pub use permissions::{ListedRule, Permissions, RefusedCall};
pub use session::overrides::SessionOverrides;
pub use session::situation::{NoSurroundings, SituationFact, Surroundings};
pub use session::{RedoReport, RewindPoint, RewindReport, Session, TurnInput, unstarted_turn_end};
pub use steering::{SteeringPrompt, SteeringQueue};
pub use structured::AnswerSchema;
pub use tools::TOOLS;
pub use tools::search as tool_search;
pub use trace::{HooksRun, Tracer};
