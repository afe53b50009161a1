//! Reads the command line and normalizes it for the parser.

mod fast_path;
mod list_flags;

use std::ffi::OsString;
use std::path::Path;

use clap::error::ErrorKind;
use clap::{Args, Command, CommandFactory, FromArgMatches, Parser};

use self::list_flags::separated;
use super::{Cli, ConfigArgs, Configuration, Run, Subcommands};
use crate::settings::file;

/// The parsed command line of this process, and a notice if an argument was not UTF-8.
pub fn parsed() -> Result<(Cli, Option<&'static str>), clap::Error> {
    let arguments = arguments();
    match parse(&arguments) {
        Err(error) if error.kind() == ErrorKind::InvalidUtf8 => {
            let converted = arguments.iter().map(|argument| argument.to_string_lossy().into_owned().into());
            let notice = "notice: an argument is not UTF-8; invalid sequences were replaced by U+FFFD";
            Ok((parse(&converted.collect::<Vec<OsString>>())?, Some(notice)))
        }
        parsed => Ok((parsed?, None)),
    }
}

/// Parses the command line. `qwen help` is `qwen --help`, and `qwen help sessions` is `qwen sessions --help`.
/// Flags before a subcommand that accepts them belong to that subcommand. `config` accepts the flags of any
/// run, before or after it.
fn parse(arguments: &[OsString]) -> Result<Cli, clap::Error> {
    if let Some(run) = fast_path::read(arguments).or_else(|| only_flags(arguments)) {
        return Ok(Cli { command: None, run });
    }
    let cli = match Cli::try_parse_from(arguments) {
        Ok(cli) => cli,
        Err(error) if error.kind() == ErrorKind::UnknownArgument && arguments[1] == *CONFIG => {
            let asked = Cli::try_parse_from(arguments[..1].iter().chain(&arguments[2..])).ok();
            let is_one =
                |cli: &Cli| cli.command.is_none() && cli.run.prompt.is_none() && cli.run.words.len() < 2;
            return asked.filter(is_one).map(|cli| settings_of(cli.run, 0)).ok_or(error);
        }
        Err(error) => return Err(misspelt_before_flags(arguments).unwrap_or(error)),
    };
    let (words, flags) = match &cli.run.words[..] {
        words if words.is_empty() || cli.run.prompt.is_some() => return Ok(cli),
        words => (words, arguments.len().saturating_sub(words.len())),
    };
    if flags == 1
        && words[0] == "help"
        && let Some(help) = requested_help(arguments)
    {
        return Err(help);
    }
    if let Some(error) = foreign_subcommand(words) {
        return Err(error);
    }
    let word = arguments.iter().rposition(|argument| argument == words[0].as_str()).unwrap_or(flags);
    let turned = arguments[..1].iter().chain(&arguments[word..]).chain(&arguments[1..word]);
    if let Ok(turned) = Cli::try_parse_from(turned)
        && turned.command.is_some()
    {
        return Ok(turned);
    }
    if let Some(error) = mistyped_subcommand(words) {
        return Err(error);
    }
    // Only if all words come last; otherwise the first may be the value of a flag.
    if arguments[flags..].iter().zip(words).any(|(argument, word)| argument != word.as_str()) {
        return Ok(cli);
    }
    if words[0] == CONFIG {
        // If the next word is not a setting, the words are a prompt.
        let is_key = |word: &String| file::is_key(word.split(['.', '[']).next().unwrap_or_default());
        if words.len() == 1 || (words.len() == 2 && is_key(&words[1])) {
            return Ok(settings_of(cli.run, 1));
        }
    }
    Ok(cli)
}

/// The help for `qwen help` or `qwen help SUBCOMMAND`. `None` if further words make it a prompt.
fn requested_help(arguments: &[OsString]) -> Option<clap::Error> {
    let flag = OsString::from("--help");
    let asked = arguments[..1].iter().chain(&arguments[2..]).chain([&flag]);
    let is_known =
        |name: &OsString| name.to_str().is_some_and(|name| Cli::command().find_subcommand(name).is_some());
    let help = Cli::try_parse_from(asked).err().filter(|error| error.kind() == ErrorKind::DisplayHelp);
    help.filter(|_| arguments.get(2).is_none_or(is_known))
}

/// Parses a line of nothing but flags that `fast_path` leaves to clap. Not defining the subcommands saves a
/// third of the parser's work. Everything else, errors included, goes to the complete parser.
fn only_flags(arguments: &[OsString]) -> Option<Run> {
    let mut command = Run::augment_args(Command::new("qwen"));
    let mut matches = command.try_get_matches_from_mut(arguments).ok()?;
    let run = Run::from_arg_matches_mut(&mut matches).ok();
    // Not freed: that would take time and gain nothing in a short process.
    std::mem::forget((command, matches));
    run.filter(|run| run.words.is_empty())
}

/// `qwen acp` is `qwen --acp`. An editor that signs its user in repeats our flags before a subcommand, which
/// then counts.
fn as_acp(mut arguments: Vec<OsString>) -> Vec<OsString> {
    if arguments.get(1).is_some_and(|word| word == "acp") {
        arguments[1] = "--acp".into();
    }
    let is_acp = |argument: &OsString| argument == "--acp" || argument == "--experimental-acp";
    if arguments.iter().any(is_acp) && arguments.iter().any(|argument| argument == "auth") {
        let subcommand = arguments.iter().position(|argument| argument == "auth").unwrap_or(1);
        arguments.drain(1..subcommand);
    }
    arguments
}

/// Under the name `qwen-hub` a structured session runs behind a hub: clients that start one worker, such as
/// the official SDKs, start a hub with its flags and notice no difference.
fn as_hub(arguments: Vec<OsString>) -> Vec<OsString> {
    let program = arguments.first().map(Path::new).and_then(Path::file_name).unwrap_or_default();
    let texts: Vec<&str> = arguments.iter().filter_map(|argument| argument.to_str()).collect();
    let is_structured = texts.windows(2).any(|pair| pair[0] == "--input-format" && pair[1] != "text")
        || texts.iter().any(|text| text.starts_with("--input-format=stream"));
    let is_prompt_flag = |text: &str| matches!(text, "-p" | "--prompt" | "--print");
    let has_prompt = texts.windows(2).any(|pair| is_prompt_flag(pair[0]) && !pair[1].starts_with('-'));
    let apart = texts.windows(2).find(|pair| pair[0] == "--dialect").map(|pair| pair[1]);
    let named = apart.or_else(|| texts.iter().find_map(|text| text.strip_prefix("--dialect=")));
    let is_served = named.is_none_or(|name| matches!(name, "qwen" | "claude"));
    if program != "qwen-hub" || !is_structured || has_prompt || !is_served {
        return arguments;
    }
    let claude = ["--channel", "--permission-prompt-tool", "--include-partial-messages", "--verbose"];
    let is_claude = texts.iter().any(|text| claude.contains(&text.split('=').next().unwrap_or_default()))
        || std::env::var("CLAUDE_CODE_ENTRYPOINT").is_ok_and(|entry| entry.starts_with("sdk"));
    let dialect = named.unwrap_or(if is_claude { "claude" } else { "qwen" });
    let own =
        ["hub", "--stand-for-worker", "--min-workers", "0", "--dialect", dialect, "--"].map(OsString::from);
    arguments[..1].iter().chain(&own).chain(&arguments[1..]).cloned().collect()
}

/// Subcommands of Claude Code's and Qwen Code's CLIs that do not exist here.
const FOREIGN_SUBCOMMANDS: &[&str] = &[
    "agents",
    "attach",
    "auto-mode",
    "channel",
    "extensions",
    "gateway",
    "hook",
    "hooks",
    "import",
    "install",
    "kill",
    "login",
    "logout",
    "logs",
    "plugin",
    "plugins",
    "purge",
    "respawn",
    "review",
    "rm",
    "serve",
    "setup-token",
    "stop",
    "ultrareview",
    "update",
    "upgrade",
];

/// Their nested subcommands.
const FOREIGN_ACTIONS: &[&str] = &[
    "add",
    "config",
    "disable",
    "enable",
    "help",
    "install",
    "link",
    "list",
    "marketplace",
    "new",
    "pairing",
    "remove",
    "settings",
    "start",
    "status",
    "stop",
    "uninstall",
    "update",
    "validate",
];

/// The error for a subcommand of another CLI. Sending it to the model as a prompt would cost money.
fn foreign_subcommand(words: &[String]) -> Option<clap::Error> {
    let is_one = FOREIGN_SUBCOMMANDS.contains(&words[0].as_str())
        && words.get(1).is_none_or(|action| words.len() < 4 && FOREIGN_ACTIONS.contains(&action.as_str()));
    is_one.then(|| {
        let message = format!(
            "there is no subcommand '{}' here, which other CLIs have; to send it as a prompt, use: qwen -p \"{}\"\n",
            words[0],
            words.join(" ")
        );
        clap::Error::raw(ErrorKind::InvalidSubcommand, message)
    })
}

/// The error for a mistyped subcommand whose flags only the subcommand has.
fn misspelt_before_flags(arguments: &[OsString]) -> Option<clap::Error> {
    let words = arguments.get(1..)?.iter().map_while(|argument| argument.to_str());
    let words: Vec<String> = words.take_while(|word| !word.starts_with('-')).map(str::to_owned).collect();
    mistyped_subcommand(&words)
}

/// The error for one or two words that look like a mistyped subcommand. Sending them to the model as a prompt
/// would cost money.
fn mistyped_subcommand(words: &[String]) -> Option<clap::Error> {
    let first = words.first().filter(|_| words.len() <= 3)?;
    if first.chars().count() < 4 || first.contains(char::is_whitespace) {
        return None;
    }
    if let [word] = words
        && word == "version"
    {
        let message = "there is no subcommand 'version'; did you mean 'qwen --version'? To send it as a prompt, use: qwen -p \"version\"\n";
        return Some(clap::Error::raw(ErrorKind::InvalidSubcommand, message));
    }
    let command = Cli::command();
    let names: Vec<&str> = command.get_subcommands().map(clap::Command::get_name).collect();
    let (first, prefix) = match words {
        [help, name] if help == "help" => (name, "help "),
        _ => (first, ""),
    };
    let similar = one_error_away(first, &names)?;
    let message = format!(
        "there is no subcommand '{first}'; did you mean 'qwen {prefix}{similar}'? To send it as a prompt, use: qwen -p \"{}\"\n",
        words.join(" ")
    );
    Some(clap::Error::raw(ErrorKind::InvalidSubcommand, message))
}

/// The name at an edit distance of one from `word`.
fn one_error_away<'a>(word: &str, names: &[&'a str]) -> Option<&'a str> {
    let near = |name: &&&str| **name != word && file::distance(word, name) == 1;
    names.iter().find(near).copied()
}

/// The subcommand that shows settings.
const CONFIG: &str = "config";

/// `qwen config` for the settings of a run. `key` is the index of its key among the words.
fn settings_of(mut run: Run, key: usize) -> Cli {
    let args = ConfigArgs {
        json: std::mem::take(&mut run.json),
        key: std::mem::take(&mut run.words).into_iter().nth(key),
        configuration: Configuration::default(),
        run: Some(Box::new(run)),
    };
    Cli { command: Some(Subcommands::Config(args)), run: Run::default() }
}

/// The normalized arguments of this process.
pub fn arguments() -> Vec<OsString> {
    as_hub(as_acp(spelt(separated(std::env::args_os().collect()))))
}

/// Normalizes flags with optional values: `--sandbox WORD` becomes `--sandbox=WORD` if WORD is a valid value;
/// otherwise WORD is the prompt. The same holds for `--telemetry`. `--no-FLAG` switches a known flag off.
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

/// True if `word` is a valid value of the flag, and not the prompt.
fn is_value(flag: &str, word: &str) -> bool {
    match flag {
        "--sandbox" | "-s" => ["auto", "true", "false"].contains(&word),
        "--telemetry" | "--telemetry-log-prompts" => ["true", "false"].contains(&word),
        _ => false,
    }
}

/// True if `word` negates `flag` and is not itself a known flag.
fn is_negation(word: &str, flag: &str) -> bool {
    if fast_path::is_known(word) {
        return false;
    }
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
    fn flags_in_front_of_a_subcommand_that_takes_them_are_its_own() {
        for (given, is_command) in [
            ("qwen --settings {} config", true),
            ("qwen --trust-workspace config model.name", true),
            ("qwen config --settings {}", true),
            ("qwen --json sessions list", true),
            ("qwen --model demo explain this", false),
            ("qwen --yolo config", true),
            ("qwen --model demo config", true),
            ("qwen --model demo config model.name", true),
            ("qwen config --model demo", true),
            ("qwen config model.name --model demo", true),
            ("qwen --json --model demo config", true),
            ("qwen --model demo config server", false),
            ("qwen config --no-such-flag", false),
            ("qwen --model demo -p x config", false),
            ("qwen --model demo sessions of parliament", false),
            ("qwen -p config", false),
            ("qwen --settings config", false),
            ("qwen config the server --yolo", false),
            ("qwen auth status", true),
            ("qwen --settings {} auth status --json", true),
            ("qwen auth login --claudeai", true),
            ("qwen --model demo auth", false),
        ] {
            let given: Vec<OsString> = given.split(' ').map(OsString::from).collect();
            let found = parse(&given).is_ok_and(|cli| cli.command.is_some());
            assert_eq!(found, is_command, "{given:?}");
        }
        for (given, is_help) in [
            ("qwen help", true),
            ("qwen help sessions", true),
            ("qwen help sessions list", true),
            ("qwen help me", false),
            ("qwen help doctor who", false),
            ("qwen -p help sessions", false),
        ] {
            let given: Vec<OsString> = given.split(' ').map(OsString::from).collect();
            let shows = parse(&given).err().is_some_and(|error| error.kind() == ErrorKind::DisplayHelp);
            assert_eq!(shows, is_help, "{given:?}");
        }
        for foreign in
            ["update", "setup-token", "plugin list", "extensions install https://x", "plugin list --json"]
        {
            let given: Vec<OsString> = format!("qwen {foreign}").split(' ').map(OsString::from).collect();
            let error = parse(&given).unwrap_err();
            assert!(error.to_string().contains("no subcommand"), "{foreign}: {error}");
        }
        for prompt in ["update the readme", "review this", "install it --yolo", "stop the server"] {
            let given: Vec<OsString> = format!("qwen {prompt}").split(' ').map(OsString::from).collect();
            assert!(parse(&given).is_ok_and(|cli| cli.command.is_none()), "{prompt}");
        }
    }

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
