//! The instruction counts to compare with: `benches/baseline.json`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

fn path() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../benches/baseline.json")
}

/// The accepted counts; `None` if there is no file yet.
pub fn load() -> Result<BTreeMap<String, u64>, String> {
    match std::fs::read_to_string(path()) {
        Ok(text) => serde_json::from_str(&text).map_err(|error| format!("benches/baseline.json: {error}")),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(BTreeMap::new()),
        Err(error) => Err(format!("benches/baseline.json: {error}")),
    }
}

/// Makes these counts the ones to compare with.
pub fn save(counts: &BTreeMap<String, u64>) -> Result<(), String> {
    let mut text = serde_json::to_string_pretty(counts).map_err(|error| error.to_string())?;
    text.push('\n');
    std::fs::write(path(), text).map_err(|error| format!("benches/baseline.json: {error}"))
}
