//! The crate edges that ARCHITECTURE.md draws: who may depend on whom, and what some crates never do.

use std::fs;
use std::path::Path;

/// A crate and the crates of ours that it may use.
const MAY_USE: &[(&str, &[&str])] = &[
    ("qwen-events", &[]),
    ("qwen-dialects", &["qwen-events"]),
    ("qwen-http", &[]),
    ("qwen-kernel", &["qwen-dialects", "qwen-events"]),
    ("qwen-fleet", &["qwen-events", "qwen-kernel"]),
    ("qwen-model", &["qwen-events", "qwen-http"]),
    ("qwen-redact", &[]),
    ("qwen-git", &[]),
    ("qwen-sandbox", &["qwen-events", "qwen-git"]),
    ("qwen-permissions", &["qwen-events", "qwen-git"]),
    ("qwen-proxy", &["qwen-http", "qwen-permissions"]),
    ("qwen-schema", &[]),
    ("qwen-mcp", &["qwen-events", "qwen-http", "qwen-sandbox", "qwen-schema"]),
    (
        "qwen-tools",
        &["qwen-events", "qwen-http", "qwen-mcp", "qwen-permissions", "qwen-redact", "qwen-sandbox"],
    ),
    (
        "qwen-engine",
        &[
            "qwen-events",
            "qwen-http",
            "qwen-mcp",
            "qwen-model",
            "qwen-permissions",
            "qwen-proxy",
            "qwen-redact",
            "qwen-sandbox",
            "qwen-schema",
            "qwen-tools",
        ],
    ),
    ("qwen-thoughts", &["qwen-engine", "qwen-events", "qwen-model"]),
    (
        "qwen",
        &[
            "qwen-dialects",
            "qwen-engine",
            "qwen-events",
            "qwen-fleet",
            "qwen-http",
            "qwen-kernel",
            "qwen-mcp",
            "qwen-model",
            "qwen-permissions",
            "qwen-redact",
            "qwen-sandbox",
            "qwen-serve",
            "qwen-thoughts",
            "qwen-tools",
            "qwen-tui",
        ],
    ),
    ("qwen-serve", &["qwen-dialects", "qwen-events", "qwen-kernel"]),
    ("qwen-tui", &["qwen-events"]),
];

/// Crates that must not appear among a crate's dependencies, and why.
const NEVER: &[(&str, &[&str], &str)] = &[
    ("qwen-events", &["serde", "serde_json", "tokio"], "the vocabulary knows no JSON and no I/O"),
    ("qwen-dialects", &["tokio", "futures-util", "rustix"], "the wires do no I/O and never wait"),
    (
        "qwen-tui",
        &["tokio", "futures-util", "rustix", "libc"],
        "the terminal interface does no I/O and reads no clock",
    ),
];

/// The names under `[dependencies]` of a crate.
fn dependencies(name: &str) -> Vec<String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(name).join("Cargo.toml");
    let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    text.lines()
        .skip_while(|line| line.trim() != "[dependencies]")
        .skip(1)
        .take_while(|line| !line.starts_with('['))
        .filter_map(|line| line.split(['.', '=', ' ']).next())
        .filter(|word| !word.is_empty() && !word.starts_with('#'))
        .map(str::to_owned)
        .collect()
}

#[test]
fn crates_depend_only_along_the_edges_of_the_architecture() {
    for (name, allowed) in MAY_USE {
        for used in dependencies(name).iter().filter(|d| d.starts_with("qwen")) {
            assert!(allowed.contains(&used.as_str()), "{name} must not depend on {used}");
        }
    }
}

#[test]
fn crates_never_use_what_their_invariant_excludes() {
    for (name, excluded, why) in NEVER {
        for used in dependencies(name) {
            assert!(!excluded.contains(&used.as_str()), "{name} must not depend on {used}: {why}");
        }
    }
}

/// The sources below a folder of the workspace.
fn sources(folder: &Path) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let read =
        |path: &Path| fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    for path in fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()) {
        if path.is_dir() {
            found.extend(sources(&path));
        } else {
            found.push((path.display().to_string(), read(&path)));
        }
    }
    found
}

#[test]
fn the_terminal_measures_time_by_the_monotonic_clock_alone() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let interface = sources(&crates.join("qwen-tui/src"));
    let driver = sources(&crates.join("qwen/src/roles/terminal"));
    assert!(!interface.is_empty() && !driver.is_empty());
    for (path, text) in interface.iter().chain(&driver) {
        for clock in ["SystemTime", "UNIX_EPOCH", "Timestamp::now", "clock_gettime"] {
            assert!(
                !text.contains(clock),
                "{path} reads the wall clock ({clock}), which may be set at any time"
            );
        }
    }
    for (path, text) in &interface {
        assert!(!text.contains("Instant"), "{path} reads a clock; the time is passed in");
    }
}
