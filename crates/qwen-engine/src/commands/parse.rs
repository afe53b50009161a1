//! Detects a command in the user's input.

use std::sync::Arc;

use qwen_events::{CommandCall, CommandKind};

use super::CommandSet;
use super::set::FoundCommand;

/// Parses `text` as a slash or help command; `None` for plain text.
pub fn parse(text: &str, commands: &CommandSet) -> Option<CommandCall> {
    let text = text.trim();
    if text == "?" || text.starts_with("? ") {
        return Some(CommandCall {
            kind: CommandKind::Help,
            path: Vec::new(),
            args: text[1..].trim().into(),
        });
    }
    let rest = text.strip_prefix('/')?;
    let (name, mut args) = word(rest);
    if rest.is_empty() {
        // This input is never meant for a model.
        return Some(CommandCall { kind: CommandKind::Slash, path: Vec::new(), args: "".into() });
    }
    // A second slash makes it a path.
    if name.is_empty() || name.contains('/') || !name.starts_with(|c: char| c.is_ascii_alphanumeric()) {
        return None;
    }
    let mut path: Vec<Arc<str>> = vec![name.into()];
    if let Some(FoundCommand::Builtin(command)) = commands.find(name) {
        let (sub, after) = word(args);
        if command.subcommands.iter().any(|(known, _)| *known == sub) {
            path.push(sub.into());
            args = after;
        }
    }
    Some(CommandCall { kind: CommandKind::Slash, path, args: args.into() })
}

/// The first word and the rest.
fn word(text: &str) -> (&str, &str) {
    match text.find(char::is_whitespace) {
        Some(end) => (&text[..end], text[end..].trim()),
        None => (text, ""),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_told_from_text_and_paths() {
        let commands = CommandSet::default();
        let cases: &[(&str, Option<(&[&str], &str)>)] = &[
            ("/help", Some((&["help"], ""))),
            ("  /chat list  ", Some((&["chat", "list"], ""))),
            ("/chat save my tag", Some((&["chat", "save"], "my tag"))),
            ("/chat unknown", Some((&["chat"], "unknown"))),
            ("/nope a b", Some((&["nope"], "a b"))),
            ("/model\tqwen3", Some((&["model"], "qwen3"))),
            ("?", Some((&[], ""))),
            ("? model", Some((&[], "model"))),
            ("/usr/bin/x fails", None),
            ("/", Some((&[], ""))),
            ("/ help", None),
            ("// a comment", None),
            ("/*", None),
            ("what is /help?", None),
            ("??", None),
            ("", None),
        ];
        for (text, expected) in cases {
            let found = parse(text, &commands);
            let found = found
                .as_ref()
                .map(|call| (call.path.iter().map(|name| &**name).collect::<Vec<_>>(), &*call.args));
            assert_eq!(found, expected.map(|(path, args)| (path.to_vec(), args)), "{text:?}");
        }
    }
}
