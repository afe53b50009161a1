//! Text on its way to the model and the user: decoding, cleaning, shortening and diffs.

pub mod boundary;
pub mod clean_pipe;
pub mod command_output;
pub mod content;
pub mod diff;
pub mod notebook;
pub mod pdf;
pub mod plain_output;
pub mod transcript;
