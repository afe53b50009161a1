//! The `acp` dialect: version 1 of the Agent Client Protocol.
//!
//! A turn is a series of `session/update` notifications; its terminal record is the JSON-RPC response to the
//! prompt, whose id is the turn's `prompt_id`. Questions are requests with the worker's request id. What the
//! protocol has no message for (the handshake of a worker, answers on our control channel) is a notification
//! below `_qwen/`, which only `qwen --acp` reads.
//!
//! The encoder keeps message ids, tool updates, command output and the end of a turn in separate modules, so
//! that version 2 of the protocol can become a second projection.

mod agents;
mod answer;
mod call;
mod client;
mod content;
mod encode;
mod message;
mod open_calls;
mod outcome;
mod permission;
mod prompt;
mod sizes;
mod thinking;
pub mod wire;

pub use agents::owning_session;
pub(crate) use answer::permission_answer;
pub use answer::{Answer, AskedQuestion};
pub use client::{APPROVAL_MODES, AcpClient, SubAgents, TerminalOutput};
pub use outcome::error_code;
pub use permission::{ASK_QUESTION_TOOLS, OptionId, question_form};
pub use prompt::{PromptContent, prompt_parts};
pub use sizes::{MAX_FRAME, explanation, one_line};
pub use wire::rpc;

pub(crate) use encode::encoder;
pub use encode::{push_prompt, push_update};
