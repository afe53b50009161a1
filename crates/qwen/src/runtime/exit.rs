//! Errors, exit codes and reports at the end of the process.

use std::io::{self, BufRead, Read, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use qwen_dialects::Dialect;
use qwen_events::ErrorInfo;
use qwen_redact::{Redactor, secret_values};

use super::clock;
use crate::print;
use crate::settings::Invocation;

/// Removes secrets from messages.
static REDACTOR: OnceLock<Arc<Redactor>> = OnceLock::new();

/// Sets the redactor for all further messages.
pub fn set_redactor(redactor: Arc<Redactor>) {
    // A process has only one run, so the redactor is not set yet.
    let _ = REDACTOR.set(redactor);
}

/// `text` without secrets. Before the settings are resolved, the secrets are those in the environment.
pub fn redacted(text: &str) -> String {
    if let Some(redactor) = REDACTOR.get() {
        return redactor.redact(text).into_owned();
    }
    let invocation = Invocation::current().ok();
    let secrets = invocation.as_ref().map(|invocation| secret_values(invocation.vars())).unwrap_or_default();
    Redactor::new(secrets).redact(text).into_owned()
}

/// The exit code of a run that an error ended before its first turn.
pub fn error_code(error: &ErrorInfo, dialect: Dialect) -> u8 {
    // Claude's SDKs know only one code for a session that cannot be used.
    let is_about_session = ["unknown_session", "session_in_use"].contains(&error.code);
    if dialect == Dialect::Claude && is_about_session { 1 } else { error.exit_code() }
}

/// How long to wait for the first line of a host that should read why the process ends.
pub const HOST_GRACE: Duration = Duration::from_secs(1);

/// A host that is silent for this long after a line has written all that it writes at its start.
pub const HOST_PAUSE: Duration = Duration::from_millis(250);

/// The longest time that a host's lines are read before the process ends.
pub const HOST_LIMIT: Duration = Duration::from_secs(5);

/// The most bytes that are read at once.
const MAX_PIECE: u64 = 1024 * 1024;

/// Reads standard input until it ends or the host pauses, so that no write of the host fails: a host whose
/// pipe breaks assumes a crash and ignores why the process ends. `first` limits the wait for the first line.
pub fn drain_stdin(first: Duration) {
    let (sender, lines) = mpsc::sync_channel(16);
    thread::spawn(move || {
        loop {
            let mut line = Vec::new();
            let read = io::stdin().lock().take(MAX_PIECE).read_until(b'\n', &mut line);
            if matches!(read, Ok(0) | Err(_)) || sender.send(()).is_err() {
                return;
            }
        }
    });
    let end = Instant::now() + HOST_LIMIT;
    let mut patience = first;
    while let Ok(()) = lines.recv_timeout(patience.min(end.saturating_duration_since(Instant::now()))) {
        patience = HOST_PAUSE;
    }
}

/// Standard error carries JSON lines.
static LOGS_JSON: AtomicBool = AtomicBool::new(false);

/// Writes JSON lines to standard error from now on (`--log-format json`).
pub fn log_json() {
    LOGS_JSON.store(true, Ordering::Relaxed);
}

/// Writes a line of the log to standard error, without secrets.
pub fn write_log(line: &str) {
    let _ = io::stderr().write_all(redacted(line).as_bytes());
}

/// Writes a message to standard error. Without a standard error, the message is dropped.
pub fn report(text: &str) {
    let text = redacted(text);
    if LOGS_JSON.load(Ordering::Relaxed) {
        let message = text.strip_prefix("qwen: ").unwrap_or(&text);
        let line = print::json_line(clock::now(), "warn", "message", serde_json::json!({"message": message}));
        let _ = io::stderr().write_all(line.as_bytes());
    } else {
        let _ = writeln!(io::stderr(), "{}", qwen_events::terminal_text(&text));
    }
}
