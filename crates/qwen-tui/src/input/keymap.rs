//! Key bindings.

use std::collections::BTreeMap;

use super::key::{Key, KeyCode};

macro_rules! actions {
    ($($variant:ident $name:literal $default:literal $about:literal;)*) => {
        /// What a key can do.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum KeyAction {
            $(#[doc = $about] $variant,)*
        }

        impl KeyAction {
            /// All of them, in the order in which they are listed to users.
            pub const ALL: &[Self] = &[$(Self::$variant,)*];

            /// The name in settings.
            pub fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)* }
            }

            /// What it does, for the list of keys.
            pub fn description(self) -> &'static str {
                match self { $(Self::$variant => $about,)* }
            }

            fn defaults(self) -> &'static str {
                match self { $(Self::$variant => $default,)* }
            }
        }
    };
}

actions! {
    Submit "submit" "enter" "Send the prompt; during a turn, steer it";
    Newline "newline" "shift+enter alt+enter ctrl+j" "Start a new line";
    Complete "complete" "tab" "Complete; during a turn, queue the prompt";
    Interrupt "interrupt" "esc" "Interrupt the turn, or close what is open";
    Cancel "cancel" "ctrl+c" "Clear the prompt (Up restores it), interrupt; twice quits";
    Quit "quit" "ctrl+d" "Quit when the prompt is empty";
    Suspend "suspend" "ctrl+z" "Suspend";
    CycleMode "cycle-mode" "shift+tab" "Next approval mode";
    Transcript "transcript" "ctrl+o" "Show the whole transcript";
    Tasks "tasks" "ctrl+t" "Show or hide tasks and todos";
    Background "background" "ctrl+b" "Send the running command to the background; else character left";
    Question "question" "ctrl+q" "Go to the open question, or back";
    ExternalEditor "editor" "ctrl+g" "Edit the prompt in $EDITOR";
    PasteImage "paste-image" "ctrl+v" "Insert a picture from the clipboard";
    HistorySearch "history-search" "ctrl+r" "Search the prompt history";
    Repaint "repaint" "ctrl+l" "Repaint, and print the last answer again";
    WrapProse "wrap-prose" "alt+w alt+r" "Let the terminal wrap prose, or wrap by words";
    Up "up" "up ctrl+p" "Line up; at the top, older prompt or take back the queue";
    Down "down" "down ctrl+n" "Line down; at the bottom, newer prompt";
    Left "left" "left" "Character left";
    Right "right" "right ctrl+f" "Character right";
    WordLeft "word-left" "alt+b ctrl+left alt+left" "Word left";
    WordRight "word-right" "alt+f ctrl+right alt+right" "Word right";
    LineStart "line-start" "home ctrl+a" "Start of the line";
    LineEnd "line-end" "end ctrl+e" "End of the line";
    Backspace "backspace" "backspace" "Delete the character before the caret";
    Delete "delete" "delete" "Delete the character at the caret";
    DeleteWordLeft "delete-word-left" "ctrl+w alt+backspace ctrl+backspace" "Cut the word before the caret";
    DeleteWordRight "delete-word-right" "alt+d" "Cut the word after the caret";
    KillToEnd "kill-to-end" "ctrl+k" "Cut to the end of the line";
    KillToStart "kill-to-start" "ctrl+u" "Cut to the start of the line";
    Yank "yank" "ctrl+y" "Insert the text cut last";
    YankPop "yank-pop" "alt+y" "Replace it with the text cut before";
    Undo "undo" "ctrl+_" "Undo";
    PageUp "page-up" "pageup" "Scroll up in an overlay or a question";
    PageDown "page-down" "pagedown" "Scroll down in an overlay or a question";
}

/// An invalid binding in the settings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnknownBinding {
    /// The action or the key as written.
    pub word: String,
}

/// The keys of each action.
#[derive(Debug, Clone)]
pub struct Keymap {
    keys: BTreeMap<Key, KeyAction>,
}

impl Default for Keymap {
    fn default() -> Self {
        let mut keys = BTreeMap::new();
        for action in KeyAction::ALL {
            for name in action.defaults().split(' ') {
                if let Some(key) = Key::parse(name) {
                    keys.insert(key, *action);
                }
            }
        }
        Self { keys }
    }
}

impl Keymap {
    /// The defaults with other keys for some actions: names of actions and their keys, separated by spaces.
    /// The keys of an action replace its defaults; no keys unbind it.
    pub fn with<'a>(bindings: impl IntoIterator<Item = (&'a str, &'a str)>) -> Result<Self, UnknownBinding> {
        let mut map = Self::default();
        let unknown = |word: &str| UnknownBinding { word: word.to_owned() };
        for (name, keys) in bindings {
            let action =
                KeyAction::ALL.iter().find(|action| action.name() == name).ok_or_else(|| unknown(name))?;
            map.keys.retain(|_, bound| bound != action);
            for word in keys.split_whitespace() {
                let key = Key::parse(word).ok_or_else(|| unknown(word))?;
                map.keys.insert(key, *action);
            }
        }
        Ok(map)
    }

    /// The action of a key; none if it types itself or does nothing.
    pub fn action(&self, key: Key) -> Option<KeyAction> {
        if let Some(action) = self.keys.get(&key) {
            return Some(*action);
        }
        // Shift with a key that has no binding with Shift is that key.
        let unshifted = Key { shift: false, ..key };
        let is_motion = !matches!(key.code, KeyCode::Char(_) | KeyCode::Enter | KeyCode::Tab);
        self.keys.get(&unshifted).copied().filter(|_| key.shift && is_motion)
    }

    /// The keys of an action, by name.
    pub fn keys(&self, action: KeyAction) -> Vec<String> {
        self.keys.iter().filter(|(_, bound)| **bound == action).map(|(key, _)| key.name()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_action_has_a_key_and_no_key_is_lost_to_another() {
        let map = Keymap::default();
        for action in KeyAction::ALL {
            let wanted = action.defaults().split(' ').count();
            assert_eq!(map.keys(*action).len(), wanted, "{}", action.name());
        }
    }

    #[test]
    fn keys_can_be_bound_anew() {
        let map = Keymap::with([("suspend", ""), ("submit", "ctrl+s f2")]).unwrap();
        assert_eq!(map.action(Key::ctrl('s')), Some(KeyAction::Submit));
        assert_eq!(map.action(Key::plain(KeyCode::Enter)), None);
        assert_eq!(map.action(Key::ctrl('z')), None);
        assert_eq!(Keymap::with([("fly", "x")]).unwrap_err().word, "fly");
    }
}
