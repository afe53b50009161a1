//! Files that a command reaches without naming them: by recursing into directories, or because they are named
//! elsewhere.

use crate::programs;
use crate::shell::options::is_listed;
use crate::shell::{Analysis, SimpleCommand, Word};

/// Programs that read whatever is below the directories they are given, or below the working directory.
const SEARCHERS: &str = "ack ag rg ugrep";

/// Programs that read or pass on what is below the directories they are given.
const COLLECTORS: &str = "7z bsdtar cp cpio diff git-archive gtar install ln mv pax rclone rsync scp tar zip";

/// Programs that change what is below the directories they are given.
const CHANGERS: &str =
    "bsdtar chgrp chmod chown cp cpio gtar install ln mv pax rename rm rsync shred tar unlink";

/// Programs that change files below where they stand.
const UNPACKERS: &str = "7z bsdtar cpio gtar patch pax tar unzip";

/// Further programs that read the files they are given, besides the known readers.
const OPENERS: &str = "awk bat cp curl dd gawk gzip install less ln mawk more mv nano perl pv rsync scp sed tar tee vi view vim \
 xxd zcat zip";

/// Further programs that change the files they are given.
const WRITERS: &str =
    "cp dd ed ex install ln mv nano patch perl rm rsync sed shred tee touch truncate unlink vi vim";

/// Programs that print names and numbers, never what files hold.
const LISTERS: &str = "ls dir vdir du df tree stat sort tac rev uname id date jq xargs";

/// Programs that open no file named in their words: they print, compare or count them, or change directory.
const TALKERS: &str = "echo printf test [ [[ : true false cd seq date";

/// Git commands that change files of the working tree without naming them.
const GIT_CHANGERS: &str = "am apply clean reset stash";

/// What is done to files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FileAccess {
    Read,
    Write,
}

/// How far a command goes beyond what it names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Reach {
    /// Down into the directories among its words.
    pub(crate) below: bool,
    /// Down from where it stands.
    pub(crate) here: bool,
    /// To files whose names only come up when it runs.
    pub(crate) unseen: bool,
}

impl Reach {
    /// How far a command of a line goes to do something.
    pub(crate) fn compute(invocation: &SimpleCommand, analysis: &Analysis, access: FileAccess) -> Self {
        let Some(name) = invocation.program_name() else { return Self::default() };
        let looks = programs::examine(&invocation.words, &[]).is_ok_and(|used| used.only_reads);
        if access == FileAccess::Write && looks {
            return Self::default();
        }
        let recursive = invocation.words.iter().skip(1).any(is_recursive);
        let (below, here) = match access {
            FileAccess::Read => match name {
                "grep" | "egrep" | "fgrep" | "zgrep" => (recursive, recursive && !names_a_file(invocation)),
                // It prints names; what else it does with what it finds is done to all of them.
                "find" | "fd" | "fdfind" => (!looks, !looks && !names_a_file(invocation)),
                "git" => (true, subcommand(invocation) == Some("grep")),
                _ if is_listed(SEARCHERS, name) => (true, !names_a_file(invocation)),
                _ => (is_listed(COLLECTORS, name) || (recursive && !is_listed(LISTERS, name)), false),
            },
            FileAccess::Write => match name {
                "find" | "fd" | "fdfind" => (true, !names_a_file(invocation)),
                "git" => (true, subcommand(invocation).is_some_and(|word| is_listed(GIT_CHANGERS, word))),
                _ => (is_listed(CHANGERS, name) || recursive, is_listed(UNPACKERS, name)),
            },
        };
        let opens = match access {
            FileAccess::Read => looks || is_listed(OPENERS, name) || is_listed(COLLECTORS, name),
            FileAccess::Write => is_listed(WRITERS, name) || is_listed(CHANGERS, name),
        };
        // What `find` gives to others it finds below its own directories.
        let outer = invocation.wrapped_by.and_then(|by| analysis.invocations.get(by.invocation));
        let found = outer.is_some_and(|outer| outer.program_name() == Some("find"));
        let unseen = opens
            && !is_listed(TALKERS, name)
            && !found
            && invocation.words.iter().skip(1).any(|word| is_unseen(word, analysis));
        Self { below, here, unseen }
    }
}

/// True if a word is only known at run time: it is the output of a command, or a variable set from one.
pub(crate) fn is_unseen(word: &Word, analysis: &Analysis) -> bool {
    match word {
        Word::Literal(_) => false,
        Word::Dynamic(dynamic) if dynamic.glob.is_some() => false,
        // What a process is put in the place of is judged by itself.
        Word::Dynamic(dynamic) if dynamic.made => dynamic.prefix != "/dev/fd/",
        Word::Dynamic(_) => analysis.invocations.iter().any(|invocation| {
            let filled = |value: &Word| matches!(value, Word::Dynamic(dynamic) if dynamic.made);
            invocation.assignments.iter().any(|assignment| filled(&assignment.value))
                || matches!(invocation.program_name(), Some("read" | "mapfile" | "readarray" | "getopts"))
        }),
    }
}

/// True if a word asks to go down into directories.
fn is_recursive(word: &Word) -> bool {
    let text = word.known_prefix();
    match text.strip_prefix("--") {
        Some(long) => {
            ["recursive", "dereference-recursive", "archive", "directories=recurse"].contains(&long)
        }
        None => text.strip_prefix('-').is_some_and(|letters| letters.contains(['r', 'R'])),
    }
}

/// True if the command names where to search: an operand follows the pattern.
fn names_a_file(invocation: &SimpleCommand) -> bool {
    let operands = invocation.words.iter().skip(1).filter(|word| !word.known_prefix().starts_with('-'));
    let pattern = usize::from(!matches!(invocation.program_name(), Some("find")));
    operands.count() > pattern
}

fn subcommand(invocation: &SimpleCommand) -> Option<&str> {
    invocation.words.iter().skip(1).filter_map(Word::literal).find(|word| !word.starts_with('-'))
}
