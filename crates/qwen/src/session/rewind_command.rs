//! `/rewind` and `/undo`: returns a session to an earlier prompt and reports what changed.

use std::path::PathBuf;

use qwen_engine::commands::{CommandOutcome, RewindRequest, RewindScope};
use qwen_engine::{RedoReport, RewindPoint, RewindReport, Session};
use qwen_events::{CommandResultBody, ErrorInfo, PromptId};
use serde_json::{Value, json};

/// Carries out a request and returns the result of the command.
pub(super) fn run(session: &mut Session, request: RewindRequest) -> Result<CommandResultBody, String> {
    match request {
        RewindRequest::List => Ok(list(session)),
        RewindRequest::Preview(prompt) => preview(session, &prompt),
        RewindRequest::Rewind(prompt, scope) => rewind(session, &prompt, scope),
    }
}

/// The prompts, latest first.
fn list(session: &Session) -> CommandResultBody {
    let points = session.rewind_points();
    let items: Vec<Value> = points
        .iter()
        .rev()
        .map(|point| json!({"value": point.prompt_id.as_str(), "label": first_line(&point.message)}))
        .collect();
    let title =
        if items.is_empty() { "There is nothing to go back to." } else { "Go back to before a prompt" };
    CommandOutcome::dialog("rewind", &json!({"command": "/rewind", "title": title, "items": items})).body
}

fn first_line(text: &str) -> String {
    text.trim().lines().next().unwrap_or_default().chars().take(120).collect()
}

/// The three ways back to a prompt, and what they can and cannot change.
fn preview(session: &Session, prompt: &PromptId) -> Result<CommandResultBody, String> {
    let point = session.rewind_points().into_iter().find(|point| point.prompt_id == *prompt);
    let point = point.ok_or_else(|| format!("There is no prompt '{prompt}' to go back to."))?;
    let report = session.rewind(prompt.as_str(), true).map_err(|error| error.to_string())?;
    let changes = changed(&report, "would be restored", "would be removed");
    let files = if changes.is_empty() { vec!["No file would change.".to_owned()] } else { changes };
    let item = |scope: &str, label: &str, preview: &[String]| json!({"value": format!("{prompt} {scope}"), "label": label, "preview": preview});
    let both: Vec<String> = files.iter().cloned().chain(not_restored(&report)).collect();
    let kept = ["Files stay as they are.".to_owned()];
    let items = [
        json!({"value": "", "label": "Stay here"}),
        item("both", "Conversation and files", &both),
        item("conversation", "Conversation only", &kept),
        item("files", "Files only", &both),
    ];
    let removed = session.rewind_points().iter().skip_while(|known| known.prompt_id != *prompt).count();
    let turns = if removed == 1 { "1 turn".to_owned() } else { format!("{removed} turns") };
    let title = format!("Before: {} ({turns} would be removed)", first_line(&point.message));
    let data = json!({"command": "/rewind", "title": title, "items": items, "text": both.join("\n")});
    Ok(CommandOutcome::dialog("rewind", &data).body)
}

fn rewind(session: &mut Session, prompt: &PromptId, scope: RewindScope) -> Result<CommandResultBody, String> {
    let failed = |error: ErrorInfo| error.to_string();
    let message = session.rewind_points().into_iter().find(|point| point.prompt_id == *prompt);
    let message = message.map(|point| point.message);
    let mut words = Vec::new();
    session.remember_for_redo(prompt, scope != RewindScope::Conversation);
    // The files come first: if they cannot be restored, the conversation still mentions them.
    if scope != RewindScope::Conversation {
        let report = session.rewind(prompt.as_str(), false).map_err(failed)?;
        let changes = changed(&report, "put back", "removed");
        words.extend(if changes.is_empty() { vec!["No file had to change.".to_owned()] } else { changes });
        words.extend(not_restored(&report));
    }
    if scope != RewindScope::Files {
        session.rewind_conversation(prompt).map_err(failed)?;
        words.insert(0, "The conversation is back before that prompt.".to_owned());
    }
    words.push("/redo brings it back while this process runs.".to_owned());
    let mut data = json!({"text": words.join("\n")});
    if let Some(message) = message.filter(|_| scope != RewindScope::Files) {
        data["prompt"] = Value::from(&*message);
    }
    Ok(CommandOutcome::dialog("rewound", &data).body)
}

/// One sentence for each kind of change.
fn changed(report: &RewindReport, restored: &str, removed: &str) -> Vec<String> {
    let lists = [(restored, &report.restored), (removed, &report.removed)];
    let non_empty = lists.into_iter().filter(|(_, paths)| !paths.is_empty());
    non_empty.map(|(what, paths)| format!("{}: {}.", capitalized(what), names(paths))).collect()
}

/// One sentence for each kind of thing that a rewind does not restore.
fn not_restored(report: &RewindReport) -> Vec<String> {
    let lists = [
        ("Left as they are, because they were edited after the turn", &report.edited),
        ("Left as they are, because they could not be restored", &report.skipped),
    ];
    let non_empty = lists.into_iter().filter(|(_, paths)| !paths.is_empty());
    let mut words: Vec<String> =
        non_empty.map(|(what, paths)| format!("{what}: {}.", names(paths))).collect();
    if !report.commands.is_empty() {
        let mut commands: Vec<String> = Vec::new();
        for command in report.commands.iter().map(|command| format!("`{command}`")) {
            if !commands.contains(&command) {
                commands.push(command);
            }
        }
        words.push(format!("Not undone, because commands cannot be: {}.", commands.join(", ")));
    }
    words
}

/// The message about a turn that was undone.
pub(super) fn undone(point: Option<&RewindPoint>, report: Option<&RewindReport>) -> String {
    let mut words = vec![match point {
        Some(point) => {
            format!("The last turn was removed from the conversation: \"{}\".", first_line(&point.message))
        }
        None => "The last turn was removed from the conversation.".to_owned(),
    }];
    match report {
        Some(report) => {
            words.extend(changed(report, "put back", "removed"));
            words.extend(not_restored(report));
        }
        None => words.push("Files are unchanged: there are no backups of them.".to_owned()),
    }
    words.push("/redo brings it back while this process runs.".to_owned());
    words.join(" ")
}

/// The message about a step back that was repeated.
pub(super) fn redone(report: &RedoReport) -> String {
    let mut words = vec!["What was undone is back in the conversation.".to_owned()];
    if !report.restored.is_empty() {
        words.push(format!("Written again: {}.", names(&report.restored)));
    }
    if !report.skipped.is_empty() {
        words.push(format!(
            "Not written, because they were too large or cannot be written: {}.",
            names(&report.skipped)
        ));
    }
    words.join(" ")
}

fn names(paths: &[PathBuf]) -> String {
    paths.iter().map(|path| path.to_string_lossy()).collect::<Vec<_>>().join(", ")
}

fn capitalized(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map(|first| first.to_uppercase().chain(letters).collect()).unwrap_or_default()
}
