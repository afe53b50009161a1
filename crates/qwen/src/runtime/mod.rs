//! This process itself: how it ends, which signals it handles, and what memory it keeps.

pub mod clock;
pub mod code_pages;
pub mod exit;
pub mod privacy;
pub mod signals;
pub mod version;
