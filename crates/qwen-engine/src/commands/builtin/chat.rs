//! `/chat`

use qwen_events::SessionId;

use super::{Builtin, Call, CommandContext, CommandOutcome};
use crate::commands::CommandAction;
use crate::log::Store;

pub(super) const COMMAND: Builtin = Builtin {
    name: "chat",
    aliases: &[],
    description: "Manage conversation history.",
    argument_hint: "list|save [NAME]|resume ID|delete ID|fork",
    subcommands: &[
        ("list", "Count the messages, and list the sessions of this folder."),
        ("save", "Show the name under which this session is stored, or store a copy under another."),
        ("resume", "Continue with another session."),
        ("delete", "Delete another session."),
        ("fork", "Continue in a copy of this session."),
    ],
    live: false,
    run,
};

/// The maximum number of sessions in the list.
const LISTED: usize = 20;

fn run(call: &Call<'_>, cx: &CommandContext<'_>) -> CommandOutcome {
    match call.sub {
        Some("list") => list(cx),
        Some("save") if call.args.is_empty() => with_store(cx, |_| {
            CommandOutcome::info(format!("This session is stored continuously, as {}.", cx.session_id))
        }),
        Some("save") => copied(cx, || match SessionId::parse(call.args) {
            Ok(id) => CommandOutcome::info(format!("Storing a copy as {id}.")).then(CommandAction::Save(id)),
            Err(error) => CommandOutcome::error(format!("'{}': {error}", call.args)),
        }),
        Some("fork") => {
            copied(cx, || CommandOutcome::info("The session continues in a copy.").then(CommandAction::Fork))
        }
        Some(what @ ("resume" | "delete")) if call.args.is_empty() => {
            CommandOutcome::error(format!("Name the session: /chat {what} ID. /chat list lists them."))
        }
        Some("resume") => with_store(cx, |store| {
            with_session(call.args, store, |id| {
                CommandOutcome::info(format!("Continuing with {id}.")).then(CommandAction::Resume(id))
            })
        }),
        Some("delete") if call.args == cx.session_id.as_str() => {
            CommandOutcome::error("This session is in use and cannot be deleted.")
        }
        Some("delete") => with_store(cx, |store| {
            with_session(call.args, store, |id| match store.delete(&id) {
                Ok(()) => CommandOutcome::info(format!("The session {id} is deleted.")),
                Err(error) => CommandOutcome::error(error.to_string()),
            })
        }),
        Some(_) | None => {
            CommandOutcome::error("Choose one: /chat list, save [NAME], resume ID, delete ID or fork.")
        }
    }
}

fn list(cx: &CommandContext<'_>) -> CommandOutcome {
    let mut text = format!("The current session has {} history records.", cx.history.map_or(0, <[_]>::len));
    let sessions = cx.store.and_then(|store| store.list(Some(cx.cwd)).ok()).unwrap_or_default();
    for session in sessions.iter().take(LISTED) {
        let turns = match session.turns {
            Some(1) => ": 1 turn".to_owned(),
            Some(turns) => format!(": {turns} turns"),
            None => String::new(),
        };
        for piece in ["\n- ", session.header.session_id.as_str(), turns.as_str()] {
            text.push_str(piece);
        }
    }
    CommandOutcome::info(text)
}

fn with_store(cx: &CommandContext<'_>, then: impl FnOnce(&Store) -> CommandOutcome) -> CommandOutcome {
    match cx.store {
        Some(store) => then(store),
        None => CommandOutcome::error("Sessions are not stored in this run."),
    }
}

/// Runs `then` if the session has something to copy.
fn copied(cx: &CommandContext<'_>, then: impl FnOnce() -> CommandOutcome) -> CommandOutcome {
    with_store(cx, |store| {
        if store.holds(cx.session_id) {
            then()
        } else {
            CommandOutcome::error("This session has no messages yet, so there is nothing to copy.")
        }
    })
}

fn with_session(args: &str, store: &Store, then: impl FnOnce(SessionId) -> CommandOutcome) -> CommandOutcome {
    match SessionId::parse(args) {
        Ok(id) if store.holds(&id) => then(id),
        Ok(id) => CommandOutcome::error(format!("There is no session {id}. /chat list lists them.")),
        Err(error) => CommandOutcome::error(format!("'{args}': {error}")),
    }
}
