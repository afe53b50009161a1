//! `--debug` and `--debug-file`: every event and model request with its time, without secrets.

use std::fs::File;
use std::io::Write;
use std::sync::{Arc, Mutex, PoisonError};

use qwen_dialects::Encoder;
use qwen_dialects::loom::rfc3339;
use qwen_events::{Event, Timestamp};
use qwen_model::{Model, Pieces, Request};

use super::append_file;
use crate::runtime::{clock, exit};
use crate::settings::DebugTarget;

/// The longest entry that is logged whole, in bytes.
const MAX_ENTRY: usize = 256 * 1024;

/// The log; clones write to the same destination.
#[derive(Clone)]
pub struct DebugLog {
    /// None writes to standard error.
    file: Option<Arc<Mutex<File>>>,
}

impl DebugLog {
    /// Opens the log. If the file cannot be written, warns and returns none.
    pub fn open(target: &DebugTarget) -> Option<Self> {
        let path = match target {
            DebugTarget::Stderr => return Some(Self { file: None }),
            DebugTarget::File(path) => path,
        };
        match append_file::open(path) {
            Ok(file) => Some(Self { file: Some(Arc::new(Mutex::new(file))) }),
            Err(error) => {
                exit::report(&format!("qwen: --debug-file {}: {error}", path.display()));
                None
            }
        }
    }

    fn write(&self, at: Timestamp, kind: &str, text: &[u8]) {
        let text = String::from_utf8_lossy(text.get(..MAX_ENTRY).unwrap_or(text));
        let entry = format!("{} [DEBUG] {kind} {}", rfc3339(at), exit::redacted(&text));
        match &self.file {
            // A failed write to the log must not stop the work.
            Some(file) => {
                let _ = writeln!(file.lock().unwrap_or_else(PoisonError::into_inner), "{entry}");
            }
            None => exit::report(&entry),
        }
    }
}

/// An encoder that also logs its lines.
pub struct LoggingEncoder {
    pub encoder: Box<dyn Encoder>,
    pub log: DebugLog,
}

impl Encoder for LoggingEncoder {
    fn encode(&mut self, event: &Event, out: &mut Vec<u8>) {
        let before = out.len();
        self.encoder.encode(event, out);
        for line in out.get(before..).unwrap_or_default().split(|byte| *byte == b'\n') {
            if !line.is_empty() {
                self.log.write(event.at, "out", line);
            }
        }
    }
}

/// A model that also logs its requests.
struct LoggingModel {
    model: Arc<dyn Model>,
    log: DebugLog,
}

/// Wraps `model` so that its requests are logged.
pub fn logging_model(model: Arc<dyn Model>, log: DebugLog) -> Arc<dyn Model> {
    Arc::new(LoggingModel { model, log })
}

impl Model for LoggingModel {
    fn name(&self) -> &str {
        self.model.name()
    }

    fn call(&self, request: Request) -> Pieces {
        self.log.write(clock::now(), "model request", &request.to_openai_json(self.model.name()));
        self.model.call(request)
    }
}
