//! The messages as they are written, field for field. Only the parts of the protocol that this program writes
//! are here.

mod frame;
pub mod rpc;
mod update;

pub use frame::{
    CancelMethod, CancelParams, Elicitation, ElicitationMethod, ErrorObject, ErrorResponse, Internal,
    InternalMethod, Notification, PermissionMethod, PermissionOption, PermissionRequest, PromptResponse,
    PromptResult, Request, StopReason, TokenCounts, UpdateMethod, UpdateParams, Version,
};
pub use update::{
    AvailableCommand, Chunk, CommandInput, ConfigChoice, ConfigOption, ContentBlock, Cost, Location, Mode,
    ModeState, PlanEntry, RawJson, Resource, SessionUpdate, ToolContent, ToolUpdate,
};
