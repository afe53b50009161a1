//! Reads lines of a file or of standard input as they arrive.

use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::ops::ControlFlow;
use std::path::Path;

/// The longest line that is read; a longer one is reported and skipped.
pub const LONGEST: usize = 64 << 20;

pub enum StreamLine<'a> {
    /// Includes its newline, which only the last line may lack.
    Whole(&'a [u8]),
    /// A line longer than [`LONGEST`].
    TooLong,
}

/// The name of the input in messages.
pub fn name(file: Option<&Path>) -> String {
    file_path(file).map_or_else(|| "<stdin>".to_owned(), |file| file.display().to_string())
}

/// Passes each line to `handle` until `handle` breaks.
pub fn each(file: Option<&Path>, handle: impl FnMut(StreamLine<'_>) -> ControlFlow<()>) -> io::Result<()> {
    match file_path(file) {
        Some(file) => each_of(BufReader::with_capacity(1 << 16, File::open(file)?), handle),
        None => each_of(io::stdin().lock(), handle),
    }
}

/// `-` is standard input.
fn file_path(file: Option<&Path>) -> Option<&Path> {
    file.filter(|file| *file != Path::new("-"))
}

fn each_of(
    mut input: impl BufRead,
    mut handle: impl FnMut(StreamLine<'_>) -> ControlFlow<()>,
) -> io::Result<()> {
    let mut line = Vec::new();
    let mut too_long = false;
    loop {
        let buffer = match input.fill_buf() {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            other => other?,
        };
        let ended = buffer.is_empty();
        let newline = buffer.iter().position(|byte| *byte == b'\n');
        let taken = newline.map_or(buffer.len(), |at| at + 1);
        too_long |= line.len() + taken > LONGEST;
        if !too_long {
            line.extend_from_slice(&buffer[..taken]);
        }
        input.consume(taken);
        if newline.is_none() && !ended {
            continue;
        }
        let whole = match (too_long, line.is_empty()) {
            (true, _) => StreamLine::TooLong,
            (false, true) => return Ok(()),
            (false, false) => StreamLine::Whole(&line),
        };
        if handle(whole).is_break() || ended {
            return Ok(());
        }
        line.clear();
        // A long line must not hold its memory for the rest of the stream.
        line.shrink_to(1 << 20);
        too_long = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &[u8]) -> Vec<Vec<u8>> {
        let mut lines = Vec::new();
        let read = each_of(BufReader::with_capacity(3, text), |line| {
            if let StreamLine::Whole(line) = line {
                lines.push(line.to_vec());
            }
            ControlFlow::Continue(())
        });
        assert!(read.is_ok());
        lines
    }

    #[test]
    fn lines_come_with_their_newlines_and_the_last_without() {
        assert!(read(b"").is_empty());
        assert_eq!(read(b"one\n\nthree"), [&b"one\n"[..], b"\n", b"three"]);
        assert_eq!(read(b"one\ntwo\n"), [b"one\n", b"two\n"]);
    }
}
