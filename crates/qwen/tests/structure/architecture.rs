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

/// The cells of a table row, without backticks.
fn cells(row: &str) -> Vec<String> {
    row.trim_matches('|').split('|').map(|cell| cell.trim().trim_matches('`').to_owned()).collect()
}

#[test]
fn every_file_and_function_on_the_path_of_a_turn_exists() {
    let page = fs::read_to_string(root().join("docs/contributing/turn-path.md")).unwrap();
    let rows: Vec<_> = page.lines().filter(|line| line.starts_with("| ")).skip(1).map(cells).collect();
    assert!((20..35).contains(&rows.len()), "{} hops", rows.len());
    for (number, row) in (1..).zip(&rows) {
        let [position, file, function, _] = row.as_slice() else { panic!("{row:?}") };
        assert_eq!(*position, number.to_string(), "{row:?}");
        let text = fs::read_to_string(root().join("crates").join(file)).unwrap_or_else(|_| panic!("{file}"));
        let (owner, name) =
            function.rsplit_once("::").map_or(("", &**function), |(owner, name)| (owner, name));
        let defines = [format!("fn {name}("), format!("fn {name}<")].iter().any(|form| text.contains(form));
        assert!(defines, "{file} defines no function {name}");
        let implements = text.lines().any(|line| line.contains(owner) && is_definition(line));
        assert!(owner.is_empty() || implements, "{file} implements nothing for {owner}");
    }
}

/// Whether a line begins an implementation or a trait.
fn is_definition(line: &str) -> bool {
    ["impl", "pub trait", "trait"].iter().any(|word| line.starts_with(word))
}

#[test]
fn the_map_names_a_place_for_thirty_to_forty_five_kinds_of_change() {
    let page = fs::read_to_string(root().join("ARCHITECTURE.md")).unwrap();
    let rows = rows(&page, "\n## Where to change what");
    assert!((30..=45).contains(&rows.len()), "{}", rows.len());
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
