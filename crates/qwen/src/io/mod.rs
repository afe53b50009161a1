//! Standard input, standard output and the other files that the process writes.

pub mod append_file;
pub mod debug_log;
pub mod descriptor;
pub mod host_file;
pub mod input;
pub mod output;
pub mod stdin_writer;
pub mod stream;
