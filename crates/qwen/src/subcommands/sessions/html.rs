//! A session as one HTML file.

use std::io::Write;
use std::path::Path;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use qwen_dialects::{Dialect, Format};
use qwen_engine::log::Store;
use qwen_events::{Body, ErrorInfo, ErrorKind, SessionId};
use serde_json::json;

use super::{SubcommandError, Wire, replayed};

/// Writes the page's view of a session to a file, or to `out` if the file is `-`.
pub fn export(
    store: &Store,
    id: &SessionId,
    file: &Path,
    out: &mut impl Write,
) -> Result<(), SubcommandError> {
    let wire = Wire { dialect: Dialect::Qwen, format: Format::StreamChunkJson };
    let title = store.read(id)?.header().title.to_string();
    let (mut encoder, mut replay) = replayed(store, id, wire)?;
    let mut recorded: Vec<String> = Vec::new();
    let mut lines = Vec::new();
    while let Some(event) = replay.next_event()? {
        if let (Body::TurnStart(start), None) = (&event.body, &event.scope.parent) {
            // The stream answers prompts and does not repeat them.
            recorded.push(json!({"value": {"kind": "prompt", "parts": &*start.message}}).to_string());
        }
        encoder.encode(&event, &mut lines);
        recorded.extend(String::from_utf8_lossy(&lines).lines().map(str::to_owned));
        lines.clear();
    }
    let title = if title.is_empty() { id.to_string() } else { title };
    let digest = |text: &str| STANDARD.encode(ring::digest::digest(&ring::digest::SHA256, text.as_bytes()));
    let page = qwen_serve::recording(&title, &format!("[{}]", recorded.join(",")), digest);
    if file.as_os_str() == "-" {
        return Ok(out.write_all(page.as_bytes())?);
    }
    std::fs::write(file, page).map_err(|error| {
        let message = format!("{} cannot be written: {error}. Choose another file.", file.display());
        ErrorInfo::new(ErrorKind::Input, "unwritable_file", message).into()
    })
}
