//! Which commands there are.

use std::path::PathBuf;
use std::sync::Arc;

use qwen_events::{CommandCall, CommandKind};

use super::builtin::{self, Builtin};
use super::custom::{self, Template};
use super::{CommandContext, CommandOutcome};

/// The commands on offer.
#[derive(Default)]
pub struct CommandSet {
    custom: Vec<Template>,
    /// Names of commands that are not offered.
    disabled: Vec<String>,
}

/// Where commands of the user's own are looked for: directories that hold `NAME.md`.
#[derive(Debug, Clone, Default)]
pub struct CommandDirectories {
    /// The user's own: `$QWEN_HOME/commands`.
    pub user: Vec<PathBuf>,
    /// The workspace's: `.qwen/commands`. Only given where the folder is trusted.
    pub workspace: Vec<PathBuf>,
    /// Those of plugins, by the plugin's name, which stands before theirs.
    pub plugins: Vec<(Arc<str>, PathBuf)>,
}

/// A command as it is listed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandEntry {
    /// Its name.
    pub name: Arc<str>,
    /// What it does.
    pub description: Arc<str>,
    /// What it takes.
    pub argument_hint: Arc<str>,
}

/// A command that was found.
pub(super) enum FoundCommand<'a> {
    Builtin(&'static Builtin),
    Custom(&'a Template),
}

impl CommandSet {
    /// The built-in commands and those that are found in `places`.
    pub fn load(places: &CommandDirectories) -> Self {
        let mut custom: Vec<Template> = Vec::new();
        // The workspace's come last and win over the user's own of the same name, but never over a built-in one.
        let own = places.user.iter().chain(&places.workspace).map(|place| (String::new(), place));
        let plugins = places.plugins.iter().map(|(name, place)| (format!("{name}:"), place));
        for (prefix, place) in plugins.chain(own) {
            for template in custom::load(place, &prefix) {
                if builtin::find(&template.name).is_some() {
                    continue;
                }
                custom.retain(|known| known.name != template.name);
                custom.push(template);
            }
        }
        custom.sort_by(|a, b| a.name.cmp(&b.name));
        Self { custom, disabled: Vec::new() }
    }

    /// The same without the commands of these names or aliases, with or without their `/`.
    pub fn without(mut self, names: &[String]) -> Self {
        self.disabled = names.iter().map(|name| name.trim_start_matches('/').to_lowercase()).collect();
        self.custom.retain(|template| !self.disabled.contains(&template.name.to_lowercase()));
        self
    }

    /// The built-in command of this name or alias, unless it is switched off.
    pub(super) fn builtin(&self, name: &str) -> Option<&'static Builtin> {
        builtin::find(name).filter(|command| !self.is_disabled(command))
    }

    fn is_disabled(&self, command: &Builtin) -> bool {
        self.disabled.iter().any(|name| command.name == name || command.aliases.contains(&name.as_str()))
    }

    /// All of them, by name.
    pub fn list(&self) -> Vec<CommandEntry> {
        let builtin =
            builtin::ALL.iter().filter(|command| !self.is_disabled(command)).map(|command| CommandEntry {
                name: command.name.into(),
                description: command.description.into(),
                argument_hint: command.argument_hint.into(),
            });
        let custom = self.custom.iter().map(|template| CommandEntry {
            name: template.name.clone(),
            description: template.description.clone(),
            argument_hint: template.argument_hint.clone(),
        });
        let mut all: Vec<CommandEntry> = builtin.chain(custom).collect();
        all.sort_by(|a, b| a.name.cmp(&b.name));
        all
    }

    /// Their names.
    pub fn names(&self) -> Vec<Arc<str>> {
        self.list().into_iter().map(|command| command.name).collect()
    }

    pub(super) fn find(&self, name: &str) -> Option<FoundCommand<'_>> {
        if let Some(command) = self.builtin(name) {
            return Some(FoundCommand::Builtin(command));
        }
        self.custom.iter().find(|template| &*template.name == name).map(FoundCommand::Custom)
    }

    /// Whether the command can run while a turn does: it needs no conversation and changes none.
    pub fn is_live(&self, call: &CommandCall) -> bool {
        if call.kind == CommandKind::Help {
            return true;
        }
        match call.path.first().map(|name| self.find(name.trim_start_matches('/'))) {
            Some(Some(FoundCommand::Builtin(command))) => command.live,
            Some(Some(FoundCommand::Custom(_))) => false,
            // That it is unknown can be said at any time.
            Some(None) | None => call.kind == CommandKind::Slash,
        }
    }

    /// Runs a command.
    pub fn run(&self, call: &CommandCall, cx: &CommandContext<'_>) -> CommandOutcome {
        let name = match call.kind {
            CommandKind::Help => "help",
            CommandKind::Slash => call.path.first().map_or("", |name| name.trim_start_matches('/')),
            CommandKind::At => return at_prompt(call),
        };
        if name.is_empty() {
            return CommandOutcome::fail("A / alone names no command. Type /help for a list.");
        }
        if let Some((template, taken)) = self.nested(call).filter(|_| self.find(name).is_none()) {
            return submitted(template, &call.path[taken..], &call.args);
        }
        match self.find(name) {
            Some(FoundCommand::Builtin(command)) => {
                let sub = call.path.get(1).map(|sub| &**sub);
                (command.run)(&builtin::Call { sub, args: call.args.trim(), commands: self }, cx)
            }
            Some(FoundCommand::Custom(template)) => submitted(template, &call.path[1..], &call.args),
            None => CommandOutcome::fail(format!(
                "There is no command '/{name}'.{} Type /help for a list.",
                self.nearest(name).map(|near| format!(" Did you mean '/{near}'?")).unwrap_or_default()
            )),
        }
    }

    /// The command in directories that a declared path names: `["git", "pr"]` is `/git:pr`. Also how many of the
    /// path's names are its own.
    fn nested(&self, call: &CommandCall) -> Option<(&Template, usize)> {
        (2..=call.path.len()).rev().find_map(|length| {
            let name = call.path[..length].join(":");
            let name = name.trim_start_matches('/');
            self.custom.iter().find(|template| &*template.name == name).map(|template| (template, length))
        })
    }

    fn nearest(&self, name: &str) -> Option<Arc<str>> {
        if name.is_empty() {
            return None;
        }
        let scored = self.names().into_iter().filter_map(|known| {
            let score = super::fuzzy::score(name, &known).or_else(|| super::fuzzy::score(&known, name))?;
            Some((score, known))
        });
        scored.max_by_key(|(score, _)| *score).map(|(_, known)| known)
    }
}

/// The prompt that a template makes. It has no sub-commands, so further names are arguments.
fn submitted(template: &Template, further: &[Arc<str>], args: &str) -> CommandOutcome {
    let rest: Vec<&str> = further.iter().map(|word| &**word).chain([args.trim()]).collect();
    CommandOutcome::submit(template.fill(rest.join(" ").trim()))
}

/// `@path …` declared as a command is a prompt like any other that starts so.
fn at_prompt(call: &CommandCall) -> CommandOutcome {
    let paths: Vec<String> = call.path.iter().map(|path| super::at::spelt(path)).collect();
    CommandOutcome::submit(format!("{} {}", paths.join(" "), call.args).trim().to_owned())
}
