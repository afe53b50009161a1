#[path = "wrap.rs"]
mod wrap;
use wrap::wrap;

#[test]
fn every_word_is_there_and_lines_fit() {
    assert_eq!(wrap("the quick brown fox", 9), ["the quick", "brown fox"]);
    assert_eq!(wrap("a b", 1), ["a", "b"]);
}

#[test]
fn characters_count() {
    assert_eq!(wrap("äö üß x", 5), ["äö üß", "x"]);
}

#[test]
fn a_long_word_is_alone_and_an_empty_text_has_no_lines() {
    assert_eq!(wrap("a extraordinary b", 5), ["a", "extraordinary", "b"]);
    assert!(wrap("  ", 5).is_empty());
}
