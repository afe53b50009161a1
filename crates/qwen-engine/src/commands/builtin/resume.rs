//! `/resume`

use qwen_events::SessionId;
use serde_json::{Value, json};

use super::{Builtin, Call, CommandContext, CommandOutcome};
use crate::commands::CommandAction;
use crate::log::FoundSession;

pub(super) const COMMAND: Builtin = Builtin {
    name: "resume",
    aliases: &[],
    description: "Find a session of this folder by its name or by its text, and continue with it.",
    argument_hint: "[ID or text]",
    subcommands: &[],
    live: false,
    run,
};

/// The maximum number of sessions offered.
const OFFERED: usize = 50;

/// The maximum length of a label and of a line of the preview, in characters.
const LABEL: usize = 120;

fn run(call: &Call<'_>, cx: &CommandContext<'_>) -> CommandOutcome {
    let Some(store) = cx.store else {
        return CommandOutcome::error("Sessions are not stored in this run.");
    };
    let named = SessionId::parse(call.args).ok().filter(|id| store.holds(id));
    if let Some(id) = named {
        if id == *cx.session_id {
            return CommandOutcome::info("This session is the one that you are in.");
        }
        let text = format!("Continuing with {id}.");
        let data = json!({"session_id": id.as_str(), "text": text});
        return CommandOutcome::dialog("session", &data).then(CommandAction::Resume(id));
    }
    let found = match store.search(Some(cx.cwd), call.args, OFFERED) {
        Ok(found) => found,
        Err(error) => return CommandOutcome::error(format!("The sessions cannot be listed: {error}")),
    };
    let others = found.iter().filter(|session| session.summary.header.session_id != *cx.session_id);
    let items: Vec<Value> = others.map(item).collect();
    let title = match (items.len(), call.args) {
        (0, "") => "This folder has no other session.".to_owned(),
        (0, text) => format!("No session of this folder contains '{text}'."),
        _ => "Continue with a session".to_owned(),
    };
    let data =
        json!({"command": "/resume", "query": call.args, "title": title, "items": items, "searchable": true});
    CommandOutcome::dialog("resume", &data)
}

fn item(session: &FoundSession) -> Value {
    let header = &session.summary.header;
    let turns = match session.summary.turns {
        Some(1) => "1 turn".to_owned(),
        Some(turns) => format!("{turns} turns"),
        None => "many turns".to_owned(),
    };
    let mut preview = Vec::new();
    if !session.excerpt.is_empty() {
        preview.push(format!("found: {}", shortened(&session.excerpt)));
    }
    preview.push(format!("> {}", shortened(&session.last_prompt)));
    preview.extend(session.last_answer.lines().filter(|line| !line.trim().is_empty()).take(3).map(shortened));
    json!({
        "value": header.session_id.as_str(),
        "label": shortened(&header.title),
        "detail": format!("{}, {turns}", header.session_id),
        "last_activity": session.summary.last_activity.0,
        "preview": preview,
    })
}

/// The first line of a text, cut to a fixed length.
fn shortened(text: &str) -> String {
    text.trim().lines().next().unwrap_or_default().chars().take(LABEL).collect()
}
