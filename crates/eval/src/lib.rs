//! Measures the agents on oracles of known quality: the Game of 24 for trees of thoughts, sorting and set
//! intersection for graphs of thoughts, tasks of a size for adaptive ones, each against simpler ways to spend
//! the same calls.
//!
//! Replies are checked independently of how an oracle works.

pub mod capacity;
pub mod game24;
pub mod lists;
mod play;
pub mod table;

pub use play::{Played, Player};
