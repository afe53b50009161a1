//! `docs/spec1-coverage.md` names the test for each line of the spec: those tests are there.

use std::fs;
use std::path::Path;

#[test]
fn every_test_that_the_coverage_table_names_is_there() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let table = fs::read_to_string(root.join("../../docs/spec1-coverage.md")).unwrap();
    let mut named = 0;
    for word in table.split('`').filter(|word| word.contains("::") && !word.contains(char::is_whitespace)) {
        let path: Vec<&str> = word.split("::").collect();
        let [target, modules @ .., test] = &path[..] else { panic!("{word}") };
        let file = root.join("tests").join(target).join(format!("{}.rs", modules.join("/")));
        let source =
            fs::read_to_string(&file).unwrap_or_else(|error| panic!("{word}: {}: {error}", file.display()));
        assert!(source.contains(&format!("fn {test}()")), "{word} is not in {}", file.display());
        named += 1;
    }
    assert!(named > 40, "the table names {named} tests");
}
