//! `docs/contributing/spec1-coverage.md`, its siblings and `docs/contributing/sdk-coverage.md` name the test for each line of what they
//! cover: those tests are there.

use std::fs;
use std::path::Path;

/// The tables, and how many tests each names at least.
const TABLES: [(&str, usize); 4] = [
    ("spec1-coverage.md", 40),
    ("spec2-coverage.md", 40),
    ("spec3-coverage.md", 15),
    ("spec4-coverage.md", 25),
];

#[test]
fn every_test_that_the_coverage_tables_name_is_there() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    for (table, at_least) in TABLES {
        let text = fs::read_to_string(root.join("../../docs/contributing").join(table)).unwrap();
        let mut named = 0;
        for word in text.split('`').filter(|word| word.contains("::") && !word.contains(char::is_whitespace))
        {
            let path: Vec<&str> = word.split("::").collect();
            let [target, modules @ .., test] = &path[..] else { panic!("{word}") };
            let module = root.join("tests").join(target).join(modules.join("/"));
            let single = module.with_extension("rs");
            let file = if single.is_file() { single } else { module.join("mod.rs") };
            let source = fs::read_to_string(&file)
                .unwrap_or_else(|error| panic!("{table}: {word}: {}: {error}", file.display()));
            assert!(source.contains(&format!("fn {test}()")), "{table}: {word} is not in {}", file.display());
            named += 1;
        }
        assert!(named >= at_least, "{table} names {named} tests");
    }
}

#[test]
fn every_test_that_the_table_of_the_sdks_names_is_there() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let table = fs::read_to_string(root.join("../../docs/contributing/sdk-coverage.md")).unwrap();
    let mut named = 0;
    for row in table.lines().filter(|line| line.starts_with('|')) {
        for word in row.split('`').skip(1).step_by(2) {
            let Some((place, test)) = word.split_once("::") else { continue };
            let (file, definition) = if let Some(suite) = place.strip_suffix(".mjs") {
                (format!("../../tests/sdk/node/{suite}.test.mjs"), test.to_owned())
            } else if let Some((module, test)) = test.rsplit_once("::") {
                (format!("tests/{place}/{}.rs", module.replace("::", "/")), format!("fn {test}()"))
            } else {
                (format!("../../tests/sdk/python/test_{place}.py"), format!("def test_{test}("))
            };
            let source = fs::read_to_string(root.join(&file))
                .unwrap_or_else(|error| panic!("{word}: {file}: {error}"));
            assert!(source.contains(&definition), "{word} is not in {file}");
            named += 1;
        }
    }
    assert!(named > 150, "the table names {named} tests");
}
