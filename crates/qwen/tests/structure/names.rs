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

/// Folders with one file for each command, tool or table, which may be many.
const ONE_FILE_EACH: &[&str] = &[
    "crates/qwen-engine/src/commands/builtin",
    "crates/qwen-tools/src/builtin",
    "crates/bench/src/sections",
];

/// The most source files that a folder may have.
const CROWDED: usize = 14;

#[test]
fn no_folder_is_crowded() {
    let mut folders: BTreeMap<String, usize> = BTreeMap::new();
    for path in sources() {
        *folders.entry(path.parent().unwrap().display().to_string()).or_default() += 1;
    }
    folders.retain(|folder, files| *files > CROWDED && !ONE_FILE_EACH.contains(&folder.as_str()));
    assert!(folders.is_empty(), "{folders:#?}");
}

/// A module is `name.rs`, or `name/mod.rs` if it has a folder.
#[test]
fn a_module_with_a_folder_is_its_mod_rs() {
    let both: Vec<_> =
        sources().into_iter().filter(|path| crate::root().join(path.with_extension("")).is_dir()).collect();
    assert!(both.is_empty(), "{both:#?}");
}
