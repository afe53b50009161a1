//! Flags that programs which start us may give, and that change nothing here.

use clap::{Arg, ArgAction, ArgMatches, Command, Error, FromArgMatches};

/// A flag, and whether a value comes with it.
enum Takes {
    Nothing,
    Value,
    /// A value, or not.
    Perhaps,
}

/// What the SDKs of Qwen Code and Claude pass on, and their users may ask for.
const IGNORED: &[(&str, Takes)] = &[
    ("bare", Takes::Nothing),
    ("experimental-lsp", Takes::Nothing),
    ("extensions", Takes::Value),
    ("input-file", Takes::Value),
    ("json-fd", Takes::Value),
    ("json-file", Takes::Value),
    ("openai-logging", Takes::Nothing),
    ("openai-logging-dir", Takes::Value),
    ("output-style", Takes::Value),
    ("sandbox-image", Takes::Value),
    ("sandbox-session-id", Takes::Value),
    ("worktree", Takes::Perhaps),
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
        self.given = IGNORED.iter().map(|(name, _)| *name).filter(given).collect();
        Ok(())
    }
}

impl clap::Args for IgnoredFlags {
    fn augment_args(command: Command) -> Command {
        command.args(IGNORED.iter().map(|(name, takes)| {
            let flag = Arg::new(*name).long(*name).hide(true);
            match takes {
                Takes::Nothing => flag.action(ArgAction::SetTrue),
                Takes::Value => flag.action(ArgAction::Append).allow_hyphen_values(true),
                Takes::Perhaps => flag.action(ArgAction::Append).num_args(0..=1).default_missing_value(""),
            }
        }))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}
