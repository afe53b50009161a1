//! The viewer's state of one session.

use super::call::CallView;
use super::event::Tokens;
use super::steps::Steps;
use crate::check::bounded::{Idle, Names, Open};

/// A session and its running turn.
#[derive(Default)]
pub(super) struct SessionView {
    pub(super) in_turn: bool,
    /// True if a part of the answer was shown.
    pub(super) has_text: bool,
    /// The calls that have started and not ended.
    pub(super) calls: Open<CallView>,
    /// The names of node runs.
    pub(super) nodes: Open<String>,
    /// Calls for which approval was requested.
    pub(super) asked: Names,
    pub(super) steps: Steps,
    /// The tokens so far, if they are reported per call.
    pub(super) tokens: Tokens,
    /// The reason why the run is about to end.
    pub(super) run_end: Option<String>,
    /// The last error that was shown.
    pub(super) error: Option<String>,
}

impl Idle for SessionView {
    fn is_idle(&self) -> bool {
        !self.in_turn
    }
}
