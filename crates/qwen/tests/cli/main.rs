//! The command line as people and scripts use it: standard input, standard output, standard error and exit codes.

mod diagnostics;
mod output;
mod pipelines;
mod refusals;
mod servers;
mod sessions;
mod stage;
mod stdin;
mod undo;
