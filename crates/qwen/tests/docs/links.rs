//! Links between pages lead somewhere.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Component, Path, PathBuf};

use crate::page::{pages, root};

/// The targets of `[text](target)` in a text.
fn targets(text: &str) -> impl Iterator<Item = &str> {
    text.split("](").skip(1).filter_map(|rest| rest.split(')').next())
}

/// The anchor that a heading gets.
fn anchor(heading: &str) -> String {
    let heading = heading.trim_start_matches('#').trim().to_lowercase();
    heading
        .chars()
        .filter(|c| c.is_alphanumeric() || [' ', '-', '_'].contains(c))
        .collect::<String>()
        .replace(' ', "-")
}

#[test]
fn links_between_pages_resolve_with_their_anchors() {
    for page in pages() {
        let folder = Path::new(&page.name).parent().unwrap().to_owned();
        for target in targets(&page.prose()) {
            if target.contains("://") || target.starts_with("mailto:") {
                continue;
            }
            let (path, fragment) = target.split_once('#').unwrap_or((target, ""));
            let file = if path.is_empty() { root().join(&page.name) } else { root().join(folder.join(path)) };
            assert!(file.exists(), "{}: the link {target} leads nowhere", page.name);
            if !fragment.is_empty() {
                let text = fs::read_to_string(&file).unwrap();
                let known =
                    text.lines().filter(|line| line.starts_with('#')).any(|line| anchor(line) == fragment);
                assert!(known, "{}: {target} names no heading", page.name);
            }
        }
    }
}

#[test]
fn every_page_can_be_reached_from_the_index() {
    let all = pages();
    let mut reached = BTreeSet::from([PathBuf::from("README.md")]);
    loop {
        let before = reached.len();
        for page in &all {
            if reached.contains(Path::new(&page.name)) {
                let folder = Path::new(&page.name).parent().unwrap();
                for target in targets(&page.prose()) {
                    let path = folder.join(target.split('#').next().unwrap_or_default());
                    reached.insert(without_parents(&path));
                }
            }
        }
        if reached.len() == before {
            break;
        }
    }
    for page in &all {
        assert!(reached.contains(Path::new(&page.name)), "no link leads to {}", page.name);
    }
}

/// A path with `..` taken out.
fn without_parents(path: &Path) -> PathBuf {
    let mut clean = PathBuf::new();
    for component in path.components() {
        match component {
            Component::ParentDir => {
                clean.pop();
            }
            Component::CurDir => {}
            other => clean.push(other),
        }
    }
    clean
}
