//! Transports of the protocol: a program's pipes, HTTP, and servers inside the host.

pub mod host;
pub mod http;
pub mod inbox;
pub mod message;
pub mod meter;
pub mod stdio;
