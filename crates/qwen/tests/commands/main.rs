//! Commands, `@` references, hints and hooks through the real binary, against a model on loopback.
#![expect(clippy::unwrap_used, reason = "what the tests share may fail as they do")]

mod hooks;
mod slash;
mod stage;
