//! The promises of the session log.
#![expect(clippy::expect_used, reason = "what the tests share may fail as they do")]

mod damage;
mod folding;
mod keeping;
mod replaying;
mod story;
