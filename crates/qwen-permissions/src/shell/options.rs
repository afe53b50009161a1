//! Options of programs, read by an allow-list.

use super::Word;

/// The options of a program that are understood: those that stand alone and those with a value, by letter and
/// by name.
///
/// Names are listed with blanks between them. They must be given whole: what GNU programs would take as an
/// abbreviation is not listed and so not understood.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Options {
    /// `-a`
    pub(crate) letters: &'static str,
    /// `-n 1`, `-n1`
    pub(crate) letters_with_value: &'static str,
    /// `--all`, `--color=auto`
    pub(crate) names: &'static str,
    /// `--lines 1`, `--lines=1`
    pub(crate) names_with_value: &'static str,
}

pub(crate) const fn options(
    letters: &'static str,
    letters_with_value: &'static str,
    names: &'static str,
    names_with_value: &'static str,
) -> Options {
    Options { letters, letters_with_value, names, names_with_value }
}

/// One argument: an option, a value or an operand.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// No option.
    Operand,
    /// `--`
    End,
    /// Options, and how many words they take.
    Options(Vec<GivenOption>, usize),
    /// An option that is not listed.
    Unlisted,
}

/// An option that was given.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct GivenOption {
    /// As written: `-n` or `--lines`.
    pub(crate) name: String,
    /// Its value, where it has one.
    pub(crate) value: Option<Word>,
}

impl Options {
    /// No options at all.
    pub(crate) const NONE: Self =
        Self { letters: "", letters_with_value: "", names: "", names_with_value: "" };

    /// Reads the argument at an index.
    pub(crate) fn step(&self, words: &[Word], index: usize) -> Step {
        let Some(word) = words.get(index) else { return Step::End };
        let text = word.known_prefix();
        if word.literal() == Some("--") {
            return Step::End;
        }
        if let Some(long) = text.strip_prefix("--") {
            return self.long(long, word, words.get(index + 1));
        }
        match text.strip_prefix('-') {
            Some(letters) if !letters.is_empty() => self.cluster(letters, word, words.get(index + 1)),
            // A lone dash is an operand, and one that is not known to stay alone is nothing we know.
            Some(_) if word.literal().is_none() => Step::Unlisted,
            _ => Step::Operand,
        }
    }

    fn long(&self, long: &str, word: &Word, next: Option<&Word>) -> Step {
        let (name, value) = match long.split_once('=') {
            Some((name, value)) => (name, Some(rest_of(word, value))),
            None if word.literal().is_none() => return Step::Unlisted,
            None => (long, None),
        };
        let given = |value| GivenOption { name: format!("--{name}"), value };
        if is_listed(self.names_with_value, name) {
            return match (value, next) {
                (Some(value), _) => Step::Options(vec![given(Some(value))], 1),
                (None, Some(next)) => Step::Options(vec![given(Some(next.clone()))], 2),
                (None, None) => Step::Unlisted,
            };
        }
        if is_listed(self.names, name) { Step::Options(vec![given(value)], 1) } else { Step::Unlisted }
    }

    fn cluster(&self, letters: &str, word: &Word, next: Option<&Word>) -> Step {
        let mut given = Vec::new();
        for (at, letter) in letters.char_indices() {
            let name = format!("-{letter}");
            if self.letters_with_value.contains(letter) {
                let rest = &letters[at + letter.len_utf8()..];
                if !rest.is_empty() || word.literal().is_none() {
                    given.push(GivenOption { name, value: Some(rest_of(word, rest)) });
                    return Step::Options(given, 1);
                }
                let Some(next) = next else { return Step::Unlisted };
                given.push(GivenOption { name, value: Some(next.clone()) });
                return Step::Options(given, 2);
            }
            if !self.letters.contains(letter) {
                return Step::Unlisted;
            }
            given.push(GivenOption { name, value: None });
        }
        if word.literal().is_some() { Step::Options(given, 1) } else { Step::Unlisted }
    }
}

/// True if a word is one of those in a list, which is written with blanks between them.
pub(crate) fn is_listed(list: &str, word: &str) -> bool {
    !word.is_empty() && list.split(' ').any(|listed| listed == word)
}

/// The end of a word as a word: as little known as the whole is.
fn rest_of(word: &Word, rest: &str) -> Word {
    match word {
        Word::Literal(_) => Word::Literal(rest.to_owned()),
        Word::Dynamic(dynamic) => {
            Word::Dynamic(super::Dynamic { prefix: rest.to_owned(), glob: None, ..dynamic.clone() })
        }
    }
}
