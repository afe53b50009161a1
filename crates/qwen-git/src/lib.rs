//! Git repositories, read without starting git: where a repository is ([`repository`], [`layout`]), what its
//! settings contain ([`settings`], [`describing`]), what its index tracks ([`index`]), and
//! which commit is checked out ([`head`]).
//!
//! Nothing here starts a process. Files are read with a bound, and only if they are regular files.

pub mod describing;
pub mod head;
pub mod index;
pub mod layout;
pub mod repository;
pub mod settings;
mod sha1;
