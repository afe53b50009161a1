//! Git in repositories that may not be ours.

pub(crate) mod hardening;
mod settings;
