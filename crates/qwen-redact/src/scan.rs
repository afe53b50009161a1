//! Looking at one place of a text for everything that may start there.

use super::Redactor;
use super::known::Compared;
use super::shape::{Rest, SHAPES, Seen};

/// What is at a place.
pub(super) enum Look {
    Nothing,
    /// Something that may become a secret; up to here it may be seen.
    More(usize),
    /// A secret.
    Secret {
        start: usize,
        end: usize,
        open: Option<Rest>,
    },
}

/// A text and what is known about its surroundings.
pub(super) struct View<'a> {
    pub text: &'a [u8],
    /// What came right before it.
    pub before: [u8; 2],
    /// Nothing comes after it.
    pub last: bool,
    /// It is JSON.
    pub json: bool,
}

impl Redactor {
    /// The first place from `from` on where something may start.
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

    /// What starts at `at`, where `covered` is the end of the secret before. Inside that one only known values are
    /// looked for, since they may reach beyond it.
    pub(super) fn look(&self, view: &View<'_>, at: usize, covered: Option<usize>) -> Look {
        let mut found = Look::Nothing;
        // The first character of a known value may be seen, unless it goes on where another secret ended.
        let start = if covered.is_some_and(|end| at <= end) { at } else { at + 1 };
        self.look_for_values(view, at, start, &mut found);
        if covered.is_none_or(|end| at >= end) && !matches!(found, Look::More(_)) {
            look_for_shapes(view, at, &mut found);
        }
        found
    }

    fn look_for_values(&self, view: &View<'_>, at: usize, start: usize, found: &mut Look) {
        let rest = &view.text[at..];
        let first = self.patterns.partition_point(|pattern| pattern.bytes[0] < rest[0]);
        for pattern in self.patterns[first..].iter().take_while(|pattern| pattern.bytes[0] == rest[0]) {
            if pattern.text_only && view.json {
                continue;
            }
            match pattern.compare(rest) {
                Compared::No => {}
                Compared::SoFar if view.last => {}
                // A longer value may yet come of it, and it is the longer one that counts.
                Compared::SoFar => {
                    *found = Look::More(start);
                    return;
                }
                Compared::Whole(length) => widen(found, start, at + length, None),
            }
        }
    }
}

fn look_for_shapes(view: &View<'_>, at: usize, found: &mut Look) {
    let rest = &view.text[at..];
    for shape in SHAPES.iter().filter(|shape| shape.head[0] == rest[0]) {
        if shape.alone && !starts_word(view, at) {
            continue;
        }
        match shape.look(rest, view.last) {
            Seen::No => {}
            Seen::More => {
                let shown = at + shape.head.len();
                *found = Look::More(match found {
                    Look::Secret { start, .. } => shown.min(*start),
                    Look::More(earlier) => shown.min(*earlier),
                    Look::Nothing => shown,
                });
            }
            Seen::Key { decided, mut rest } => {
                let after = &view.text[at + decided..];
                let (end, open) = match rest.end(after) {
                    Some(length) => (at + decided + length, None),
                    None => (view.text.len(), Some(rest)),
                };
                if !matches!(found, Look::More(_)) {
                    widen(found, at + shape.head.len(), end, open);
                }
            }
        }
    }
}

/// Makes the secret that was found reach over another one.
fn widen(found: &mut Look, start: usize, end: usize, open: Option<Rest>) {
    *found = match std::mem::replace(found, Look::Nothing) {
        Look::Secret { start: s, end: e, open: o } => {
            Look::Secret { start: s.min(start), end: e.max(end), open: o.or(open) }
        }
        _ => Look::Secret { start, end, open },
    };
}

/// Whether a word may begin at `at`: what comes before is no part of one, or is a line break as JSON writes it.
fn starts_word(view: &View<'_>, at: usize) -> bool {
    let back = |steps: usize| match at.checked_sub(steps) {
        Some(place) => view.text[place],
        None => view.before[2 + at - steps],
    };
    let before = back(1);
    let part = before.is_ascii_alphanumeric() || matches!(before, b'_' | b'-');
    !part || (back(2) == b'\\' && matches!(before, b'n' | b'r' | b't'))
}
