//! The golden corpus: each trace in every dialect, as `corpus/` at the root of the repository holds it.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "tests may say what they expect, their builders too"
)]

mod accepted;
mod broken;
mod builder;
mod checked;
mod files;
mod garbled;
mod streams;
mod traces;
mod viewed;

use files::Corpus;

/// Lines that change are promises that change: `make bless` rewrites the corpus, and its diff is to be read.
#[test]
fn the_corpus_is_what_the_encoders_write() {
    let corpus = Corpus::build();
    if std::env::var_os("QWEN_BLESS").is_some() {
        corpus.write();
    }
    corpus.compare();
}
