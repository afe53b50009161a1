//! Responses that can be retrieved and continued.

use std::collections::BTreeMap;
use std::fs::{DirBuilder, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// How many responses are kept.
const KEPT: usize = 2000;

/// A response, and where its turn continues.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct StoredResponse {
    /// The response as its client received it.
    pub response: Value,
    pub session: String,
    pub prompt_id: String,
    /// The number of the last line that it reflects.
    pub after: u64,
    /// Calls that have not ended: name and arguments.
    pub open_calls: BTreeMap<String, (String, String)>,
    /// The names of the tools that the client runs.
    pub host_tools: Vec<String>,
    /// True once another response continues it.
    pub is_continued: bool,
    /// False if it can only be continued, not retrieved.
    pub is_stored: bool,
}

/// The stored responses, one file each.
#[derive(Debug)]
pub struct Responses {
    directory: PathBuf,
}

impl Responses {
    pub fn open(directory: &Path) -> io::Result<Self> {
        DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
        Ok(Self { directory: directory.to_owned() })
    }

    /// The file of a response; none for what is not an id.
    fn path(&self, id: &str) -> Option<PathBuf> {
        let rest = id.strip_prefix("resp_")?;
        let is_id = rest.len() == 32 && rest.bytes().all(|byte| byte.is_ascii_hexdigit());
        is_id.then(|| self.directory.join(format!("{id}.json")))
    }

    pub fn get(&self, id: &str) -> Option<StoredResponse> {
        serde_json::from_slice(&std::fs::read(self.path(id)?).ok()?).ok()
    }

    /// Stores a response under its id.
    pub fn put(&self, id: &str, stored: &StoredResponse) -> io::Result<()> {
        let path = self.path(id).ok_or(io::ErrorKind::InvalidInput)?;
        if !path.exists() {
            self.prune()?;
        }
        let new = path.with_extension("new");
        let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&new)?;
        file.write_all(&serde_json::to_vec(stored).map_err(io::Error::other)?)?;
        std::fs::rename(&new, path)
    }

    /// True if there was one.
    pub fn remove(&self, id: &str) -> bool {
        self.path(id).is_some_and(|path| std::fs::remove_file(path).is_ok())
    }

    /// The latest response that left this call open.
    pub fn with_open_call(&self, call: &str) -> Option<(String, StoredResponse)> {
        let mut files = self.files().ok()?;
        files.sort_by_key(|(modified, _)| std::cmp::Reverse(*modified));
        files.into_iter().take(100).find_map(|(_, path)| {
            let id = path.file_stem()?.to_str()?.to_owned();
            let stored = self.get(&id)?;
            stored.open_calls.contains_key(call).then_some((id, stored))
        })
    }

    fn files(&self) -> io::Result<Vec<(std::time::SystemTime, PathBuf)>> {
        std::fs::read_dir(&self.directory)?
            .map(|entry| {
                let entry = entry?;
                Ok((entry.metadata()?.modified()?, entry.path()))
            })
            .collect()
    }

    /// Removes the oldest half of the responses when there are too many.
    fn prune(&self) -> io::Result<()> {
        if std::fs::read_dir(&self.directory)?.count() < KEPT {
            return Ok(());
        }
        let mut files = self.files()?;
        files.sort();
        for (_, path) in files.iter().take(KEPT / 2) {
            std::fs::remove_file(path)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_ids_of_responses_name_files() {
        let home = tempfile::tempdir().unwrap();
        let responses = Responses::open(home.path()).unwrap();
        for id in ["", "resp_", "../x", "resp_../../../../../../../../../../etc", "resp_\0"] {
            assert!(responses.get(id).is_none() && !responses.remove(id), "{id}");
        }
    }
}
