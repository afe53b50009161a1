//! Sessions that another process on this machine drives. A client that attaches to one follows it: it gets the lines
//! that the other process stores, until it prompts the session itself, takes it over, or the other process dies in a turn,
//! which this router then ends.

use std::time::Duration;

use qwen_events::SessionId;

use super::super::{Router, Session};
use super::DYING;
use crate::action::RouterAction;

/// The time between two reads of a followed session's lines.
const POLL: Duration = Duration::from_millis(50);

impl Router {
    /// True if a client follows the session and expects further lines of the process that drives it.
    pub(in crate::router) fn is_following(&self, id: &SessionId) -> bool {
        let is_ending = self.ending.is_input_over || self.ending.drain_until.is_some();
        let session = self.sessions.get(id).filter(|session| !is_ending && !session.is_closed());
        session.is_some_and(|session| {
            session.numbering.is_driven_elsewhere() && session.numbering.replays.len() == 1
        })
    }

    /// Reads the session's lines again after a while.
    pub(in crate::router) fn poll_later(&mut self, id: &SessionId) {
        let Some(session) = self.sessions.get_mut(id) else { return };
        session.numbering.is_polling = true;
        self.clock.polls.push((self.clock.now + POLL, id.clone()));
        self.clock.has_changed = true;
    }

    /// Reads the new lines of the sessions whose time has come, and finds out whether their owners live.
    pub(in crate::router) fn poll_followed(&mut self) {
        let now = self.clock.now;
        let (due, later): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.clock.polls).into_iter().partition(|(at, _)| *at <= now);
        self.clock.polls = later;
        for (_, id) in due {
            let is_waiting_for_end =
                self.sessions.get(&id).is_some_and(|session| session.numbering.is_foreign);
            self.resume_replay(&id);
            if is_waiting_for_end && !self.stores.are_shared {
                self.actions.push(RouterAction::CheckOwner { session: id });
            }
        }
    }

    /// Continues a replay that waits for further lines.
    pub(in crate::router) fn resume_replay(&mut self, id: &SessionId) {
        let Some(session) = self.sessions.get_mut(id) else { return };
        if std::mem::take(&mut session.numbering.is_polling) {
            self.read_page(id);
        }
    }

    /// Handles the outcome of [`RouterAction::CheckOwner`]. A turn of a process that died is ended for its followers.
    pub fn note_owner_checked(&mut self, id: &SessionId, is_abandoned: bool) {
        let now = self.clock.now;
        let Some(session) = self.sessions.get_mut(id).filter(|session| session.numbering.is_foreign) else {
            return;
        };
        if !is_abandoned {
            session.numbering.abandoned_since = None;
            return;
        }
        if now >= *session.numbering.abandoned_since.get_or_insert(now) + DYING {
            session.numbering.abandoned_since = None;
            self.take_events(id, false);
        }
    }

    /// Ends what clients follow: they have every line that is stored.
    pub(in crate::router) fn stop_following(&mut self) {
        let polling = |(id, session): (&SessionId, &mut Session)| {
            std::mem::take(&mut session.numbering.is_polling).then(|| id.clone())
        };
        let ended: Vec<SessionId> = self.sessions.iter_mut().filter_map(polling).collect();
        for id in ended {
            self.finish_replay(&id);
        }
    }
}
