//! What is remembered of a session while it is shown.

use super::call::CallView;
use super::event::Tokens;
use super::steps::Steps;
use crate::check::bounded::{Idle, Names, Open};

/// A session, and the turn that is under way in it.
#[derive(Default)]
pub(super) struct SessionView {
    /// A turn is under way.
    pub(super) in_turn: bool,
    /// Some of the answer was shown.
    pub(super) spoke: bool,
    /// Calls under way.
    pub(super) calls: Open<CallView>,
    /// Calls that someone was asked about.
    pub(super) asked: Names,
    pub(super) steps: Steps,
    /// Tokens so far, where they come call by call.
    pub(super) tokens: Tokens,
    /// Why the run is about to end.
    pub(super) run_end: Option<String>,
    /// The error that was shown last.
    pub(super) error: Option<String>,
}

impl Idle for SessionView {
    fn is_idle(&self) -> bool {
        !self.in_turn
    }
}
