//! Truncates the output of a tool to its first and last lines.

use std::collections::VecDeque;

/// How many lines are shown immediately, and how many of the last.
const HEAD: usize = 8;
const TAIL: usize = 4;
/// The maximum number of stored bytes of one line.
const LINE: usize = 4096;

#[derive(Debug, Default)]
pub(super) struct CallView {
    pub(super) name: String,
    /// True if it wrote output while it ran.
    pub(super) wrote: bool,
    shown: usize,
    /// The incomplete last line.
    partial: String,
    /// The last complete lines that were not shown.
    tail: VecDeque<String>,
    /// The number of omitted lines before those.
    left_out: u64,
    /// What an edit changes, line by line.
    change: Vec<String>,
}

impl CallView {
    pub(super) fn new(name: &str) -> Self {
        Self { name: name.to_owned(), ..Self::default() }
    }

    /// Stores what an edit changes, for streams whose results do not contain it.
    pub(super) fn changing(mut self, arguments: &str) -> Self {
        let Ok(arguments) = serde_json::from_str::<serde_json::Value>(arguments) else { return self };
        let text = |name: &str| arguments.get(name).and_then(serde_json::Value::as_str);
        if let (Some(old), Some(new)) = (text("old_string"), text("new_string")) {
            self.change = shortened("-", old).chain(shortened("+", new)).collect();
        } else if let (Some(content), Some(_)) = (text("content"), text("file_path")) {
            self.change = shortened("+", content).collect();
        }
        self
    }

    pub(super) fn change(&self) -> &[String] {
        &self.change
    }

    /// Adds output, and returns the lines to show now.
    pub(super) fn push(&mut self, text: &str) -> Vec<String> {
        let mut now = Vec::new();
        let mut pieces = text.split('\n');
        self.add(pieces.next().unwrap_or_default());
        for piece in pieces {
            self.end_line(&mut now);
            self.add(piece);
        }
        now
    }

    /// The lines to show at the end: the omission note and the last lines.
    pub(super) fn finish(&mut self) -> Vec<String> {
        let mut last = Vec::new();
        if !self.partial.is_empty() {
            self.end_line(&mut last);
        }
        if self.left_out > 0 {
            last.push(format!("… {} more lines …", self.left_out));
        }
        last.extend(self.tail.drain(..));
        last
    }

    fn add(&mut self, piece: &str) {
        if self.partial.len() < LINE {
            self.partial.push_str(piece);
        }
    }

    fn end_line(&mut self, now: &mut Vec<String>) {
        let line = std::mem::take(&mut self.partial);
        if self.shown < HEAD {
            self.shown += 1;
            now.push(line);
            return;
        }
        self.tail.push_back(line);
        if self.tail.len() > TAIL {
            self.tail.pop_front();
            self.left_out += 1;
        }
    }
}

/// The first lines of one side of a change, each behind its mark.
fn shortened<'a>(mark: &'static str, text: &'a str) -> impl Iterator<Item = String> + 'a {
    let more = text.lines().count().saturating_sub(HEAD);
    let note = (more > 0).then(|| format!("… {more} more lines …"));
    text.lines().take(HEAD).map(move |line| format!("{mark}{line}")).chain(note)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The lines shown for output in these pieces.
    fn display(pieces: &[&str]) -> Vec<String> {
        let mut call = CallView::default();
        let mut lines: Vec<String> = pieces.iter().flat_map(|piece| call.push(piece)).collect();
        lines.extend(call.finish());
        lines
    }

    #[test]
    fn short_output_is_shown_whole_however_it_comes() {
        assert_eq!(display(&["a\nb\n"]), ["a", "b"]);
        assert_eq!(display(&["a", "a\n", "b", "b"]), ["aa", "bb"]);
        assert_eq!(display(&["a\n\nb"]), ["a", "", "b"]);
        assert!(display(&[""]).is_empty());
    }

    #[test]
    fn long_output_is_shown_from_both_ends() {
        let text: Vec<String> = (0..100).map(|n| n.to_string()).collect();
        let lines = display(&[&text.join("\n")]);
        assert_eq!(lines[..2], ["0", "1"]);
        assert_eq!(lines[HEAD], "… 88 more lines …");
        assert_eq!(lines[HEAD + 1..], ["96", "97", "98", "99"]);
    }
}
