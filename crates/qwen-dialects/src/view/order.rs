//! Sorts the lines of one session by number: a line that arrived slightly early waits for its predecessors,
//! and duplicates are dropped.

use std::collections::{BTreeMap, BTreeSet};

use super::event::ViewLine;
use crate::check::bounded::{Idle, Sessions};

/// The maximum number of lines that wait for a missing one.
const WINDOW: usize = 64;

/// Sorts the lines of each session.
#[derive(Default)]
pub(super) struct Order {
    sessions: Sessions<Numbers>,
    /// The number of the last line, in any session.
    last: Option<u64>,
}

/// The numbering state of one session.
#[derive(Default)]
struct Numbers {
    /// The first and the last number that were shown.
    shown: Option<(u64, u64)>,
    /// Lines that arrived early.
    waiting: BTreeMap<u64, ViewLine>,
    /// Skipped numbers, which may still arrive.
    missing: BTreeSet<u64>,
}

impl Idle for Numbers {
    fn is_idle(&self) -> bool {
        self.waiting.is_empty()
    }
}

impl Order {
    /// Adds the next line and shows the lines that are due.
    pub(super) fn push(&mut self, line: ViewLine, show: &mut impl FnMut(ViewLine)) {
        let Some(number) = line.number else { return show(line) };
        // Several sessions may share one numbering; then consecutive lines are in order.
        let follows = self.last.is_some_and(|last| last.checked_add(1) == Some(number));
        self.last = Some(number);
        self.sessions
            .get_or_insert(line.session.as_deref().unwrap_or_default())
            .push(number, follows, line, show);
    }

    /// Shows the waiting lines.
    pub(super) fn finish(&mut self, show: &mut impl FnMut(ViewLine)) {
        for (_, numbers) in self.sessions.all() {
            while let Some((number, line)) = numbers.waiting.pop_first() {
                numbers.show(number, line, show);
            }
        }
    }
}

impl Numbers {
    fn push(&mut self, number: u64, follows: bool, line: ViewLine, show: &mut impl FnMut(ViewLine)) {
        match self.shown {
            Some((first, last)) if number <= last => {
                // Late, or a duplicate.
                if number < first || self.missing.remove(&number) {
                    show(line);
                }
                return;
            }
            Some((_, last)) if number - last == 1 => self.show(number, line, show),
            // A stream starts with 0 or 1; one that starts later lacks its beginning.
            None if number <= 1 || number > WINDOW as u64 => self.show(number, line, show),
            _ if follows && self.waiting.is_empty() => self.show(number, line, show),
            _ => {
                self.waiting.entry(number).or_insert(line);
                if self.waiting.len() > WINDOW
                    && let Some((number, line)) = self.waiting.pop_first()
                {
                    self.show(number, line, show);
                }
            }
        }
        while let Some(entry) = self.waiting.first_entry()
            && self.shown.is_some_and(|(_, last)| last.checked_add(1) == Some(*entry.key()))
        {
            let (number, line) = entry.remove_entry();
            self.show(number, line, show);
        }
    }

    fn show(&mut self, number: u64, line: ViewLine, show: &mut impl FnMut(ViewLine)) {
        if let Some((_, last)) = self.shown {
            let given_up = (last.saturating_add(1)..number).rev().take(WINDOW);
            self.missing.extend(given_up);
            while self.missing.len() > WINDOW {
                self.missing.pop_first();
            }
        }
        let first = self.shown.map_or(number, |(first, _)| first);
        self.shown = Some((first, number));
        show(line);
    }
}

#[cfg(test)]
mod tests {
    use super::super::event::ViewEvent;
    use super::*;

    /// The numbers in display order; `finished` at the end of the stream.
    fn display(numbers: &[u64], finished: bool) -> Vec<u64> {
        let mut order = Order::default();
        let mut shown = Vec::new();
        let mut show = |line: ViewLine| shown.extend(line.number);
        for number in numbers {
            let line = ViewLine { number: Some(*number), ..ViewLine::new(ViewEvent::Nothing) };
            order.push(line, &mut show);
        }
        if finished {
            order.finish(&mut show);
        }
        shown
    }

    #[test]
    fn lines_that_overtook_others_are_put_in_order_and_repeated_ones_dropped() {
        for (came, expected) in [
            (vec![1, 2, 3], vec![1, 2, 3]),
            (vec![0, 1, 2], vec![0, 1, 2]),
            (vec![2, 1, 3], vec![1, 2, 3]),
            (vec![1, 4, 3, 2, 5], vec![1, 2, 3, 4, 5]),
            (vec![1, 2, 2, 1, 3, 3], vec![1, 2, 3]),
            (vec![1, 3, 3, 2, 3], vec![1, 2, 3]),
            (vec![1, 0, 2], vec![1, 0, 2]),
            (vec![500, 501, 502], vec![500, 501, 502]),
            (vec![u64::MAX, u64::MAX], vec![u64::MAX]),
        ] {
            assert_eq!(display(&came, false), expected, "{came:?}");
        }
    }

    #[test]
    fn a_line_that_never_comes_is_not_waited_for_for_ever() {
        let gap: Vec<u64> = (1..5).chain(7..200).collect();
        assert_eq!(display(&gap, false), gap);
        assert_eq!(display(&[1, 2, 9, 8], false), [1, 2]);
        assert_eq!(display(&[1, 2, 9, 8], true), [1, 2, 8, 9]);
        let late: Vec<u64> = (1..5).chain(6..100).chain([5]).collect();
        assert_eq!(display(&late, true), late);
    }
}
