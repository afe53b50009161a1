//! `--record-dir`: records every message of every session, for audits. `SESSION.out.jsonl` contains what was
//! sent to clients, so that `qwen view` and `qwen check` can read it; `SESSION.in.jsonl` contains what they
//! sent; `SESSION.order` says for each line which of the two it is in and when it passed, so that
//! `qwen sessions replay` can play them back.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Write};
use std::path::Path;

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

/// Records into `directory`, which is created with mode 0700. Commands of a session may be able to write there,
/// so no link in it is followed.
pub fn recorder(directory: &Path) -> io::Result<LineRecorder> {
    let path = std::path::absolute(directory)?;
    let shared = std::env::current_dir().into_iter().chain(path.parent().map(Path::to_owned));
    let directory = SharedPlaces::new(shared).open_directory(&path)?.into_shared();
    let mut files: HashMap<String, File> = HashMap::new();
    let mut reported = false;
    Ok(Box::new(move |tenant, session, inbound, line| {
        // The files of a tenant are below a separate directory: two tenants may use the same session id.
        let place = if tenant.is_empty() { String::new() } else { format!("{tenant}/") };
        let kind = if inbound { "in" } else { "out" };
        let order = format!("{kind} {}", clock::now().0);
        let written = append(&directory, &mut files, format!("{place}{session}.{kind}.jsonl"), line)
            .and_then(|()| {
                append(&directory, &mut files, format!("{place}{session}.order"), order.as_bytes())
            });
        if let Err(error) = written
            && !std::mem::replace(&mut reported, true)
        {
            exit::report(&format!("qwen: messages cannot be recorded in {}: {error}", path.display()));
        }
    }))
}
