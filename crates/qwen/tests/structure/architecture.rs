//! The map in ARCHITECTURE.md leads somewhere.

use std::fs;

use crate::root;

/// The rows of a table below a heading, without its header.
fn rows(page: &str, heading: &str) -> Vec<String> {
    let section = page.split(heading).nth(1).unwrap_or_else(|| panic!("no section {heading:?}"));
    let section = section.split("\n## ").next().unwrap();
    section.lines().filter(|line| line.starts_with("| ")).skip(1).map(str::to_owned).collect()
}

/// The paths between backticks.
fn paths(row: &str) -> impl Iterator<Item = &str> {
    row.split('`').skip(1).step_by(2).filter(|word| word.contains('/') && !word.starts_with('/'))
}

#[test]
fn every_path_in_the_architecture_page_exists() {
    let page = fs::read_to_string(root().join("ARCHITECTURE.md")).unwrap();
    for heading in ["\n## Entry points", "\n## Where to change what"] {
        for row in rows(&page, heading) {
            for path in paths(&row) {
                assert!(root().join(path).exists(), "{heading}: {path} does not exist: {row}");
            }
        }
    }
}

#[test]
fn the_map_names_a_place_for_at_least_thirty_kinds_of_change() {
    let page = fs::read_to_string(root().join("ARCHITECTURE.md")).unwrap();
    let rows = rows(&page, "\n## Where to change what");
    assert!(rows.len() >= 30, "{}", rows.len());
    for row in rows {
        assert!(paths(&row).next().is_some(), "no path: {row}");
    }
}

#[test]
fn every_crate_is_in_the_architecture_page() {
    let page = fs::read_to_string(root().join("ARCHITECTURE.md")).unwrap();
    for entry in fs::read_dir(root().join("crates")).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        assert!(page.contains(&format!("`{name}`")), "{name}");
    }
}
