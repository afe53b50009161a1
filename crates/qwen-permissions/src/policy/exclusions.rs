//! Words of a command that leave files out, so that they name no file that the command touches, and words
//! that only name what a command copies from.

use crate::git::command_line::subcommand_index;
use crate::programs::is_find_test;
use crate::shell::options::is_listed;
use crate::shell::{SimpleCommand, Word};

/// Options that take a name to leave out as their next word, by program.
const OPTIONS: &[(&str, &str)] = &[
    ("ag", "--ignore --ignore-dir"),
    ("borg", "-e --exclude"),
    ("bsdtar", "--exclude"),
    ("diff", "-x --exclude"),
    ("du", "--exclude"),
    ("duplicity", "--exclude"),
    ("egrep", "--exclude --exclude-dir"),
    ("fd", "-E --exclude"),
    ("fdfind", "-E --exclude"),
    ("fgrep", "--exclude --exclude-dir"),
    ("git", "-e -x --exclude"),
    ("grep", "--exclude --exclude-dir"),
    ("gtar", "--exclude"),
    ("ls", "-I --ignore --hide"),
    ("rclone", "--exclude"),
    ("restic", "-e --exclude"),
    ("rsync", "--exclude"),
    ("tar", "--exclude"),
    ("tree", "-I"),
    ("zip", "-x --exclude"),
];

/// Beginnings of options, without their dashes, whose attached value is a name to leave out.
const ATTACHED: &[&str] = &["exclude", "hide", "ignore", "omit", "skip"];

/// For each word of a command, whether it only leaves files out.
pub(crate) fn excluded_words(invocation: &SimpleCommand) -> Vec<bool> {
    let words = &invocation.words;
    let name = invocation.program_name().unwrap_or("");
    if name == "find" {
        return (0..words.len()).map(|index| is_left_out_by_find(words, index)).collect();
    }
    let options = OPTIONS.iter().find(|(program, _)| *program == name).map_or("", |(_, options)| options);
    let mut excluded = vec![false; words.len()];
    let mut in_list = false;
    for index in 1..words.len() {
        let Some(text) = words[index].literal() else { continue };
        let before = words[index - 1].literal().unwrap_or("");
        // `zip -x` takes all names up to the next option.
        in_list = name == "zip" && !text.starts_with('-') && (in_list || is_listed(options, before));
        excluded[index] = in_list || is_listed(options, before) || leaves_out(text);
    }
    excluded
}

/// `--exclude=.git`, but not `--exclude-from=FILE`.
fn leaves_out(text: &str) -> bool {
    let Some((option, _)) = text.strip_prefix("--").and_then(|rest| rest.split_once('=')) else {
        return false;
    };
    let reads_a_file = ["from", "file", "path"].iter().any(|end| option.ends_with(end));
    !reads_a_file && ATTACHED.iter().any(|start| option.starts_with(start))
}

/// True if a word of `find` is the pattern of a test that is negated, or that leads to `-prune`.
fn is_left_out_by_find(words: &[Word], index: usize) -> bool {
    let text = |at: usize| words.get(at).and_then(Word::literal).unwrap_or("");
    let is_pattern =
        |at: usize| is_listed("-path -ipath -wholename -iwholename -name -iname -regex -iregex", text(at));
    if index < 2 || !is_pattern(index - 1) {
        return false;
    }
    if matches!(text(index - 2), "!" | "-not") {
        return true;
    }
    let mut at = index + 1;
    loop {
        match text(at) {
            "-prune" => return true,
            ")" | "(" | "-o" | "-or" | "-a" | "-and" => at += 1,
            test if is_find_test(test) => at += 2,
            _ => return false,
        }
    }
}

/// How a program that copies uses its words: options with which this holds, and where the operand stands that
/// it writes.
struct Copier {
    names: &'static str,
    letters: &'static str,
    options: &'static str,
    written: Written,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Written {
    First,
    Last,
    /// The value of the letter `f`, in a bundle that has the letter `c`.
    Archive,
}

const COPIERS: &[Copier] = &[
    Copier {
        names: "cp",
        letters: "HLPRadfinpruvx",
        options: "archive force no-clobber no-dereference one-file-system preserve recursive update verbose",
        written: Written::Last,
    },
    Copier {
        names: "rsync",
        letters: "AHPRSWXacghilnopqrtuvxzD",
        options: "archive compress delete dry-run exclude progress recursive stats verbose",
        written: Written::Last,
    },
    Copier {
        names: "tar gtar bsdtar",
        letters: "JPachjpvz",
        options: "create exclude exclude-vcs gzip verbose",
        written: Written::Archive,
    },
    Copier { names: "zip", letters: "0123456789qrvyx", options: "exclude quiet", written: Written::First },
];

/// For each word of a command, whether it only names what is copied from.
pub(crate) fn copied_words(invocation: &SimpleCommand) -> Vec<bool> {
    let words = &invocation.words;
    let none = vec![false; words.len()];
    if let Some(at) = adds_with_git(invocation) {
        return (0..words.len()).map(|index| index > at).collect();
    }
    let copier = invocation
        .program_name()
        .and_then(|name| COPIERS.iter().find(|copier| is_listed(copier.names, name)));
    let Some(copier) = copier else { return none };
    let mut operands = Vec::new();
    let mut archive = None;
    for (index, word) in words.iter().enumerate().skip(1) {
        let Some(text) = word.literal() else { return none };
        let is_bundle = copier.written == Written::Archive && index == 1;
        let letters = match text.strip_prefix('-') {
            Some(letters) => letters,
            None if is_bundle => text,
            None => {
                operands.push(index);
                continue;
            }
        };
        if let Some(name) = letters.strip_prefix('-') {
            let name = name.split('=').next().unwrap_or(name);
            if !is_listed(copier.options, name) {
                return none;
            }
        } else if copier.written == Written::Archive
            && index == 1
            && letters.contains('c')
            && letters.ends_with('f')
        {
            archive = Some(index + 1);
        } else if letters.is_empty() || !letters.chars().all(|letter| copier.letters.contains(letter)) {
            return none;
        }
    }
    let written = match copier.written {
        Written::First => operands.first().copied(),
        Written::Last => operands.last().copied(),
        Written::Archive => archive,
    };
    let Some(written) = written else { return none };
    let known =
        |letters: &str| letters.chars().all(|letter| letter == 'f' || copier.letters.contains(letter));
    if copier.written == Written::Archive && !known(words[1].known_prefix().trim_start_matches('-')) {
        return none;
    }
    (0..words.len()).map(|index| operands.contains(&index) && index != written).collect()
}

/// The position of `add` in a `git add`, which changes git's index and none of the files that it names.
fn adds_with_git(invocation: &SimpleCommand) -> Option<usize> {
    let at = subcommand_index(&invocation.words).filter(|_| invocation.program_name() == Some("git"))?;
    (invocation.words[at].literal() == Some("add")).then_some(at)
}
