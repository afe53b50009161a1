//! Matches every pattern and shape at one position of a text.

use super::Redactor;
use super::known::Compared;
use super::shape::{Rest, SHAPES, Seen};

/// Result of matching at one position.
pub(super) enum ScanResult {
    Nothing,
    /// The text may still become a secret. Everything before this index may be shown.
    More(usize),
    Secret {
        start: usize,
        end: usize,
        open: Option<Rest>,
    },
}

/// A text and its context.
pub(super) struct View<'a> {
    pub text: &'a [u8],
    /// The two bytes before the text.
    pub before: [u8; 2],
    /// True if no more text follows.
    pub last: bool,
    pub json: bool,
}

impl Redactor {
    /// Returns the first index at or after `from` where a pattern or shape may start.
    pub(super) fn next_candidate(&self, text: &[u8], from: usize) -> Option<usize> {
        let rest = text.get(from..)?;
        let pair = |pair: &[u8]| {
            let pair = usize::from(pair[0]) << 8 | usize::from(pair[1]);
            self.pairs[pair / 64] & (1 << (pair % 64)) != 0
        };
        if let Some(at) = rest.windows(2).position(pair) {
            return Some(from + at);
        }
        let last = *rest.last()?;
        let starts = self.firsts[usize::from(last) / 64] & (1 << (last % 64)) != 0;
        starts.then(|| text.len() - 1)
    }

    /// Matches at index `at`. `covered` is the end of the previous secret; inside it only known values are
    /// matched, because they may extend beyond it.
    pub(super) fn match_at(&self, view: &View<'_>, at: usize, covered: Option<usize>) -> ScanResult {
        let mut found = ScanResult::Nothing;
        // The first character of a known value may be shown, unless the value overlaps or directly follows
        // another secret.
        let start = if covered.is_some_and(|end| at <= end) { at } else { at + 1 };
        self.match_values(view, at, start, &mut found);
        if covered.is_none_or(|end| at >= end) && !matches!(found, ScanResult::More(_)) {
            match_shapes(view, at, &mut found);
        }
        found
    }

    fn match_values(&self, view: &View<'_>, at: usize, start: usize, found: &mut ScanResult) {
        let rest = &view.text[at..];
        let first = self.patterns.partition_point(|pattern| pattern.bytes[0] < rest[0]);
        for pattern in self.patterns[first..].iter().take_while(|pattern| pattern.bytes[0] == rest[0]) {
            if pattern.text_only && view.json {
                continue;
            }
            match pattern.compare(rest) {
                Compared::No => {}
                Compared::SoFar if view.last => {}
                // A longer value may still match, and the longest match wins.
                Compared::SoFar => {
                    *found = ScanResult::More(start);
                    return;
                }
                Compared::Whole(length) => widen(found, start, at + length, None),
            }
        }
    }
}

fn match_shapes(view: &View<'_>, at: usize, found: &mut ScanResult) {
    let rest = &view.text[at..];
    for shape in SHAPES.iter().filter(|shape| shape.head[0] == rest[0]) {
        if shape.alone && !starts_word(view, at) {
            continue;
        }
        match shape.match_at(rest, view.last) {
            Seen::No => {}
            Seen::More => {
                let shown = at + shape.head.len();
                *found = ScanResult::More(match found {
                    ScanResult::Secret { start, .. } => shown.min(*start),
                    ScanResult::More(earlier) => shown.min(*earlier),
                    ScanResult::Nothing => shown,
                });
            }
            Seen::Key { public, decided, mut rest } => {
                let after = &view.text[at + decided..];
                let (end, open) = match rest.end(after) {
                    Some(length) => (at + decided + length, None),
                    None => (view.text.len(), Some(rest)),
                };
                if !matches!(found, ScanResult::More(_)) {
                    widen(found, at + public, end, open);
                }
            }
        }
    }
}

/// Extends the match to include another one.
fn widen(found: &mut ScanResult, start: usize, end: usize, open: Option<Rest>) {
    *found = match std::mem::replace(found, ScanResult::Nothing) {
        ScanResult::Secret { start: s, end: e, open: o } => {
            ScanResult::Secret { start: s.min(start), end: e.max(end), open: o.or(open) }
        }
        _ => ScanResult::Secret { start, end, open },
    };
}

/// True if a word may start at `at`: the preceding byte is not a word character, or is the end of a JSON
/// escape (`\n`, `\r`, `\t`).
fn starts_word(view: &View<'_>, at: usize) -> bool {
    let back = |steps: usize| match at.checked_sub(steps) {
        Some(place) => view.text[place],
        None => view.before[2 + at - steps],
    };
    let before = back(1);
    let part = before.is_ascii_alphanumeric() || matches!(before, b'_' | b'-');
    !part || (back(2) == b'\\' && matches!(before, b'n' | b'r' | b't'))
}
