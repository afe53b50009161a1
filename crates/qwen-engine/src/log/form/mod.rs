//! The shapes that events have in the log. The vocabulary itself knows no JSON, so each of its types that is kept has
//! a shape of its own here, and a way there and back.
//!
//! Enumerations are tagged from outside (`{"text":"…"}`), because only then can JSON that merely passes through be
//! carried as text, without being parsed and built anew.

mod error;
mod message;
mod notice;
mod raw;
mod tool;
mod turn;
mod word;

pub(super) use error::ErrorForm;
pub(super) use message::{FinishForm, HistoryForm, MediaForm, MessageEndForm, PartForm};
pub(super) use notice::{CommandResultForm, NoticeForm, ThinkingForm};
pub(super) use raw::Raw;
pub(super) use tool::{ApprovalForm, CallForm, CallRef, DecisionForm, OutputForm, ToolEndForm};
pub(super) use turn::{CheckpointForm, JournalForm, ModelUsageForm, TurnEndForm, TurnStartForm, UsageForm};
pub(crate) use word::word;

/// Leaves a zero, a `false` or an empty list out of a line.
fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}
