//! Answers a Claude host's requests about files.

use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use qwen_events::{ErrorInfo, ErrorKind};
use qwen_tools::SessionResources;
use serde_json::{Value, json};

use crate::session::ProcessContext;

/// The most bytes of a file that one answer carries.
const MAX_FILE: u64 = 1024 * 1024;

/// Records that the model has read a file, unless the file has changed since.
pub(super) fn record_read(process: &ProcessContext, resources: &SessionResources, path: &str, mtime_ms: u64) {
    let path = process.config.workspace.cwd.join(path);
    let Ok(metadata) = std::fs::metadata(&path) else { return };
    let mtime = metadata.mtime().saturating_mul(1000).saturating_add(metadata.mtime_nsec() / 1_000_000);
    if metadata.is_file()
        && u64::try_from(mtime) == Ok(mtime_ms)
        && let Ok(content) = std::fs::read(&path)
    {
        resources.ledger.note(&path, &metadata, &content);
    }
}

/// Reads a file that the model may read without approval.
pub(super) fn read(
    process: &ProcessContext,
    path: &str,
    max_bytes: Option<u64>,
    base64: bool,
) -> Result<Value, ErrorInfo> {
    let failed = |error: &dyn std::fmt::Display| {
        let message = format!("{}: {error}", path.chars().take(200).collect::<String>());
        ErrorInfo::new(ErrorKind::Input, "unreadable_file", message).with_param("path")
    };
    let absolute: PathBuf =
        std::fs::canonicalize(process.config.workspace.cwd.join(path)).map_err(|error| failed(&error))?;
    if !process.services.permissions.may_read(&absolute) {
        return Err(failed(&"it may not be read without asking"));
    }
    // Opening a named pipe would block.
    if !absolute.is_file() {
        return Err(failed(&"it is not a file"));
    }
    let limit = max_bytes.unwrap_or(MAX_FILE).min(MAX_FILE);
    let mut content = Vec::new();
    let read = std::fs::File::open(&absolute)
        .and_then(|file| std::io::Read::read_to_end(&mut std::io::Read::take(file, limit + 1), &mut content));
    read.map_err(|error| failed(&error))?;
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    let truncated = content.len() > limit;
    content.truncate(limit);
    let mut answer = json!({"absPath": absolute.to_string_lossy(), "truncated": truncated});
    if base64 {
        answer["contents"] = BASE64_STANDARD.encode(&content).into();
        answer["encoding"] = "base64".into();
    } else {
        answer["lossy"] = std::str::from_utf8(&content).is_err().into();
        answer["contents"] = String::from_utf8_lossy(&content).into();
    }
    Ok(answer)
}
