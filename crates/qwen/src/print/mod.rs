//! Output for people: words instead of lines of JSON.

mod activity;
mod markdown;
mod screen;
mod text;
mod thoughts;

pub use activity::Activity;
pub use screen::screen;
pub use text::TextPrinter;
