//! Words of a command that leave files out. They name no file that the command touches.

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
