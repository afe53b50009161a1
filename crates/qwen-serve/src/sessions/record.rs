//! What the server remembers of a session beyond its log: one small file per session.

use std::collections::HashMap;
use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use qwen_events::SessionId;
use serde::{Deserialize, Serialize};

/// What the server remembers of a session.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct SessionRecord {
    /// The directory in which the session's agent works.
    pub workspace: PathBuf,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mode: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// Added to the system prompt.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instructions: Option<String>,
    pub title: String,
    /// Milliseconds since the Unix epoch.
    pub created_at: u64,
    /// Milliseconds since the Unix epoch, of the last prompt.
    pub updated_at: u64,
    /// The prompts that were accepted and have not ended.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub open_prompts: Vec<String>,
    /// What a protocol's front keeps with the session.
    #[serde(skip_serializing_if = "serde_json::Map::is_empty")]
    pub front: serde_json::Map<String, serde_json::Value>,
}

/// The records below a directory.
#[derive(Debug)]
pub struct Records {
    directory: PathBuf,
}

impl Records {
    /// The records in `directory`, which is created with mode 0700.
    pub fn open(directory: &Path) -> io::Result<Self> {
        DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
        Ok(Self { directory: directory.to_owned() })
    }

    /// The file with the order of the sessions' lines.
    pub fn order_path(&self) -> PathBuf {
        self.directory.with_file_name("order")
    }

    /// Reads all records. A file that is not a record is skipped.
    pub fn load(&self) -> io::Result<HashMap<SessionId, SessionRecord>> {
        let mut records = HashMap::new();
        for entry in std::fs::read_dir(&self.directory)? {
            let name = entry?.file_name();
            let stem = name.to_str().and_then(|name| name.strip_suffix(".json"));
            let Some(id) = stem.and_then(|stem| SessionId::parse(stem).ok()) else { continue };
            let read = std::fs::read(self.path(&id)).ok();
            if let Some(record) = read.and_then(|text| serde_json::from_slice(&text).ok()) {
                records.insert(id, record);
            }
        }
        Ok(records)
    }

    /// Replaces a record; a crash leaves the former or the new one.
    pub fn write(&self, id: &SessionId, record: &SessionRecord) -> io::Result<()> {
        let text = serde_json::to_vec(record).map_err(io::Error::other)?;
        let new = self.directory.join(format!("{id}.json.new"));
        let mut file: File =
            OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&new)?;
        file.write_all(&text)?;
        std::fs::rename(&new, self.path(id))
    }

    pub fn remove(&self, id: &SessionId) -> io::Result<()> {
        match std::fs::remove_file(self.path(id)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }

    fn path(&self, id: &SessionId) -> PathBuf {
        self.directory.join(format!("{id}.json"))
    }
}

/// Milliseconds since the Unix epoch.
pub fn now() -> u64 {
    let elapsed = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_read_back_as_it_was_written() {
        let home = tempfile::tempdir().unwrap();
        let records = Records::open(&home.path().join("sessions")).unwrap();
        let id = SessionId::parse("s1").unwrap();
        let record =
            SessionRecord { title: "A \u{202e}title".to_owned(), created_at: 7, ..Default::default() };
        records.write(&id, &record).unwrap();
        std::fs::write(home.path().join("sessions/broken.json"), "{").unwrap();
        assert_eq!(records.load().unwrap(), HashMap::from([(id.clone(), record)]));
        records.remove(&id).unwrap();
        records.remove(&id).unwrap();
        assert!(records.load().unwrap().is_empty());
    }
}
