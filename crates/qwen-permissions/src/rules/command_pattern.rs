//! Command patterns: `git log *`, matched by words and separately for allow and deny. An allowed command must
//! be covered to the last word; a denied one is recognised in every spelling we know of.

use crate::rules::equivalents::equivalents;
use crate::rules::synonyms::{Meanings, is_same_operand, is_same_program, is_same_subcommand};
use crate::shell::{Word, basename};

/// The most letters that are read as options grouped behind one dash.
const MAX_LETTERS: usize = 3;

/// A pattern for commands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CommandPattern {
    text: String,
    words: Vec<PatternWord>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum PatternWord {
    /// `*`: any number of words.
    Rest,
    /// Pieces of text with anything between them; one piece is the word itself.
    Pieces(Vec<String>),
}

/// Whether a denied command was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Found {
    /// The command does not match.
    No,
    /// It depends on words that are only known when it runs.
    Perhaps,
    /// The command matches.
    Yes,
}

impl CommandPattern {
    pub(crate) fn parse(pattern: &str) -> Option<Self> {
        let spaced = pattern.strip_suffix(":*").map(|start| format!("{start} *"));
        let mut words = split(spaced.as_deref().unwrap_or(pattern));
        let is = |word: Option<&PatternWord>, text: &str| matches!(word, Some(PatternWord::Pieces(pieces)) if pieces.concat() == text);
        if (is(words.first(), "docker") || is(words.first(), "podman")) && is(words.get(1), "container") {
            words.remove(1);
        }
        (!words.is_empty()).then_some(Self { text: pattern.to_owned(), words })
    }

    /// True if it is the very text of a command, without any wildcard.
    pub(crate) fn is_exactly(&self, command: &str) -> bool {
        let literal =
            self.words.iter().all(|word| matches!(word, PatternWord::Pieces(pieces) if pieces.len() == 1));
        literal && self.text == command.trim()
    }

    /// True if every command is meant.
    pub(crate) fn is_everything(&self) -> bool {
        self.words.iter().all(|word| *word == PatternWord::Rest)
    }

    /// Matches a command to its last word. Returns for each word whether the pattern lists it literally.
    pub(crate) fn covers(&self, words: &[Word]) -> Option<Vec<bool>> {
        let mut named = vec![false; words.len()];
        let (mut at, mut pattern) = (0, 0);
        let mut retry: Option<(usize, usize)> = None;
        while at < words.len() {
            match self.words.get(pattern) {
                Some(PatternWord::Rest) => {
                    retry = Some((pattern, at));
                    pattern += 1;
                }
                Some(PatternWord::Pieces(pieces)) if word_matches(pieces, &words[at], at == 0) => {
                    named[at] = pieces.len() == 1 || pieces.first().is_some_and(|first| first.contains('='));
                    at += 1;
                    pattern += 1;
                }
                _ => {
                    let (rest, from) = retry?;
                    named[from..].fill(false);
                    retry = Some((rest, from + 1));
                    at = from + 1;
                    pattern = rest + 1;
                }
            }
        }
        self.words[pattern..].iter().all(|word| *word == PatternWord::Rest).then_some(named)
    }

    /// Looks for a command by its beginning: in any directory, with options in any place and any grouping,
    /// and by the names of other programs that do the same.
    pub(crate) fn finds(&self, words: &[Word]) -> Found {
        let same = equivalents(words).iter().map(|words| self.finds_program(words)).max();
        self.finds_program(words).max(same.unwrap_or(Found::No))
    }

    fn finds_program(&self, words: &[Word]) -> Found {
        let Some(program) = words.first() else { return Found::No };
        let Some(name) = program.literal() else { return Found::Perhaps };
        if self.sweeps(words) {
            return Found::Yes;
        }
        let mut pattern = self.words.as_slice();
        let mut anywhere = false;
        match pattern.first() {
            Some(PatternWord::Pieces(pieces)) => {
                let wanted: Vec<String> = match pieces.as_slice() {
                    [only] => vec![basename(only).to_owned()],
                    pieces => pieces.to_vec(),
                };
                let is_same =
                    || matches!(wanted.as_slice(), [wanted] if is_same_program(wanted, basename(name)));
                if !pieces_match(&wanted, basename(name)) && !pieces_match(pieces, name) && !is_same() {
                    return Found::No;
                }
                pattern = &pattern[1..];
            }
            _ => anywhere = true,
        }
        let program = basename(name);
        let arguments = &without_object(program, &words[1..]);
        let options = GivenOptions::read(program, arguments);
        let mut found = Found::Yes;
        let mut cursor = 0;
        let mut pattern = pattern.iter().peekable();
        while let Some(wanted) = pattern.next() {
            let PatternWord::Pieces(pieces) = wanted else {
                anywhere = true;
                continue;
            };
            if pieces.first().is_some_and(|first| first.starts_with('-')) {
                // The next word of the pattern may be the option's value, which stays with it wherever it
                // stands.
                let value = pattern.peek().and_then(|next| match next {
                    PatternWord::Pieces(value) if !value[0].starts_with('-') => Some(value),
                    _ => None,
                });
                if value.is_some_and(|value| options.has_with_value(pieces, value, arguments)) {
                    pattern.next();
                } else {
                    found = found.min(options.find(pieces, arguments));
                }
            } else {
                let is_meant = |text: &str| {
                    pieces_match(pieces, text)
                        || (cursor == 0 && pieces.len() == 1 && is_same_subcommand(program, &pieces[0], text))
                        || (pieces.len() == 1 && is_same_operand(program, &pieces[0], text))
                };
                let (next, state) = find_operand(&is_meant, arguments, cursor, anywhere);
                found = found.min(state);
                cursor = next;
                anywhere = false;
            }
            if found == Found::No {
                return Found::No;
            }
        }
        found
    }

    /// True if a pattern that begins in the middle of a word, such as `*secret*`, occurs in a command as a
    /// whole.
    fn sweeps(&self, words: &[Word]) -> bool {
        let begins_anywhere = matches!(self.words.first(), Some(PatternWord::Pieces(pieces))
            if pieces.len() > 1 && pieces.first().is_some_and(String::is_empty));
        if !begins_anywhere {
            return false;
        }
        let pieces: Vec<String> = self.text.split('*').map(str::to_owned).collect();
        let texts: Vec<&str> = words.iter().map(Word::known_prefix).collect();
        pieces_match(&pieces, &texts.join(" "))
    }

    /// True if the pattern is about a subcommand of git, and not about git's global options.
    pub(crate) fn is_about_git_subcommand(&self) -> bool {
        let is_name = |word: &PatternWord| matches!(word, PatternWord::Pieces(pieces) if !pieces.first().is_some_and(|first| first.starts_with('-')));
        self.program() == Some("git") && self.words.get(1).is_some_and(is_name)
    }

    /// The name of the program, where the pattern begins with one.
    pub(crate) fn program(&self) -> Option<&str> {
        match self.words.first()? {
            PatternWord::Pieces(pieces) if pieces.len() == 1 => pieces.first().map(|name| basename(name)),
            _ => None,
        }
    }
}

/// Cuts a pattern into words as a shell would, with `*` outside of quotes as the wildcard.
fn split(pattern: &str) -> Vec<PatternWord> {
    let mut words = Vec::new();
    let mut pieces = vec![String::new()];
    let mut begun = false;
    let mut quote = None;
    let mut characters = pattern.chars();
    while let Some(character) = characters.next() {
        let Some(last) = pieces.last_mut() else { continue };
        match (quote, character) {
            (Some(open), _) if character == open => quote = None,
            (None, '\'' | '"') => {
                quote = Some(character);
                begun = true;
            }
            (None, '\\') => {
                last.extend(characters.next());
                begun = true;
            }
            (None, '*') => {
                pieces.push(String::new());
                begun = true;
            }
            (None, _) if character.is_whitespace() => {
                if begun {
                    words.push(finish(&mut pieces));
                    begun = false;
                }
            }
            _ => {
                last.push(character);
                begun = true;
            }
        }
    }
    if begun {
        words.push(finish(&mut pieces));
    }
    words
}

fn finish(pieces: &mut Vec<String>) -> PatternWord {
    let pieces = std::mem::replace(pieces, vec![String::new()]);
    if pieces.len() > 1 && pieces.iter().all(String::is_empty) {
        PatternWord::Rest
    } else {
        PatternWord::Pieces(pieces)
    }
}

fn word_matches(pieces: &[String], word: &Word, is_program: bool) -> bool {
    let Some(text) = word.literal() else { return false };
    // A wildcard in a program's name does not reach into other directories.
    if is_program && pieces.len() > 1 && text.contains('/') && !pieces.iter().any(|piece| piece.contains('/'))
    {
        return false;
    }
    pieces_match(pieces, text)
}

fn pieces_match(pieces: &[String], text: &str) -> bool {
    let [first, middle @ .., last] = pieces else {
        return pieces.first().is_some_and(|only| only == text);
    };
    let Some(mut rest) = text.strip_prefix(first.as_str()) else { return false };
    for piece in middle {
        let Some(at) = rest.find(piece.as_str()) else { return false };
        rest = &rest[at + piece.len()..];
    }
    rest.ends_with(last.as_str())
}

/// The arguments without the word `container`: `docker container run` is `docker run`.
fn without_object(program: &str, arguments: &[Word]) -> Vec<Word> {
    let mut arguments = arguments.to_vec();
    let operand = arguments.iter().position(|word| !word.known_prefix().starts_with('-'));
    if let Some(at) = operand.filter(|at| arguments[*at].literal() == Some("container"))
        && matches!(program, "docker" | "podman" | "nerdctl")
    {
        arguments.remove(at);
    }
    arguments
}

/// The options of a command, by what they mean.
struct GivenOptions<'a> {
    meanings: Meanings,
    /// What each option means, and whether it was given by its name, which may be shortened.
    given: Vec<(&'a str, bool)>,
}

impl<'a> GivenOptions<'a> {
    fn read(program: &str, arguments: &'a [Word]) -> Self {
        let texts = || arguments.iter().filter_map(Word::literal);
        let subcommand = texts().find(|text| !text.starts_with('-'));
        let meanings = Meanings::collect(program, subcommand);
        let mut given = Vec::new();
        // The first word of these programs is a bundle of letters even without a dash.
        let bundle = texts().next().filter(|_| matches!(program, "tar" | "gtar" | "bsdtar" | "ar"));
        let bundle = bundle.filter(|text| !text.starts_with('-')).unwrap_or("");
        for (at, letter) in bundle.char_indices() {
            let letter = &bundle[at..at + letter.len_utf8()];
            given.extend(meanings.of_option(letter).into_iter().map(|meaning| (meaning, false)));
        }
        for text in texts() {
            if let Some(name) = text.strip_prefix("--") {
                let name = name.split('=').next().unwrap_or(name);
                given.extend(meanings.of_option(name).into_iter().map(|meaning| (meaning, true)));
            } else if let Some(letters) = text.strip_prefix('-') {
                for (at, letter) in letters.char_indices() {
                    let letter = &letters[at..at + letter.len_utf8()];
                    given.extend(meanings.of_option(letter).into_iter().map(|meaning| (meaning, false)));
                }
                // Some programs have names behind one dash.
                given.push((letters.split('=').next().unwrap_or(letters), false));
            } else if text.starts_with('+') && program == "git" && subcommand == Some("push") {
                // A refspec with a plus sign forces the update.
                given.push(("force", false));
            }
        }
        given.retain(|(meaning, _)| !meaning.is_empty());
        Self { meanings, given }
    }

    /// Looks for an option of a pattern anywhere: `-rf` in any order and grouping and by the names of its
    /// letters, a long one also when it is shortened or given by its letter.
    fn find(&self, pieces: &[String], arguments: &[Word]) -> Found {
        if arguments.iter().filter_map(Word::literal).any(|text| pieces_match(pieces, text)) {
            return Found::Yes;
        }
        let whole = pieces.concat();
        let name = whole.trim_start_matches('-');
        let name = name.split('=').next().unwrap_or(name);
        let is_grouped = !whole.starts_with("--") && name.chars().count() <= MAX_LETTERS;
        let wanted: Vec<&str> = if is_grouped {
            let letters = name.char_indices().map(|(at, letter)| &name[at..at + letter.len_utf8()]);
            letters.flat_map(|letter| self.meanings.of_option(letter)).collect()
        } else {
            self.meanings.of_option(name)
        };
        let found = wanted.iter().map(|wanted| self.has(wanted)).min().unwrap_or(Found::No);
        if found == Found::No && arguments.iter().any(Word::may_hide_an_option) {
            return Found::Perhaps;
        }
        found
    }

    /// True if an option is given with a value, attached to it or in the next word.
    fn has_with_value(&self, pieces: &[String], value: &[String], arguments: &[Word]) -> bool {
        let whole = pieces.concat();
        let name = whole.trim_start_matches('-');
        let wanted = self.meanings.of_option(name);
        let is_wanted = |spelling: &str| {
            let meanings = self.meanings.of_option(spelling);
            wanted.iter().any(|wanted| {
                meanings.contains(wanted) || (spelling.len() > 1 && wanted.starts_with(spelling))
            })
        };
        let is_value = |text: &str| pieces_match(value, text);
        (0..arguments.len()).any(|at| {
            let text = arguments[at].literal().unwrap_or("");
            let next_is_value = || arguments.get(at + 1).and_then(Word::literal).is_some_and(is_value);
            if let Some(long) = text.strip_prefix("--") {
                return match long.split_once('=') {
                    Some((spelling, attached)) => is_wanted(spelling) && is_value(attached),
                    None => !long.is_empty() && is_wanted(long) && next_is_value(),
                };
            }
            let Some(letters) = text.strip_prefix('-') else { return false };
            letters.char_indices().any(|(at, letter)| {
                let behind = &letters[at + letter.len_utf8()..];
                is_wanted(&letters[at..at + letter.len_utf8()])
                    && (is_value(behind.trim_start_matches('=')) || (behind.is_empty() && next_is_value()))
            })
        })
    }

    fn has(&self, wanted: &str) -> Found {
        let is_given = |(meaning, by_name): &(&str, bool)| {
            *meaning == wanted || (*by_name && wanted.len() > 1 && wanted.starts_with(meaning))
        };
        if self.given.iter().any(is_given) {
            return Found::Yes;
        }
        // Of an unknown program, a letter may abbreviate any name that begins with it.
        let first = |text: &str| text.chars().next().map(|letter| letter.to_ascii_lowercase());
        let may_be = |(meaning, _): &(&str, bool)| {
            (meaning.chars().count() == 1) != (wanted.chars().count() == 1) && first(meaning) == first(wanted)
        };
        if !self.meanings.are_known() && self.given.iter().any(may_be) { Found::Perhaps } else { Found::No }
    }
}

/// Looks for an operand: the next one, or any further one. Options and what may be their values are stepped
/// over.
fn find_operand(
    is_meant: &dyn Fn(&str) -> bool,
    arguments: &[Word],
    start: usize,
    anywhere: bool,
) -> (usize, Found) {
    let mut state = Found::No;
    for (index, word) in arguments.iter().enumerate().skip(start) {
        match word.literal() {
            Some(text) if is_meant(text) => return (index + 1, Found::Yes),
            Some(text) => {
                let after_option = index > 0 && arguments[index - 1].known_prefix().starts_with('-');
                if !anywhere && !text.starts_with('-') && !after_option {
                    return (index, state);
                }
            }
            None => state = Found::Perhaps,
        }
    }
    (arguments.len(), state)
}
