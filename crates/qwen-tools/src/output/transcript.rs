//! The output of a command for the model: complete if it is short, without its middle if it is long.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use qwen_sandbox::Scratch;

use super::boundary::{ceil_boundary, end_of_whole_lines, floor_boundary, start_of_whole_lines};

/// Most bytes in a file with the full output: enough for any log, too little to fill a disk.
pub const FILE_LIMIT: u64 = 256 << 20;

/// The longest part of a line that is left out so that both ends of an output consist of whole lines, in bytes.
pub(crate) const PARTIAL_LINE: usize = 256;

/// Collects output in bounded memory. Output over the limit goes to a file.
pub struct Transcript<'a> {
    scratch: &'a Scratch,
    stem: &'a str,
    head_limit: usize,
    tail_limit: usize,
    head: String,
    tail: VecDeque<String>,
    tail_bytes: usize,
    cut: Cut,
    file: Option<Spill>,
}

/// The part of an output that was left out.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
struct Cut {
    bytes: usize,
    /// Line ends in it.
    lines: usize,
    /// True if it ends with a line end.
    ends_line: bool,
}

impl Cut {
    fn add(&mut self, text: &str) {
        self.bytes += text.len();
        self.lines += count_lines(text);
        self.ends_line = text.ends_with('\n');
    }
}

struct Spill {
    path: PathBuf,
    file: File,
    written: u64,
    error: Option<io::Error>,
}

/// Splits a limit into that of the beginning and that of the end. Errors and results are at the end of an
/// output, so it gets more.
fn split_limit(limit: usize) -> (usize, usize) {
    (limit / 3, limit - limit / 3)
}

impl<'a> Transcript<'a> {
    /// A transcript of at most `limit` bytes, whose overflow goes to a file named after `stem`.
    pub fn new(limit: usize, scratch: &'a Scratch, stem: &'a str) -> Self {
        let (head_limit, tail_limit) = split_limit(limit);
        Self {
            scratch,
            stem,
            head_limit,
            tail_limit,
            head: String::new(),
            tail: VecDeque::new(),
            tail_bytes: 0,
            cut: Cut::default(),
            file: None,
        }
    }

    pub fn push(&mut self, piece: &str) {
        if let Some(file) = &mut self.file {
            file.write(piece);
        }
        // Once something is in the tail, the head takes no more.
        let room =
            if self.tail.is_empty() && self.cut.bytes == 0 { self.head_limit - self.head.len() } else { 0 };
        let (to_head, to_tail) = piece.split_at(floor_boundary(piece, room));
        self.head.push_str(to_head);
        if !to_tail.is_empty() {
            self.tail_bytes += to_tail.len();
            self.tail.push_back(to_tail.to_owned());
            if self.tail_bytes > self.tail_limit {
                self.cut_tail();
            }
        }
    }

    /// Removes the oldest part of the tail, after the full output was written to a file.
    fn cut_tail(&mut self) {
        if self.file.is_none()
            && let Ok((path, file)) = self.scratch.create(self.stem)
        {
            let mut spill = Spill { path, file, written: 0, error: None };
            spill.write(&self.head);
            for piece in &self.tail {
                spill.write(piece);
            }
            self.file = Some(spill);
        }
        while self.tail_bytes > self.tail_limit {
            let Some(first) = self.tail.front_mut() else { break };
            let over = self.tail_bytes - self.tail_limit;
            let end = if first.len() <= over { first.len() } else { ceil_boundary(first, over) };
            let gone = &first[..end];
            self.cut.add(gone);
            self.tail_bytes -= gone.len();
            if end == first.len() {
                self.tail.pop_front();
            } else {
                first.drain(..end);
            }
        }
    }

    /// Returns the text for the model, and the file with the full output if something was cut.
    pub fn finish(self) -> (String, Option<PathBuf>) {
        let tail = String::from_iter(self.tail);
        if self.cut.bytes == 0 {
            return (self.head + &tail, None);
        }
        let rest = describe_file(self.file.as_ref());
        let limits = (self.head_limit, self.tail_limit);
        (join_ends(&self.head, self.cut, &tail, limits, &rest), self.file.map(|file| file.path))
    }
}

/// Joins both ends of an output around the note about what was left out. A part of a line next to the note would
/// look like a line, so it is left out too if it is short.
fn join_ends(
    head: &str,
    mut cut: Cut,
    tail: &str,
    (head_limit, tail_limit): (usize, usize),
    rest: &str,
) -> String {
    let end = end_of_whole_lines(head, PARTIAL_LINE.min(head_limit / 4));
    let (head, partial) = head.split_at(end);
    cut.bytes += partial.len();
    let start = if cut.ends_line {
        0
    } else {
        start_of_whole_lines(tail.as_bytes(), PARTIAL_LINE.min(tail_limit / 4))
    };
    let (partial, tail) = tail.split_at(start);
    if !partial.is_empty() {
        cut.add(partial);
    }
    let line_end = if head.is_empty() || head.ends_with('\n') { "" } else { "\n" };
    format!("{head}{line_end}{}{tail}", describe_cut(cut, rest))
}

fn count_lines(text: &str) -> usize {
    text.bytes().filter(|&byte| byte == b'\n').count()
}

fn describe_cut(cut: Cut, rest: &str) -> String {
    let Cut { bytes, lines, .. } = cut;
    format!("[… {bytes} bytes ({lines} line breaks) left out here; {rest} …]\n")
}

fn describe_file(file: Option<&Spill>) -> String {
    match file {
        Some(Spill { path, written, error: None, .. }) if *written < FILE_LIMIT => {
            format!("the whole output is in {}", path.display())
        }
        Some(Spill { path, error: None, .. }) => {
            format!("the first {} MiB of the output are in {}", FILE_LIMIT >> 20, path.display())
        }
        Some(Spill { path, error: Some(error), .. }) => {
            format!("a part of the output is in {}, then writing failed: {error}", path.display())
        }
        None => "it could not be stored in a file".to_owned(),
    }
}

impl Spill {
    fn write(&mut self, piece: &str) {
        if self.error.is_some() || self.written >= FILE_LIMIT {
            return;
        }
        self.written += piece.len() as u64;
        self.error = self.file.write_all(piece.as_bytes()).err();
    }
}

/// Removes the middle of a text of more than `limit` bytes and names the file that holds all of it.
pub fn shorten(text: &str, limit: usize, whole: &Path) -> String {
    if text.len() <= limit {
        return text.to_owned();
    }
    let (head_limit, tail_limit) = split_limit(limit);
    let start = floor_boundary(text, head_limit);
    let end = ceil_boundary(text, text.len() - tail_limit);
    let (head, gone, tail) = (&text[..start], &text[start..end], &text[end..]);
    let mut cut = Cut::default();
    cut.add(gone);
    let rest = format!("the whole output is in {}", whole.display());
    join_ends(head, cut, tail, (head_limit, tail_limit), &rest)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn short_output_is_whole_and_long_output_keeps_both_ends_within_the_limit(
            pieces in prop::collection::vec("[aä€🦀\n]{0,12}", 0..20),
            limit in 12usize..60,
        ) {
            let scratch = Scratch::temporary();
            let mut transcript = Transcript::new(limit, &scratch, "t");
            for piece in &pieces {
                transcript.push(piece);
            }
            let (text, file) = transcript.finish();
            let whole = pieces.concat();
            let Some(file) = file else {
                prop_assert_eq!(&text, &whole);
                prop_assert!(whole.len() <= limit);
                return Ok(());
            };
            // A character that does not fit into the beginning may leave up to three bytes of it unused.
            prop_assert!(whole.len() > limit - 3);
            prop_assert_eq!(&std::fs::read_to_string(file).unwrap(), &whole);
            let (head, rest) = text.split_once("[… ").unwrap();
            let (note, tail) = rest.split_once(" …]\n").unwrap();
            prop_assert!(head.trim_end_matches('\n').len() <= limit / 3);
            let tail_limit = limit - limit / 3;
            prop_assert!(tail.len() <= tail_limit && tail.len() + 4 + tail_limit / 4 > tail_limit);
            prop_assert!(whole.ends_with(tail));
            let cut: usize = note.split(' ').next().unwrap().parse().unwrap();
            let head = &whole[..whole.len() - tail.len() - cut];
            prop_assert!(text.starts_with(head) && head.len() <= limit / 3);
            let gone = &whole[head.len()..whole.len() - tail.len()];
            let lines = format!("({} line breaks)", gone.matches('\n').count());
            prop_assert!(note.contains(&lines));
        }
    }

    #[test]
    fn both_ends_of_a_long_output_consist_of_whole_lines() {
        let numbers: String = (1000..3000).map(|n| format!("{n}\n")).collect();
        for limit in 90..110 {
            let scratch = Scratch::temporary();
            let mut transcript = Transcript::new(limit, &scratch, "t");
            transcript.push(&numbers);
            let whole = Path::new("/whole");
            for text in [transcript.finish().0, shorten(&numbers, limit, whole)] {
                let (head, rest) = text.split_once("[… ").unwrap();
                let (note, tail) = rest.split_once(" …]\n").unwrap();
                assert!(head.starts_with("1000\n") && tail.ends_with("2999\n"), "{text}");
                assert!(head.lines().chain(tail.lines()).all(|line| line.len() == 4), "{limit}: {text}");
                let bytes = numbers.len() - head.len() - tail.len();
                assert!(
                    note.starts_with(&format!("{bytes} bytes ({} line breaks)", bytes / 5)),
                    "{limit}: {note}"
                );
            }
        }
    }

    #[test]
    fn without_a_place_for_the_file_the_ends_are_still_given() {
        let scratch = Scratch::at("/dev/null/no-directory");
        let mut transcript = Transcript::new(6, &scratch, "t");
        transcript.push("abcdefgh");
        let (text, file) = transcript.finish();
        assert_eq!(
            text,
            "ab\n[… 2 bytes (0 line breaks) left out here; it could not be stored in a file …]\nefgh"
        );
        assert_eq!(file, None);
    }
}
