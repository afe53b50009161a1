//! Programs that run another program given in their arguments.
//!
//! Each is read by an allow-list of its own options. One that is used in a way not listed here makes the line
//! unanalysable.

use super::options::{Options, Step, options};
use super::{Assignment, Dynamic, Word, basename, builtins};

/// What a wrapper runs.
#[derive(Debug, Default)]
pub(super) struct Wrapper {
    /// It does nothing besides running what it wraps.
    pub(super) transparent: bool,
    pub(super) inners: Vec<Inner>,
    /// Why that may not be all.
    pub(super) unreadable: Option<String>,
}

/// One thing that a wrapper runs.
#[derive(Debug)]
pub(super) enum Inner {
    /// A program and its arguments.
    Command {
        /// The words.
        words: Vec<Word>,
        /// Variables that the wrapper sets.
        assignments: Vec<Assignment>,
        /// The wrapper's word at which it begins.
        word: usize,
    },
    /// A script.
    Script {
        /// The script.
        text: String,
        /// The wrapper's word that it is.
        word: usize,
    },
}

type Found = Result<Option<Wrapper>, String>;

/// Finds the commands that a wrapper runs; none if the command is no wrapper.
pub(super) fn find_inner(words: &[Word]) -> Found {
    let Some(program) = words.first().and_then(Word::literal) else { return Ok(None) };
    let name = basename(program);
    match name {
        "bash" | "sh" | "dash" | "rbash" | "ash" => shell(name, words, None),
        "zsh" | "fish" | "ksh" | "mksh" | "csh" | "tcsh" | "pwsh" | "elvish" | "nu" => {
            let odd = format!("{name} reads commands in its own way");
            shell(name, words, Some(odd))
        }
        "env" => env(words),
        "xargs" => xargs(words),
        "find" => Ok(find(words)),
        "command" => {
            if words
                .get(1)
                .and_then(Word::literal)
                .is_some_and(|word| matches!(word, "-v" | "-V" | "-pv" | "-pV"))
            {
                return Ok(None);
            }
            after_options(words, 0, true, &options("p", "", "", ""))
        }
        "builtin" => after_options(words, 0, true, &options("", "", "", "")),
        "exec" if words.len() == 1 => Ok(None),
        "exec" => after_options(words, 0, true, &options("", "", "", "")),
        "time" if program == "time" => after_options(words, 0, true, &options("p", "", "", "")),
        "time" => Err("time is given by its path and may write a file".to_owned()),
        // It writes its own file only on a terminal, which commands here do not have.
        "nohup" => after_options(words, 0, true, &options("", "", "", "")),
        "timeout" | "gtimeout" => after_options(
            words,
            1,
            true,
            &options("v", "ks", "foreground preserve-status verbose", "kill-after signal"),
        ),
        "nice" => after_options(words, 0, true, &options("0123456789", "n", "", "adjustment")),
        "ionice" => after_options(words, 0, true, &options("t", "cn", "ignore", "class classdata")),
        "stdbuf" => after_options(words, 0, true, &options("", "ioe", "", "input output error")),
        "setsid" => after_options(words, 0, false, &options("cfw", "", "ctty fork wait", "")),
        "sudo" => after_options(
            words,
            0,
            false,
            &options("EHnSkb", "ug", "non-interactive preserve-env set-home stdin", "user group"),
        ),
        "doas" => after_options(words, 0, false, &options("nL", "u", "", "")),
        "chroot" => after_options(words, 1, false, &options("", "", "", "userspec groups")),
        "busybox" | "toybox" => after_options(words, 0, false, &options("", "", "", "")),
        "trap" => Ok(trap(words)),
        "watch" => watch(words),
        "coproc" => Ok(Some(coproc(words))),
        "parallel" => Err("parallel builds its commands itself".to_owned()),
        _ => Ok(launched(name, words)),
    }
}

/// `trap SCRIPT SIGNAL…`: the script runs later, in the same shell.
fn trap(words: &[Word]) -> Option<Wrapper> {
    let [_, script, signal, ..] = words else { return None };
    let (script, signal) = script.literal().zip(signal.literal())?;
    let is_signal = !signal.is_empty() && signal.bytes().all(|byte| byte.is_ascii_alphanumeric());
    if !is_signal || script.starts_with('-') {
        return None;
    }
    let inner = Inner::Script { text: script.to_owned(), word: 1 };
    Some(Wrapper { transparent: true, inners: vec![inner], unreadable: None })
}

/// Programs that start another one and also have their own effects: options without and with a value, and how
/// many further words stand in front of what they start. Used in another way, such a program is judged by its
/// words.
const LAUNCHERS: &[(&str, Options, usize)] = &[
    ("chrt", launcher("abfimorv", "", ""), 1),
    ("dbus-run-session", launcher("", "", ""), 0),
    ("fakeroot", launcher("", "", ""), 0),
    ("flock", launcher("Feonsux", "Ew", "exclusive nonblock shared"), 1),
    ("linux32", launcher("3BFILRSTXZ", "", ""), 0),
    ("linux64", launcher("3BFILRSTXZ", "", ""), 0),
    ("ltrace", launcher("CSTcfirt", "aelns", ""), 0),
    ("numactl", launcher("ail", "CNm", "all interleave localalloc"), 0),
    ("strace", launcher("CFTcfiknqrtvwxyz", "IPSabesu", ""), 0),
    ("taskset", launcher("ac", "", "all-tasks cpu-list"), 1),
    (
        "valgrind",
        launcher(
            "qv",
            "",
            "error-exitcode leak-check main-stacksize num-callers quiet show-leak-kinds show-reachable tool trace-children \
             track-fds track-origins undef-value-errors verbose",
        ),
        0,
    ),
    ("xvfb-run", launcher("a", "n", "auto-servernum"), 0),
];

const fn launcher(letters: &'static str, letters_with_value: &'static str, names: &'static str) -> Options {
    options(letters, letters_with_value, names, "")
}

/// What a launcher starts, where its options are understood.
fn launched(name: &str, words: &[Word]) -> Option<Wrapper> {
    let (_, options, skip) = LAUNCHERS.iter().find(|(listed, ..)| *listed == name)?;
    let start = past_options(words, options)? + skip;
    let inner = words.get(start)?;
    if inner.known_prefix().starts_with('-') || words[1..start].iter().any(|word| word.literal().is_none()) {
        return None;
    }
    let inners = vec![command(words[start..].to_vec(), Vec::new(), start)];
    Some(Wrapper { transparent: false, inners, unreadable: None })
}

/// True if a launcher is used in a way that is understood, so that what it starts is judged as a separate
/// command.
pub(crate) fn launches(words: &[Word]) -> bool {
    let name = words.first().and_then(Word::literal).map(basename);
    name.is_some_and(|name| launched(name, words).is_some())
}

/// Steps over options and `skip` further words; the rest is a command.
fn after_options(words: &[Word], skip: usize, transparent: bool, options: &Options) -> Found {
    let name = words.first().map_or("", Word::known_prefix);
    let name = basename(name);
    let start = past_options(words, options)
        .ok_or_else(|| format!("{name} is used in a way that is not understood"))?;
    let start = start + skip;
    if words
        .get(1..start.min(words.len()))
        .is_some_and(|skipped| skipped.iter().any(|word| word.literal().is_none()))
    {
        return Err(format!("the arguments of {name} are only known when it runs"));
    }
    if start >= words.len() {
        return Ok(None);
    }
    Ok(Some(Wrapper {
        transparent,
        inners: vec![command(words[start..].to_vec(), Vec::new(), start)],
        unreadable: None,
    }))
}

fn command(words: Vec<Word>, assignments: Vec<Assignment>, word: usize) -> Inner {
    Inner::Command { words, assignments, word }
}

/// The index of the first word that is no option; none where an option is not listed.
fn past_options(words: &[Word], options: &Options) -> Option<usize> {
    let mut index = 1;
    while let Some(word) = words.get(index) {
        match options.step(words, index) {
            Step::Operand => return (!word.may_hide_an_option()).then_some(index),
            Step::End => return Some(index + 1),
            Step::Options(_, length) => index += length,
            Step::Unlisted => return None,
        }
    }
    Some(index)
}

/// A shell: with `-c` its script is read, with a file it is a program like any other, else it reads its
/// input.
fn shell(name: &str, words: &[Word], odd: Option<String>) -> Found {
    let mut index = 1;
    let mut has_script = false;
    while let Some(word) = words.get(index) {
        let Some(text) = word.literal() else {
            return Err(format!("the arguments of {name} are only known when it runs"));
        };
        if matches!(text, "--norc" | "--noprofile" | "--posix") {
            index += 1;
            continue;
        }
        let Some(letters) = text.strip_prefix(['-', '+']) else { break };
        if letters.is_empty() || !letters.bytes().all(|letter| b"ceulx".contains(&letter)) {
            return Err(format!("{name} is used in a way that is not understood"));
        }
        has_script |= letters.contains('c');
        index += 1;
    }
    match words.get(index).map(Word::literal) {
        None if words.len() == 2 && words[1].literal() == Some("--version") => Ok(None),
        None => Err(format!("{name} runs what it reads from its input")),
        Some(None) => Err(format!("what {name} runs is only known when it runs")),
        Some(Some(_)) if !has_script => Ok(None),
        Some(Some(text)) => Ok(Some(Wrapper {
            transparent: true,
            inners: vec![Inner::Script { text: text.to_owned(), word: index }],
            unreadable: odd,
        })),
    }
}

/// `env`: its options, then assignments, then a command.
fn env(words: &[Word]) -> Found {
    let options = options("i0v", "u", "ignore-environment null debug", "unset");
    let odd = || "env is used in a way that is not understood".to_owned();
    let mut index = past_options(words, &options).ok_or_else(odd)?;
    if words.get(index).and_then(Word::literal) == Some("-") {
        index += 1;
    }
    let mut assignments = Vec::new();
    while let Some(word) = words.get(index) {
        let Some((name, value)) = word.known_prefix().split_once('=') else { break };
        if name.is_empty() || matches!(word, Word::Dynamic(dynamic) if dynamic.splits) {
            return Err(odd());
        }
        let value = if word.literal().is_some() { Word::Literal(value.to_owned()) } else { Word::anything() };
        assignments.push(Assignment { name: name.to_owned(), value, in_loop: false });
        index += 1;
    }
    if index >= words.len() {
        return Ok(None);
    }
    let inner = command(words[index..].to_vec(), assignments, index);
    Ok(Some(Wrapper { transparent: true, inners: vec![inner], unreadable: None }))
}

/// `xargs`: its command gets words that are only known later.
fn xargs(words: &[Word]) -> Found {
    let options = options(
        "0rtx",
        "nLPIdsE",
        "null no-run-if-empty verbose exit",
        "max-args max-lines max-procs replace delimiter max-chars",
    );
    let Some(index) = past_options(words, &options) else {
        return Err("xargs is used in a way that is not understood".to_owned());
    };
    if index >= words.len() {
        return Ok(None);
    }
    let replacement = words[1..index].iter().enumerate().find_map(|(at, word)| {
        let text = word.literal()?;
        if let Some(value) = text.strip_prefix("--replace=") {
            return Some(value.to_owned());
        }
        match text.strip_prefix("-I") {
            Some("") => words.get(at + 2).and_then(Word::literal).map(str::to_owned),
            Some(attached) => Some(attached.to_owned()),
            None => None,
        }
    });
    let mut inner: Vec<Word> = words[index..].to_vec();
    match replacement.filter(|replacement| !replacement.is_empty()) {
        Some(replacement) => {
            for word in &mut inner {
                let Some(at) = word.known_prefix().find(&replacement) else { continue };
                let prefix = word.known_prefix()[..at].to_owned();
                *word = Word::Dynamic(Dynamic { prefix, made: true, ..Dynamic::default() });
            }
        }
        None => inner.push(Word::anything()),
    }
    Ok(Some(Wrapper { transparent: true, inners: vec![command(inner, Vec::new(), index)], unreadable: None }))
}

/// `find`: every action that runs a program. `find` itself is judged too.
fn find(words: &[Word]) -> Option<Wrapper> {
    let mut wrapper = Wrapper::default();
    let mut index = 1;
    while let Some(word) = words.get(index) {
        index += 1;
        if !word.literal().is_some_and(|word| matches!(word, "-exec" | "-execdir" | "-ok" | "-okdir")) {
            continue;
        }
        let rest = &words[index..];
        let ends = |word: &Word| word.literal().is_some_and(|word| word == ";" || word == "+");
        let length = rest.iter().position(ends).unwrap_or(rest.len());
        let inner = rest[..length].iter().map(|word| {
            let Some(at) = word.known_prefix().find("{}") else { return word.clone() };
            let prefix = word.known_prefix()[..at].to_owned();
            Word::Dynamic(Dynamic { prefix, splits: true, made: true, ..Dynamic::default() })
        });
        wrapper.inners.push(command(inner.collect(), Vec::new(), index));
        index += length;
    }
    (!wrapper.inners.is_empty()).then_some(wrapper)
}

/// `coproc`: a keyword that the grammar does not know. What it runs may have a name and a brace in front.
fn coproc(words: &[Word]) -> Wrapper {
    let inners =
        (1..words.len().min(4)).map(|start| command(words[start..].to_vec(), Vec::new(), start)).collect();
    Wrapper { transparent: false, inners, unreadable: Some("it starts a coprocess".to_owned()) }
}

/// `watch`: its words are joined to a script.
fn watch(words: &[Word]) -> Found {
    let options = options("bcdegtwx", "n", "differences no-title color exec", "interval");
    let odd = || "watch is used in a way that is not understood".to_owned();
    let index = past_options(words, &options).ok_or_else(odd)?;
    let text: Option<Vec<&str>> = words[index..].iter().map(Word::literal).collect();
    let text = text.ok_or_else(odd)?.join(" ");
    Ok(Some(Wrapper {
        transparent: false,
        inners: vec![Inner::Script { text, word: index }],
        unreadable: None,
    }))
}

/// True if what a wrapper runs begins with something that is no program: a keyword, or an assignment.
pub(super) fn starts_without_program(inner: &Inner) -> bool {
    match inner {
        Inner::Command { words, .. } => words
            .first()
            .and_then(Word::literal)
            .is_some_and(|first| builtins::is_keyword(first) || first.contains('=')),
        Inner::Script { .. } => false,
    }
}
