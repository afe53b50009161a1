//! Attacks through the real binary: a scripted model tries, and the effect is looked for where it would be,
//! on disk, at a listener or in what the model is told. Rows are numbered after the attack suite of issue 3;
//! those without a number are our own.
#![expect(clippy::unwrap_used, reason = "what the tests share may fail as they do")]
#![expect(
    clippy::needless_pass_by_value,
    reason = "rows are made of values that are written where they are used"
)]

mod bounds;
mod denied;
mod dialler;
mod everyday;
mod git;
mod guardian;
mod harness;
mod hosts;
mod ignore_files;
mod judgement;
mod network;
mod objects;
mod paths;
mod protocol;
mod read_only;
mod repository;
mod sandbox;
mod servers;
mod shell;
mod tool_names;
mod tree;
mod trusted;
mod vocabularies;
