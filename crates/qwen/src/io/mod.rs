//! Standard input, standard output and the files that are written beside them.

pub mod append_file;
pub mod debug_log;
mod descriptor;
pub mod input;
pub mod output;
pub mod stdin_writer;
pub mod stream;
