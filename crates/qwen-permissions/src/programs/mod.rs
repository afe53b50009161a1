//! Knowledge about programs: which of their arguments are read-only, and which run or write something.
//!
//! Everything here is an allow-list. An option that is not listed is not covered by a rule with a wildcard
//! and does not run without asking.

mod awk;
mod builders;
mod find;
mod git;
mod grammar;
mod hazards;
mod make;
mod readers;
mod scripts;
mod table;
mod unknown;

pub(crate) use find::is_find_test;
pub(crate) use git::reads_git_config;
pub(crate) use unknown::{only_names_things, runs_its_arguments};

use crate::shell::options::{GivenOption, Options, Step, is_listed};
use crate::shell::{Word, basename};

/// How a command uses its program.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Use {
    /// It is read-only, and may run without asking if its paths permit that.
    pub(crate) only_reads: bool,
    /// It follows the links below its paths.
    pub(crate) follows_links: bool,
    /// The words that are paths.
    pub(crate) paths: Vec<Word>,
    /// It is git, at work in these directories besides the current one.
    pub(crate) git: Option<Vec<Word>>,
}

/// A command's words, and which of them a rule lists literally.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Arguments<'a> {
    words: &'a [Word],
    named: &'a [bool],
}

/// Why a command is not covered.
type Refusal = String;

/// Examines how a command uses its program. `named` marks words that a rule lists literally; those need no
/// allow-list.
pub(crate) fn examine(words: &[Word], named: &[bool]) -> Result<Use, Refusal> {
    let Some(program) = words.first().and_then(Word::literal) else {
        return Err("its program is only known when it runs".to_owned());
    };
    let arguments = Arguments { words, named };
    let name = basename(program);
    if prints_its_version(name, &words[1..]) {
        return Ok(Use { only_reads: program == name, ..Use::default() });
    }
    let used = match name {
        "find" => find::examine(arguments),
        "git" => git::examine(arguments),
        "echo" => Ok(Use { only_reads: true, ..Use::default() }),
        "printf" => scripts::printf(arguments),
        "sed" | "gsed" => scripts::sed(arguments),
        "awk" | "gawk" | "mawk" | "nawk" => awk::examine(arguments),
        "jq" => scripts::jq(arguments),
        "test" | "[" | "[[" => scripts::test(arguments),
        "cd" => scripts::cd(arguments),
        "set" => scripts::set(arguments),
        "make" | "gmake" => make::examine(arguments),
        _ => match (readers::reader(name), table::program(name)) {
            (Some(reader), _) => reader.examine(arguments),
            (None, Some(program)) => program.examine(arguments),
            (None, None) => unknown::examine(arguments),
        },
    }?;
    // A rule may name a program by its path; only a program found by its plain name is known.
    Ok(Use { only_reads: used.only_reads && program == name, ..used })
}

/// True if a program is one that prints its version and does nothing else. `cargo` and `rustc` may be programs that a
/// file of the workspace names.
fn prints_its_version(name: &str, arguments: &[Word]) -> bool {
    let [argument] = arguments else { return false };
    let option = argument.literal().unwrap_or("");
    match name {
        "node" | "npm" | "pnpm" | "yarn" | "tsc" => matches!(option, "--version" | "-v"),
        "go" => option == "version",
        "java" | "javac" => matches!(option, "-version" | "--version"),
        "python" | "python3" | "pip" | "pip3" => matches!(option, "--version" | "-V"),
        "gcc" | "g++" | "clang" | "clang++" | "make" | "cmake" | "ninja" | "docker" | "kubectl" | "curl"
        | "wget" | "ruby" | "php" | "perl" | "bash" | "deno" | "bun" | "uv" | "rg" | "fd" => {
            option == "--version"
        }
        _ => false,
    }
}

/// True if it is known how a program uses its words. An unknown program may run them.
pub(crate) fn is_known(name: &str) -> bool {
    let examined = "find git echo printf sed gsed awk gawk mawk nawk jq test [ [[ cd set export";
    is_listed(examined, name)
        || readers::reader(name).is_some()
        || table::program(name).is_some()
        || unknown::is_inert(name)
}

impl<'a> Arguments<'a> {
    fn is_named(&self, index: usize) -> bool {
        self.named.get(index).copied().unwrap_or(false)
    }

    fn name(&self) -> &'a str {
        basename(self.words.first().map_or("", Word::known_prefix))
    }

    /// Reads the options and operands from a word on. Options behind operands count too.
    fn read(&self, start: usize, options: &Options, hazards: bool) -> Result<Read, Refusal> {
        let mut read = Read::default();
        let mut index = start;
        let mut only_operands = false;
        while let Some(word) = self.words.get(index) {
            if only_operands {
                read.operands.push(index);
                index += 1;
                continue;
            }
            if hazards && word.may_hide_an_option() && !word.known_prefix().starts_with('-') {
                return Err(format!(
                    "an option of {} could come out of a word that is only known when it runs",
                    self.name()
                ));
            }
            match options.step(self.words, index) {
                Step::End => {
                    only_operands = true;
                    index += 1;
                }
                Step::Operand => {
                    read.operands.push(index);
                    index += 1;
                }
                Step::Options(given, length) => {
                    let splits = |word: &Word| matches!(word, Word::Dynamic(dynamic) if dynamic.splits && dynamic.glob.is_none());
                    if hazards && self.words[index..(index + length).min(self.words.len())].iter().any(splits)
                    {
                        return Err(format!(
                            "an option of {} could come out of the value of another",
                            self.name()
                        ));
                    }
                    read.given.extend(given);
                    index += length;
                }
                Step::Unlisted if self.is_named(index) => index += 1,
                Step::Unlisted
                    if let Some(length) = table::prints_or_discards(self.name(), &self.words[index..]) =>
                {
                    index += length;
                }
                Step::Unlisted => {
                    let option = word.known_prefix().split('=').next().unwrap_or("");
                    return Err(format!("{option} is not known to be harmless for {}", self.name()));
                }
            }
        }
        Ok(read)
    }

    fn words_at(&self, indices: &[usize]) -> Vec<Word> {
        indices.iter().filter_map(|index| self.words.get(*index).cloned()).collect()
    }
}

/// Options and operands of a command.
#[derive(Debug, Default)]
struct Read {
    given: Vec<GivenOption>,
    operands: Vec<usize>,
    follows_links: bool,
}

impl Read {
    fn has(&self, names: &[&str]) -> bool {
        self.given.iter().any(|given| names.contains(&given.name.as_str()))
    }
}
