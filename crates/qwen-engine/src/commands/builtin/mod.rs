//! The built-in slash commands, one file each.

mod agents;
mod approval_mode;
mod chat;
mod clear;
mod compress;
mod copy;
mod diff;
mod export;
mod help;
mod hooks;
mod init;
mod mcp;
mod memory;
mod model;
mod permissions;
mod quit;
mod redo;
mod resume;
mod rewind;
mod settings;
mod shell;
mod stats;
mod summary;
mod tools;
mod undo;

use super::{CommandContext, CommandOutcome, CommandSet};

pub(super) struct Builtin {
    pub name: &'static str,
    pub aliases: &'static [&'static str],
    pub description: &'static str,
    pub argument_hint: &'static str,
    /// Sub-commands and their descriptions.
    pub subcommands: &'static [(&'static str, &'static str)],
    /// It needs no conversation, so it can run during a turn.
    pub live: bool,
    pub run: fn(&Call<'_>, &CommandContext<'_>) -> CommandOutcome,
}

/// The arguments of a command call.
pub(super) struct Call<'a> {
    pub sub: Option<&'a str>,
    pub args: &'a str,
    pub commands: &'a CommandSet,
}

/// All built-in commands, sorted by name.
pub(super) static ALL: [&Builtin; 25] = [
    &agents::COMMAND,
    &approval_mode::COMMAND,
    &chat::COMMAND,
    &clear::COMMAND,
    &compress::COMMAND,
    &copy::COMMAND,
    &diff::COMMAND,
    &export::COMMAND,
    &help::COMMAND,
    &hooks::COMMAND,
    &init::COMMAND,
    &mcp::COMMAND,
    &memory::COMMAND,
    &model::COMMAND,
    &permissions::COMMAND,
    &quit::COMMAND,
    &redo::COMMAND,
    &resume::COMMAND,
    &rewind::COMMAND,
    &settings::COMMAND,
    &shell::COMMAND,
    &stats::COMMAND,
    &summary::COMMAND,
    &tools::COMMAND,
    &undo::COMMAND,
];

/// The command with this name or alias.
pub(super) fn find(name: &str) -> Option<&'static Builtin> {
    ALL.into_iter().find(|command| command.name == name || command.aliases.contains(&name))
}

/// Lines of `name: description`, or the text `none` if there are no items.
fn render_list<'a>(
    title: &str,
    none: &str,
    items: impl Iterator<Item = (&'a str, String)>,
) -> CommandOutcome {
    let lines: Vec<String> = items
        .map(
            |(name, about)| if about.is_empty() { format!("- {name}") } else { format!("- {name}: {about}") },
        )
        .collect();
    if lines.is_empty() {
        CommandOutcome::info(none)
    } else {
        CommandOutcome::info(format!("{title}\n{}", lines.join("\n")))
    }
}

/// The first sentence, for use in lists.
fn first_sentence(text: &str) -> String {
    let line = text.lines().next().unwrap_or_default();
    line.split_once(". ").map_or(line, |(first, _)| first).chars().take(160).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_aliases_are_unique_and_sorted() {
        let names: Vec<&str> = ALL.iter().map(|command| command.name).collect();
        assert!(names.is_sorted());
        let mut words: Vec<&str> =
            ALL.iter().flat_map(|command| command.aliases.iter().copied().chain([command.name])).collect();
        let count = words.len();
        words.sort_unstable();
        words.dedup();
        assert_eq!(words.len(), count);
    }
}
