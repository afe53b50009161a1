//! `--debug` and `--debug-file`: everything that is written to the stream, with the time, for whoever looks for a fault.

use std::fs::File;
use std::io::Write;

use qwen_dialects::Encoder;
use qwen_dialects::loom::rfc3339;
use qwen_events::Event;

use crate::io::append_file;
use crate::runtime::exit;
use crate::settings::DebugLog;

/// The longest line that is kept whole, in bytes.
const LONGEST: usize = 4096;

/// An encoder whose lines are kept in a log too.
struct LoggingEncoder {
    encoder: Box<dyn Encoder>,
    /// The file; none means standard error.
    file: Option<File>,
}

/// `encoder`, with a log at `place`. A file that cannot be written costs a warning, and there is no log.
pub fn around(encoder: Box<dyn Encoder>, place: &DebugLog) -> Box<dyn Encoder> {
    let file = match place {
        DebugLog::Stderr => None,
        DebugLog::File(path) => match append_file::open(path) {
            Ok(file) => Some(file),
            Err(error) => {
                exit::report(&format!("qwen: --debug-file {}: {error}", path.display()));
                return encoder;
            }
        },
    };
    Box::new(LoggingEncoder { encoder, file })
}

impl Encoder for LoggingEncoder {
    fn encode(&mut self, event: &Event, out: &mut Vec<u8>) {
        let before = out.len();
        self.encoder.encode(event, out);
        for line in out.get(before..).unwrap_or_default().split(|byte| *byte == b'\n') {
            if line.is_empty() {
                continue;
            }
            let text = String::from_utf8_lossy(line.get(..LONGEST).unwrap_or(line));
            let entry = format!("{} [DEBUG] {text}", rfc3339(event.at));
            match &mut self.file {
                // A log that cannot be written must not keep the work from going on.
                Some(file) => drop(writeln!(file, "{entry}")),
                None => exit::report(&entry),
            }
        }
    }
}
