//! `/chat`

use qwen_events::SessionId;

use super::{Builtin, Call, CommandCx, Done};
use crate::commands::Action;
use crate::log::Store;

/// The command.
pub(super) const COMMAND: Builtin = Builtin {
    name: "chat",
    aliases: &[],
    description: "Manage conversation history.",
    argument_hint: "list|save|resume ID|delete ID|fork",
    subcommands: &[
        ("list", "Count what was said, and list the sessions of this folder."),
        ("save", "Say under which name this session is kept."),
        ("resume", "Go on with another session."),
        ("delete", "Delete another session."),
        ("fork", "Go on in a copy of this session."),
    ],
    live: false,
    run,
};

/// How many sessions are listed.
const LISTED: usize = 20;

fn run(call: &Call<'_>, cx: &CommandCx<'_>) -> Done {
    match call.sub {
        Some("list") => list(cx),
        Some("save") => with_store(cx, |_| {
            Done::say(format!("This session is kept as it goes, under the name {}.", cx.session_id))
        }),
        Some("fork") => with_store(cx, |_| Done::say("The session goes on in a copy.").then(Action::Fork)),
        Some("resume") => with_store(cx, |store| {
            named(call.args, store, |id| Done::say(format!("Going on with {id}.")).then(Action::Resume(id)))
        }),
        Some("delete") if call.args == cx.session_id.as_str() => {
            Done::fail("This session is in use and cannot be deleted.")
        }
        Some("delete") => with_store(cx, |store| {
            named(call.args, store, |id| match store.delete(&id) {
                Ok(()) => Done::say(format!("The session {id} is deleted.")),
                Err(error) => Done::fail(error.to_string()),
            })
        }),
        Some(_) | None => Done::fail("Say which: /chat list, save, resume ID, delete ID or fork."),
    }
}

fn list(cx: &CommandCx<'_>) -> Done {
    let mut text = format!("The current session has {} history records.", cx.history.map_or(0, <[_]>::len));
    let sessions = cx.store.and_then(|store| store.list(Some(cx.cwd)).ok()).unwrap_or_default();
    for session in sessions.iter().take(LISTED) {
        let turns = session.turns.map(|turns| format!(": {turns} turns")).unwrap_or_default();
        for piece in ["\n- ", session.header.session_id.as_str(), turns.as_str()] {
            text.push_str(piece);
        }
    }
    Done::say(text)
}

fn with_store(cx: &CommandCx<'_>, then: impl FnOnce(&Store) -> Done) -> Done {
    match cx.store {
        Some(store) => then(store),
        None => Done::fail("Sessions are not kept in this run."),
    }
}

fn named(args: &str, store: &Store, then: impl FnOnce(SessionId) -> Done) -> Done {
    match SessionId::parse(args) {
        Ok(id) if store.holds(&id) => then(id),
        Ok(id) => Done::fail(format!("There is no session {id}. /chat list lists them.")),
        Err(error) => Done::fail(format!("'{args}': {error}")),
    }
}
