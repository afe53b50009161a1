//! Redacts a text that arrives in pieces.

use super::scan::{ScanResult, View};
use super::shape::Rest;
use super::{REDACTION_MARK, Redactor};

/// State between the pieces of a text, so that a secret is found wherever the text is split. Only text that
/// may be part of a secret is held back, at most the length of one secret.
#[derive(Debug, Clone, Default)]
pub struct TextStream {
    /// The tail of the text so far that may be the start of a secret.
    pending: String,
    /// How many bytes of `pending` were passed on.
    shown: usize,
    /// End of the last secret found in `pending`.
    covered: Option<usize>,
    /// A secret that continues past the end of the text so far.
    open: Option<Rest>,
    /// The two bytes before `pending`.
    before: [u8; 2],
    json: bool,
}

impl TextStream {
    /// Creates a stream for JSON text.
    pub fn json() -> Self {
        Self { json: true, ..Self::default() }
    }

    /// Adds the next piece and returns the text that can be passed on, which is nearly always the piece
    /// itself.
    pub fn push(&mut self, redactor: &Redactor, piece: Box<str>) -> Option<Box<str>> {
        let plain = self.pending.is_empty() && self.open.is_none() && self.covered.is_none();
        if !plain {
            let old = self.pending.len();
            self.pending.push_str(&piece);
            return self.advance(redactor, 0, old, false).cut(piece);
        }
        match redactor.next_candidate(piece.as_bytes(), 0) {
            None => {
                self.remember_last(piece.as_bytes());
                Some(piece)
            }
            // A single first byte is always shown.
            Some(at) if at + 1 == piece.len() => {
                self.remember_last(&piece.as_bytes()[..at]);
                self.pending.push_str(&piece[at..]);
                self.shown = 1;
                Some(piece)
            }
            Some(at) => {
                self.pending.push_str(&piece);
                self.advance(redactor, at, 0, false).cut(piece)
            }
        }
    }

    /// Returns the held-back text, because other output is about to be shown after it. If the text continues
    /// and turns out to be a secret, the rest of it is still redacted.
    pub fn release(&mut self) -> Option<Box<str>> {
        let from = self.shown.max(self.covered.unwrap_or(0)).min(self.pending.len());
        self.shown = self.pending.len();
        (from < self.shown).then(|| self.pending[from..].into())
    }

    /// Returns the held-back text at the end of the text, and resets the stream.
    pub fn finish(&mut self, redactor: &Redactor) -> Option<Box<str>> {
        let rest = if self.pending.is_empty() {
            None
        } else {
            let old = self.pending.len();
            self.advance(redactor, 0, old, true).cut("".into()).filter(|text| !text.is_empty())
        };
        *self = Self { json: self.json, ..Self::default() };
        rest
    }

    /// Number of bytes held back.
    #[cfg(test)]
    pub(super) fn pending_bytes(&self) -> usize {
        self.pending.len()
    }

    /// Redacts a whole text. Returns `None` if it contains no secret.
    pub(super) fn redact_text(&mut self, redactor: &Redactor, text: &str) -> Option<String> {
        self.pending.push_str(text);
        match self.advance(redactor, 0, 0, true) {
            Passed::Piece => None,
            Passed::Text(text) => Some(text),
        }
    }

    /// Scans the pending text starting at `from`. Its first `old` bytes come from earlier pieces.
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
        // Everything before this index was shown or redacted.
        let mut done = self.shown.max(covered.unwrap_or(0));
        let mut at = from;
        let hold = loop {
            let Some(candidate) = redactor.next_candidate(view.text, at) else { break text.len() };
            match redactor.match_at(&view, candidate, covered) {
                ScanResult::Nothing => {}
                ScanResult::More(_) => break candidate,
                ScanResult::Secret { start, end, open } => {
                    let joins = covered.is_some_and(|end| start <= end);
                    if !joins && done < end {
                        out.push_str(&text[done..start.max(done)]);
                        out.push_str(REDACTION_MARK);
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

    fn remember_last(&mut self, bytes: &[u8]) {
        for &byte in &bytes[bytes.len().saturating_sub(2)..] {
            self.before = [self.before[1], byte];
        }
    }
}

/// Returns how far a text that is undecided from `hold` on may be shown: up to the start of the first
/// possible secret.
fn shown_up_to(redactor: &Redactor, view: &View<'_>, hold: usize, covered: Option<usize>) -> usize {
    let mut shown = view.text.len();
    let mut at = hold;
    while let Some(candidate) = redactor.next_candidate(view.text, at).filter(|candidate| *candidate < shown)
    {
        match redactor.match_at(view, candidate, covered) {
            ScanResult::Nothing => {}
            ScanResult::More(limit) => shown = shown.min(limit),
            ScanResult::Secret { start, .. } => shown = shown.min(start),
        }
        at = candidate + 1;
    }
    shown
}

/// Text that can be passed on.
enum Passed {
    /// The piece unchanged.
    Piece,
    /// This text instead of the piece.
    Text(String),
}

impl Passed {
    fn cut(self, piece: Box<str>) -> Option<Box<str>> {
        match self {
            Self::Piece => Some(piece),
            Self::Text(text) => (!text.is_empty()).then(|| text.into()),
        }
    }
}
