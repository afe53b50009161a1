//! Option grammars as data: every option of a program, with its arity and what it may do.
//!
//! A grammar is written as one text. Each entry lists the spellings of an option, then its arity and its
//! effect:
//!
//! | entry | meaning |
//! |---|---|
//! | `n,number` | `-n` and `--number` take no value |
//! | `k,key=` | the option takes a value |
//! | `arg==` | the option takes two values, in the next words |
//! | `color?` | the option takes a value only if it is attached |
//! | `o,output=!` | the option runs or writes something |
//! | `files0-from=*` | the option reads files that are not named, or waits |
//! | `R,dereference-recursive@` | the option follows links below the operands |
//! | `#` | digits behind one dash are an option |

use super::{Arguments, Read, Refusal};
use crate::shell::Word;
use crate::shell::options::GivenOption;

/// How a program reads its options.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Style {
    /// As `getopt_long` does: letters in bundles, values attached or in the next word, names shortened to a
    /// unique beginning.
    Getopt,
    /// The same, but names must be given whole.
    WholeNames,
    /// Names must be whole, and the value of a letter is always the next word, whatever stands behind the
    /// letter.
    ValuesApart,
    /// One option per word, known by its first letter. What follows the letter is its value, if it takes one.
    /// All words behind the first operand are operands.
    FirstLetter,
}

/// What an option does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Effect {
    Harmless,
    /// It reads files that the command does not name, or waits.
    Asks,
    RunsOrWrites,
    FollowsLinks,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Arity {
    None,
    /// Attached, or the next word.
    Required,
    /// Attached, or none.
    Optional,
    /// The next two words.
    Two,
}

/// One option of a grammar.
#[derive(Debug, Clone, Copy)]
pub(super) struct OptionEntry {
    spellings: &'static str,
    pub(super) arity: Arity,
    pub(super) effect: Effect,
}

/// The options of a program.
#[derive(Debug, Clone, Copy)]
pub(super) struct Grammar {
    pub(super) style: Style,
    pub(super) options: &'static str,
}

/// Names that every program with long options has.
const COMMON: [OptionEntry; 2] = [
    OptionEntry { spellings: "help", arity: Arity::None, effect: Effect::Harmless },
    OptionEntry { spellings: "version", arity: Arity::None, effect: Effect::Harmless },
];

impl OptionEntry {
    fn parse(text: &'static str) -> Self {
        let (text, effect) = match text.as_bytes().last() {
            Some(b'!') => (&text[..text.len() - 1], Effect::RunsOrWrites),
            Some(b'*') => (&text[..text.len() - 1], Effect::Asks),
            Some(b'@') => (&text[..text.len() - 1], Effect::FollowsLinks),
            _ => (text, Effect::Harmless),
        };
        let (spellings, arity) = match text.as_bytes().last() {
            Some(b'=') if text.ends_with("==") => (&text[..text.len() - 2], Arity::Two),
            Some(b'=') => (&text[..text.len() - 1], Arity::Required),
            Some(b'?') => (&text[..text.len() - 1], Arity::Optional),
            _ => (text, Arity::None),
        };
        Self { spellings, arity, effect }
    }

    pub(super) fn spellings(&self) -> impl Iterator<Item = &'static str> {
        self.spellings.split(',')
    }
}

/// True if a word is an option whose value is a pattern that the shell does not find: `--include=*.md`. Even if it finds
/// names, each begins with the option, and any value is harmless.
fn is_pattern_option(word: &Word) -> bool {
    let Word::Dynamic(dynamic) = word else { return false };
    let given = dynamic.prefix.split_once('=').map(|(name, _)| name);
    dynamic.glob.is_some()
        && given.is_some_and(|name| matches!(name, "--include" | "--exclude" | "--exclude-dir"))
}

impl Grammar {
    pub(super) fn entries(&self) -> impl Iterator<Item = OptionEntry> {
        self.options.split_whitespace().map(OptionEntry::parse)
    }

    /// True if an option that is not given on the line could do harm.
    fn has_hazards(&self) -> bool {
        self.entries().any(|entry| entry.effect == Effect::RunsOrWrites)
    }

    pub(super) fn letter(&self, letter: char) -> Option<OptionEntry> {
        let mut buffer = [0; 4];
        let wanted = if letter.is_ascii_digit() && self.options.split_whitespace().any(|entry| entry == "#") {
            "#"
        } else {
            letter.encode_utf8(&mut buffer)
        };
        self.entries().find(|entry| entry.spellings().any(|spelling| spelling == wanted))
    }

    /// The option that a name abbreviates, and its whole name. A beginning must be unique.
    pub(super) fn name(&self, given: &str) -> Option<(OptionEntry, &'static str)> {
        let names = || {
            self.entries().chain(COMMON).flat_map(|entry| {
                let long = entry.spellings().filter(|spelling| spelling.len() > 1);
                long.map(move |spelling| (entry, spelling)).collect::<Vec<_>>()
            })
        };
        if let Some(exact) = names().find(|(_, name)| *name == given) {
            return Some(exact);
        }
        if self.style != Style::Getopt || given.is_empty() {
            return None;
        }
        let mut meant = names().filter(|(_, name)| name.starts_with(given));
        let first = meant.next()?;
        meant.next().is_none().then_some(first)
    }

    /// Reads the options and operands of a command from a word on. Options behind operands count too.
    pub(super) fn read(&self, arguments: &Arguments<'_>, start: usize) -> Result<Read, Refusal> {
        let mut read = Read::default();
        let hazards = self.has_hazards();
        let program = arguments.name();
        let mut index = start;
        while let Some(word) = arguments.words.get(index) {
            if word.literal() == Some("--") {
                read.operands.extend(index + 1..arguments.words.len());
                break;
            }
            let text = word.known_prefix();
            if hazards && word.may_hide_an_option() && !text.starts_with('-') {
                return Err(format!(
                    "an option of {program} could come out of a word that is only known when it runs"
                ));
            }
            if !text.starts_with('-') || text == "-" {
                let is_unknown = text == "-" && word.literal().is_none();
                if is_unknown && !arguments.is_named(index) {
                    return Err(format!("an option of {program} is only known when it runs"));
                }
                if self.style == Style::FirstLetter {
                    read.operands.extend(index..arguments.words.len());
                    break;
                }
                read.operands.push(index);
                index += 1;
                continue;
            }
            index = match self.option(arguments, index, &mut read) {
                Ok(next) => next,
                Err(_) if arguments.is_named(index) => index + 1,
                Err(problem) => return Err(problem),
            };
        }
        Ok(read)
    }

    /// Reads the options in one word. Returns the index after them and their values.
    fn option(&self, arguments: &Arguments<'_>, index: usize, read: &mut Read) -> Result<usize, Refusal> {
        let option = OptionWord { arguments, index };
        if self.style == Style::Getopt && is_pattern_option(&arguments.words[index]) {
            let (name, _) = arguments.words[index].known_prefix().split_once('=').unwrap_or_default();
            return self.long_option(&format!("{}=", name.trim_start_matches('-')), &option, read);
        }
        // A pattern for file names must not become further options; a literal is what it seems.
        let text = arguments.words[index].literal().ok_or_else(|| option.refuse())?;
        match text.strip_prefix("--") {
            _ if self.style == Style::FirstLetter => self.first_letter(text, &option, read),
            Some(long) => self.long_option(long, &option, read),
            None => self.letters(text, &option, read),
        }
    }

    /// Reads `--name`, `--name=value` or `--name value`.
    fn long_option(&self, long: &str, option: &OptionWord<'_>, read: &mut Read) -> Result<usize, Refusal> {
        let (given, attached) = match long.split_once('=') {
            Some((given, value)) => (given, Some(Word::Literal(value.to_owned()))),
            None => (long, None),
        };
        let (entry, name) = self.name(given).ok_or_else(|| option.refuse())?;
        option.check(&entry)?;
        let name = format!("--{name}");
        match (entry.arity, attached) {
            (Arity::None | Arity::Two, Some(_)) => Err(option.refuse()),
            (Arity::Required, None) => {
                read.add(name, Some(option.value(1)?), &entry);
                Ok(option.index + 2)
            }
            (Arity::Two, None) => {
                option.value(1)?;
                read.add(name, Some(option.value(2)?), &entry);
                Ok(option.index + 3)
            }
            (_, attached) => {
                read.add(name, attached, &entry);
                Ok(option.index + 1)
            }
        }
    }

    /// Reads an option of a program that distinguishes its options by their first letter.
    fn first_letter(&self, text: &str, option: &OptionWord<'_>, read: &mut Read) -> Result<usize, Refusal> {
        let letters = text.trim_start_matches('-');
        let letter = letters.chars().next().ok_or_else(|| option.refuse())?;
        let entry = self.letter(letter).ok_or_else(|| option.refuse())?;
        option.check(&entry)?;
        let rest = &letters[letter.len_utf8()..];
        // The rest may be the value or the rest of the option's name; only numbers are told apart.
        let is_value = rest.starts_with(|first: char| first.is_ascii_digit() || matches!(first, '+' | '-'));
        let name = format!("-{letter}");
        match entry.arity {
            Arity::None => {
                read.add(name, None, &entry);
                Ok(option.index + 1)
            }
            Arity::Two => Err(option.refuse()),
            _ if is_value => {
                read.add(name, Some(Word::Literal(rest.to_owned())), &entry);
                Ok(option.index + 1)
            }
            _ if rest.is_empty() => {
                read.add(name, Some(option.value(1)?), &entry);
                Ok(option.index + 2)
            }
            _ => Err(option.refuse()),
        }
    }

    /// Reads a group of one-letter options. The rest of the word may be the value of one of them.
    fn letters(&self, text: &str, option: &OptionWord<'_>, read: &mut Read) -> Result<usize, Refusal> {
        let letters = text.trim_start_matches('-');
        for (at, letter) in letters.char_indices() {
            let entry = self.letter(letter).ok_or_else(|| option.refuse())?;
            option.check(&entry)?;
            let name = format!("-{letter}");
            let rest = &letters[at + letter.len_utf8()..];
            match entry.arity {
                Arity::None => read.add(name, None, &entry),
                Arity::Optional => {
                    let value = (!rest.is_empty()).then(|| Word::Literal(rest.to_owned()));
                    read.add(name, value, &entry);
                    return Ok(option.index + 1);
                }
                Arity::Required if rest.is_empty() => {
                    read.add(name, Some(option.value(1)?), &entry);
                    return Ok(option.index + 2);
                }
                Arity::Two => return Err(option.refuse()),
                Arity::Required if self.style == Style::ValuesApart => return Err(option.refuse()),
                Arity::Required => {
                    read.add(name, Some(Word::Literal(rest.to_owned())), &entry);
                    return Ok(option.index + 1);
                }
            }
        }
        Ok(option.index + 1)
    }
}

/// A word of a command that holds one or more options.
struct OptionWord<'a> {
    arguments: &'a Arguments<'a>,
    index: usize,
}

impl OptionWord<'_> {
    /// The refusal of an option that is not known.
    fn refuse(&self) -> Refusal {
        let shown = self.arguments.words[self.index].known_prefix().split('=').next().unwrap_or("");
        format!("{shown} is not known to be harmless for {}", self.arguments.name())
    }

    /// Fails if the option could run or write something.
    fn check(&self, entry: &OptionEntry) -> Result<(), Refusal> {
        match entry.effect {
            Effect::Harmless | Effect::FollowsLinks => Ok(()),
            Effect::Asks | Effect::RunsOrWrites => Err(self.refuse()),
        }
    }

    /// The value `distance` words later.
    fn value(&self, distance: usize) -> Result<Word, Refusal> {
        let value = self.arguments.words.get(self.index + distance).ok_or_else(|| self.refuse())?;
        if matches!(value, Word::Dynamic(dynamic) if dynamic.splits) {
            let program = self.arguments.name();
            return Err(format!("an option of {program} could come out of the value of another"));
        }
        Ok(value.clone())
    }
}

impl Read {
    fn add(&mut self, name: String, value: Option<Word>, entry: &OptionEntry) {
        self.follows_links |= entry.effect == Effect::FollowsLinks;
        self.given.push(GivenOption { name, value });
    }
}
