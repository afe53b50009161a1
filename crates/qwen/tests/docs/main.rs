//! The documentation is executed: commands run, transcripts are compared, examples come from the corpus,
//! links resolve.
//!
//! The label of a fenced block says what happens to it:
//!
//! | label | what the test does |
//! |---|---|
//! | `sh` | runs the page's blocks in order with bash, in one small git repository, with `qwen` on the path
//! and a model behind it |
//! | `console` | runs each `$ command` and compares what it prints; `…` stands for any text, alone on a line
//! for any lines |
//! | `python`, `javascript` | runs it in the same directory, after the `sh` blocks |
//! | `json`, `jsonl` | parses it; `json settings` is also read as a settings file |
//! | `jsonl corpus:TRACE/FILE` | finds every line in that file of `corpus/` |
//! | `yaml hub` | starts a hub with it |
//! | `markdown command`, `markdown agent` | defines the command or the sub-agent, and uses it |
//! | `text`, `mermaid` | nothing: figures, which must not look like code |
//!
//! A block below `<!-- run by: FILE -->` is executed by that test instead.

#![expect(clippy::unwrap_used, reason = "test code fails by panicking")]

mod blocks;
mod corpus;
mod errors;
mod fields;
mod generated;
mod links;
mod packaging;
mod page;
mod shell;
