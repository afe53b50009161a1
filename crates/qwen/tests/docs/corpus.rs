//! Examples of wire lines are lines of the golden corpus.

use std::fs;

use crate::page::{pages, root};

#[test]
fn examples_of_the_wire_are_lines_of_the_corpus() {
    let mut examples = 0;
    for page in pages() {
        for block in &page.blocks {
            let Some(file) = block.label.strip_prefix("jsonl corpus:") else { continue };
            let corpus = fs::read_to_string(root().join("corpus").join(file))
                .unwrap_or_else(|error| panic!("{}:{}: {file}: {error}", page.name, block.line));
            for line in block.text.lines() {
                assert!(
                    corpus.lines().any(|known| known == line),
                    "{}:{}: not in {file}: {line}",
                    page.name,
                    block.line
                );
                examples += 1;
            }
        }
    }
    assert!(examples > 40, "the protocol reference shows the corpus, and {examples} lines are few");
}
