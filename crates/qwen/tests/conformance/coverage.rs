//! `docs/spec1-coverage.md` and its siblings name the tests for each line of the specs: those tests are there.

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
        let text = fs::read_to_string(root.join("../../docs").join(table)).unwrap();
        let mut named = 0;
        for word in text.split('`').filter(|word| word.contains("::") && !word.contains(char::is_whitespace))
        {
            let path: Vec<&str> = word.split("::").collect();
            let [target, modules @ .., test] = &path[..] else { panic!("{word}") };
            let file = root.join("tests").join(target).join(format!("{}.rs", modules.join("/")));
            let source = fs::read_to_string(&file)
                .unwrap_or_else(|error| panic!("{table}: {word}: {}: {error}", file.display()));
            assert!(source.contains(&format!("fn {test}()")), "{table}: {word} is not in {}", file.display());
            named += 1;
        }
        assert!(named >= at_least, "{table} names {named} tests");
    }
}
