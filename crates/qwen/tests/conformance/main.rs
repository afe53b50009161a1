//! Spec 1, the structured input and output of a session, through the real binary: every table row, every
//! event and every example, in both output formats. `docs/contributing/spec1-coverage.md` says which test holds which line
//! of the spec.
#![expect(clippy::unwrap_used, reason = "what the tests share may fail as they do")]

mod advice;
mod bad_lines;
mod call_order;
mod commands;
mod concurrency;
mod control;
mod coverage;
mod deferred_tools;
mod endings;
mod errors;
mod harness;
mod interface;
mod matrix;
mod output;
mod points;
mod prompts;
mod property;
mod records;
mod requests;
mod robustness;
mod safety;
mod situation;
mod steering;
mod templates;
mod tool_results;
mod vocabulary;
mod worktrees;
