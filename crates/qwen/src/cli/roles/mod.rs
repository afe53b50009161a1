//! The flags of the roles that serve other programs: an editor, a client of many sessions, HTTP.

mod acp;
mod hub;
mod serve;

pub use acp::AcpFlags;
pub use hub::HubArgs;
pub use serve::ServeArgs;
