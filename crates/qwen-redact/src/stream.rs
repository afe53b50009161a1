//! A text that comes in pieces.

use super::scan::{Look, View};
use super::shape::Rest;
use super::{BLOT, Redactor};

/// What must be remembered about a text between its pieces, so that a secret is found wherever the text is cut. Only
/// what may turn out to be a part of a secret is held back, and no more than a secret is long.
#[derive(Debug, Clone, Default)]
pub struct TextStream {
    /// The end of the text so far that may be the beginning of a secret.
    pending: String,
    /// How much of that was passed on.
    shown: usize,
    /// Up to where in that a secret was found.
    covered: Option<usize>,
    /// The secret that reaches to the end of the text so far.
    open: Option<Rest>,
    /// What came right before.
    before: [u8; 2],
    json: bool,
}

impl TextStream {
    /// A stream of JSON text.
    pub fn json() -> Self {
        Self { json: true, ..Self::default() }
    }

    /// Takes the next piece and gives back what can be passed on, which is nearly always the piece itself.
    pub fn push(&mut self, redactor: &Redactor, piece: Box<str>) -> Option<Box<str>> {
        let plain = self.pending.is_empty() && self.open.is_none() && self.covered.is_none();
        if !plain {
            let old = self.pending.len();
            self.pending.push_str(&piece);
            return self.advance(redactor, 0, old, false).of(piece);
        }
        match redactor.next_candidate(piece.as_bytes(), 0) {
            None => {
                self.go_past(piece.as_bytes());
                Some(piece)
            }
            // A first byte alone is shown whatever comes of it.
            Some(at) if at + 1 == piece.len() => {
                self.go_past(&piece.as_bytes()[..at]);
                self.pending.push_str(&piece[at..]);
                self.shown = 1;
                Some(piece)
            }
            Some(at) => {
                self.pending.push_str(&piece);
                self.advance(redactor, at, 0, false).of(piece)
            }
        }
    }

    /// Passes on what was held back, because something else is about to be shown after it. Should the text go on and
    /// turn out to be a secret after all, the rest of it is still blotted out.
    pub fn release(&mut self) -> Option<Box<str>> {
        let from = self.shown.max(self.covered.unwrap_or(0)).min(self.pending.len());
        self.shown = self.pending.len();
        (from < self.shown).then(|| self.pending[from..].into())
    }

    /// Passes on what was held back, because the text is over. The stream is as new afterwards.
    pub fn finish(&mut self, redactor: &Redactor) -> Option<Box<str>> {
        let rest = if self.pending.is_empty() {
            None
        } else {
            let old = self.pending.len();
            self.advance(redactor, 0, old, true).of("".into()).filter(|text| !text.is_empty())
        };
        *self = Self { json: self.json, ..Self::default() };
        rest
    }

    /// How many bytes wait for what comes next.
    #[cfg(test)]
    pub(super) fn held(&self) -> usize {
        self.pending.len()
    }

    /// A whole text; none when there is nothing to blot out.
    pub(super) fn whole(&mut self, redactor: &Redactor, text: &str) -> Option<String> {
        self.pending.push_str(text);
        match self.advance(redactor, 0, 0, true) {
            Passed::Piece => None,
            Passed::Text(text) => Some(text),
        }
    }

    /// Looks at the pending text from `from` on, of which `old` bytes were there before.
    fn advance(&mut self, redactor: &Redactor, from: usize, old: usize, last: bool) -> Passed {
        let text = std::mem::take(&mut self.pending);
        let view = View { text: text.as_bytes(), before: self.before, last, json: self.json };
        let mut out = String::new();
        let mut covered = self.covered;
        if let Some(rest) = &mut self.open {
            match rest.end(&view.text[old..]) {
                Some(length) => {
                    covered = Some(old + length);
                    self.open = None;
                }
                None => covered = Some(text.len()),
            }
        }
        // Everything before this is dealt with: shown or blotted out.
        let mut done = self.shown.max(covered.unwrap_or(0));
        let mut at = from;
        let hold = loop {
            let Some(candidate) = redactor.next_candidate(view.text, at) else { break text.len() };
            match redactor.look(&view, candidate, covered) {
                Look::Nothing => {}
                Look::More(_) => break candidate,
                Look::Secret { start, end, open } => {
                    let joins = covered.is_some_and(|end| start <= end);
                    if !joins && done < end {
                        out.push_str(&text[done..start.max(done)]);
                        out.push_str(BLOT);
                    }
                    done = done.max(end);
                    covered = Some(covered.unwrap_or(0).max(end));
                    self.open = self.open.take().or(open);
                }
            }
            at = candidate + 1;
        };
        let shown = shown_up_to(redactor, &view, hold, covered).max(done);
        let untouched = out.is_empty() && done == old && shown == text.len();
        self.before = match hold {
            0 => self.before,
            1 => [self.before[1], view.text[0]],
            _ => [view.text[hold - 2], view.text[hold - 1]],
        };
        self.shown = shown - hold;
        self.covered = covered.and_then(|end| end.checked_sub(hold));
        let passed = if untouched {
            Passed::Piece
        } else {
            out.push_str(&text[done..shown]);
            Passed::Text(out)
        };
        self.pending = text;
        self.pending.drain(..hold);
        passed
    }

    fn go_past(&mut self, bytes: &[u8]) {
        for &byte in &bytes[bytes.len().saturating_sub(2)..] {
            self.before = [self.before[1], byte];
        }
    }
}

/// How far a text that is undecided from `hold` on may be shown: to where the first secret in it would begin.
fn shown_up_to(redactor: &Redactor, view: &View<'_>, hold: usize, covered: Option<usize>) -> usize {
    let mut shown = view.text.len();
    let mut at = hold;
    while let Some(candidate) = redactor.next_candidate(view.text, at).filter(|candidate| *candidate < shown)
    {
        match redactor.look(view, candidate, covered) {
            Look::Nothing => {}
            Look::More(limit) => shown = shown.min(limit),
            Look::Secret { start, .. } => shown = shown.min(start),
        }
        at = candidate + 1;
    }
    shown
}

/// What can be passed on.
enum Passed {
    /// The piece as it came.
    Piece,
    /// This instead of it.
    Text(String),
}

impl Passed {
    fn of(self, piece: Box<str>) -> Option<Box<str>> {
        match self {
            Self::Piece => Some(piece),
            Self::Text(text) => (!text.is_empty()).then(|| text.into()),
        }
    }
}
