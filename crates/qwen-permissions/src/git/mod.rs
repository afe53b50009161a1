//! Git: where its repositories are, what their settings say, what a command line stands for, and how a
//! command is kept from running what settings name.

pub(crate) mod command_line;
pub(crate) mod hardening;
pub(crate) mod repository;
pub(crate) mod settings;
