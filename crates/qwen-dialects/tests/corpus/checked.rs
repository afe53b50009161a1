//! The checker finds nothing wrong with the corpus, and something wrong with what is made of it.

use qwen_dialects::Dialect;
use qwen_dialects::check::{Checker, Finding, Mode};

use crate::files::{root, streams};

/// The longest line that is read; `qwen check` reports a longer one without reading it.
pub const LONGEST: usize = 64 << 20;

/// What the checker finds in a stream.
pub fn check(dialect: Option<Dialect>, mode: Mode, bytes: &[u8]) -> Vec<Finding> {
    let mut checker = Checker::new(dialect, mode);
    let mut found: Vec<Finding> = bytes
        .split_inclusive(|byte| *byte == b'\n')
        .flat_map(|line| {
            if line.len() > LONGEST { checker.push_oversized(LONGEST) } else { checker.push_line(line) }
        })
        .collect();
    found.extend(checker.finish());
    found
}

#[test]
fn nothing_is_wrong_with_the_corpus() {
    for stream in streams() {
        for dialect in [Some(stream.variant.dialect), None] {
            for mode in [Mode::Stream, Mode::Fragment] {
                let found = check(dialect, mode, &stream.bytes);
                assert!(found.is_empty(), "{} as {dialect:?} {mode:?}: {found:#?}", stream.path);
            }
        }
    }
}

#[test]
fn the_dialect_is_guessed() {
    for stream in streams() {
        let mut checker = Checker::new(None, Mode::Stream);
        for line in stream.bytes.split_inclusive(|byte| *byte == b'\n') {
            checker.push_line(line);
        }
        assert_eq!(checker.dialect(), Some(stream.variant.dialect), "{}", stream.path);
    }
}

#[test]
fn every_example_of_the_specifications_is_a_sound_fragment() {
    let mut examples = 0;
    for file in std::fs::read_dir(root().join("spec-examples")).unwrap() {
        let path = file.unwrap().path();
        let found = check(None, Mode::Fragment, &std::fs::read(&path).unwrap());
        assert!(found.is_empty(), "{}: {found:#?}", path.display());
        examples += 1;
    }
    assert!(examples > 20, "{examples}");
}
