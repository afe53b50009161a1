//! Errors, exit codes and reports at the end of the process.

use std::io::{self, BufRead, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock, mpsc};
use std::thread;
use std::time::Duration;

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
    // Claude's SDKs know only one code for a missing session.
    if dialect == Dialect::Claude && error.code == "unknown_session" { 1 } else { error.exit_code() }
}

/// How long to wait for a host that should read why the process ends.
pub const HOST_GRACE: Duration = Duration::from_secs(1);

/// Waits until a host has written its first line, so that it continues to read why the process ends. A host
/// whose pipe breaks during its first write assumes a crash and ignores all output.
pub fn wait_for_host() {
    let (said, heard) = mpsc::channel();
    thread::spawn(move || {
        let mut line = Vec::new();
        let _ = io::stdin().lock().read_until(b'\n', &mut line);
        let _ = said.send(());
    });
    let _ = heard.recv_timeout(HOST_GRACE);
}

/// Standard error carries JSON lines.
static LOGS_JSON: AtomicBool = AtomicBool::new(false);

/// Writes JSON lines to standard error from now on (`--log-format json`).
pub fn log_json() {
    LOGS_JSON.store(true, Ordering::Relaxed);
}

/// Writes a message to standard error. Without a standard error, the message is dropped.
pub fn report(text: &str) {
    let text = redacted(text);
    if LOGS_JSON.load(Ordering::Relaxed) {
        let message = text.strip_prefix("qwen: ").unwrap_or(&text);
        let line = print::json_line(clock::now(), "warn", "message", serde_json::json!({"message": message}));
        let _ = io::stderr().write_all(line.as_bytes());
    } else {
        let _ = writeln!(io::stderr(), "{text}");
    }
}
