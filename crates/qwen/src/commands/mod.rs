//! What the program does besides running prompts, one file a command.

pub mod sessions;
