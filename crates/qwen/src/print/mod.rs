//! Output for people: words instead of lines of JSON.

mod activity;
mod markdown;
mod screen;
mod search;
mod text;

pub use activity::Activity;
pub use screen::screen;
pub use text::TextPrinter;
