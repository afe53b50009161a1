//! Output for people: words instead of lines of JSON.

mod activity;
mod markdown;
mod text;

pub use activity::Activity;
pub use text::TextPrinter;
