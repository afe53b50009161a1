//! The command line as people and scripts use it: standard input, standard output, standard error and exit
//! codes.

#![expect(clippy::unwrap_used, reason = "test code fails by panicking")]

mod demo;
mod diagnostics;
mod foreign_text;
mod harness;
mod output;
mod pipelines;
mod refusals;
mod servers;
mod sessions;
mod stdin;
mod undo;
