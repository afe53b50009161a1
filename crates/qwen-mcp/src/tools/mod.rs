//! The tools that servers offer: their declarations, calls and results.

pub mod catalogue;
pub mod mirrored;
pub mod remote_tool;
pub mod result;
pub mod visible;
