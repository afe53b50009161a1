//! The MCP client against real servers, official ones and hostile ones.

#[path = "../bench/mod.rs"]
mod bench;
mod host;
mod hostile;
mod http;
mod installed;
mod official;
mod scene;
