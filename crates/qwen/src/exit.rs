//! How the process ends.

use std::io::Write;

use qwen_dialects::Dialect;
use qwen_events::{EndStatus, ErrorInfo, TurnEnd};

/// The exit code of a one-shot run whose turn ended so.
pub fn code(end: &TurnEnd) -> u8 {
    match &end.error {
        Some(error) if end.status == EndStatus::Error => error.exit_code(),
        _ => stopped(end.status),
    }
}

/// The exit code of work that was ended so.
pub fn stopped(status: EndStatus) -> u8 {
    match status {
        EndStatus::Done => 0,
        EndStatus::Error => 1,
        EndStatus::Cancelled => 130,
        EndStatus::Interrupted => 143,
        EndStatus::MaxTurns => 53,
        EndStatus::MaxToolCalls | EndStatus::MaxWallTime | EndStatus::MaxTokens | EndStatus::Budget => 55,
    }
}

/// The exit code of a run that an error ended before its first turn.
pub fn error_code(error: &ErrorInfo, dialect: Dialect) -> u8 {
    // Claude's SDKs know only one code for a session that is not there.
    if dialect == Dialect::Claude && error.code == "unknown_session" { 1 } else { error.exit_code() }
}

/// Words for people. Best effort: without a standard error there is nobody to tell.
pub fn say(text: &str) {
    let _ = writeln!(std::io::stderr(), "{text}");
}
