//! What a project's folder brings: whether it is trusted, its configuration and its plugins.

pub mod config;
pub mod content;
pub mod plugins;
pub mod scripts;
pub mod trust;
