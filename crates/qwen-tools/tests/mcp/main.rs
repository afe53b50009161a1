//! The MCP client against real servers, official ones and hostile ones.
#![expect(clippy::unwrap_used, reason = "a test that cannot be set up fails")]

#[path = "../fixture/mod.rs"]
mod fixture;
mod host;
mod hostile;
mod http;
mod installed;
mod official;
mod orphans;
mod scene;
