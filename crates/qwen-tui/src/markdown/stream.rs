//! Splits streaming Markdown into blocks that no longer change.

use crate::text::last_bytes;

/// A part of an answer that is finished.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Block {
    /// Markdown without fenced code: a paragraph, a heading, a list, a table.
    Markdown(String),
    /// The start of fenced code.
    CodeStart,
    /// A line of fenced code.
    Code {
        /// The language, as the fence names it.
        language: String,
        /// The line, without its line feed.
        line: String,
    },
    /// The end of fenced code.
    CodeEnd,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Fence {
    mark: char,
    length: usize,
    indent: usize,
    language: String,
}

/// A streaming answer. Returned blocks are not stored.
#[derive(Debug, Default)]
pub struct Stream {
    /// The incomplete last line.
    partial: String,
    /// The complete lines of the open block.
    open: String,
    /// True if an empty line followed the open block: it ends unless an indented line continues it.
    blank: bool,
    fence: Option<Fence>,
}

impl Stream {
    /// Adds a piece and returns the blocks that it finishes.
    pub fn push(&mut self, text: &str) -> Vec<Block> {
        let mut blocks = Vec::new();
        let mut rest = text;
        while let Some((line, behind)) = rest.split_once('\n') {
            self.partial.push_str(line);
            let line = std::mem::take(&mut self.partial);
            self.line(line.strip_suffix('\r').unwrap_or(&line), &mut blocks);
            rest = behind;
        }
        self.partial.push_str(rest);
        blocks
    }

    /// Ends the answer and returns the remaining blocks.
    pub fn finish(&mut self) -> Vec<Block> {
        let mut blocks = Vec::new();
        let last = std::mem::take(&mut self.partial);
        if !last.is_empty() {
            self.line(&last, &mut blocks);
        }
        self.close(&mut blocks);
        if self.fence.take().is_some() {
            blocks.push(Block::CodeEnd);
        }
        blocks
    }

    /// The end of the unfinished rest, between `least` bytes and twice as many: the open block as Markdown,
    /// or the open line of code. Where it begins changes only after `least` further bytes, so that the rows
    /// made of it do not move with each piece.
    pub fn rest(&self, least: usize) -> String {
        let length = self.open.len() + self.partial.len();
        let hidden = (length / least.max(1)).saturating_sub(1) * least;
        let (open, partial) = match hidden.checked_sub(self.open.len()) {
            None => (last_bytes(&self.open, self.open.len() - hidden), self.partial.as_str()),
            Some(hidden) => ("", last_bytes(&self.partial, self.partial.len() - hidden)),
        };
        let rest = format!("{open}{partial}");
        match rest.find(char::is_whitespace).filter(|_| hidden > 0) {
            // The word that was cut in two is left out.
            Some(at) => rest[at..].trim_start().to_owned(),
            None => rest,
        }
    }

    /// The language of the open code block.
    pub fn language(&self) -> Option<&str> {
        self.fence.as_ref().map(|fence| fence.language.as_str())
    }

    fn line(&mut self, line: &str, blocks: &mut Vec<Block>) {
        if let Some(fence) = &self.fence {
            if closes(fence, line) {
                self.fence = None;
                blocks.push(Block::CodeEnd);
            } else {
                let cut = line.bytes().take(fence.indent).take_while(|byte| *byte == b' ').count();
                blocks.push(Block::Code { language: fence.language.clone(), line: line[cut..].to_owned() });
            }
            return;
        }
        if let Some(fence) = opens(line) {
            self.close(blocks);
            self.fence = Some(fence);
            blocks.push(Block::CodeStart);
            return;
        }
        if line.trim().is_empty() {
            self.blank = !self.open.is_empty();
            if self.blank {
                self.open.push('\n');
            }
            return;
        }
        let is_heading = line.starts_with('#');
        if (self.blank && !line.starts_with([' ', '\t'])) || is_heading {
            self.close(blocks);
        }
        self.blank = false;
        self.open.push_str(line);
        self.open.push('\n');
        if is_heading {
            self.close(blocks);
        }
    }

    fn close(&mut self, blocks: &mut Vec<Block>) {
        self.blank = false;
        let open = std::mem::take(&mut self.open);
        if !open.trim().is_empty() {
            blocks.push(Block::Markdown(open));
        }
    }
}

fn opens(line: &str) -> Option<Fence> {
    let trimmed = line.trim_start_matches(' ');
    let mark = trimmed.chars().next().filter(|c| matches!(c, '`' | '~'))?;
    let length = trimmed.chars().take_while(|c| *c == mark).count();
    let info = trimmed[length..].trim();
    if length < 3 || (mark == '`' && info.contains('`')) {
        return None;
    }
    let language = info.split([' ', ',', '{']).next().unwrap_or_default().to_lowercase();
    Some(Fence { mark, length, indent: line.len() - trimmed.len(), language })
}

fn closes(fence: &Fence, line: &str) -> bool {
    let trimmed = line.trim();
    trimmed.len() >= fence.length && trimmed.chars().all(|c| c == fence.mark)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "# Title\nOne\ntwo\n\n- a\n\n  more of a\n- b\n\n```rust\nfn x() {\n\n}\n```\nafter\n\n| a | b |\n|---|---|\n| 1 | 2 |\n";

    fn blocks(pieces: &[&str]) -> Vec<Block> {
        let mut stream = Stream::default();
        let mut out: Vec<Block> = pieces.iter().flat_map(|piece| stream.push(piece)).collect();
        out.extend(stream.finish());
        out
    }

    #[test]
    fn blocks_end_where_nothing_can_change_them() {
        let code = |line: &str| Block::Code { language: "rust".into(), line: line.into() };
        let markdown = |text: &str| Block::Markdown(text.into());
        assert_eq!(
            blocks(&[TEXT]),
            [
                markdown("# Title\n"),
                markdown("One\ntwo\n\n"),
                markdown("- a\n\n  more of a\n- b\n\n"),
                Block::CodeStart,
                code("fn x() {"),
                code(""),
                code("}"),
                Block::CodeEnd,
                markdown("after\n\n"),
                markdown("| a | b |\n|---|---|\n| 1 | 2 |\n"),
            ]
        );
    }

    #[test]
    fn any_split_gives_the_same_blocks() {
        let whole = blocks(&[TEXT]);
        for at in 0..TEXT.len() {
            assert_eq!(blocks(&[&TEXT[..at], &TEXT[at..]]), whole, "{at}");
        }
    }

    #[test]
    fn the_shown_rest_of_a_long_paragraph_begins_at_the_same_place_for_a_while() {
        let mut stream = Stream::default();
        let mut beginnings = Vec::new();
        for n in 0..400 {
            stream.push(&format!("word{n} "));
            let rest = stream.rest(500);
            assert!(rest.len() <= 1010, "{}", rest.len());
            beginnings.push(rest.split(' ').next().map(str::to_owned));
        }
        beginnings.dedup();
        assert_eq!(beginnings.len(), 6, "{beginnings:?}");
    }

    #[test]
    fn code_that_is_cut_off_is_still_code() {
        assert_eq!(blocks(&["```\nx"]).last(), Some(&Block::CodeEnd));
    }
}
