//! The streams of `claude`, `claude-lite`, `loom`, `loom-export`, and the one document: what events become.

mod claude;
mod document;
mod examples;
mod lite;
mod loom;
mod random;
mod script;
