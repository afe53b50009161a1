//! Promises about the repository itself: licences of dependencies, names, folders and the map in ARCHITECTURE.md.
#![expect(clippy::unwrap_used, reason = "test code fails by panicking")]

mod architecture;
mod licences;

use std::path::{Path, PathBuf};

/// The root of the repository.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}
