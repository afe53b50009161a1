//! What a sub-agent in the background says and does, written to its file for whoever wants to look.

use std::fs::File;
use std::future::Future;
use std::io::Write;
use std::sync::Arc;

use qwen_events::{Body, Event, ToolStatus};
use tokio::sync::mpsc;

use crate::Emitter;
use crate::redact::Redactor;

/// How many events may wait to be written.
const CAPACITY: usize = 64;

/// How much is shown of a call's arguments, or of why it failed, in characters.
const LONGEST_SHOWN: usize = 500;

/// The most that is written, in bytes.
const LONGEST: usize = 16 << 20;

/// A stream of events of its own beside that of the `session`, and the work of writing down what is said on it. That ends
/// when nobody is left who could say anything.
pub(super) fn open(
    file: File,
    redactor: &Arc<Redactor>,
    session: Emitter,
) -> (Emitter, impl Future<Output = ()> + Send + use<>) {
    let (sender, events) = mpsc::channel(CAPACITY);
    (Emitter::new(sender).redacting(redactor.clone()), write(file, events, session))
}

async fn write(mut file: File, mut events: mpsc::Receiver<Event>, session: Emitter) {
    let mut written = 0;
    while let Some(event) = events.recv().await {
        if matches!(event.body, Body::RateLimit(_)) {
            // The server says it once, to whoever asks first, and it is about everybody.
            session.emit(event.body).await;
            continue;
        }
        let Some(line) = line(&event.body) else { continue };
        // What the disk does not take is lost, and the work goes on.
        if written < LONGEST && file.write_all(line.as_bytes()).is_ok() {
            written += line.len();
        }
    }
}

fn line(body: &Body) -> Option<String> {
    match body {
        Body::MessageEnd(end) if !end.text.is_empty() => Some(format!("{}\n", end.text)),
        Body::ToolStart(call) => {
            let arguments: String = call.arguments.as_str().chars().take(LONGEST_SHOWN).collect();
            Some(format!("> {} {arguments}\n", call.name))
        }
        Body::ToolEnd(end) if end.status != ToolStatus::Success => {
            let words: String = end.text.chars().take(LONGEST_SHOWN).collect();
            Some(format!("! {} {words}\n", end.call.name))
        }
        _ => None,
    }
}
