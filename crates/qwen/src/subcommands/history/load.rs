//! Reads the recordings below a directory.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::Path;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use serde_json::Value;

use super::Findings;

/// A tenant, or nothing, and the id of a session.
type SessionKey = (String, String);

/// Everything that was recorded.
#[derive(Default)]
pub struct RecordedHistory {
    pub sessions: BTreeMap<SessionKey, Session>,
}

/// What was recorded about a session.
#[derive(Default)]
pub struct Session {
    pub readers: Vec<Reader>,
    pub store: Vec<(String, StoreEntry)>,
    pub stream: Vec<(String, StreamMessage)>,
    pub tools: Vec<(String, ToolRun)>,
}

/// What one process exchanged with its clients, or one client with its hub.
pub struct Reader {
    /// The path without the kind of file.
    pub name: String,
    pub entries: Vec<Exchanged>,
    /// True if the process is known to have answered everything.
    pub is_complete: bool,
}

/// One entry of a reader, in the order in which it passed.
pub enum Exchanged {
    /// A process started, which receives only what is new.
    Start,
    Sent(Vec<u8>),
    Received(Received),
}

/// A line that a client received.
pub struct Received {
    pub place: String,
    pub number: Option<u64>,
    /// The line without its number.
    pub body: Vec<u8>,
    pub value: Value,
}

/// An entry of SESSION.store.jsonl.
#[derive(Deserialize)]
#[serde(default)]
#[derive(Default)]
pub struct StoreEntry {
    pub action: String,
    /// The stream: `log` or `lines`.
    pub kind: String,
    pub process: String,
    pub epoch: u64,
    pub first: u64,
    pub count: u64,
    pub offset: u64,
    pub bytes: u64,
    pub outcome: String,
    pub reason: String,
    pub prompt_id: Option<String>,
    pub call: Option<String>,
}

/// An entry of streams.jsonl.
#[derive(Deserialize, Default)]
#[serde(default)]
pub struct StreamMessage {
    pub session_id: Option<String>,
    pub kind: String,
    pub sequence: u64,
    pub epoch: Option<u64>,
    pub owner: String,
    pub first: u64,
    pub count: u64,
    pub part: Option<String>,
    pub open: Option<String>,
    pub offset: u64,
    pub is_incomplete: bool,
    pub reason: String,
    pub prompt_id: Option<String>,
    pub call: Option<String>,
    data: String,
    data_base64: Option<String>,
}

impl StreamMessage {
    /// Returns the payload, from either form.
    pub fn payload(&self) -> Vec<u8> {
        match &self.data_base64 {
            Some(text) => STANDARD.decode(text).unwrap_or_default(),
            None => self.data.clone().into_bytes(),
        }
    }
}

/// An entry of tools.jsonl: a tool that really ran.
#[derive(Deserialize, Default)]
#[serde(default)]
pub struct ToolRun {
    pub session_id: String,
    pub call: String,
    pub prompt_id: Option<String>,
}

impl RecordedHistory {
    /// Reads a directory and all below it.
    pub fn load(directory: &Path, findings: &mut Findings) -> io::Result<Self> {
        let mut history = Self::default();
        history.read_directory(directory, findings)?;
        for session in history.sessions.values_mut() {
            session.stream.sort_by_key(|(_, message)| message.sequence);
        }
        Ok(history)
    }

    fn read_directory(&mut self, directory: &Path, findings: &mut Findings) -> io::Result<()> {
        let mut paths: Vec<_> = fs::read_dir(directory)?
            .map(|entry| entry.map(|entry| entry.path()))
            .collect::<io::Result<_>>()?;
        paths.sort();
        for path in paths {
            if path.is_dir() {
                self.read_directory(&path, findings)?;
                continue;
            }
            let Some(name) = path.file_name().and_then(|name| name.to_str()) else { continue };
            if name == "streams.jsonl" {
                for (place, message) in read_entries::<StreamMessage>(&path, findings)? {
                    let Some(session) = message.session_id.clone() else { continue };
                    self.session("", &session).stream.push((place, message));
                }
            } else if name == "tools.jsonl" {
                for (place, run) in read_entries::<ToolRun>(&path, findings)? {
                    self.session("", &run.session_id.clone()).tools.push((place, run));
                }
            } else if let Some(session) = name.strip_suffix(".store.jsonl") {
                let entries = read_entries(&path, findings)?;
                let order = read_lines(&directory.join(format!("{session}.order")))?;
                self.session(&tenant_of(&order), session).store.extend(entries);
            } else if let Some(session) = name.strip_suffix(".out.jsonl") {
                self.read_reader(directory, session, findings)?;
            } else if let Some(session) = name.strip_suffix(".in.jsonl")
                && !directory.join(format!("{session}.out.jsonl")).exists()
            {
                self.read_reader(directory, session, findings)?;
            }
        }
        Ok(())
    }

    fn session(&mut self, tenant: &str, id: &str) -> &mut Session {
        self.sessions.entry((tenant.to_owned(), id.to_owned())).or_default()
    }

    fn read_reader(&mut self, directory: &Path, id: &str, findings: &mut Findings) -> io::Result<()> {
        let path = |kind: &str| directory.join(format!("{id}.{kind}"));
        let sent = read_lines(&path("in.jsonl"))?;
        let out = path("out.jsonl");
        let received = read_received(&out, findings)?;
        let order = read_lines(&path("order"))?;
        let name = directory.join(id).display().to_string();
        let (expected, found) =
            (order.iter().filter(|line| line.starts_with(b"out")).count(), received.len());
        if expected > found + 1
            || expected == found + 1 && order.last().is_some_and(|line| is_mark(line, "stop"))
        {
            let message = format!("{expected} lines passed, and {found} of them are recorded");
            findings.add("lost_line", &out.display().to_string(), message);
        }
        let tenant = tenant_of(&order);
        let mut entries = Vec::new();
        let (mut sent, mut received) = (sent.into_iter(), received.into_iter());
        for line in &order {
            if is_mark(line, "start") {
                entries.push(Exchanged::Start);
            } else if is_mark(line, "in") {
                entries.extend(sent.next().map(Exchanged::Sent));
            } else if is_mark(line, "out") {
                entries.extend(received.next().map(Exchanged::Received));
            }
        }
        entries.extend(sent.map(Exchanged::Sent));
        entries.extend(received.map(Exchanged::Received));
        let is_complete = order.last().is_none_or(|line| is_mark(line, "stop"));
        self.session(&tenant, id).readers.push(Reader { name, entries, is_complete });
        Ok(())
    }
}

/// Returns the tenant that the processes named when they started.
fn tenant_of(order: &[Vec<u8>]) -> String {
    let started = order.iter().rfind(|line| is_mark(line, "start"));
    let text = started.map(|line| String::from_utf8_lossy(line)).unwrap_or_default();
    text.split(' ').nth(2).map(str::to_owned).unwrap_or_default()
}

fn is_mark(line: &[u8], mark: &str) -> bool {
    line.split(|byte| *byte == b' ').next() == Some(mark.as_bytes())
}

/// Returns the lines of a file; none if it does not exist. What follows the last line break was not written to its
/// end.
fn read_lines(path: &Path) -> io::Result<Vec<Vec<u8>>> {
    let bytes = match fs::read(path) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let lines = bytes.split_inclusive(|byte| *byte == b'\n').filter_map(|line| line.strip_suffix(b"\n"));
    Ok(lines.map(<[u8]>::to_vec).collect())
}

fn read_entries<T: for<'a> Deserialize<'a>>(
    path: &Path,
    findings: &mut Findings,
) -> io::Result<Vec<(String, T)>> {
    let mut entries = Vec::new();
    for (index, line) in read_lines(path)?.iter().enumerate() {
        let place = format!("{}:{}", path.display(), index + 1);
        match serde_json::from_slice(line) {
            Ok(entry) => entries.push((place, entry)),
            Err(error) => findings.add("unreadable_line", &place, error.to_string()),
        }
    }
    Ok(entries)
}

fn read_received(path: &Path, findings: &mut Findings) -> io::Result<Vec<Received>> {
    let mut lines = Vec::new();
    for (index, line) in read_lines(path)?.into_iter().enumerate() {
        let place = format!("{}:{}", path.display(), index + 1);
        match serde_json::from_slice::<Value>(&line) {
            Ok(value) => lines.push(Received::new(place, &line, value)),
            Err(error) => findings.add("unreadable_line", &place, error.to_string()),
        }
    }
    Ok(lines)
}

impl Received {
    /// A line with the number that it contains.
    fn new(place: String, line: &[u8], mut value: Value) -> Self {
        let number = value["seq"].as_u64();
        if let Some(object) = value.as_object_mut() {
            object.remove("seq");
        }
        let numbered = line.strip_prefix(b"{\"seq\":").filter(|_| number.is_some());
        let comma = numbered.and_then(|rest| rest.iter().position(|byte| *byte == b','));
        let body = match (numbered, comma) {
            (Some(rest), Some(comma)) => [b"{", &rest[comma + 1..]].concat(),
            // A client that has written the line anew.
            _ => value.to_string().into_bytes(),
        };
        Self { place, number, body, value }
    }

    /// A line of a stream, which has its number from its place.
    pub fn stored(place: String, number: u64, body: &[u8], value: Value) -> Self {
        Self { place, number: Some(number), body: body.to_vec(), value }
    }

    /// The prompt of the line.
    pub fn prompt(&self) -> Option<&str> {
        self.value["prompt_id"].as_str()
    }

    /// True for a terminal record.
    pub fn is_end(&self) -> bool {
        self.value["metadata"]["turn"].is_object() || self.value["type"] == "result"
    }

    /// The number after which a client that has attached gets lines.
    pub fn attached_after(&self) -> Option<u64> {
        let result =
            [&self.value["response"]["result"], &self.value["response"]["response"], &self.value["result"]]
                .into_iter()
                .find(|result| result.is_object())?;
        result["last"].as_u64()?;
        result["after"].as_u64()
    }
}
