//! The output of a command for the model: complete if it is short, without its middle if it is long.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use qwen_sandbox::Scratch;

/// Most bytes in a file with the full output: enough for any log, too little to fill a disk.
pub const FILE_LIMIT: u64 = 256 << 20;

/// Collects output in bounded memory. Output over the limit goes to a file.
pub struct Transcript<'a> {
    scratch: &'a Scratch,
    stem: &'a str,
    half: usize,
    head: String,
    head_chars: usize,
    tail: VecDeque<String>,
    tail_chars: usize,
    cut: usize,
    file: Option<Spill>,
}

struct Spill {
    path: PathBuf,
    file: File,
    written: u64,
    error: Option<io::Error>,
}

impl<'a> Transcript<'a> {
    /// A transcript of at most `limit` characters, whose overflow goes to a file named after `stem`.
    pub fn new(limit: usize, scratch: &'a Scratch, stem: &'a str) -> Self {
        Self {
            scratch,
            stem,
            half: limit / 2,
            head: String::new(),
            head_chars: 0,
            tail: VecDeque::new(),
            tail_chars: 0,
            cut: 0,
            file: None,
        }
    }

    pub fn push(&mut self, piece: &str) {
        if let Some(file) = &mut self.file {
            file.write(piece);
        }
        let room = self.half - self.head_chars;
        let (to_head, to_tail) = match piece.char_indices().nth(room) {
            _ if room == 0 => ("", piece),
            Some((at, _)) => piece.split_at(at),
            None => (piece, ""),
        };
        self.head.push_str(to_head);
        self.head_chars += chars(to_head);
        if !to_tail.is_empty() {
            self.tail_chars += chars(to_tail);
            self.tail.push_back(to_tail.to_owned());
            if self.tail_chars > self.half {
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
        while self.tail_chars > self.half {
            let Some(first) = self.tail.front_mut() else { break };
            let (length, over) = (chars(first), self.tail_chars - self.half);
            let gone = if length <= over {
                self.tail.pop_front();
                length
            } else {
                let at = first.char_indices().nth(over).map_or(first.len(), |(at, _)| at);
                first.drain(..at);
                over
            };
            self.tail_chars -= gone;
            self.cut += gone;
        }
    }

    /// Returns the text for the model, and the file with the full output if something was cut.
    pub fn finish(self) -> (String, Option<PathBuf>) {
        let mut text = self.head;
        if self.cut > 0 {
            if !text.ends_with('\n') {
                text.push('\n');
            }
            text.push_str(&note(self.cut, self.file.as_ref()));
        }
        text.extend(self.tail);
        (text, self.file.map(|file| file.path))
    }
}

fn note(cut: usize, file: Option<&Spill>) -> String {
    let rest = match file {
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
    };
    format!("[… {cut} characters cut out here; {rest} …]\n")
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

fn chars(text: &str) -> usize {
    text.chars().count()
}

/// Removes the middle of a long text and names the file that holds all of it.
pub fn shorten(text: &str, limit: usize, whole: &Path) -> String {
    let length = chars(text);
    if length <= limit {
        return text.to_owned();
    }
    let at = |n: usize| text.char_indices().nth(n).map_or(text.len(), |(at, _)| at);
    let (head, tail) = (&text[..at(limit / 2)], &text[at(length - limit / 2)..]);
    let cut = length - limit / 2 * 2;
    format!("{head}\n[… {cut} characters cut out here; the whole output is in {} …]\n{tail}", whole.display())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn short_output_is_whole_and_long_output_keeps_both_ends(
            pieces in prop::collection::vec("[aä€🦀\n]{0,12}", 0..20),
            limit in 2usize..60,
        ) {
            let scratch = Scratch::temporary();
            let mut transcript = Transcript::new(limit, &scratch, "t");
            for piece in &pieces {
                transcript.push(piece);
            }
            let (text, file) = transcript.finish();
            let whole = pieces.concat();
            let all: Vec<char> = whole.chars().collect();
            let half = limit / 2;
            if all.len() <= half * 2 {
                prop_assert_eq!(&text, &whole);
                prop_assert!(file.is_none());
            } else {
                let head: String = all[..half].iter().collect();
                let tail: String = all[all.len() - half..].iter().collect();
                prop_assert!(text.starts_with(&head));
                prop_assert!(text.ends_with(&tail));
                let note = format!("{} characters cut out", all.len() - half * 2);
                prop_assert!(text.contains(&note));
                prop_assert_eq!(std::fs::read_to_string(file.unwrap()).unwrap(), whole);
            }
        }
    }

    #[test]
    fn without_a_place_for_the_file_the_ends_are_still_given() {
        let scratch = Scratch::at("/dev/null/no-directory");
        let mut transcript = Transcript::new(4, &scratch, "t");
        transcript.push("abcdefgh");
        let (text, file) = transcript.finish();
        assert_eq!(text, "ab\n[… 4 characters cut out here; it could not be stored in a file …]\ngh");
        assert_eq!(file, None);
    }
}
