//! Input from a terminal.

/// One input from the terminal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TerminalInput {
    Key(Key),
    /// Pasted text with normalised line feeds.
    Paste(String),
    /// The terminal's window gained or lost the focus.
    Focus(bool),
}

/// A key with its modifiers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Key {
    pub code: KeyCode,
    pub ctrl: bool,
    /// Alt (or Meta) was held.
    pub alt: bool,
    /// Shift was held. Never set for characters, which already reflect it.
    pub shift: bool,
}

/// A key without its modifiers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum KeyCode {
    Char(char),
    Enter,
    Tab,
    Backspace,
    Escape,
    Up,
    Down,
    Left,
    Right,
    Home,
    End,
    PageUp,
    PageDown,
    Insert,
    Delete,
    Function(u8),
}

impl Key {
    /// A key without modifiers.
    pub const fn plain(code: KeyCode) -> Self {
        Self { code, ctrl: false, alt: false, shift: false }
    }

    /// Ctrl and a character.
    pub const fn ctrl(c: char) -> Self {
        Self { ctrl: true, ..Self::plain(KeyCode::Char(c)) }
    }

    /// Alt and a character.
    pub const fn alt(c: char) -> Self {
        Self { alt: true, ..Self::plain(KeyCode::Char(c)) }
    }

    /// Parses a name such as `ctrl+r`, `alt+enter`, `shift+tab`, `f5` or `x`.
    pub fn parse(name: &str) -> Option<Self> {
        let mut key = Self::plain(KeyCode::Escape);
        let mut rest = name;
        while let Some((modifier, behind)) = rest.split_once('+').filter(|(_, behind)| !behind.is_empty()) {
            match modifier.to_ascii_lowercase().as_str() {
                "ctrl" => key.ctrl = true,
                "alt" | "meta" => key.alt = true,
                "shift" => key.shift = true,
                _ => return None,
            }
            rest = behind;
        }
        key.code = code(rest)?;
        Some(key)
    }

    /// The name that [`Key::parse`] accepts.
    pub fn name(self) -> String {
        let modifiers = [(self.ctrl, "ctrl+"), (self.alt, "alt+"), (self.shift, "shift+")];
        let mut name: String = modifiers.iter().filter(|(held, _)| *held).map(|(_, word)| *word).collect();
        match self.code {
            KeyCode::Char(' ') => name.push_str("space"),
            KeyCode::Char(c) => name.push(c),
            KeyCode::Function(n) => name.push_str(&format!("f{n}")),
            code => {
                name.push_str(NAMES.iter().find(|(_, known)| *known == code).map_or("", |(word, _)| word));
            }
        }
        name
    }
}

const NAMES: &[(&str, KeyCode)] = &[
    ("enter", KeyCode::Enter),
    ("tab", KeyCode::Tab),
    ("backspace", KeyCode::Backspace),
    ("esc", KeyCode::Escape),
    ("up", KeyCode::Up),
    ("down", KeyCode::Down),
    ("left", KeyCode::Left),
    ("right", KeyCode::Right),
    ("home", KeyCode::Home),
    ("end", KeyCode::End),
    ("pageup", KeyCode::PageUp),
    ("pagedown", KeyCode::PageDown),
    ("insert", KeyCode::Insert),
    ("delete", KeyCode::Delete),
    ("space", KeyCode::Char(' ')),
];

fn code(word: &str) -> Option<KeyCode> {
    let mut chars = word.chars();
    if let (Some(c), None) = (chars.next(), chars.next()) {
        return Some(KeyCode::Char(c));
    }
    let word = word.to_ascii_lowercase();
    if let Some((_, code)) = NAMES.iter().find(|(name, _)| *name == word) {
        return Some(*code);
    }
    let number = word.strip_prefix('f')?.parse().ok()?;
    (1..=24).contains(&number).then_some(KeyCode::Function(number))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_back() {
        for name in ["ctrl+r", "alt+enter", "shift+tab", "f5", "x", "ctrl+alt+space", "+", "ctrl+_"] {
            assert_eq!(Key::parse(name).map(Key::name).as_deref(), Some(name));
        }
        for name in ["", "hyper+x", "ctrl+", "f99", "enterr"] {
            assert_eq!(Key::parse(name), None, "{name}");
        }
    }
}
