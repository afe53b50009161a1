//! Vim's keys in the composer: an optional normal mode.

use super::Editor;
use crate::input::{Key, KeyCode};

/// Which of vim's modes is on, and the keys of an incomplete command.
#[derive(Debug, Default)]
pub struct Vim {
    is_normal: bool,
    pending: Option<char>,
    count: usize,
}

/// The largest count of a command; more would only cost time.
const MAX_COUNT: usize = 1000;

impl Vim {
    /// True in normal mode, where letters are commands.
    pub fn is_normal(&self) -> bool {
        self.is_normal
    }

    /// Switches to normal mode; false if it is on already and nothing was pending.
    pub fn escape(&mut self, editor: &mut Editor) -> bool {
        let was_pending = self.pending.take().is_some() || self.count > 0;
        self.count = 0;
        if self.is_normal {
            return was_pending;
        }
        self.is_normal = true;
        if !editor.is_at_line_start() {
            editor.move_left();
        }
        true
    }

    /// Returns to insert mode, where an empty composer starts.
    pub fn reset(&mut self) {
        *self = Self::default();
    }

    /// Applies a key in normal mode; false if it is not a letter.
    pub fn key(&mut self, key: Key, editor: &mut Editor) -> bool {
        let KeyCode::Char(letter) = key.code else { return false };
        if !self.is_normal || key.ctrl || key.alt {
            return false;
        }
        if let Some(digit) = letter.to_digit(10).filter(|digit| *digit > 0 || self.count > 0) {
            self.count = (self.count * 10 + digit as usize).min(MAX_COUNT);
            return true;
        }
        let count = std::mem::take(&mut self.count).max(1);
        match self.pending.take() {
            Some(operator) => self.operate(operator, letter, count, editor),
            None => self.command(letter, count, editor),
        }
        true
    }

    fn command(&mut self, letter: char, count: usize, editor: &mut Editor) {
        match letter {
            'h' => repeat(count, || editor.move_left()),
            'l' => repeat(count, || editor.move_right()),
            'j' => repeat(count, || {
                editor.down();
            }),
            'k' => repeat(count, || {
                editor.up();
            }),
            'w' | 'e' => repeat(count, || editor.word_right()),
            'b' => repeat(count, || editor.word_left()),
            '0' | '^' => editor.to_line_start(),
            '$' => editor.to_line_end(),
            'G' => while editor.down() {},
            'x' => repeat(count, || editor.delete()),
            'X' => repeat(count, || editor.backspace()),
            'D' => editor.kill_to_end(),
            'u' => repeat(count, || editor.undo()),
            'p' | 'P' => repeat(count, || editor.yank()),
            'C' => {
                editor.kill_to_end();
                self.is_normal = false;
            }
            'S' => self.operate('c', 'c', count, editor),
            's' => {
                repeat(count, || editor.delete());
                self.is_normal = false;
            }
            'i' => self.is_normal = false,
            'a' => {
                editor.move_right();
                self.is_normal = false;
            }
            'I' => {
                editor.to_line_start();
                self.is_normal = false;
            }
            'A' => {
                editor.to_line_end();
                self.is_normal = false;
            }
            'o' => {
                editor.to_line_end();
                editor.type_char('\n');
                self.is_normal = false;
            }
            'O' => {
                editor.to_line_start();
                editor.type_char('\n');
                editor.move_left();
                self.is_normal = false;
            }
            'd' | 'c' | 'g' | 'r' => {
                self.pending = Some(letter);
                self.count = if count > 1 { count } else { 0 };
            }
            _ => {}
        }
    }

    /// `d` and `c` with a motion, `gg`, and `r` with a letter.
    fn operate(&mut self, operator: char, motion: char, count: usize, editor: &mut Editor) {
        match (operator, motion) {
            ('g', 'g') => while editor.up() {},
            ('r', letter) => {
                editor.delete();
                editor.type_char(letter);
                editor.move_left();
            }
            ('d' | 'c', 'w' | 'e') => repeat(count, || editor.kill_word_right()),
            ('d' | 'c', 'b') => repeat(count, || editor.kill_word_left()),
            ('d' | 'c', '$') => editor.kill_to_end(),
            ('d' | 'c', '0' | '^') => editor.kill_to_start(),
            ('d', 'd') => repeat(count, || {
                editor.to_line_start();
                editor.kill_to_end();
                editor.delete();
            }),
            ('c', 'c') => {
                editor.to_line_start();
                editor.kill_to_end();
            }
            _ => return,
        }
        if operator == 'c' {
            self.is_normal = false;
        }
    }
}

fn repeat(count: usize, mut step: impl FnMut()) {
    for _ in 0..count {
        step();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn typed(text: &str, keys: &str) -> String {
        let (mut editor, mut vim) = (Editor::default(), Vim::default());
        editor.set(text);
        vim.escape(&mut editor);
        for letter in keys.chars() {
            let key = Key::plain(KeyCode::Char(letter));
            if !vim.key(key, &mut editor) {
                editor.type_char(letter);
            }
        }
        editor.text()
    }

    #[test]
    fn letters_are_commands_in_normal_mode_only() {
        for (text, keys, expected) in [
            ("one two", "0xx", "e two"),
            ("one two", "0dw", " two"),
            ("one two", "0cwsix", "six two"),
            ("one two", "A!", "one two!"),
            ("one two", "Ia ", "a one two"),
            ("a\nb\nc", "ggdd", "b\nc"),
            ("one", "onext", "one\nnext"),
            ("one", "0rx", "xne"),
            ("abcdef", "03x", "def"),
            ("one two", "0D", ""),
            ("one", "zq", "one"),
        ] {
            assert_eq!(typed(text, keys), expected, "{keys} in {text:?}");
        }
    }
}
