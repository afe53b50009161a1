//! The flags of the roles that serve other programs: an editor, a client of many sessions, HTTP.

mod acp;
#[cfg(feature = "fleet")]
mod bus;
mod hub;
#[cfg(feature = "fleet")]
mod node;
mod serve;

pub use acp::AcpFlags;
#[cfg(feature = "fleet")]
pub use bus::{BusAction, BusArgs, BusCheckArgs, BusExportArgs, BusFlags, BusInitArgs};
pub use hub::HubArgs;
#[cfg(feature = "fleet")]
pub use node::{NodeArgs, label as node_label, workspace as node_workspace};
pub use serve::ServeArgs;
