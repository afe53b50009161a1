//! The initial options of the interface.

use qwen_permissions::{Rule, RuleSource};
use qwen_tui::input::Keymap;
use std::path::Path;

use qwen_tui::{FooterItem, GreetingLine, Options, WorkspaceName};

use super::files::Files;
use super::first_run;
use super::tty::Tty;
use crate::cli::Run;
use crate::session::setup;
use crate::settings::file::{TerminalSettings, read_file};
use crate::settings::{Config, Invocation};

/// The maximum number of lines printed of a command's output.
const OUTPUT_LINES: usize = 20;

pub fn options(
    run: &Run,
    config: &Config,
    invocation: &Invocation,
    tty: &Tty,
    files: &Files,
    untrusted: &[String],
) -> Options {
    let (columns, rows) = tty.size();
    let dumb = invocation.var("TERM").is_none_or(|term| term == "dumb");
    let locale = ["LC_ALL", "LC_CTYPE", "LANG"].into_iter().find_map(|name| invocation.var(name));
    let unicode = locale.is_none_or(|locale| {
        let locale = locale.to_ascii_lowercase();
        locale.contains("utf-8") || locale.contains("utf8")
    });
    let version = env!("CARGO_PKG_VERSION");
    let model = if config.model.config.is_ok() { &*config.model.name } else { "no model" };
    let title = format!("qwen {version}, {model} in {}", config.workspace.cwd.display());
    let mut greeting = vec![GreetingLine::Prose(title)];
    if let Err(error) = &config.model.config {
        greeting.push(error.message.to_string().into());
        greeting.extend(first_run::advice(invocation).into_iter().map(GreetingLine::Command));
    } else if let Some(error) = &config.model.undecided {
        greeting.push(error.message.to_string().into());
        greeting.push("Choose one with /model NAME".to_owned().into());
    }
    let hint = "? lists the keys, / the commands; @ names a file, ! runs a command.";
    greeting.push(hint.to_owned().into());
    let settings = &config.settings.terminal;
    let keys = settings.keys.iter().map(|(action, keys)| (action.as_str(), keys.as_str()));
    let keymap = Keymap::with(keys).unwrap_or_else(|unknown| {
        let problem = format!(
            "The setting \"terminal.keys\" is ignored: there is no action or key '{}'.",
            unknown.word
        );
        greeting.push(problem.into());
        Keymap::default()
    });
    let footer = footer(settings, &mut greeting);
    let untrusted = if files.has_declined(untrusted) { Vec::new() } else { untrusted.to_vec() };
    Options {
        columns,
        rows,
        colors: !dumb && invocation.var("NO_COLOR").is_none(),
        unicode: unicode && !dumb,
        plain: dumb
            || run.screen_reader
            || settings.screen_reader.unwrap_or_default()
            || invocation.var("ACCESSIBLE").is_some(),
        wrap_prose: settings.wrap.as_deref() != Some("terminal"),
        output_lines: settings.output_lines.unwrap_or(OUTPUT_LINES),
        keymap,
        check_rule: |rule| {
            let parsed = Rule::parse(rule, RuleSource::Session, qwen_engine::TOOLS);
            parsed.map(drop).map_err(|error| error.to_string())
        },
        vim: settings.vim.unwrap_or_default(),
        footer,
        history: files.history(),
        draft: files.draft(),
        seed: format!("{:08x}", fastrand::u32(..)),
        model: model.to_owned(),
        mode: config.workspace.policy.mode().name().to_owned(),
        window: setup::window(config).tokens,
        workspace: workspace_name(&config.workspace.cwd),
        greeting,
        untrusted,
    }
}

fn workspace_name(cwd: &Path) -> WorkspaceName {
    let directory = cwd.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    WorkspaceName { directory, branch: branch(cwd) }
}

/// The facts in the footer. Unknown names are reported and left out.
fn footer(settings: &TerminalSettings, greeting: &mut Vec<GreetingLine>) -> Vec<FooterItem> {
    let Some(names) = &settings.footer else { return FooterItem::ALL.to_vec() };
    let mut items = Vec::new();
    for name in names {
        match FooterItem::parse(name) {
            Some(item) => items.push(item),
            None => {
                let known: Vec<&str> = FooterItem::ALL.iter().map(|item| item.name()).collect();
                let problem = format!(
                    "The setting \"terminal.footer\" has no item '{name}'; the items are {}.",
                    known.join(", ")
                );
                greeting.push(problem.into());
            }
        }
    }
    items
}

/// The checked-out branch, read from git's file, because starting a program would take longer than the rest
/// of the start.
fn branch(cwd: &std::path::Path) -> String {
    let head = cwd.ancestors().find_map(|folder| read_file(&folder.join(".git/HEAD")).ok());
    let head = head.unwrap_or_default();
    match head.trim().strip_prefix("ref: refs/heads/") {
        Some(branch) => branch.to_owned(),
        None => head.trim().chars().take(8).collect(),
    }
}
