//! Formats a session as a readable transcript.

use std::io::{self, Write};

use qwen_engine::log::LogHeader;
use qwen_events::{
    Body, Event, ToolEnd, ToolStatus, TurnEnd, call_progress, graph_events, message_pieces, outside_turns,
    session_notices,
};

use super::listing::plain;

/// The maximum number of lines shown of a tool's result.
const RESULT_LINES: usize = 8;

/// The maximum length shown of a call's arguments, in characters.
const ARGUMENTS: usize = 200;

/// Writes the heading of the session.
pub fn head(header: &LogHeader, out: &mut impl Write) -> io::Result<()> {
    writeln!(out, "session {} in {}", header.session_id, plain(&header.cwd))?;
    match &header.parent {
        Some(parent) => writeln!(out, "forked from {}", parent.session_id),
        None => Ok(()),
    }
}

/// Writes an event as readable text.
pub fn write_event(event: &Event, out: &mut impl Write) -> io::Result<()> {
    if event.scope.parent.is_some() {
        return Ok(());
    }
    match &event.body {
        Body::TurnStart(start) => {
            writeln!(out, "\n── turn {} · {} ──", start.turn, plain(&start.model))?;
            for line in start.message.lines() {
                writeln!(out, "> {}", plain(line))?;
            }
            writeln!(out)
        }
        Body::MessageEnd(end) => {
            for line in end.text.lines() {
                writeln!(out, "{}", plain(line))?;
            }
            Ok(())
        }
        Body::ToolEnd(end) => tool(end, out),
        Body::Error(error) => writeln!(out, "! {}", plain(&error.message)),
        Body::TurnEnd(end) => turn_end(end, out),
        Body::Ready
        | graph_events!()
        | message_pieces!()
        | call_progress!()
        | Body::ToolStart(..)
        | Body::Thinking(..)
        | session_notices!()
        | outside_turns!()
        | Body::Fatal(..) => Ok(()),
    }
}

fn tool(end: &ToolEnd, out: &mut impl Write) -> io::Result<()> {
    let arguments: String = end.call.arguments.as_str().chars().take(ARGUMENTS).collect();
    let more = if arguments.len() < end.call.arguments.as_str().len() { "…" } else { "" };
    let mark = match end.status {
        ToolStatus::Success => "✓",
        ToolStatus::Error => "✗",
        ToolStatus::Denied => "⊘",
        ToolStatus::Cancelled => "–",
    };
    writeln!(out, "\n  {mark} {} {}{more}", plain(&end.call.name), plain(&arguments))?;
    let mut lines = end.text.lines();
    for line in lines.by_ref().take(RESULT_LINES) {
        writeln!(out, "    {}", plain(line))?;
    }
    match lines.count() {
        0 => writeln!(out),
        more => writeln!(out, "    … {more} more lines\n"),
    }
}

fn turn_end(end: &TurnEnd, out: &mut impl Write) -> io::Result<()> {
    let tokens = end.usage.total();
    match &end.error {
        Some(error) => writeln!(out, "[{}: {} · {tokens} tokens]", end.status.name(), plain(&error.message)),
        None => writeln!(out, "[{} · {tokens} tokens]", end.status.name()),
    }
}
