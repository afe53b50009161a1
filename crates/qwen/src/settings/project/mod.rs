//! What a project's folder brings: whether it is trusted, its configuration and its plugins.

pub mod config;
pub mod plugins;
pub mod trust;
