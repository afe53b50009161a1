//! The promises of the session log.

mod damage;
mod folding;
mod keeping;
mod replaying;
mod story;
