//! Plays back what a hub recorded with `--record-dir`.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Lines, Write};
use std::path::{Path, PathBuf};

use qwen_engine::log::LogError;
use qwen_events::{ErrorInfo, ErrorKind, SessionId};
use serde_json::{Value, json};

use super::{SubcommandError, wait};

pub struct Recording {
    directory: PathBuf,
    id: SessionId,
}

/// One recorded line.
struct Message {
    /// True if the client sent it.
    from_client: bool,
    /// Milliseconds since the Unix epoch; none in a recording without times.
    at: Option<u64>,
    line: String,
}

impl Recording {
    /// The recording of a session in a directory.
    pub fn find(directory: &Path, id: SessionId) -> Result<Self, SubcommandError> {
        let recording = Self { directory: directory.to_owned(), id };
        if recording.path("out.jsonl").is_file() || recording.path("in.jsonl").is_file() {
            return Ok(recording);
        }
        Err(LogError::Unknown(recording.id).into())
    }

    fn path(&self, kind: &str) -> PathBuf {
        self.directory.join(format!("{}.{kind}", self.id))
    }

    fn lines(&self, kind: &str) -> Result<Option<Lines<BufReader<File>>>, SubcommandError> {
        let path = self.path(kind);
        match File::open(&path) {
            Ok(file) => Ok(Some(BufReader::new(file).lines())),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(unreadable(&path, &error)),
        }
    }

    /// Passes every message to `each`, in the order in which it was recorded.
    fn messages(
        &self,
        mut each: impl FnMut(Message) -> Result<(), SubcommandError>,
    ) -> Result<(), SubcommandError> {
        let mut sent = self.lines("in.jsonl")?;
        let mut seen = self.lines("out.jsonl")?;
        let next = |lines: &mut Option<Lines<BufReader<File>>>, kind: &str| match lines {
            Some(lines) => lines.next().transpose().map_err(|error| unreadable(&self.path(kind), &error)),
            None => Ok(None),
        };
        for entry in self.lines("order")?.into_iter().flatten() {
            let entry = entry.map_err(|error| unreadable(&self.path("order"), &error))?;
            let (kind, at) = entry.split_once(' ').unwrap_or((&entry, ""));
            if !matches!(kind, "in" | "out") {
                // The start or the end of a process.
                continue;
            }
            let from_client = kind == "in";
            let line = if from_client { next(&mut sent, "in.jsonl") } else { next(&mut seen, "out.jsonl") };
            if let Some(line) = line? {
                each(Message { from_client, at: at.parse().ok(), line })?;
            }
        }
        // Lines whose time was not recorded.
        while let Some(line) = next(&mut sent, "in.jsonl")? {
            each(Message { from_client: true, at: None, line })?;
        }
        while let Some(line) = next(&mut seen, "out.jsonl")? {
            each(Message { from_client: false, at: None, line })?;
        }
        Ok(())
    }

    /// Writes what the client saw, with the original pauses scaled by `speed`. With `both`, what it sent too,
    /// each line with its direction and time.
    pub fn play(&self, speed: f64, both: bool, out: &mut impl Write) -> Result<(), SubcommandError> {
        let mut last = None;
        self.messages(|message| {
            if message.from_client && !both {
                return Ok(());
            }
            if let Some(at) = message.at {
                wait(at.saturating_sub(last.unwrap_or(at)), speed);
                last = Some(at);
            }
            if both {
                let direction = if message.from_client { "in" } else { "out" };
                let line: Value = serde_json::from_str(&message.line).unwrap_or(Value::String(message.line));
                writeln!(out, "{}", json!({"direction": direction, "at": message.at, "line": line}))?;
            } else {
                writeln!(out, "{}", message.line)?;
            }
            out.flush()?;
            Ok(())
        })
    }

    /// Writes the terminal record of the last turn; nothing if a prompt after it has none.
    pub fn end(&self, out: &mut impl Write) -> Result<(), SubcommandError> {
        let mut end = None;
        self.messages(|message| {
            let line: Value = serde_json::from_str(&message.line).unwrap_or_default();
            if message.from_client {
                if line["input"].is_object() || line["messages"].is_array() || line["type"] == "user" {
                    end = None;
                }
            } else if line["metadata"]["turn"].is_object() || line["type"] == "result" {
                end = Some(message.line);
            }
            Ok(())
        })?;
        if let Some(end) = end {
            writeln!(out, "{end}")?;
        }
        Ok(())
    }
}

fn unreadable(path: &Path, error: &io::Error) -> SubcommandError {
    let message = format!("the recording {} cannot be read: {error}", path.display());
    ErrorInfo::new(ErrorKind::Input, "unusable_recording", message).into()
}
