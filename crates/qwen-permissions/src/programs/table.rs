//! Programs that need a rule, with the options that a rule with a wildcard covers, and what words that are no
//! options are.

use super::{Arguments, Read, Refusal, Use};
use crate::shell::Word;
use crate::shell::options::{GivenOption, Options, is_listed, options};

pub(super) struct Program {
    names: &'static str,
    options: Options,
    operands: Operands,
}

/// What the words that are no options are.
#[derive(Clone, Copy)]
pub(super) enum Operands {
    /// None are expected.
    None,
    /// Text that is only looked at.
    Text,
    /// Files that are read.
    Paths,
    /// One file at most: a second one would be written.
    OnePath,
    /// A pattern, unless one of these options gives it or there is none; then files.
    Pattern { given_by: &'static [&'static str] },
    /// A format that begins with a plus sign: anything else would set something.
    Format,
    /// Addresses and names of machines, which must be literal, because their text is sent over the network.
    Remote,
    /// Files for a program that takes commands behind a plus sign.
    NoCommands,
}

pub(super) fn program(name: &str) -> Option<&'static Program> {
    PROGRAMS.iter().find(|program| is_listed(program.names, name))
}

impl Operands {
    /// The words among the operands that are paths.
    pub(super) fn paths(self, arguments: &Arguments<'_>, read: &Read) -> Result<Vec<Word>, Refusal> {
        let name = arguments.name();
        let words = arguments.words_at(&read.operands);
        match self {
            Self::None if !words.is_empty() => return Err(format!("{name} is not known to take operands")),
            Self::None | Self::Text => {}
            Self::Paths => return Ok(words),
            Self::OnePath => {
                if words.len() > 1 || words.iter().any(|word| word.literal().is_none()) {
                    return Err(format!("{name} may write its second file"));
                }
                return Ok(words);
            }
            Self::Pattern { given_by } => {
                let skip = usize::from(!read.has(given_by));
                return Ok(words.into_iter().skip(skip).collect());
            }
            Self::Format => {
                if !words.iter().all(|word| word.known_prefix().starts_with('+')) {
                    return Err(format!("{name} may set something"));
                }
            }
            Self::NoCommands => {
                if words.iter().any(|word| word.known_prefix().starts_with('+')) {
                    return Err(format!("{name} may run something"));
                }
            }
            Self::Remote => {
                let values = read.given.iter().filter_map(|given| given.value.as_ref());
                if values.clone().any(|value| value.known_prefix().starts_with('@')) {
                    return Err(format!("{name} may send a file"));
                }
                if values.clone().any(|value| value.known_prefix().contains("%output{")) {
                    return Err(format!("{name} may write a file"));
                }
                let is_local = |word: &Word| {
                    word.known_prefix().get(..5).is_some_and(|start| start.eq_ignore_ascii_case("file:"))
                };
                if arguments.words.iter().chain(values.clone()).any(is_local) {
                    return Err(format!("{name} may read a file"));
                }
                if arguments.words.iter().chain(values).any(|word| word.literal().is_none()) {
                    return Err(format!("{name} may send what is only known when it runs"));
                }
            }
        }
        Ok(Vec::new())
    }
}

/// How many words an option takes by which a program prints what it fetched or discards it, instead of
/// writing a file: `-o /dev/null`, `-qO-`.
pub(super) fn prints_or_discards(program: &str, words: &[Word]) -> Option<usize> {
    let (letter, name) = match program {
        "curl" => ('o', "--output"),
        "wget" => ('O', "--output-document"),
        _ => return None,
    };
    let option = words.first()?.literal()?;
    let value = match option.strip_prefix(name) {
        Some(value) if value.is_empty() || value.starts_with('=') => value.trim_start_matches('='),
        _ => {
            let (others, value) = option.strip_prefix('-')?.split_once(letter)?;
            let letters = self::program(program)?.options.letters;
            others.chars().all(|other| letters.contains(other)).then_some(value)?
        }
    };
    let is_no_file = |value: &str| matches!(value, "-" | "/dev/null" | "/dev/stdout");
    match words.get(1).and_then(Word::literal) {
        _ if is_no_file(value) => Some(1),
        Some(next) if value.is_empty() && is_no_file(next) => Some(2),
        _ => None,
    }
}

impl Program {
    pub(super) fn examine(&self, arguments: Arguments<'_>) -> Result<Use, Refusal> {
        let is_tar = is_listed("tar gtar bsdtar", arguments.name());
        let (given, start) = if is_tar { self.bundle(&arguments)? } else { (Vec::new(), 1) };
        let mut read = arguments.read(start, &self.options, true)?;
        read.given.extend(given);
        let names_machine = |given: &GivenOption| {
            matches!(given.name.as_str(), "-f" | "--file") && names_a_machine(given.value.as_ref())
        };
        if is_tar && read.given.iter().any(names_machine) {
            return Err("tar may start a program to reach another machine".to_owned());
        }
        let paths = self.operands.paths(&arguments, &read)?;
        Ok(Use { paths, ..Use::default() })
    }

    /// Reads the first word of `tar` where it has no dash: a bundle of letters, whose values are the next
    /// words in their order. Returns the options and the index behind them.
    fn bundle(&self, arguments: &Arguments<'_>) -> Result<(Vec<GivenOption>, usize), Refusal> {
        let mut given = Vec::new();
        let mut index = 2;
        let first = match arguments.words.get(1).map(|word| (word, word.literal())) {
            Some((_, Some(text))) if !text.starts_with('-') => text,
            Some((word, None)) if !word.known_prefix().starts_with('-') => {
                return Err("the first word of tar is only known when it runs".to_owned());
            }
            _ => return Ok((given, 1)),
        };
        for letter in first.chars() {
            let name = format!("-{letter}");
            if self.options.letters_with_value.contains(letter) {
                let value = arguments.words.get(index).cloned();
                index += 1;
                given.push(GivenOption { name, value });
            } else if self.options.letters.contains(letter) || arguments.is_named(1) {
                given.push(GivenOption { name, value: None });
            } else {
                return Err(format!("{letter} in {first} is not known to be harmless for tar"));
            }
        }
        Ok((given, index))
    }
}

fn names_a_machine(value: Option<&Word>) -> bool {
    value.is_some_and(|value| value.literal().is_none_or(|value| value.contains(':')))
}

/// A program that needs a rule, and has options that no wildcard covers.
const fn needs_rule(names: &'static str, options: Options, operands: Operands) -> Program {
    Program { names, options, operands }
}

static PROGRAMS: &[Program] = &[
    needs_rule(
        "tar gtar bsdtar",
        options(
            "ctxzjJvkmpOPaZrhuAd",
            "fC",
            "create list extract get gzip bzip2 xz zstd verbose keep-old-files no-same-owner to-stdout \
             auto-compress wildcards no-recursion exclude-vcs exclude-backups exclude-caches totals",
            "file directory strip-components exclude transform mtime owner group sort",
        ),
        Operands::Text,
    ),
    needs_rule(
        "curl",
        options(
            "fgGiIkLNsSv46#",
            "AdeHmuwXrYyz",
            "compressed fail get head http1.1 http2 include insecure ipv4 ipv6 location no-buffer \
             no-progress-meter progress-bar show-error silent verbose fail-with-body",
            "connect-timeout data data-raw header max-redirs max-time referer request retry retry-delay \
             url user user-agent write-out",
        ),
        Operands::Remote,
    ),
    needs_rule(
        "wget",
        options(
            "qScN46",
            "tT",
            "quiet no-verbose server-response spider continue",
            "timeout tries user-agent",
        ),
        Operands::Remote,
    ),
    needs_rule(
        "rsync",
        options(
            "avzrlptgoDnhPuxcHAXRSqWi",
            "",
            "archive verbose compress recursive dry-run human-readable progress delete stats update",
            "exclude include max-size min-size bwlimit",
        ),
        Operands::Remote,
    ),
    needs_rule("ssh", options("46AaCNnqTtvx", "ilp", "", ""), Operands::Remote),
    needs_rule("scp sftp", options("46CpqrTv", "iP", "", ""), Operands::Remote),
    needs_rule("man", options("afkwW", "sS", "all apropos whatis where path", "sections"), Operands::Text),
    needs_rule("less more", options("eEfFgiIMmnNqQrRsSX", "", "", ""), Operands::NoCommands),
    needs_rule("vim vi nvim view emacs nano", Options::NONE, Operands::NoCommands),
    needs_rule(
        "fd fdfind",
        options(
            "HIusigpalL0tF",
            "etdEjS",
            "hidden no-ignore absolute-path list-details follow full-path glob ignore-case print0",
            "extension type max-depth min-depth exclude size changed-within color",
        ),
        Operands::Text,
    ),
];
