//! Text on its way to the model and the user: decoding, cleaning, shortening and diffs.

pub mod clean_pipe;
pub mod content;
pub mod diff;
pub mod plain_output;
pub mod transcript;
