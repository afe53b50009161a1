//! Sessions and turns. A [`Session`] holds a conversation; a turn runs an agent, which is a small typed [`graph`] of
//! named nodes, and says everything that happens as events.

mod agent;
mod beside;
mod budget;
mod bustle;
mod cancel;
pub mod commands;
pub mod compaction;
mod dials;
mod edit;
mod emitter;
mod front_matter;
mod got;
pub mod graph;
pub mod hooks;
mod host;
pub mod log;
pub mod memory;
mod permissions;
mod prices;
mod react;
pub mod redact;
mod session;
pub mod skill;
mod state_json;
mod structured;
pub mod subagent;
mod thinking;
mod tot;

pub use agent::{AGENTS, mermaid, unknown_agent};
pub use budget::{Budget, Limits};
pub use bustle::Bustle;
pub use cancel::{Cancel, Stop};
pub use dials::Dials;
pub use edit::Edit;
pub use emitter::Emitter;
pub use front_matter::Whose;
pub use got::GotOptions;
pub use host::{Asker, Host, HostServers, Later, Nobody, Question, denial};
pub use permissions::Permissions;
pub use prices::{Price, Prices};
pub use session::{Place, Rewound, Session, SessionSetup, TurnInput};
pub use structured::AnswerForm;
pub use thinking::ThinkingOptions;
pub use tot::{Search, TotOptions};
