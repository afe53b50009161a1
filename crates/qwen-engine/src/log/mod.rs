//! The session log: one append-only file of JSON lines per session, the only source of truth about it.
//!
//! The log is written by a reader of the same events that every dialect reads ([`Recorder`]). Everything else
//! is derived from it: resuming folds it into the conversation ([`Folded`]), forking copies a part of it,
//! showing and exporting replay it ([`Replay`]).
//!
//! *Invariant:* the messages of a conversation are logged by `TurnStart`, `MessageEnd` and `ToolEnd` of the
//! main agent, in this order. Code that changes a conversation in any other way must log `Body::History`, or
//! a resumed session would miss the change.

mod entry;
mod error;
mod file_backups;
mod fold;
mod form;
mod header;
mod list;
mod output;
mod prune;
mod reader;
mod recorder;
mod replay;
mod search;
mod store;
mod sync;

use std::sync::Arc;

use qwen_events::SessionId;

pub(crate) use entry::LoggedConnection;
pub use entry::{Entry, EntryBody};
pub use error::LogError;
pub use file_backups::{FileBackup, FileBefore};
pub(crate) use file_backups::{FileBackups, fingerprint, note_written, read_fingerprints};
pub(crate) use fold::open_calls::INTERRUPTED;
pub use fold::open_calls::{OpenCall, OpenCalls, Progress, UnansweredCalls};
pub use fold::stored_run::StoredRun;
pub use fold::{CheckpointMeta, FinalAnswer, Folded, Unfinished};
pub(crate) use form::word;
pub use header::{LogHeader, Parent, derive_title};
pub use list::Summary;
pub use prune::Pruned;
pub use reader::LogReader;
pub use recorder::Recorder;
pub(crate) use recorder::{Log, Unsynced, WeakLog};
pub use replay::Replay;
pub use search::FoundSession;
pub use store::Store;

/// The id of the checkpoint after a turn's `step`-th step.
pub(crate) fn checkpoint_id(session: &SessionId, turn: u64, step: u64) -> Arc<str> {
    format!("{session}-{turn}-{step}").into()
}
