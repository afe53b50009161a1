//! `sdk/BEHAVIOURS.md` and its tables: every cell names tests that exist.

use std::fs;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The cells of the tables whose header starts with `first`.
fn rows(first: &str) -> Vec<Vec<String>> {
    let text = fs::read_to_string(root().join("sdk/BEHAVIOURS.md")).unwrap();
    let mut found = Vec::new();
    let mut is_wanted = false;
    for line in text.lines() {
        let Some(inner) = line.strip_prefix('|').and_then(|line| line.strip_suffix('|')) else {
            is_wanted = false;
            continue;
        };
        let cells: Vec<String> = inner.split('|').map(|cell| cell.trim().to_owned()).collect();
        if cells[0] == first {
            is_wanted = true;
        } else if is_wanted && !cells[0].starts_with("---") {
            found.push(cells);
        }
    }
    found
}

/// The source of the module that `suite::module::test` names.
fn source_of(name: &str) -> Option<(String, String)> {
    let (path, test) = name.rsplit_once("::")?;
    let file = root().join("crates/qwen/tests").join(path.replace("::", "/")).with_extension("rs");
    fs::read_to_string(file).ok().map(|source| (source, test.to_owned()))
}

fn exists(name: &str) -> bool {
    if let Some((source, test)) = source_of(name) {
        return source.contains(&format!("fn {test}()"));
    }
    // The fault matrix generates its tests: `hub::faults::MOMENT::FAULT`.
    let Some((source, fault)) = name.strip_prefix("hub::faults::").and_then(|rest| {
        let (moment, fault) = rest.split_once("::")?;
        let source = fs::read_to_string(root().join("crates/qwen/tests/hub/faults.rs")).ok()?;
        source.contains(moment).then(|| (source, fault.to_owned()))
    }) else {
        return false;
    };
    source.contains(&fault)
}

#[test]
fn the_rust_column_has_no_empty_cell_and_every_test_in_it_exists() {
    let rows = rows("id");
    assert!(rows.len() > 50, "{} rows", rows.len());
    for cells in &rows {
        assert_eq!(cells.len(), rows[0].len(), "{cells:?}");
        assert!(cells.iter().all(|cell| !cell.is_empty()), "an empty cell in the row {}", cells[0]);
        if cells[4] == "–" {
            continue;
        }
        let named: Vec<&str> = cells[4].split('`').skip(1).step_by(2).collect();
        assert!(!named.is_empty(), "{}: {}", cells[0], cells[4]);
        for name in named {
            assert!(exists(name), "{}: there is no test {name}", cells[0]);
        }
    }
}

/// The sources of the Go tests, one after the other.
fn go_tests(folder: &Path) -> String {
    let mut text = String::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            text += &go_tests(&path);
        } else if path.to_string_lossy().ends_with("_test.go") {
            text += &fs::read_to_string(path).unwrap();
        }
    }
    text
}

#[test]
fn the_go_column_has_no_empty_cell_and_every_test_in_it_exists() {
    let tests = go_tests(&root().join("sdk/go"));
    for cells in rows("id").iter().filter(|cells| cells[5] != "–") {
        let named: Vec<&str> = cells[5].split('`').skip(1).step_by(2).collect();
        assert!(!named.is_empty(), "{}: {}", cells[0], cells[5]);
        for name in named {
            assert!(
                tests.contains(&format!("func {name}(t *testing.T)")),
                "{}: there is no test {name}",
                cells[0]
            );
        }
    }
}

/// The Java tests by the name of their class.
fn java_tests(folder: &Path, found: &mut Vec<(String, String)>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            java_tests(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "java") {
            let class = path.file_stem().unwrap().to_string_lossy().into_owned();
            found.push((class, fs::read_to_string(path).unwrap()));
        }
    }
}

#[test]
fn the_java_column_has_no_empty_cell_and_every_test_in_it_exists() {
    let mut tests = Vec::new();
    java_tests(&root().join("sdk/java/suite/src/test"), &mut tests);
    for cells in rows("id").iter().filter(|cells| cells[6] != "–") {
        let named: Vec<&str> = cells[6].split('`').skip(1).step_by(2).collect();
        assert!(!named.is_empty(), "{}: {}", cells[0], cells[6]);
        for name in named {
            let (class, test) = name.split_once('.').unwrap();
            let declaration = format!("    @Test\n    void {test}() ");
            let exists = tests.iter().any(|(known, source)| known == class && source.contains(&declaration));
            assert!(exists, "{}: there is no test {name}", cells[0]);
        }
    }
}

#[test]
fn every_report_from_the_issue_trackers_leads_to_a_behaviour_with_tests() {
    let known: Vec<String> = rows("id")
        .iter()
        .flat_map(|cells| cells[0].split(", ").map(str::to_owned).collect::<Vec<_>>())
        .collect();
    let reports = rows("report");
    assert_eq!(reports.len(), 18, "one row for each report of the reference");
    for cells in reports {
        for id in cells[1].split(", ").filter(|id| !id.starts_with('`')) {
            assert!(known.iter().any(|known| known == id), "{}: there is no behaviour {id}", cells[0]);
        }
    }
}
