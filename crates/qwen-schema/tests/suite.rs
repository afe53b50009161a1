//! The official JSON Schema test suite for draft 2020-12, for the keywords that are supported. Cases that use
//! others must be refused when the schema is parsed.
//!
//! The suite comes with the source package of the Python library `jsonschema`, which is installed under
//! `target` once.

#![expect(clippy::unwrap_used, reason = "tests may say what they expect, their helpers too")]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use qwen_schema::Schema;
use serde_json::Value;

/// The package that carries the suite.
const PACKAGE: &str = "jsonschema==4.25.1";

/// What a refusal may name; everything else in the suite has to be enforced.
const UNSUPPORTED: [&str; 7] = [
    "$dynamicAnchor",
    "$dynamicRef",
    "$id",
    "$schema",
    "unevaluatedItems",
    "unevaluatedProperties",
    // A reference to another document, or to an `$id` below the root.
    "does not name a schema",
];

/// The folder with the cases, unpacked on the first run.
fn suite() -> PathBuf {
    let cache = Path::new(env!("CARGO_TARGET_TMPDIR")).join(PACKAGE.replace("==", "-"));
    let cases = |root: &Path| root.join("json/tests/draft2020-12");
    if !cases(&cache).exists() {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("suite-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let run = |program: &str, arguments: &[&str]| {
            let done = Command::new(program).args(arguments).current_dir(&folder).output().unwrap();
            assert!(
                done.status.success(),
                "{program} {arguments:?}: {}",
                String::from_utf8_lossy(&done.stderr)
            );
        };
        run(
            "pip",
            &["download", "--disable-pip-version-check", "--no-deps", "--no-binary", ":all:", PACKAGE],
        );
        let name = PACKAGE.replace("==", "-");
        run("tar", &["-xzf", &format!("{name}.tar.gz")]);
        // Another run may have been faster.
        let _ = fs::rename(folder.join(&name), &cache);
        fs::remove_dir_all(&folder).unwrap();
    }
    cases(&cache)
}

#[test]
fn the_official_suite_passes_for_every_supported_keyword() {
    let mut files: Vec<PathBuf> = fs::read_dir(suite()).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|path| path.extension().is_some_and(|extension| extension == "json"));
    files.sort();
    let (mut cases, mut tests, mut failures) = (0, 0, Vec::new());
    let mut refused: BTreeMap<&str, usize> = BTreeMap::new();
    for path in files {
        let file = path.file_stem().unwrap().to_string_lossy().into_owned();
        let groups: Vec<Value> = serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
        for group in groups {
            // A schema may be a boolean, which ours cannot be at the root.
            let schema = match &group["schema"] {
                Value::Bool(all) => serde_json::json!({"allOf": [all]}),
                schema => schema.clone(),
            };
            let schema = match Schema::parse(&schema.to_string()) {
                Ok(schema) => schema,
                Err(error) => {
                    let reason = error.to_string();
                    match UNSUPPORTED.iter().find(|known| reason.contains(*known)) {
                        Some(known) => *refused.entry(known).or_default() += 1,
                        None => failures.push(format!("{file}: {}: {reason}", group["description"])),
                    }
                    continue;
                }
            };
            cases += 1;
            for test in group["tests"].as_array().unwrap() {
                tests += 1;
                let problems = schema.problems(&test["data"], "it");
                if problems.is_empty() != test["valid"].as_bool().unwrap() {
                    failures.push(format!(
                        "{file}: {}: {}: {problems:?}",
                        group["description"], test["description"]
                    ));
                }
            }
        }
    }
    eprintln!(
        "draft 2020-12: {tests} tests of {cases} schemas, {} failures; refused at parsing: {refused:?}",
        failures.len()
    );
    assert!(failures.is_empty(), "{}", failures.join("\n"));
    assert!(tests > 900, "the suite is incomplete: {tests} tests");
}
