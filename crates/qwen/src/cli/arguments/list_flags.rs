//! Flags that take several words in Claude Code and Qwen Code, such as `--allowedTools Read Edit`.
//!
//! Those CLIs consume every word up to the next flag, including the prompt. Here a word belongs to a list if
//! it looks like an item, or if the prompt is given elsewhere.

use std::ffi::OsString;

use crate::cli::rules;
use crate::settings::is_tool_rule;

/// What the items of a list look like.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Items {
    /// Tool names and permission rules.
    Rules,
    /// Paths of directories.
    Directories,
    /// Paths of JSON files, and JSON.
    Documents,
    /// Names of setting sources.
    Sources,
    /// Names that could also be words of a prompt.
    Names,
}

const LISTS: &[(&str, Items)] = &[
    ("--allowed-tools", Items::Rules),
    ("--allowedTools", Items::Rules),
    ("--disallowed-tools", Items::Rules),
    ("--disallowedTools", Items::Rules),
    ("--exclude-tools", Items::Rules),
    ("--core-tools", Items::Rules),
    ("--tools", Items::Rules),
    ("--add-dir", Items::Directories),
    ("--include-directories", Items::Directories),
    ("--plugin-dir", Items::Directories),
    ("--mcp-config", Items::Documents),
    ("--setting-sources", Items::Sources),
    ("--betas", Items::Names),
    ("--file", Items::Names),
    ("--allowed-mcp-server-names", Items::Names),
    ("--disabled-slash-commands", Items::Names),
    ("--extensions", Items::Names),
    ("-e", Items::Names),
];

/// Flags whose value may be left out.
const OPTIONAL_VALUE: &[&str] = &[
    "--cloud",
    "--debug",
    "-d",
    "--from-pr",
    "--prompt-suggestions",
    "--remote-control",
    "--teleport",
    "--worktree",
    "-w",
];

/// A list whose words are being read.
struct OpenList {
    flag: &'static str,
    items: Items,
    has_item: bool,
}

/// Repeats the flag before each item, as the parser expects.
pub(super) fn separated(arguments: Vec<OsString>) -> Vec<OsString> {
    let is_prompt_elsewhere = names_prompt(&arguments);
    let mut separated: Vec<OsString> = Vec::with_capacity(arguments.len());
    let mut open: Option<OpenList> = None;
    let mut rest = arguments.into_iter().peekable();
    while let Some(argument) = rest.next() {
        let word = argument.to_str().unwrap_or_default();
        if word == "--" {
            separated.push(argument);
            separated.extend(rest);
            break;
        }
        if is_flag(word) {
            open = LISTS.iter().find(|(flag, _)| *flag == word).map(|(flag, items)| OpenList {
                flag,
                items: *items,
                has_item: false,
            });
            let value = rest.next_if(|next| {
                let next = next.to_str().unwrap_or("-");
                OPTIONAL_VALUE.contains(&word) && is_prompt_elsewhere && !is_flag(next)
            });
            separated.push(argument);
            if let (Some(value), Some(flag)) = (value, separated.last_mut()) {
                flag.push("=");
                flag.push(value);
            }
            continue;
        }
        match &mut open {
            Some(list) if !list.has_item => {
                list.has_item = true;
                separated.push(argument);
            }
            Some(list) if is_prompt_elsewhere || list.items.fits(word) => match list.items {
                Items::Rules | Items::Sources => {
                    if let Some(last) = separated.last_mut() {
                        last.push(",");
                        last.push(argument);
                    }
                }
                Items::Directories | Items::Documents | Items::Names => {
                    separated.extend([list.flag.into(), argument]);
                }
            },
            _ => {
                open = None;
                separated.push(argument);
            }
        }
    }
    separated
}

impl Items {
    /// True if a word is an item of such a list rather than a prompt.
    fn fits(self, word: &str) -> bool {
        match self {
            Self::Rules => {
                let rules = rules([&word.to_owned()]);
                !rules.is_empty() && rules.iter().all(|rule| is_tool_rule(rule))
            }
            Self::Directories => {
                !word.contains(char::is_whitespace) && (word.contains('/') || word.starts_with(['.', '~']))
            }
            Self::Documents => {
                word.starts_with('{') || !word.contains(char::is_whitespace) && word.ends_with(".json")
            }
            Self::Sources => word.split(',').all(|source| ["user", "project", "local"].contains(&source)),
            Self::Names => false,
        }
    }
}

/// True for a flag; `-` alone is a word.
fn is_flag(word: &str) -> bool {
    word.len() > 1 && word.starts_with('-') && !word.contains(char::is_whitespace)
}

/// True if the arguments contain the prompt as the value of a flag, or the prompt comes as JSON lines.
fn names_prompt(arguments: &[OsString]) -> bool {
    let words: Vec<&str> = arguments.iter().map(|argument| argument.to_str().unwrap_or_default()).collect();
    words.iter().enumerate().any(|(at, word)| {
        let next = words.get(at + 1).copied().unwrap_or("-p");
        match *word {
            "-p" | "--print" | "--prompt" | "-i" | "--prompt-interactive" => !is_flag(next),
            "--input-format" => next.starts_with("stream"),
            word => {
                word.starts_with("--input-format=stream")
                    || word.starts_with("--prompt=")
                    || word.starts_with("--print=")
            }
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_behind_a_list_flag_belong_to_the_list_and_a_prompt_does_not() {
        for (given, expected) in [
            (&["--allowedTools", "Read", "Edit"][..], &["--allowedTools", "Read,Edit"][..]),
            (&["--allowedTools", "Bash(git *)", "mcp__a__b"], &["--allowedTools", "Bash(git *),mcp__a__b"]),
            (&["--allowedTools", "Read", "Explain this"], &["--allowedTools", "Read", "Explain this"]),
            (&["--allowed-tools", "Read", "explain"], &["--allowed-tools", "Read", "explain"]),
            (&["-p", "x", "--allowedTools", "Read", "get_it"], &["-p", "x", "--allowedTools", "Read,get_it"]),
            (
                &["--add-dir", "../a", "/b", "Look around"],
                &["--add-dir", "../a", "--add-dir", "/b", "Look around"],
            ),
            (&["--add-dir", "a", "look"], &["--add-dir", "a", "look"]),
            (
                &["--mcp-config", "a.json", "{\"x\": 1}", "Go on"],
                &["--mcp-config", "a.json", "--mcp-config", "{\"x\": 1}", "Go on"],
            ),
            (&["--setting-sources", "user", "project", "Go"], &["--setting-sources", "user,project", "Go"]),
            (&["--tools", "", "Go"], &["--tools", "", "Go"]),
            (&["--allowedTools", "Read", "--", "Edit"], &["--allowedTools", "Read", "--", "Edit"]),
            (&["--debug", "api", "-p", "x"], &["--debug=api", "-p", "x"]),
            (&["--worktree", "go"], &["--worktree", "go"]),
            (&["--allowedTools", "Read", "-p", "Edit"], &["--allowedTools", "Read", "-p", "Edit"]),
        ] {
            let given: Vec<OsString> = given.iter().map(OsString::from).collect();
            let expected: Vec<OsString> = expected.iter().map(OsString::from).collect();
            assert_eq!(separated(given), expected);
        }
    }
}
