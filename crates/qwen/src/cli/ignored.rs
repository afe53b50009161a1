//! Flags that programs which start us may give, and that change nothing here.

use clap::{Arg, ArgAction, ArgMatches, Command, Error, FromArgMatches};

/// Whether a value comes with a flag.
enum Takes {
    Nothing,
    Value,
    /// A value, or not.
    Perhaps,
}

/// A flag without effect: its name, its letter, and whether a value comes with it.
type IgnoredFlag = (&'static str, Option<char>, Takes);

/// What the CLIs of Qwen Code and Claude list in their help, and their SDKs pass on, without a meaning here.
const IGNORED: &[IgnoredFlag] = &[
    ("acp", None, Takes::Nothing),
    ("all-files", Some('a'), Takes::Nothing),
    ("autocompact", None, Takes::Value),
    ("background", None, Takes::Nothing),
    ("bare", None, Takes::Nothing),
    ("bg", None, Takes::Nothing),
    ("brief", None, Takes::Nothing),
    ("checkpointing", None, Takes::Nothing),
    ("chrome", None, Takes::Nothing),
    ("cloud", None, Takes::Perhaps),
    ("desktop", None, Takes::Nothing),
    ("disable-slash-commands", None, Takes::Nothing),
    ("environment", None, Takes::Value),
    ("experimental-acp", None, Takes::Nothing),
    ("experimental-lsp", None, Takes::Nothing),
    ("experimental-skills", None, Takes::Nothing),
    ("extensions", Some('e'), Takes::Value),
    ("file", None, Takes::Value),
    ("from-pr", None, Takes::Perhaps),
    ("google-api-key", None, Takes::Value),
    ("google-search-engine-id", None, Takes::Value),
    ("ide", None, Takes::Nothing),
    ("input-file", None, Takes::Value),
    ("json-fd", None, Takes::Value),
    ("json-file", None, Takes::Value),
    ("list-extensions", Some('l'), Takes::Nothing),
    ("mcp-debug", None, Takes::Nothing),
    ("name", Some('n'), Takes::Value),
    ("openai-logging", None, Takes::Nothing),
    ("openai-logging-dir", None, Takes::Value),
    ("output-style", None, Takes::Value),
    ("plugin-url", None, Takes::Value),
    ("prompt-suggestions", None, Takes::Perhaps),
    ("remote-control", None, Takes::Perhaps),
    ("remote-control-session-name-prefix", None, Takes::Value),
    ("sandbox-image", None, Takes::Value),
    ("sandbox-session-id", None, Takes::Value),
    ("session-summary", None, Takes::Value),
    ("show-memory-usage", None, Takes::Nothing),
    ("system-prompt-snapshot", None, Takes::Value),
    ("tavily-api-key", None, Takes::Value),
    ("teleport", None, Takes::Perhaps),
    ("tmux", None, Takes::Perhaps),
    ("vlm-switch-mode", None, Takes::Value),
    ("web-search-default", None, Takes::Value),
    ("worktree", Some('w'), Takes::Perhaps),
];

/// The flags of this kind that were given.
#[derive(Debug, Default)]
pub struct IgnoredFlags {
    /// Their names.
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
                Takes::Nothing => flag.action(ArgAction::SetTrue),
                Takes::Value => flag.action(ArgAction::Append).allow_hyphen_values(true),
                // A word behind it is the prompt, unless the prompt stands elsewhere (`list_flags`).
                Takes::Perhaps => flag
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
