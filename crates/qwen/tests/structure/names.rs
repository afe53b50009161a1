//! One name, one meaning: no public type name is defined twice in the workspace.

use std::collections::BTreeMap;
use std::fs;

use crate::sources;

/// Folders whose types are wire formats: there the path says which wire is meant.
const WIRES: &[&str] = &["crates/qwen-dialects/", "crates/qwen/src/settings/file/"];

/// Programs for development only; nothing else uses their types.
const TOOLS: &[&str] = &["crates/bench/", "crates/eval/", "crates/mock-model/"];

/// Names that two crates may share, and why.
const SHARED: &[(&str, &str)] = &[(
    "Session",
    "the running conversation in the engine, and the handle to one in the kernel's public API",
)];

/// The name of a public type that a line defines.
fn defined(line: &str) -> Option<&str> {
    let rest = line.trim_start().strip_prefix("pub ")?;
    let kinds = ["struct ", "enum ", "trait ", "type ", "union "];
    let rest = kinds.iter().find_map(|kind| rest.strip_prefix(kind))?;
    rest.split(|c: char| !c.is_alphanumeric() && c != '_').next()
}

#[test]
fn no_public_type_name_is_defined_twice() {
    let mut places: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for path in sources() {
        let name = path.display().to_string();
        if WIRES.iter().chain(TOOLS).any(|folder| name.starts_with(folder)) {
            continue;
        }
        let text = fs::read_to_string(crate::root().join(&path)).unwrap();
        for line in text.lines() {
            if let Some(defined) = defined(line) {
                places.entry(defined.to_owned()).or_default().push(name.clone());
            }
        }
    }
    let is_shared = |name: &str| SHARED.iter().any(|(shared, _)| *shared == name);
    let twice: Vec<_> = places.iter().filter(|(name, files)| files.len() > 1 && !is_shared(name)).collect();
    assert!(twice.is_empty(), "{twice:#?}");
}
