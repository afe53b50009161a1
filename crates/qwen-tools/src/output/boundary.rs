//! Boundaries of characters and lines near a position, and lines of bounded length.

use std::borrow::Cow;

/// The longest line in results that show several lines of a file, in characters.
pub(crate) const LONGEST_LINE: usize = 500;

/// The last character boundary at or before `at`.
pub(crate) fn floor_boundary(text: &str, at: usize) -> usize {
    (0..=at.min(text.len())).rev().find(|&at| text.is_char_boundary(at)).unwrap_or(0)
}

/// The first character boundary at or after `at`.
pub(crate) fn ceil_boundary(text: &str, at: usize) -> usize {
    (at..text.len()).find(|&at| text.is_char_boundary(at)).unwrap_or(text.len())
}

/// Returns where the last whole line of `head` ends. A last line of more than `longest` bytes is kept as it is.
pub(crate) fn end_of_whole_lines(head: &str, longest: usize) -> usize {
    head.rfind('\n').map(|at| at + 1).filter(|end| head.len() - end <= longest).unwrap_or(head.len())
}

/// Returns where the first whole line of `tail` starts, if `tail` starts within a line. A rest of more than
/// `longest` bytes is kept, and so is the last line.
pub(crate) fn start_of_whole_lines(tail: &[u8], longest: usize) -> usize {
    let start = tail.iter().position(|&byte| byte == b'\n').map(|at| at + 1);
    start.filter(|&start| start <= longest && start < tail.len()).unwrap_or(0)
}

/// Shortens a line of more than [`LONGEST_LINE`] characters.
pub(crate) fn shorten_line(line: &str) -> Cow<'_, str> {
    match line.char_indices().nth(LONGEST_LINE) {
        Some((at, _)) => format!("{}…", &line[..at]).into(),
        None => line.into(),
    }
}
