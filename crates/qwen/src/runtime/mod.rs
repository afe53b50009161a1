//! Process management: exit, signals and memory.

pub mod clock;
pub mod code_pages;
pub mod exit;
pub mod privacy;
pub mod restart;
pub mod signals;
pub mod version;
