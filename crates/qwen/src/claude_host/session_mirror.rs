//! Writes a copy of the conversation where Claude's SDKs look for sessions, so that their functions list and
//! read ours.
//!
//! Only the SDKs read it: we resume from the session log. A copy that cannot be written therefore causes only
//! one warning.

use std::fs::{self, DirBuilder, File};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use qwen_dialects::loom::rfc3339;
use qwen_dialects::{Dialect, Encoder, Format, StreamInfo};
use qwen_events::{Body, CallId, Event, SessionId, TaskKind, TaskUpdate, Timestamp};
use serde_json::{Map, Value, json};

use super::agent_transcripts::{self, AgentTranscripts, EntryContext, NewEntries};
use super::open_message::OpenMessage;
use crate::runtime::exit;
use crate::settings::{Config, SessionStart};

/// An encoder that also copies the conversation.
pub struct MirroringEncoder {
    encoder: Box<dyn Encoder>,
    /// Encodes what the stream may leave out: prompts and the text of sub-agents, or everything if its format
    /// is another one.
    complete: Box<dyn Encoder>,
    /// True if the stream contains the messages of the agent as the copy does.
    copies_stream: bool,
    mirror: Mirror,
    agents: AgentTranscripts,
    /// The copy is also written to the stream, from which the SDK forwards it to its user's store.
    streams: bool,
}

impl MirroringEncoder {
    /// Wraps `encoder`, which encodes according to `info`, and writes the copy in the directory `folder`.
    pub fn new(encoder: Box<dyn Encoder>, info: &StreamInfo, config: &Config, folder: &Path) -> Self {
        let copies_stream = info.dialect == Dialect::Claude && info.format != Format::Json;
        let complete = StreamInfo {
            dialect: Dialect::Claude,
            format: Format::StreamJson,
            replay_user_messages: true,
            partial_messages: false,
            session_state: false,
            seed: info.seed.wrapping_add(1),
            ..info.clone()
        };
        Self {
            encoder,
            complete: qwen_dialects::encoder(&complete),
            copies_stream,
            mirror: Mirror::new(config, folder),
            agents: AgentTranscripts::default(),
            streams: config.claude.streams_mirror,
        }
    }

    /// Copies what `event` adds to the conversation of a sub-agent.
    fn append_agent_messages(&mut self, agent: &CallId, event: &Event) -> Option<NewEntries> {
        let mut lines = Vec::new();
        self.complete.encode(event, &mut lines);
        let messages: Vec<_> = messages(&lines).collect();
        self.append_to_agent(agent, messages, event.at)
    }

    /// Copies the report of a sub-agent in the background. Its other messages are not part of the stream.
    fn append_background_report(&mut self, event: &Event) -> Option<NewEntries> {
        let Body::Task(update) = &event.body else { return None };
        let (true, TaskKind::Agent(_)) = (update.task.background, &update.task.kind) else { return None };
        let TaskUpdate::Ended(end) = &update.news else { return None };
        let report = agent_transcripts::report(&end.summary);
        self.append_to_agent(&update.task.call_id, vec![report], event.at)
    }

    fn append_to_agent(
        &mut self,
        agent: &CallId,
        messages: Vec<Map<String, Value>>,
        at: Timestamp,
    ) -> Option<NewEntries> {
        if self.mirror.broken {
            return None;
        }
        let appended = self.agents.append(agent, messages, &self.mirror.context(at));
        appended.unwrap_or_else(|error| {
            self.mirror.report(&error);
            None
        })
    }
}

impl Encoder for MirroringEncoder {
    fn encode(&mut self, event: &Event, out: &mut Vec<u8>) {
        let before = out.len();
        self.encoder.encode(event, out);
        self.agents.note_call(event);
        let mut of_agent = self.append_background_report(event);
        if let (Body::TurnStart(start), None) = (&event.body, &event.scope.parent) {
            self.mirror.switch_to(&start.session_id);
        }
        if let Some(agent) = &event.scope.parent {
            of_agent = self.append_agent_messages(agent, event).or(of_agent);
        } else if !self.copies_stream || matches!(event.body, Body::TurnStart(_)) {
            let mut lines = Vec::new();
            self.complete.encode(event, &mut lines);
            self.mirror.append_messages(&lines, event.at);
        } else {
            self.mirror.append_messages(out.get(before..).unwrap_or_default(), event.at);
        }
        if let (Body::TurnEnd(_), None) = (&event.body, &event.scope.parent) {
            self.mirror.append_cut_off(event.at);
        }
        let entries = std::mem::take(&mut self.mirror.new_entries);
        let of_session = NewEntries { path: self.mirror.path.clone(), entries };
        let wanted = |new: &NewEntries| self.streams && !new.entries.is_empty();
        for NewEntries { path, entries } in of_agent.into_iter().chain([of_session]).filter(wanted) {
            let frame =
                json!({"type": "transcript_mirror", "filePath": path.to_string_lossy(), "entries": entries});
            // The SDK forwards what it has when it reads the `result`, so the copy must precede it.
            out.splice(before..before, format!("{frame}\n").into_bytes());
        }
    }
}

/// The messages among the lines.
fn messages(lines: &[u8]) -> impl Iterator<Item = Map<String, Value>> {
    let is_message =
        |line: &&[u8]| line.starts_with(br#"{"type":"assistant""#) || line.starts_with(br#"{"type":"user""#);
    lines.split(|byte| *byte == b'\n').filter(is_message).filter_map(|line| serde_json::from_slice(line).ok())
}

/// The copy of one session.
struct Mirror {
    folder: PathBuf,
    path: PathBuf,
    session_id: SessionId,
    cwd: String,
    start: SessionStart,
    /// The entry that the next one follows.
    last: Option<Value>,
    file: Option<File>,
    open_message: OpenMessage,
    broken: bool,
    /// The entries since the last frame was written to the stream.
    new_entries: Vec<Value>,
}

impl Mirror {
    fn new(config: &Config, folder: &Path) -> Self {
        Self {
            folder: folder.to_owned(),
            path: folder.join(format!("{}.jsonl", config.session.id)),
            session_id: config.session.id.clone(),
            cwd: config.workspace.cwd.to_string_lossy().into_owned(),
            start: config.session.start.clone(),
            last: None,
            file: None,
            open_message: OpenMessage::default(),
            broken: false,
            new_entries: Vec::new(),
        }
    }

    /// Copies another session from now on, if it is another one: the conversation was cleared.
    fn switch_to(&mut self, session_id: &SessionId) {
        if self.session_id != *session_id {
            self.session_id = session_id.clone();
            self.path = self.folder.join(format!("{session_id}.jsonl"));
            self.start = SessionStart::New;
            self.last = None;
            self.file = None;
        }
    }

    fn context(&self, at: Timestamp) -> EntryContext<'_> {
        EntryContext {
            folder: &self.folder,
            session_id: &self.session_id,
            cwd: &self.cwd,
            timestamp: rfc3339(at),
        }
    }

    /// Copies the lines that are messages of the main agent or its user.
    fn append_messages(&mut self, lines: &[u8], at: Timestamp) {
        for message in messages(lines) {
            if message.get("parent_tool_use_id").is_some_and(|parent| !parent.is_null()) {
                continue;
            }
            let ready = self.open_message.push(message);
            self.append_all(&ready, at);
        }
    }

    /// Copies what is held back of a message that was cut off.
    fn append_cut_off(&mut self, at: Timestamp) {
        let rest = self.open_message.take();
        self.append_all(&rest, at);
    }

    fn append_all(&mut self, messages: &[Map<String, Value>], at: Timestamp) {
        for message in messages {
            if self.broken {
                return;
            }
            if let Err(error) = self.append(message, at) {
                self.report(&error);
            }
        }
    }

    /// Reports once that the copy cannot be written.
    fn report(&mut self, error: &io::Error) {
        self.broken = true;
        let path = self.path.display();
        exit::report(&format!("qwen: the session's copy for Claude's SDKs, {path}: {error}"));
    }

    fn append(&mut self, message: &Map<String, Value>, at: Timestamp) -> io::Result<()> {
        let mut file = match self.file.take() {
            Some(file) => file,
            None => self.open()?,
        };
        let entry = self.context(at).entry(message, self.last.as_ref());
        writeln!(file, "{entry}")?;
        self.last = Some(entry["uuid"].clone());
        self.file = Some(file);
        self.new_entries.push(entry);
        Ok(())
    }

    /// Opens the copy and finds the entry to continue from.
    fn open(&mut self) -> io::Result<File> {
        if let Some(folder) = self.path.parent() {
            DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
        }
        let mut kept = read(&self.path)?;
        let mut file = File::options().append(true).create(true).mode(0o600).open(&self.path)?;
        let at = match &self.start {
            SessionStart::New | SessionStart::Named => None,
            SessionStart::Resumed { at } => at.clone(),
            SessionStart::Forked { from, at } => {
                if kept.is_empty() {
                    let parent = read(&self.path.with_file_name(format!("{from}.jsonl")))?;
                    kept = entries_until(&parent, at.as_deref())
                        .replace(from.as_str(), self.session_id.as_str());
                    file.write_all(kept.as_bytes())?;
                }
                None
            }
        };
        // The SDKs add titles and tags, which no entry follows.
        self.last = at.or_else(|| kept.lines().rev().find_map(uuid)).map(Value::from);
        Ok(file)
    }
}

/// The contents of a file; empty if it does not exist.
fn read(path: &Path) -> io::Result<String> {
    match fs::read_to_string(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(String::new()),
        read => read,
    }
}

/// The id in our log of the position `point`: `point` itself, or the position of the entry that has this id
/// in the session copy of Claude's SDKs.
pub fn point(config: &Config, session: &SessionId, point: &str) -> String {
    let entries = entries_of(config, session);
    let mut place = None;
    for entry in entries.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok()) {
        let message = &entry["message"];
        let blocks = message["content"].as_array().into_iter().flatten();
        let answered = blocks.filter_map(|block| block["tool_use_id"].as_str()).next_back();
        // An entry without a position has the position of the entry before it.
        place = answered.or_else(|| message["id"].as_str()).map(str::to_owned).or(place);
        if entry["uuid"] == point {
            // A prompt has the same id in the log.
            let prompt = entry["type"] == "user" && answered.is_none();
            return place.filter(|_| !prompt).unwrap_or_else(|| point.to_owned());
        }
    }
    point.to_owned()
}

/// Checks that continuing from `point` drops only the turn of the prompt `prompt`. The error describes what
/// else would be dropped.
pub fn drops_only(config: &Config, session: &SessionId, point: &str, prompt: &str) -> Result<(), String> {
    let entries = entries_of(config, session);
    let kept = entries_until(&entries, Some(point));
    if kept.lines().next_back().and_then(uuid).as_deref() != Some(point) {
        return Err(format!("there is no entry '{point}' in the session"));
    }
    let dropped = entries.get(kept.len()..).unwrap_or_default();
    let dropped: Vec<Value> = dropped.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    // Only prompts are plain strings: tool results and interruption notes are blocks.
    let is_prompt = |entry: &&Value| entry["type"] == "user" && entry["message"]["content"].is_string();
    match dropped.first() {
        Some(first) if first["uuid"] != prompt => {
            return Err(format!("what follows '{point}' is not the turn of '{prompt}'"));
        }
        None => {
            return Err(format!("nothing follows '{point}', so there is no turn of '{prompt}' to leave out"));
        }
        Some(_) => {}
    }
    match dropped.iter().skip(1).find(is_prompt) {
        Some(other) => Err(format!("the prompt {} would be left out too", other["uuid"])),
        None => Ok(()),
    }
}

/// Names a session in its copy, which must exist.
pub fn rename(config: &Config, session: &SessionId, title: &str) -> io::Result<()> {
    let folder = config.claude.mirror_folder.as_ref().ok_or(io::ErrorKind::NotFound)?;
    let mut copy = File::options().append(true).open(folder.join(format!("{session}.jsonl")))?;
    let entry = json!({"type": "custom-title", "customTitle": title, "sessionId": session.as_str()});
    copy.write_all(format!("{entry}\n").as_bytes())
}

/// The entries of a session's copy; empty if there is no copy or it cannot be read.
fn entries_of(config: &Config, session: &SessionId) -> String {
    let copy = config.claude.mirror_folder.as_ref().map(|folder| folder.join(format!("{session}.jsonl")));
    copy.and_then(|path| fs::read_to_string(path).ok()).unwrap_or_default()
}

/// The entries up to the one with this id; all entries if none is given.
fn entries_until<'a>(entries: &'a str, point: Option<&str>) -> &'a str {
    let Some(point) = point else { return entries };
    let mut end = 0;
    for entry in entries.split_inclusive('\n') {
        end += entry.len();
        if uuid(entry).as_deref() == Some(point) {
            return entries.get(..end).unwrap_or(entries);
        }
    }
    entries
}

fn uuid(entry: &str) -> Option<String> {
    let entry: Value = serde_json::from_str(entry).ok()?;
    entry.get("uuid")?.as_str().map(str::to_owned)
}
