//! Formats lists of sessions and checkpoints.

use qwen_events::terminal_text;
use std::io::{self, Write};

use qwen_engine::log::{CheckpointMeta, Folded, Pruned, Summary};
use qwen_events::{SessionId, Timestamp};
use serde_json::{Value, json};

/// The maximum length of a title in a line, in characters.
const TITLE: usize = 60;

/// Writes one line per session.
pub fn table(sessions: &[Summary], now: Timestamp, out: &mut impl Write) -> io::Result<()> {
    let widest = sessions.iter().map(|session| session.header.session_id.as_str().len()).max().unwrap_or(0);
    for session in sessions {
        let header = &session.header;
        let turns = match session.turns {
            Some(1) => "1 turn".to_owned(),
            Some(turns) => format!("{turns} turns"),
            None => "many turns".to_owned(),
        };
        let title: String = header.title.chars().take(TITLE).collect();
        let more = if title.len() < header.title.len() { "…" } else { "" };
        writeln!(
            out,
            "{:widest$}  {:>8}  {turns:>9}  {}  {}{more}",
            header.session_id.as_str(),
            age(now, session.last_activity),
            plain(&header.cwd),
            plain(&title)
        )?;
    }
    Ok(())
}

/// Writes all sessions as one JSON array.
pub fn json(sessions: &[Summary], out: &mut impl Write) -> io::Result<()> {
    let session = |session: &Summary| -> Value {
        let header = &session.header;
        json!({
            "session_id": header.session_id.as_str(),
            "cwd": &*header.cwd,
            "created": header.created.0,
            "last_activity": session.last_activity.0,
            "turns": session.turns,
            "first_prompt": &*header.title,
            "version": &*header.version,
            "bytes": session.bytes,
            "parent": header.parent.as_ref().map(|parent| {
                json!({"session_id": parent.session_id.as_str(), "point": parent.point.as_deref()})
            }),
        })
    };
    let sessions: Vec<Value> = sessions.iter().map(session).collect();
    writeln!(out, "{}", Value::Array(sessions))
}

/// Writes one line per checkpoint that the session can be rewound to.
pub fn checkpoints(folded: &Folded, out: &mut impl Write) -> io::Result<()> {
    for checkpoint in &folded.checkpoints {
        writeln!(
            out,
            "{}  turn {}, step {}  after {}  {} messages",
            checkpoint.id, checkpoint.turn, checkpoint.step, checkpoint.node, checkpoint.messages
        )?;
    }
    Ok(())
}

/// Writes the checkpoints as one JSON array.
pub fn checkpoints_json(folded: &Folded, out: &mut impl Write) -> io::Result<()> {
    let checkpoint = |checkpoint: &CheckpointMeta| -> Value {
        json!({
            "checkpoint_id": &*checkpoint.id,
            "timestamp": checkpoint.at.0,
            "prompt_id": checkpoint.prompt_id.as_str(),
            "turn": checkpoint.turn,
            "step": checkpoint.step,
            "node": &*checkpoint.node,
            "messages": checkpoint.messages,
        })
    };
    writeln!(out, "{}", Value::Array(folded.checkpoints.iter().map(checkpoint).collect()))
}

/// Writes the result of pruning a session.
pub fn pruned(id: &SessionId, pruned: &Pruned, dry_run: bool, out: &mut impl Write) -> io::Result<()> {
    let Pruned { kept, gone, bytes } = pruned;
    let would = if dry_run { "would be " } else { "" };
    writeln!(out, "{id}  {gone} checkpoints {would}pruned, {kept} kept, {bytes} bytes {would}freed")
}

/// The time since `then` in a short form.
fn age(now: Timestamp, then: Timestamp) -> String {
    let seconds = now.0.saturating_sub(then.0) / 1000;
    match seconds {
        0..60 => "just now".to_owned(),
        60..3600 => format!("{} min", seconds / 60),
        3600..86_400 => format!("{} h", seconds / 3600),
        _ => format!("{} d", seconds / 86_400),
    }
}

/// The text on one line, as it can be shown on a terminal.
pub(super) fn plain(text: &str) -> String {
    terminal_text(text).replace(['\n', '\t'], " ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_are_told_in_the_unit_that_fits() {
        let cases = [
            (0, "just now"),
            (59, "just now"),
            (60, "1 min"),
            (7200, "2 h"),
            (86_400, "1 d"),
            (864_000, "10 d"),
        ];
        for (seconds, word) in cases {
            assert_eq!(age(Timestamp(10_000_000_000), Timestamp(10_000_000_000 - seconds * 1000)), word);
        }
        assert_eq!(age(Timestamp(0), Timestamp(5000)), "just now");
    }
}
