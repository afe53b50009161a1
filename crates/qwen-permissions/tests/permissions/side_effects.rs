//! Runs combinations of options of the real programs that the policy considers read-only, and looks for side
//! effects.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Stdio};

use qwen_events::Verdict;
use qwen_permissions::Mode;

use crate::Desk;

/// Programs that are considered read-only with some of their options.
const PROGRAMS: &[&str] = &[
    "cat",
    "tac",
    "rev",
    "nl",
    "head",
    "tail",
    "wc",
    "cut",
    "tr",
    "fold",
    "expand",
    "unexpand",
    "paste",
    "comm",
    "cmp",
    "join",
    "column",
    "md5sum",
    "sha256sum",
    "b2sum",
    "cksum",
    "sum",
    "od",
    "hexdump",
    "strings",
    "ls",
    "dir",
    "vdir",
    "stat",
    "du",
    "df",
    "realpath",
    "readlink",
    "grep",
    "egrep",
    "fgrep",
    "sort",
    "uniq",
    "diff",
    "date",
    "file",
    "base64",
    "base32",
    "tree",
    "rg",
    "xxd",
    "hostname",
    "nproc",
    "id",
    "groups",
    "uname",
    "which",
    "seq",
    "basename",
    "dirname",
    "find",
    "sed",
    "jq",
    "printf",
];

/// Names of options that write, run or read lists somewhere, whole and shortened, for programs that may have
/// them.
const NAMES: &[&str] = &[
    "--output",
    "--output=made",
    "--outp=made",
    "--out",
    "--compress-program=./evil",
    "--comp=./evil",
    "--files0-from=list",
    "--temporary-directory=.",
    "--pre=./evil",
    "--pre",
    "--in-place",
    "--in-pl",
    "--file=script",
    "--expression=p",
    "--set=now",
    "--compile",
    "--check",
    "--recursive",
    "--reverse",
    "--count",
    "--zero",
    "--null",
    "--all",
    "--brief",
    "--color=always",
    "--lines=1",
    "--bytes=1",
    "--follow",
    "--decode",
    "--wrap=0",
    "--width=10",
    "--unique",
    "--help",
    "--version",
];

const OPERANDS: &[&str] =
    &["file", "made", "other", "-", "1", "2", "sub", ".", "+1", "w made", "p", "", "list", "-o", "--"];

/// A generator of numbers that is the same in every run.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from((self.0 >> 33) % limit as u64).unwrap()
    }

    fn among<'a>(&mut self, choices: &[&'a str]) -> &'a str {
        choices[self.below(choices.len())]
    }
}

/// One word of a command: a bundle of letters, a name or an operand.
fn word(numbers: &mut Numbers) -> String {
    const LETTERS: &[u8] = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
    match numbers.below(6) {
        0 | 1 => {
            let length = 1 + numbers.below(3);
            let letters = (0..length).map(|_| char::from(LETTERS[numbers.below(LETTERS.len())]));
            format!("-{}", letters.collect::<String>())
        }
        2 => numbers.among(NAMES).to_owned(),
        _ => numbers.among(OPERANDS).to_owned(),
    }
}

/// The content and the mode of every file below a directory.
fn tree(directory: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut files = BTreeMap::new();
    let mut ahead = vec![directory.to_owned()];
    while let Some(next) = ahead.pop() {
        for entry in std::fs::read_dir(next).unwrap().flatten() {
            let kind = entry.file_type().unwrap();
            let content = if kind.is_file() { std::fs::read(entry.path()).unwrap() } else { Vec::new() };
            files.insert(entry.path().display().to_string(), content);
            if kind.is_dir() {
                ahead.push(entry.path());
            }
        }
    }
    files
}

#[test]
fn no_combination_of_options_that_runs_unasked_has_a_side_effect() {
    let desk = Desk::new(Mode::Plan);
    let root = desk.root();
    for (name, content) in [("other", "b\na\n"), ("sub/x", "x\n"), ("list", "file\0"), ("script", "w made\n")]
    {
        let path = root.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    }
    std::fs::write(root.join("file"), "a\nb\nc\n").unwrap();
    std::fs::write(root.join("evil"), "#!/bin/sh\n: > made\ncat\n").unwrap();
    Command::new("chmod").arg("+x").arg(root.join("evil")).status().unwrap();
    let before = tree(desk.directory.path());
    let mut numbers = Numbers(11);
    let (mut tried, mut ran) = (0, 0);
    for program in PROGRAMS {
        if !std::env::split_paths(&std::env::var_os("PATH").unwrap())
            .any(|entry| entry.join(program).is_file())
        {
            continue;
        }
        for _ in 0..120 {
            let words: Vec<String> = (0..=numbers.below(4)).map(|_| word(&mut numbers)).collect();
            let quoted: Vec<String> = words.iter().map(|word| format!("'{word}'")).collect();
            let command = format!("{program} {}", quoted.join(" "));
            tried += 1;
            if desk.run(&command).decision.verdict != Verdict::Allow {
                continue;
            }
            ran += 1;
            let mut timed = Command::new("timeout");
            timed.args(["-k", "1", "5", program]).args(&words).current_dir(&root);
            timed.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status().unwrap();
            let after = tree(desk.directory.path());
            assert!(after == before, "{command} has a side effect");
        }
    }
    // Enough of both kinds, or the test would show nothing.
    assert!(ran > 500 && tried > ran + 500, "{ran} of {tried} ran");
}
