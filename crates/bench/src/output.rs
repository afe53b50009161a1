//! Judges a turn's output as it streams by, without keeping it: did every chunk arrive, is the terminal
//! record last?

use serde_json::Value;

/// The dialect and the unit of its lines.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// `--dialect claude`: whole messages.
    Claude,
    /// The same with `--include-partial-messages`.
    ClaudePartial,
    /// `--dialect qwen --output-format stream-chunk-json`.
    QwenChunks,
}

impl Mode {
    pub fn name(self) -> &'static str {
        match self {
            Self::Claude => "claude",
            Self::ClaudePartial => "claude, partial messages",
            Self::QwenChunks => "qwen, stream-chunk-json",
        }
    }

    /// What every line that carries a piece of text contains, and no other line.
    pub fn delta_word(self) -> &'static [u8] {
        match self {
            Self::Claude => b"\"assistant\"",
            Self::ClaudePartial => b"content_block_delta",
            Self::QwenChunks => b"chat.completion.chunk",
        }
    }

    fn is_terminal(self, line: &Value) -> bool {
        match self {
            Self::Claude | Self::ClaudePartial => line["type"] == "result" && line["is_error"] != true,
            Self::QwenChunks => line["metadata"]["turn"]["status"] == "done",
        }
    }
}

/// Cuts a stream into lines.
#[derive(Default)]
pub struct Lines {
    partial: Vec<u8>,
}

impl Lines {
    /// Hands each line that `bytes` completes to `take`, without its newline.
    pub fn feed(&mut self, bytes: &[u8], mut take: impl FnMut(&[u8])) {
        let mut pieces = bytes.split(|byte| *byte == b'\n');
        let mut piece = pieces.next().unwrap_or(&[]);
        for next in pieces {
            if self.partial.is_empty() {
                take(piece);
            } else {
                self.partial.extend_from_slice(piece);
                take(&self.partial);
                self.partial.clear();
            }
            piece = next;
        }
        self.partial.extend_from_slice(piece);
    }
}

/// The mark in each chunk's text that is counted.
const MARK: u8 = b'~';
/// The text of each chunk of a flood.
pub const CHUNK_TEXT: &str = "word~";

/// Counts what arrives of a flood of [`CHUNK_TEXT`]s.
pub struct Tally {
    mode: Mode,
    lines: Lines,
    chunks: usize,
    last: Vec<u8>,
}

impl Tally {
    pub fn new(mode: Mode) -> Self {
        Self { mode, lines: Lines::default(), chunks: 0, last: Vec::new() }
    }

    pub fn feed(&mut self, bytes: &[u8]) {
        let (mode, chunks, last) = (self.mode, &mut self.chunks, &mut self.last);
        self.lines.feed(bytes, |line| {
            if contains(line, mode.delta_word()) {
                *chunks += line.split(|byte| *byte == MARK).count() - 1;
            }
            last.clear();
            last.extend_from_slice(line);
        });
    }

    /// Whether exactly `chunks` arrived and a good terminal record was the last line.
    pub fn check(&self, chunks: usize) -> Result<(), String> {
        let shown = String::from_utf8_lossy(&self.last[..self.last.len().min(300)]).into_owned();
        if self.chunks != chunks {
            return Err(format!("{} of {chunks} chunks arrived; last line: {shown}", self.chunks));
        }
        if !self.lines.partial.is_empty() {
            return Err("the output does not end with a newline".to_owned());
        }
        let last: Value = serde_json::from_slice(&self.last).unwrap_or_default();
        if !self.mode.is_terminal(&last) {
            return Err(format!("the last line is not the terminal record of a good turn: {shown}"));
        }
        Ok(())
    }
}

pub fn contains(line: &[u8], word: &[u8]) -> bool {
    line.windows(word.len()).any(|window| window == word)
}

/// The stamps (`<nanoseconds>;`) in a line.
pub fn stamps(line: &[u8]) -> impl Iterator<Item = u64> {
    line.split(|byte| *byte == b';').rev().skip(1).filter_map(|before| {
        let digits = before.iter().rev().take_while(|byte| byte.is_ascii_digit()).count();
        str::from_utf8(&before[before.len() - digits..]).ok()?.parse().ok()
    })
}

#[cfg(test)]
mod tests {
    use super::{Lines, Mode, Tally, stamps};

    const STREAM: &str = concat!(
        "{\"type\":\"system\"}\n",
        "{\"event\":{\"type\":\"content_block_delta\",\"delta\":{\"text\":\"word~\"}}}\n",
        "{\"event\":{\"type\":\"content_block_delta\",\"delta\":{\"text\":\"word~word~\"}}}\n",
        "{\"type\":\"assistant\",\"text\":\"word~word~word~\"}\n",
        "{\"type\":\"result\",\"is_error\":false,\"result\":\"word~word~word~\"}\n",
    );

    fn tally(stream: &str, piece: usize) -> Tally {
        let mut tally = Tally::new(Mode::ClaudePartial);
        stream.as_bytes().chunks(piece).for_each(|bytes| tally.feed(bytes));
        tally
    }

    #[test]
    fn a_good_stream_is_good_however_it_is_cut() {
        for piece in [1, 2, 7, 64, 4096] {
            assert_eq!(tally(STREAM, piece).check(3), Ok(()), "{piece}");
        }
    }

    #[test]
    fn a_lost_chunk_a_late_line_and_a_torn_one_are_found() {
        assert!(tally(STREAM, 64).check(4).unwrap_err().contains("3 of 4"));
        let late = format!("{STREAM}{{\"type\":\"system\"}}\n");
        assert!(tally(&late, 64).check(3).unwrap_err().contains("terminal record"));
        assert!(tally(&format!("{STREAM}{{"), 64).check(3).unwrap_err().contains("newline"));
        let bad = STREAM.replace("\"is_error\":false", "\"is_error\":true");
        assert!(tally(&bad, 64).check(3).unwrap_err().contains("terminal record"));
    }

    #[test]
    fn lines_are_handed_over_once_they_are_whole() {
        let mut lines = Lines::default();
        let mut seen = Vec::new();
        for bytes in ["a", "b\n\nc", "d", "\n", "e"] {
            lines.feed(bytes.as_bytes(), |line| seen.push(String::from_utf8_lossy(line).into_owned()));
        }
        assert_eq!(seen, ["ab", "", "cd"]);
    }

    #[test]
    fn stamps_are_found_wherever_they_stand() {
        let mut found: Vec<u64> = stamps(br#"{"text":"123;456;","x":"&amp;"}7"#).collect();
        found.sort_unstable();
        assert_eq!(found, [123, 456]);
    }
}
