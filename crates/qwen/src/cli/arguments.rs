//! The command line as it was given, in the spellings that the parser knows.

use std::ffi::OsString;

use clap::CommandFactory;

use super::Cli;

/// The arguments, spelt as the parser knows them.
pub fn arguments() -> Vec<OsString> {
    spelt(std::env::args_os())
}

/// `--sandbox WORD` becomes `--sandbox=WORD`, where WORD is one that fits: anything else is the prompt. So with telemetry. `--no-FLAG` of a
/// flag that we know switches it off.
fn spelt(arguments: impl IntoIterator<Item = OsString>) -> Vec<OsString> {
    let mut spelt: Vec<OsString> = Vec::new();
    let mut plain = false;
    for argument in arguments {
        let last = spelt.last().and_then(|last| last.to_str());
        match argument.to_str() {
            _ if plain => spelt.push(argument),
            Some(word) if last.is_some_and(|last| is_value(last, word)) => {
                let mut joined = spelt.pop().unwrap_or_default();
                joined = if joined == *"-s" { "--sandbox".into() } else { joined };
                joined.push("=");
                joined.push(word);
                spelt.push(joined);
            }
            Some("--no-sandbox") => spelt.push("--sandbox=false".into()),
            Some(word) if word.strip_prefix("--no-").is_some_and(|flag| is_negation(word, flag)) => {}
            Some(word) => {
                plain = word == "--";
                spelt.push(argument);
            }
            None => spelt.push(argument),
        }
    }
    spelt
}

/// Whether `word` is the value of a flag that may have one, and not the prompt.
fn is_value(flag: &str, word: &str) -> bool {
    match flag {
        "--sandbox" | "-s" => ["auto", "true", "false"].contains(&word),
        "--telemetry" | "--telemetry-log-prompts" => ["true", "false"].contains(&word),
        _ => false,
    }
}

/// Whether `word` is the negation of a known flag rather than a flag of its own.
fn is_negation(word: &str, flag: &str) -> bool {
    let command = Cli::command();
    let known = |name: &str| {
        command.get_arguments().any(|arg| {
            arg.get_long() == Some(name)
                || arg.get_all_aliases().is_some_and(|aliases| aliases.contains(&name))
        })
    };
    !known(&word[2..]) && known(flag)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_spellings_are_understood() {
        for (given, expected) in [
            ("qwen --sandbox true -p x", "qwen --sandbox=true -p x"),
            ("qwen -s auto x", "qwen --sandbox=auto x"),
            ("qwen --sandbox explain", "qwen --sandbox explain"),
            ("qwen --no-sandbox x", "qwen --sandbox=false x"),
            ("qwen --no-verbose --no-yolo x", "qwen x"),
            ("qwen --no-telemetry x", "qwen --no-telemetry x"),
            ("qwen --telemetry false x", "qwen --telemetry=false x"),
            ("qwen --telemetry explain", "qwen --telemetry explain"),
            ("qwen --no-such-flag", "qwen --no-such-flag"),
            ("qwen -- --no-yolo", "qwen -- --no-yolo"),
        ] {
            let given = given.split(' ').map(OsString::from);
            let expected: Vec<OsString> = expected.split(' ').map(OsString::from).collect();
            assert_eq!(spelt(given), expected);
        }
    }
}
