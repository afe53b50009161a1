//! Writes the events of a background sub-agent to its transcript file.

use std::fs::File;
use std::future::Future;
use std::io::Write;
use std::sync::Arc;

use qwen_events::{Body, Event, ToolStatus};
use tokio::sync::mpsc;

use crate::Emitter;
use crate::redact::Redactor;

/// The capacity of the event queue.
const CAPACITY: usize = 64;

/// The maximum length of a call's arguments or error in the transcript, in characters.
const LONGEST_SHOWN: usize = 500;

/// The maximum size of the transcript, in bytes.
const LONGEST: usize = 16 << 20;

/// Opens a separate event stream next to that of the `session`, and returns the task that writes its events
/// to the file. The task ends when the last emitter is dropped.
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
            // The server reports this only once, on whichever stream asks first, and it concerns the whole
            // session.
            session.emit(event.body).await;
            continue;
        }
        let Some(line) = line(&event.body) else { continue };
        // Write errors lose output, but do not stop the work.
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
