//! When an open question may be answered.

use super::keys::{Mode, TypedKey};
use crate::Millis;

/// A question that opened by itself leaves keys to the composer for this time after it became visible.
const GRACE: Millis = 300;

/// What opened a question.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Opener {
    Program,
    User,
}

/// How far a question is on its way to the screen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Visibility {
    /// No frame contains it.
    Hidden,
    /// A frame contains it that is not written yet.
    Drawn {
        at: Millis,
    },
    Visible {
        drawn: Millis,
        written: Millis,
    },
}

/// A question that is shown in full.
#[derive(Debug)]
pub(super) struct OpenQuestion {
    opener: Opener,
    visibility: Visibility,
    /// True if a frame showed all of the subject, or how much of it is not shown.
    pub(super) is_measured: bool,
    /// The first visible row of the subject.
    pub(super) scroll: usize,
    pub(super) mode: Mode,
    pub(super) typed: Option<TypedKey>,
}

impl OpenQuestion {
    pub(super) fn new(opener: Opener, mode: Mode) -> Self {
        Self { opener, visibility: Visibility::Hidden, is_measured: false, scroll: 0, mode, typed: None }
    }

    /// True if a key that was pressed at `pressed` or later is for the question.
    pub(super) fn takes_key(&self, pressed: Millis) -> bool {
        match (self.visibility, self.opener) {
            (Visibility::Visible { drawn, .. }, Opener::User) => pressed >= drawn,
            (Visibility::Visible { written, .. }, Opener::Program) => pressed >= written + GRACE,
            (Visibility::Hidden | Visibility::Drawn { .. }, _) => false,
        }
    }

    /// True once the user could see what an approval permits.
    pub(super) fn is_measured(&self) -> bool {
        self.is_measured
    }

    /// Records that the whole subject was shown outside the panel.
    pub(super) fn measure(&mut self) {
        self.is_measured = true;
    }

    /// Records that the user opened the question, or wanted to when it opened by itself. Returns false if it
    /// was the user who opened it before.
    pub(super) fn attend(&mut self) -> bool {
        std::mem::replace(&mut self.opener, Opener::User) == Opener::Program
    }

    /// Records that a frame contains the question. `is_measured` tells whether the frame shows all of the
    /// subject or states its length.
    pub(super) fn draw(&mut self, now: Millis, is_measured: bool) {
        self.is_measured |= is_measured;
        if self.visibility == Visibility::Hidden {
            self.visibility = Visibility::Drawn { at: now };
        }
    }

    pub(super) fn awaits_frame(&self) -> bool {
        self.visibility == Visibility::Hidden
    }

    /// True if the user opened the question.
    pub(super) fn is_opened_by_user(&self) -> bool {
        self.opener == Opener::User
    }

    /// True if the user sees the question or opened it.
    pub(super) fn is_noticed(&self) -> bool {
        self.is_opened_by_user() || matches!(self.visibility, Visibility::Visible { .. })
    }

    pub(super) fn frame_written(&mut self, now: Millis) {
        if let Visibility::Drawn { at } = self.visibility {
            self.visibility = Visibility::Visible { drawn: at, written: now };
        }
    }

    /// Records that the next page of the question follows, which is not on the screen yet. The user attends to
    /// the question already.
    pub(super) fn turn_page(&mut self) {
        self.hide();
        self.attend();
        self.is_measured = false;
        self.scroll = 0;
    }

    pub(super) fn hide(&mut self) {
        self.visibility = Visibility::Hidden;
        self.typed = None;
    }

    /// The next moment at which time changes something.
    ///
    /// The end of the grace period is one: input that is read later was pressed after it only if there was
    /// none to read at that moment.
    pub(super) fn deadline(&self) -> Option<Millis> {
        let grace = match (self.visibility, self.opener) {
            (Visibility::Visible { written, .. }, Opener::Program) => Some(written + GRACE),
            _ => None,
        };
        self.typed.map(TypedKey::deadline).or(grace)
    }
}
