//! From bytes to actions.

mod decoder;
mod key;
mod keymap;

pub use decoder::Decoder;
pub use key::{Input, Key, KeyCode};
pub use keymap::{Action, Keymap, UnknownBinding};
