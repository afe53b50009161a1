//! The available commands.

use std::path::PathBuf;
use std::sync::Arc;

use qwen_events::{CommandCall, CommandKind};

use super::builtin::{self, Builtin};
use super::custom::{self, Template};
use super::fuzzy::Query;
use super::{CommandContext, CommandOutcome};

#[derive(Default)]
pub struct CommandSet {
    custom: Vec<Template>,
    /// Names of commands that are switched off.
    disabled: Vec<String>,
    has_claude_names: bool,
}

/// The name of a built-in command in Claude's CLI.
fn claude_name(name: &str) -> &str {
    match name {
        "compress" => "compact",
        other => other,
    }
}

/// The directories of user-defined commands, which contain `NAME.md` files.
#[derive(Debug, Clone, Default)]
pub struct CommandDirectories {
    /// The user's commands: `$QWEN_HOME/commands`.
    pub user: Vec<PathBuf>,
    /// The workspace's commands: `.qwen/commands`. Only set if the folder is trusted.
    pub workspace: Vec<PathBuf>,
    /// The plugins' commands, by plugin name, which prefixes the command names.
    pub plugins: Vec<(Arc<str>, PathBuf)>,
}

/// A command in a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandEntry {
    pub name: Arc<str>,
    pub description: Arc<str>,
    pub argument_hint: Arc<str>,
}

/// The result of a lookup.
pub(super) enum FoundCommand<'a> {
    Builtin(&'static Builtin),
    Custom(&'a Template),
}

impl CommandSet {
    /// Loads the built-in commands and those found in `places`.
    pub fn load(places: &CommandDirectories) -> Self {
        let mut custom: Vec<Template> = Vec::new();
        // Workspace commands come last and override the user's commands of the same name, but never a
        // built-in one.
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
        Self { custom, disabled: Vec::new(), has_claude_names: false }
    }

    /// Lists commands under the names that they have in Claude's CLI. Calls may use either name in any
    /// session.
    pub fn with_claude_names(mut self) -> Self {
        self.has_claude_names = true;
        self
    }

    /// Switches off the commands with these names or aliases, with or without the `/`.
    pub fn without(mut self, names: &[String]) -> Self {
        self.disabled = names.iter().map(|name| name.trim_start_matches('/').to_lowercase()).collect();
        self.custom.retain(|template| !self.disabled.contains(&template.name.to_lowercase()));
        self
    }

    /// The built-in command with this name or alias, unless it is switched off.
    pub(super) fn builtin(&self, name: &str) -> Option<&'static Builtin> {
        builtin::find(name).filter(|command| !self.is_disabled(command))
    }

    fn is_disabled(&self, command: &Builtin) -> bool {
        self.disabled.iter().any(|name| command.name == name || command.aliases.contains(&name.as_str()))
    }

    /// All commands, sorted by name.
    pub fn list(&self) -> Vec<CommandEntry> {
        let builtin =
            builtin::ALL.iter().filter(|command| !self.is_disabled(command)).map(|command| CommandEntry {
                name: if self.has_claude_names { claude_name(command.name) } else { command.name }.into(),
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

    pub fn names(&self) -> Vec<Arc<str>> {
        self.list().into_iter().map(|command| command.name).collect()
    }

    pub(super) fn find(&self, name: &str) -> Option<FoundCommand<'_>> {
        if let Some(command) = self.builtin(name) {
            return Some(FoundCommand::Builtin(command));
        }
        self.custom.iter().find(|template| &*template.name == name).map(FoundCommand::Custom)
    }

    /// True if the command can run during a turn: it neither needs nor changes the conversation.
    pub fn is_live(&self, call: &CommandCall) -> bool {
        if call.kind == CommandKind::Help {
            return true;
        }
        match call.path.first().map(|name| self.find(name.trim_start_matches('/'))) {
            Some(Some(FoundCommand::Builtin(command))) => command.live,
            Some(Some(FoundCommand::Custom(_))) => false,
            // An unknown command can be reported at any time.
            Some(None) | None => call.kind == CommandKind::Slash,
        }
    }

    pub fn run(&self, call: &CommandCall, cx: &CommandContext<'_>) -> CommandOutcome {
        let name = match call.kind {
            CommandKind::Help => "help",
            CommandKind::Slash => call.path.first().map_or("", |name| name.trim_start_matches('/')),
            CommandKind::At => return at_prompt(call),
        };
        if name.is_empty() {
            return CommandOutcome::error("A / alone names no command. Type /help for a list.");
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
            None => CommandOutcome::error(format!(
                "There is no command '/{name}'.{} Type /help for a list.",
                self.nearest(name).map(|near| format!(" Did you mean '/{near}'?")).unwrap_or_default()
            )),
        }
    }

    /// The command that a declared path names in nested directories: `["git", "pr"]` is `/git:pr`. Also
    /// returns how many path elements belong to the command's name.
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
            let score = Query::new(name).score(&known).or_else(|| Query::new(&known).score(name))?;
            Some((score, known))
        });
        let scored = scored.max_by_key(|(score, _)| *score).map(|(_, known)| known);
        // Letters that were swapped or replaced.
        scored.or_else(|| {
            let near = |known: &Arc<str>| strsim::osa_distance(name, known);
            self.names().into_iter().min_by_key(near).filter(|known| near(known) <= 1)
        })
    }
}

/// The prompt made from a template. Templates have no sub-commands, so further names are arguments.
fn submitted(template: &Template, further: &[Arc<str>], args: &str) -> CommandOutcome {
    let rest: Vec<&str> = further.iter().map(|word| &**word).chain([args.trim()]).collect();
    CommandOutcome::submit(template.fill(rest.join(" ").trim()))
}

/// `@path …` declared as a command is handled as a prompt that starts with the reference.
fn at_prompt(call: &CommandCall) -> CommandOutcome {
    let paths: Vec<String> = call.path.iter().map(|path| super::at::at_reference(path)).collect();
    CommandOutcome::submit(format!("{} {}", paths.join(" "), call.args).trim().to_owned())
}
