//! `--record-dir`: records every message of every session, for audits. `SESSION.out.jsonl` contains what was
//! sent to clients, so that `qwen view` and `qwen check` can read it; `SESSION.in.jsonl` contains what they
//! sent.

use std::collections::HashMap;
use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::Path;

use qwen_kernel::LineRecorder;

use crate::runtime::exit;

/// The maximum number of open files.
const OPEN_FILES: usize = 128;

/// Records into `directory`, which is created with mode 0700.
pub fn recorder(directory: &Path) -> io::Result<LineRecorder> {
    DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
    let directory = directory.to_owned();
    let mut files: HashMap<String, File> = HashMap::new();
    let mut reported = false;
    Ok(Box::new(move |session, inbound, line| {
        let name = format!("{session}.{}.jsonl", if inbound { "in" } else { "out" });
        let written = (|| {
            if !files.contains_key(&name) {
                if files.len() >= OPEN_FILES {
                    files.clear();
                }
                let file =
                    OpenOptions::new().create(true).append(true).mode(0o600).open(directory.join(&name))?;
                files.insert(name.clone(), file);
            }
            let Some(file) = files.get_mut(&name) else { return Ok(()) };
            let mut whole = line.to_vec();
            whole.push(b'\n');
            file.write_all(&whole)
        })();
        if let Err(error) = written
            && !std::mem::replace(&mut reported, true)
        {
            exit::report(&format!("qwen: messages cannot be recorded in {}: {error}", directory.display()));
        }
    }))
}
