//! Flags of other CLIs that are accepted without effect.

use clap::{Arg, ArgAction, ArgMatches, Command, Error, FromArgMatches};

/// Whether a flag takes a value.
enum ValueArity {
    Nothing,
    Value,
    /// An optional value.
    Perhaps,
}

/// A flag without effect: name, short letter and arity.
type IgnoredFlag = (&'static str, Option<char>, ValueArity);

/// Flags in the help of Qwen Code and Claude Code, or passed by their SDKs, without a meaning here.
const IGNORED: &[IgnoredFlag] = &[
    ("all-files", Some('a'), ValueArity::Nothing),
    ("autocompact", None, ValueArity::Value),
    ("background", None, ValueArity::Nothing),
    ("bare", None, ValueArity::Nothing),
    ("bg", None, ValueArity::Nothing),
    ("brief", None, ValueArity::Nothing),
    ("checkpointing", None, ValueArity::Nothing),
    ("chrome", None, ValueArity::Nothing),
    ("cloud", None, ValueArity::Perhaps),
    ("desktop", None, ValueArity::Nothing),
    ("disable-slash-commands", None, ValueArity::Nothing),
    ("environment", None, ValueArity::Value),
    ("experimental-lsp", None, ValueArity::Nothing),
    ("experimental-skills", None, ValueArity::Nothing),
    ("extensions", Some('e'), ValueArity::Value),
    ("file", None, ValueArity::Value),
    ("from-pr", None, ValueArity::Perhaps),
    ("google-api-key", None, ValueArity::Value),
    ("google-search-engine-id", None, ValueArity::Value),
    ("ide", None, ValueArity::Nothing),
    ("input-file", None, ValueArity::Value),
    ("json-fd", None, ValueArity::Value),
    ("json-file", None, ValueArity::Value),
    ("list-extensions", Some('l'), ValueArity::Nothing),
    ("mcp-debug", None, ValueArity::Nothing),
    ("name", Some('n'), ValueArity::Value),
    ("openai-logging", None, ValueArity::Nothing),
    ("openai-logging-dir", None, ValueArity::Value),
    ("output-style", None, ValueArity::Value),
    ("plugin-url", None, ValueArity::Value),
    ("prompt-suggestions", None, ValueArity::Perhaps),
    ("remote-control", None, ValueArity::Perhaps),
    ("remote-control-session-name-prefix", None, ValueArity::Value),
    ("sandbox-image", None, ValueArity::Value),
    ("sandbox-session-id", None, ValueArity::Value),
    ("session-summary", None, ValueArity::Value),
    ("show-memory-usage", None, ValueArity::Nothing),
    ("system-prompt-snapshot", None, ValueArity::Value),
    ("tavily-api-key", None, ValueArity::Value),
    ("teleport", None, ValueArity::Perhaps),
    ("tmux", None, ValueArity::Perhaps),
    ("vlm-switch-mode", None, ValueArity::Value),
    ("web-search-default", None, ValueArity::Value),
    ("worktree", Some('w'), ValueArity::Perhaps),
];

/// The ignored flags on the command line.
#[derive(Debug, Default)]
pub struct IgnoredFlags {
    /// The names of the ignored flags.
    pub given: Vec<&'static str>,
}

impl FromArgMatches for IgnoredFlags {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        let mut ignored = Self::default();
        ignored.update_from_arg_matches(matches)?;
        Ok(ignored)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        let given = |name: &&str| matches.value_source(name) == Some(clap::parser::ValueSource::CommandLine);
        self.given = IGNORED.iter().map(|(name, ..)| *name).filter(given).collect();
        Ok(())
    }
}

impl clap::Args for IgnoredFlags {
    fn augment_args(command: Command) -> Command {
        command.args(IGNORED.iter().map(|(name, letter, takes)| {
            let flag = Arg::new(*name).long(*name).short(*letter).hide(true);
            match takes {
                ValueArity::Nothing => flag.action(ArgAction::SetTrue),
                ValueArity::Value => flag.action(ArgAction::Append).allow_hyphen_values(true),
                // The next word is the prompt, unless the prompt is given elsewhere (see `list_flags`).
                ValueArity::Perhaps => flag
                    .action(ArgAction::Append)
                    .num_args(0..=1)
                    .default_missing_value("")
                    .require_equals(true),
            }
        }))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}
