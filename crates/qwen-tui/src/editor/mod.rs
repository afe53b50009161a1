//! The composer: a small text editor with undo, a kill ring and pastes as chips.

mod history;
mod layout;
mod vim;

pub use history::History;
pub use layout::{Layout, layout};
pub use vim::Vim;

use qwen_events::Media;
use unicode_segmentation::UnicodeSegmentation;

/// Chips are single characters of a private plane, so that motion and deletion treat each as one character.
const CHIP_FIRST: u32 = 0xf_0000;
const CHIP_LAST: u32 = 0xf_ffff;

/// Pastes of at least this many lines or bytes become a chip.
const CHIP_LINES: usize = 5;
const CHIP_BYTES: usize = 800;

/// A text that is larger than this is a chip wherever it comes from: each frame lays the text out.
const MAX_SHOWN: usize = 32 * 1024;

/// The number of undo states, and of cuts for yank.
const MAX_UNDO: usize = 200;
const MAX_KILLS: usize = 30;

/// A large insertion that is one character of the text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Chip {
    /// A long text that was pasted.
    Text(String),
    /// A picture that was pasted.
    Image(Media),
}

impl Chip {
    fn label(&self, number: usize) -> String {
        match self {
            Self::Text(text) => match text.lines().count() {
                0 | 1 => format!("[paste {number}: {} characters]", text.chars().count()),
                lines => format!("[paste {number}: {lines} lines]"),
            },
            Self::Image(image) => format!("[picture {number}: {}]", image.mime_type),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Edit {
    Typing,
    Deleting,
    Other,
}

/// The composer's text and state.
#[derive(Debug, Default)]
pub struct Editor {
    text: String,
    caret: usize,
    chips: Vec<Chip>,
    undo: Vec<(String, usize)>,
    last: Option<Edit>,
    kills: Vec<String>,
    /// The length of the last yank, and the index of its cut.
    yanked: Option<(usize, usize)>,
    /// The target column of Up and Down.
    goal: Option<usize>,
}

impl Editor {
    pub fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    /// The text as edited, chips as their characters.
    pub fn raw(&self) -> &str {
        &self.text
    }

    /// The caret, as an offset into [`Editor::raw`].
    pub fn caret(&self) -> usize {
        self.caret
    }

    /// The text up to the caret.
    pub fn before_caret(&self) -> &str {
        &self.text[..self.caret]
    }

    /// The complete text, chips replaced by their content.
    pub fn text(&self) -> String {
        let mut out = String::with_capacity(self.text.len());
        for c in self.text.chars() {
            match self.chip(c) {
                Some(Chip::Text(text)) => out.push_str(text),
                Some(Chip::Image(_)) => out.push_str("[picture]"),
                None => out.push(c),
            }
        }
        out
    }

    /// The label of a chip character.
    pub fn label(&self, letter: char) -> Option<String> {
        let number = chip_number(letter)?;
        self.chips.get(number).map(|chip| chip.label(number + 1))
    }

    fn chip(&self, letter: char) -> Option<&Chip> {
        self.chips.get(chip_number(letter)?)
    }

    /// Replaces the text; undo restores it.
    pub fn set(&mut self, text: &str) {
        self.remember(Edit::Other);
        if text.len() > MAX_SHOWN {
            (self.text, self.caret) = (String::new(), 0);
            self.insert_chip(Chip::Text(text.to_owned()));
            return;
        }
        self.text = without_chips(text);
        self.caret = self.text.len();
    }

    /// Removes and returns the whole text.
    pub fn take(&mut self) -> String {
        let text = self.text();
        let kills = std::mem::take(&mut self.kills);
        *self = Self { kills, ..Self::default() };
        text
    }

    /// Inserts a typed character.
    pub fn type_char(&mut self, c: char) {
        if c.is_control() && c != '\n' || chip_number(c).is_some() {
            return;
        }
        self.remember(if c == '\n' { Edit::Other } else { Edit::Typing });
        self.text.insert(self.caret, c);
        self.caret += c.len_utf8();
    }

    /// Inserts pasted text: literally, or as a chip if it is large.
    pub fn paste(&mut self, text: &str) {
        self.remember(Edit::Other);
        if text.len() >= CHIP_BYTES || text.lines().count() >= CHIP_LINES {
            self.insert_chip(Chip::Text(text.to_owned()));
        } else {
            let text: String =
                without_chips(text).chars().filter(|c| !c.is_control() || "\n\t".contains(*c)).collect();
            self.insert(&text);
        }
    }

    /// Inserts a pasted picture.
    pub fn paste_image(&mut self, image: Media) {
        self.remember(Edit::Other);
        self.insert_chip(Chip::Image(image));
    }

    /// The pictures in the text, in order.
    pub fn images(&self) -> Vec<Media> {
        let chips = self.text.chars().filter_map(|letter| self.chip(letter));
        chips
            .filter_map(|chip| match chip {
                Chip::Image(image) => Some(image.clone()),
                Chip::Text(_) => None,
            })
            .collect()
    }

    /// True if the caret is at the start of its line.
    pub fn is_at_line_start(&self) -> bool {
        self.caret == self.line_start()
    }

    fn insert_chip(&mut self, chip: Chip) {
        let number = u32::try_from(self.chips.len()).unwrap_or(u32::MAX);
        let Some(letter) =
            char::from_u32(CHIP_FIRST.saturating_add(number)).filter(|c| chip_number(*c).is_some())
        else {
            return;
        };
        self.chips.push(chip);
        self.insert(&letter.to_string());
    }

    fn insert(&mut self, text: &str) {
        self.text.insert_str(self.caret, text);
        self.caret += text.len();
    }

    /// Replaces the `length` bytes before the caret, as a completion does.
    pub fn replace_before(&mut self, length: usize, text: &str) {
        self.remember(Edit::Other);
        let start = self.caret.saturating_sub(length);
        self.text.replace_range(start..self.caret, text);
        self.caret = start + text.len();
    }

    /// Removes the cluster before the caret.
    pub fn backspace(&mut self) {
        let start = self.left_of(self.caret);
        self.remove(start, self.caret, Edit::Deleting);
    }

    /// Removes the cluster at the caret.
    pub fn delete(&mut self) {
        let end = self.right_of(self.caret);
        self.remove(self.caret, end, Edit::Deleting);
    }

    fn remove(&mut self, start: usize, end: usize, edit: Edit) {
        if start < end {
            self.remember(edit);
            self.text.replace_range(start..end, "");
            self.caret = start;
        }
    }

    /// Cuts the word before the caret.
    pub fn kill_word_left(&mut self) {
        let start = self.word_left_of(self.caret);
        self.kill(start, self.caret);
    }

    /// Cuts the word after the caret.
    pub fn kill_word_right(&mut self) {
        let end = self.word_right_of(self.caret);
        self.kill(self.caret, end);
    }

    /// Cuts to the end of the line, or the line feed if the caret is at the end.
    pub fn kill_to_end(&mut self) {
        let end = match self.line_end() {
            end if end == self.caret && end < self.text.len() => end + 1,
            end => end,
        };
        self.kill(self.caret, end);
    }

    /// Cuts to the start of the line.
    pub fn kill_to_start(&mut self) {
        let start = self.line_start();
        self.kill(start, self.caret);
    }

    fn kill(&mut self, start: usize, end: usize) {
        if start < end {
            self.kills.push(self.text[start..end].to_owned());
            if self.kills.len() > MAX_KILLS {
                self.kills.remove(0);
            }
            self.remove(start, end, Edit::Other);
        }
    }

    /// Inserts the last cut.
    pub fn yank(&mut self) {
        if let Some(cut) = self.kills.last().cloned() {
            self.remember(Edit::Other);
            self.insert(&cut);
            self.yanked = Some((cut.len(), self.kills.len() - 1));
        }
    }

    /// Replaces the text of the last yank by the cut before it.
    pub fn yank_pop(&mut self) {
        let Some((length, which)) = self.yanked else { return };
        let before = which.checked_sub(1).unwrap_or(self.kills.len() - 1);
        let cut = self.kills[before].clone();
        self.remember(Edit::Other);
        let start = self.caret - length;
        self.text.replace_range(start..self.caret, &cut);
        self.caret = start + cut.len();
        self.yanked = Some((cut.len(), before));
    }

    /// Undoes the last change.
    pub fn undo(&mut self) {
        if let Some((text, caret)) = self.undo.pop() {
            self.text = text;
            self.caret = caret;
            self.last = None;
            self.yanked = None;
        }
    }

    fn remember(&mut self, edit: Edit) {
        self.yanked = None;
        self.goal = None;
        if self.last == Some(edit) && edit != Edit::Other {
            return;
        }
        self.last = Some(edit);
        self.undo.push((self.text.clone(), self.caret));
        if self.undo.len() > MAX_UNDO {
            self.undo.remove(0);
        }
    }

    fn move_caret_to(&mut self, caret: usize) {
        self.caret = caret;
        self.last = None;
        self.yanked = None;
        self.goal = None;
    }

    pub fn move_left(&mut self) {
        self.move_caret_to(self.left_of(self.caret));
    }

    pub fn move_right(&mut self) {
        self.move_caret_to(self.right_of(self.caret));
    }

    pub fn word_left(&mut self) {
        self.move_caret_to(self.word_left_of(self.caret));
    }

    pub fn word_right(&mut self) {
        self.move_caret_to(self.word_right_of(self.caret));
    }

    /// To the start of the line.
    pub fn to_line_start(&mut self) {
        self.move_caret_to(self.line_start());
    }

    /// To the end of the line.
    pub fn to_line_end(&mut self) {
        self.move_caret_to(self.line_end());
    }

    /// One line up; false in the first line.
    pub fn up(&mut self) -> bool {
        let start = self.line_start();
        let Some(above_end) = start.checked_sub(1) else { return false };
        let column = self.goal.unwrap_or_else(|| self.text[start..self.caret].graphemes(true).count());
        let above = self.text[..above_end].rfind('\n').map_or(0, |at| at + 1);
        self.move_caret_to(above + column_offset(&self.text[above..above_end], column));
        self.goal = Some(column);
        true
    }

    /// One line down; false in the last line.
    pub fn down(&mut self) -> bool {
        let end = self.line_end();
        if end == self.text.len() {
            return false;
        }
        let start = self.line_start();
        let column = self.goal.unwrap_or_else(|| self.text[start..self.caret].graphemes(true).count());
        let below = end + 1;
        let below_end = self.text[below..].find('\n').map_or(self.text.len(), |at| below + at);
        self.move_caret_to(below + column_offset(&self.text[below..below_end], column));
        self.goal = Some(column);
        true
    }

    fn left_of(&self, at: usize) -> usize {
        self.text[..at].grapheme_indices(true).next_back().map_or(0, |(start, _)| start)
    }

    fn right_of(&self, at: usize) -> usize {
        self.text[at..].graphemes(true).next().map_or(at, |cluster| at + cluster.len())
    }

    fn word_left_of(&self, at: usize) -> usize {
        let is_word =
            |(_, word): &(usize, &str)| word.chars().any(|c| c.is_alphanumeric() || chip_number(c).is_some());
        self.text[..at].split_word_bound_indices().rev().find(is_word).map_or(0, |(start, _)| start)
    }

    fn word_right_of(&self, at: usize) -> usize {
        let is_word =
            |(_, word): &(usize, &str)| word.chars().any(|c| c.is_alphanumeric() || chip_number(c).is_some());
        let found = self.text[at..].split_word_bound_indices().find(is_word);
        found.map_or(self.text.len(), |(start, word)| at + start + word.len())
    }

    fn line_start(&self) -> usize {
        self.text[..self.caret].rfind('\n').map_or(0, |at| at + 1)
    }

    fn line_end(&self) -> usize {
        self.text[self.caret..].find('\n').map_or(self.text.len(), |at| self.caret + at)
    }
}

fn column_offset(line: &str, column: usize) -> usize {
    line.grapheme_indices(true).nth(column).map_or(line.len(), |(at, _)| at)
}

fn chip_number(c: char) -> Option<usize> {
    let code = c as u32;
    (CHIP_FIRST..=CHIP_LAST).contains(&code).then(|| (code - CHIP_FIRST) as usize)
}

fn without_chips(text: &str) -> String {
    text.replace(|c| chip_number(c).is_some(), "\u{fffd}")
}

#[cfg(test)]
mod tests;
