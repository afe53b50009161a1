//! Git: what a command line does, and how a command is kept from running what settings name. Repositories and
//! settings are read by `qwen-git`.

pub(crate) mod command_line;
pub(crate) mod hardening;
