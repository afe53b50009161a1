//! `--record-dir`: records every message of every session, for audits. `SESSION.out.jsonl` contains what was
//! sent to clients, so that `qwen view` and `qwen check` can read it; `SESSION.in.jsonl` contains what they
//! sent; `SESSION.order` says for each line which of the two it is in and when it passed, so that
//! `qwen sessions replay` can play them back. With a bus, `SESSION.store.jsonl` contains what the process asked the
//! session's stores for. `qwen check --history` reads all of them.

use std::cell::RefCell;
use std::collections::hash_map::Entry;
use std::collections::{BTreeSet, HashMap};
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::rc::Rc;

use qwen_events::SessionId;
use qwen_kernel::LineRecorder;

use rustix::fs::Mode;

use crate::io::host_file::{HostDirectory, SharedPlaces, WriteMode};
use crate::runtime::{clock, exit};

/// The maximum number of open files.
const OPEN_FILES: usize = 128;

/// Appends a line to a file of the directory.
fn append(
    directory: &HostDirectory,
    files: &mut HashMap<String, File>,
    name: String,
    line: &[u8],
) -> io::Result<()> {
    if files.len() >= OPEN_FILES && !files.contains_key(&name) {
        files.clear();
    }
    let file = match files.entry(name) {
        Entry::Occupied(open) => open.into_mut(),
        Entry::Vacant(place) => {
            let path = Path::new(place.key());
            let (parent, name) = (path.parent().unwrap_or(Path::new("")), path.file_name());
            let parent = directory.duplicate()?.enter(parent, Some(Mode::RWXU))?;
            let file = parent.open_file(name.unwrap_or(OsStr::new("")), WriteMode::Append)?;
            place.insert(file)
        }
    };
    let mut whole = line.to_vec();
    whole.push(b'\n');
    file.write_all(&whole)
}

/// A recording. Clones share it.
#[derive(Clone)]
pub struct MessageRecording(Rc<RefCell<Files>>);

struct Files {
    path: PathBuf,
    directory: HostDirectory,
    open: HashMap<String, File>,
    /// The files of order in which this process has noted its start.
    started: BTreeSet<String>,
    is_failure_reported: bool,
}

impl MessageRecording {
    /// Records into `directory`, which is created with mode 0700. Commands of a session may be able to write there,
    /// so no link in it is followed.
    pub fn open(directory: &Path) -> io::Result<Self> {
        let path = std::path::absolute(directory)?;
        let shared = std::env::current_dir().into_iter().chain(path.parent().map(Path::to_owned));
        let directory = SharedPlaces::new(shared).open_directory(&path)?.into_shared();
        Ok(Self(Rc::new(RefCell::new(Files {
            path,
            directory,
            open: HashMap::new(),
            started: BTreeSet::new(),
            is_failure_reported: false,
        }))))
    }

    /// Returns what records the lines of clients.
    pub fn recorder(&self) -> LineRecorder {
        let files = self.0.clone();
        Box::new(move |tenant, session, inbound, line| {
            files.borrow_mut().record_message(tenant, session, inbound, line);
        })
    }

    /// Records what a session's stores were asked for and what they answered.
    #[cfg(feature = "fleet")]
    pub fn record_store(&self, tenant: &str, session: &SessionId, entry: &serde_json::Value) {
        let mut files = self.0.borrow_mut();
        let name = format!("{}{session}.store.jsonl", place_of(tenant));
        let written = files.append(name, entry.to_string().as_bytes());
        files.report_failure(written);
    }

    /// Notes that the process owns the numbers of a session from now on: others may have added to it before.
    #[cfg(feature = "fleet")]
    pub fn record_take(&self, tenant: &str, session: &SessionId) {
        let mut files = self.0.borrow_mut();
        let order = format!("{}{session}.order", place_of(tenant));
        files.started.insert(order.clone());
        let written = files.append(order, start_mark(tenant).as_bytes());
        files.report_failure(written);
    }

    /// Notes that the process has finished: whatever its clients sent was answered.
    pub fn finish(&self) {
        let mut files = self.0.borrow_mut();
        let stop = format!("stop {}", clock::now().0);
        for name in files.started.clone() {
            let written = files.append(name, stop.as_bytes());
            files.report_failure(written);
        }
    }
}

/// Returns where the files of a tenant are. Two tenants may use the same session id.
fn place_of(tenant: &str) -> String {
    if tenant.is_empty() { String::new() } else { format!("{tenant}/") }
}

/// Returns the entry of the order for the start of a process.
fn start_mark(tenant: &str) -> String {
    let now = clock::now().0;
    if tenant.is_empty() { format!("start {now}") } else { format!("start {now} {tenant}") }
}

impl Files {
    fn append(&mut self, name: String, line: &[u8]) -> io::Result<()> {
        append(&self.directory, &mut self.open, name, line)
    }

    fn record_message(&mut self, tenant: &str, session: &SessionId, inbound: bool, line: &[u8]) {
        let place = place_of(tenant);
        let kind = if inbound { "in" } else { "out" };
        let order = format!("{place}{session}.order");
        let now = clock::now().0;
        let mut written = Ok(());
        if self.started.insert(order.clone()) {
            written = self.append(order.clone(), start_mark(tenant).as_bytes());
        }
        let written = written
            .and_then(|()| self.append(format!("{place}{session}.{kind}.jsonl"), line))
            .and_then(|()| self.append(order, format!("{kind} {now}").as_bytes()));
        self.report_failure(written);
    }

    fn report_failure(&mut self, written: io::Result<()>) {
        if let Err(error) = written
            && !std::mem::replace(&mut self.is_failure_reported, true)
        {
            exit::report(&format!("qwen: messages cannot be recorded in {}: {error}", self.path.display()));
        }
    }
}
