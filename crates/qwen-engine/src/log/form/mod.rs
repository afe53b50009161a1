//! The JSON forms of events in the log. `qwen-events` derives no serde, so each logged type has a form here,
//! with conversions in both directions.
//!
//! Enumerations are externally tagged (`{"text":"…"}`), because only then can embedded JSON be copied as text
//! without being parsed and serialized again.

mod error;
mod message;
mod named;
mod notice;
mod raw;
mod tool;
mod turn;
mod word;

pub(super) use error::ErrorForm;
pub(super) use message::{HistoryForm, MediaForm, MessageEndForm, PartForm};
pub(super) use named::ByName;
pub(super) use notice::{CommandResultForm, NoticeForm, ThinkingForm};
pub(super) use raw::Raw;
pub(super) use tool::{ApprovalForm, CallForm, CallRef, DecisionForm, OutputForm, ToolEndForm};
pub(super) use turn::{CheckpointForm, JournalForm, ModelUsageForm, TurnEndForm, TurnStartForm, UsageForm};
pub(crate) use word::word;

/// Skips a zero, a `false` or an empty list when a line is written.
fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}
