//! What is played for each screen.

mod conversation;
mod input;
mod questions;
mod sessions;

use crate::harness::Stage;

/// A name, and what happens on the screen.
pub type Scene = (&'static str, fn(&mut Stage));

/// All scenes.
pub fn scenes() -> impl Iterator<Item = &'static Scene> {
    [input::SCENES, conversation::SCENES, questions::SCENES, sessions::SCENES].into_iter().flatten()
}

/// What is played for a screen.
pub fn scene(name: &str) -> fn(&mut Stage) {
    scenes().find(|(known, _)| *known == name).unwrap().1
}
