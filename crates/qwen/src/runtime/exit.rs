//! How the process ends.

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

/// What must not be shown.
static REDACTOR: OnceLock<Arc<Redactor>> = OnceLock::new();

/// Says what must not be shown from now on.
pub fn set_redactor(redactor: Arc<Redactor>) {
    // There is one run in a process, so nobody said it before.
    let _ = REDACTOR.set(redactor);
}

/// `text` without secrets. Before the settings are known, the environment says which there are.
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
    // Claude's SDKs know only one code for a session that is not there.
    if dialect == Dialect::Claude && error.code == "unknown_session" { 1 } else { error.exit_code() }
}

/// How long a host is waited for that should hear why the process ends.
pub const HOST_GRACE: Duration = Duration::from_secs(1);

/// Waits until a host has written its first line, so that it goes on to read why the process ends. One whose pipe breaks
/// under its first line takes the process for crashed and looks at nothing that it said.
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

/// Tells people something on standard error. Without a standard error there is nobody to tell.
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
