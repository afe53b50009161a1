//! `/export`

mod html;
mod jsonl;
mod markdown;

use qwen_events::Message;
use qwen_tools::workspace::Workspace;

use super::{Builtin, Call, CommandContext, CommandOutcome};
use crate::redact::hide_secrets;

pub(super) const COMMAND: Builtin = Builtin {
    name: "export",
    aliases: &[],
    description: "Show the conversation as Markdown, HTML or JSON lines, or write it to a file.",
    argument_hint: "[md|html|jsonl|FILE]",
    subcommands: &[],
    live: false,
    run,
};

/// The format of an exported conversation.
#[derive(Clone, Copy)]
enum ExportFormat {
    Markdown,
    Html,
    Jsonl,
}

impl ExportFormat {
    /// The format that a word or the ending of a file name denotes.
    fn parse(word: &str) -> Option<Self> {
        match word.to_ascii_lowercase().as_str() {
            "md" | "markdown" => Some(Self::Markdown),
            "html" | "htm" => Some(Self::Html),
            "jsonl" | "ndjson" => Some(Self::Jsonl),
            _ => None,
        }
    }

    fn write(self, messages: &[Message]) -> String {
        match self {
            Self::Markdown => markdown::write(messages),
            Self::Html => html::write(messages),
            Self::Jsonl => jsonl::write(messages),
        }
    }
}

fn run(call: &Call<'_>, cx: &CommandContext<'_>) -> CommandOutcome {
    let messages = cx.history.unwrap_or_default();
    if call.args.is_empty() {
        return CommandOutcome::info(markdown::write(messages));
    }
    if let Some(format) = ExportFormat::parse(call.args) {
        return CommandOutcome::info(format.write(messages));
    }
    let ending = call.args.rsplit_once('.').and_then(|(_, ending)| ExportFormat::parse(ending));
    let text = ending.unwrap_or(ExportFormat::Markdown).write(&without_secrets(messages, cx));
    let written = Workspace::new(cx.cwd, &[])
        .and_then(|workspace| workspace.target(call.args))
        .and_then(|target| target.write(text.as_bytes()));
    match written {
        Ok(_) => CommandOutcome::info(format!("The conversation is in {}.", call.args)),
        Err(error) => {
            CommandOutcome::error(format!("The conversation could not be written to {}: {error}", call.args))
        }
    }
}

/// The conversation for a file: events are redacted on their way, files here.
fn without_secrets(messages: &[Message], cx: &CommandContext<'_>) -> Vec<Message> {
    let mut messages = messages.to_vec();
    if let Some(redactor) = cx.redactor {
        for message in &mut messages {
            hide_secrets(&mut message.parts, redactor);
        }
    }
    messages
}
