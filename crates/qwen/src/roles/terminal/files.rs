//! The terminal's files for a project: the prompt history and the unsent draft.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use qwen_redact::Redactor;

use crate::settings::Config;

/// The most bytes that are read of a history.
const MAX_HISTORY: u64 = 1024 * 1024;

/// The maximum number of prompts offered.
const MAX_PROMPTS: usize = 500;

/// The files of one project. Nothing is stored without a home directory or if sessions are not recorded.
pub struct Files {
    folder: Option<PathBuf>,
    name: String,
    redactor: Arc<Redactor>,
}

impl Files {
    /// The files for the directory of `config`.
    pub fn new(config: &Config) -> Self {
        let home = config.workspace.qwen_home.clone().filter(|_| config.session.record);
        Self {
            folder: home.map(|home| config.workspace.cwd.join(home).join("terminal")),
            name: name(&config.workspace.cwd),
            redactor: config.diagnostics.redactor.clone(),
        }
    }

    /// The directory for the user's temporary files.
    pub fn folder(&self) -> PathBuf {
        self.folder.clone().unwrap_or_else(std::env::temp_dir)
    }

    /// Earlier prompts, oldest first. An unreadable history counts as empty.
    pub fn history(&self) -> Vec<String> {
        let Some(path) = self.path("history") else { return Vec::new() };
        let is_small = fs::metadata(&path).is_ok_and(|data| data.len() <= MAX_HISTORY);
        let text = fs::read_to_string(&path).unwrap_or_default();
        let prompts: Vec<String> = text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
        let kept = prompts[prompts.len().saturating_sub(MAX_PROMPTS)..].to_vec();
        if !is_small && !kept.is_empty() {
            let lines: String = kept.iter().map(|prompt| line(prompt)).collect();
            // If this fails, the next start tries again.
            let _ = self.replace("history", &lines);
        }
        kept
    }

    /// Appends a prompt to the history, without secrets.
    pub fn remember(&self, prompt: &str) -> io::Result<()> {
        let Some(path) = self.path("history") else { return Ok(()) };
        self.prepare()?;
        let mut file = OpenOptions::new().append(true).create(true).mode(0o600).open(path)?;
        file.write_all(line(&self.redactor.redact(prompt)).as_bytes())
    }

    /// The draft that the last process left.
    pub fn draft(&self) -> String {
        self.path("draft").and_then(|path| fs::read_to_string(path).ok()).unwrap_or_default()
    }

    /// Saves the draft; an empty one removes the file.
    pub fn save_draft(&self, text: &str) -> io::Result<()> {
        let Some(path) = self.path("draft") else { return Ok(()) };
        if text.is_empty() {
            return match fs::remove_file(path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
                _ => Ok(()),
            };
        }
        self.replace("draft", &self.redactor.redact(text))
    }

    /// True if the user has not trusted the folder when it had this configuration.
    pub fn has_declined(&self, configuration: &[String]) -> bool {
        let declined = self.path("untrusted").and_then(|path| fs::read_to_string(path).ok());
        !configuration.is_empty() && declined.is_some_and(|declined| declined == configuration.join("\n"))
    }

    /// Records that the user does not trust the folder with this configuration.
    pub fn decline(&self, configuration: &[String]) -> io::Result<()> {
        self.replace("untrusted", &configuration.join("\n"))
    }

    fn path(&self, kind: &str) -> Option<PathBuf> {
        self.folder.as_ref().map(|folder| folder.join(format!("{}.{kind}", self.name)))
    }

    fn prepare(&self) -> io::Result<()> {
        match &self.folder {
            Some(folder) => fs::DirBuilder::new().recursive(true).mode(0o700).create(folder),
            None => Ok(()),
        }
    }

    /// Replaces a file atomically, so that a full disk or a crash leaves the old one.
    fn replace(&self, kind: &str, text: &str) -> io::Result<()> {
        let Some(path) = self.path(kind) else { return Ok(()) };
        self.prepare()?;
        let fresh = path.with_extension(format!("{kind}-{}", std::process::id()));
        let mut options = OpenOptions::new();
        let mut file = options.write(true).create(true).truncate(true).mode(0o600).open(&fresh)?;
        let written = file.write_all(text.as_bytes()).and_then(|()| fs::rename(&fresh, path));
        if written.is_err() {
            let _ = fs::remove_file(&fresh);
        }
        written
    }
}

fn line(prompt: &str) -> String {
    format!("{}\n", serde_json::Value::from(prompt))
}

/// A file name for a directory: its last component for readability, and a hash of the whole path (FNV-1a)
/// that makes it unique.
fn name(directory: &Path) -> String {
    let bytes = directory.as_os_str().as_encoded_bytes();
    let hash = bytes.iter().fold(0xcbf2_9ce4_8422_2325u64, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    });
    let last = directory.file_name().unwrap_or_default().to_string_lossy();
    let last: String = last.chars().filter(char::is_ascii_alphanumeric).take(24).collect();
    format!("{last}-{hash:016x}")
}
