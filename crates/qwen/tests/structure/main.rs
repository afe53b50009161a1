//! Promises about the repository itself: licences of dependencies, names, folders and the map in
//! ARCHITECTURE.md.
#![expect(clippy::unwrap_used, reason = "test code fails by panicking")]

mod architecture;
mod binary;
mod contexts;
mod doc_comments;
mod event_table;
mod events;
mod facts;
mod function_names;
mod groups;
mod licences;
mod names;
mod phrases;
mod remaining;
mod sizes;

use std::path::{Path, PathBuf};

/// The root of the repository.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// Every source file of the crates, relative to the root.
fn sources() -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(root().join("crates")).unwrap() {
        collect(&entry.unwrap().path().join("src"), &mut found);
    }
    found.sort();
    found
}

fn collect(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            collect(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path.strip_prefix(root()).unwrap().to_owned());
        }
    }
}
