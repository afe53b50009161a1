//! From bytes to actions.

mod decoder;
mod key;
mod keymap;

pub use decoder::Decoder;
pub use key::{Key, KeyCode, TerminalInput};
pub use keymap::{KeyAction, Keymap, UnknownBinding};
