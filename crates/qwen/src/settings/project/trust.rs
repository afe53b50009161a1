//! Folder trust. The settings, hooks, MCP servers, agents and commands of an untrusted folder have no effect.
//!
//! A folder is identified by its real path and by nothing inside it, so that its contents cannot make it look
//! like another folder.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use qwen_events::ErrorInfo;
use rustix::fs::FlockOperation;
use serde::{Deserialize, Serialize};

use crate::settings::Invocation;
use crate::settings::file::unusable;

/// Whether a folder is trusted, and the source of that decision.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TrustDecision {
    /// `--trust-workspace`.
    ByFlag,
    /// `security.trustedFolders` of the user's or the machine's settings.
    BySettings,
    /// `qwen trust`.
    ByList,
    /// No source trusts the folder.
    No,
}

impl TrustDecision {
    /// True if the folder's configuration is used.
    pub fn is_trusted(self) -> bool {
        self != Self::No
    }

    /// The source of the decision, as text for users.
    pub fn reason(self) -> &'static str {
        match self {
            Self::ByFlag => "trusted for this run (--trust-workspace)",
            Self::BySettings => "trusted (security.trustedFolders)",
            Self::ByList => "trusted (qwen trust)",
            Self::No => "not trusted",
        }
    }
}

/// The trust in the working directory. It is decided on first use, because most runs do not need it.
#[derive(Debug, Clone)]
pub struct Trust {
    folder: PathBuf,
    by_flag: bool,
    by_settings: Vec<PathBuf>,
    list: Option<TrustList>,
    decided: OnceLock<TrustDecision>,
}

impl Trust {
    /// The trust in the working directory of `invocation`, given the user's own settings and flags.
    pub fn new(invocation: &Invocation, by_flag: bool, trusted_folders: &[String]) -> Self {
        // Relative to the current directory, `.` or an empty variable would match any folder.
        let is_whole = |folder: &&String| folder.starts_with(['/', '~']);
        let whole = trusted_folders.iter().filter(is_whole);
        Self {
            folder: invocation.cwd.clone(),
            by_flag,
            by_settings: whole
                .filter_map(|folder| invocation.absolute(folder))
                .filter(|folder| folder.is_absolute())
                .collect(),
            list: TrustList::of(invocation),
            decided: OnceLock::new(),
        }
    }

    pub fn decision(&self) -> TrustDecision {
        *self.decided.get_or_init(|| self.decide())
    }

    fn decide(&self) -> TrustDecision {
        if self.by_flag {
            return TrustDecision::ByFlag;
        }
        // A folder that cannot be resolved is not trusted.
        let Ok(folder) = self.folder.canonicalize() else { return TrustDecision::No };
        let is_in =
            |trusted: &PathBuf| trusted.canonicalize().is_ok_and(|trusted| folder.starts_with(trusted));
        if self.by_settings.iter().any(is_in) {
            return TrustDecision::BySettings;
        }
        // An unreadable list trusts no folder; `qwen trust --list` reports its error.
        let listed = self.list.as_ref().and_then(|list| list.folders().ok()).unwrap_or_default();
        // Each entry was stored as a real path. If that path now resolves elsewhere, it is another folder.
        let is_listed = |trusted: &PathBuf| trusted.is_absolute() && folder.starts_with(trusted);
        if listed.iter().any(is_listed) { TrustDecision::ByList } else { TrustDecision::No }
    }
}

/// The folders that were added with `qwen trust`.
#[derive(Debug, Clone)]
pub struct TrustList {
    home: PathBuf,
}

#[derive(Serialize, Deserialize, Default)]
struct TrustedFolders {
    folders: Vec<PathBuf>,
}

impl TrustList {
    /// The list of this user; none without a home directory.
    pub fn of(invocation: &Invocation) -> Option<Self> {
        Some(Self { home: invocation.cwd.join(invocation.qwen_home()?) })
    }

    /// The path of the list file.
    pub fn path(&self) -> PathBuf {
        self.home.join("trusted-folders.json")
    }

    pub fn folders(&self) -> Result<Vec<PathBuf>, ErrorInfo> {
        let path = self.path();
        match std::fs::read(&path) {
            Ok(text) => {
                let listed = serde_json::from_slice::<TrustedFolders>(&text).map_err(|error| {
                    unusable(format!(
                        "the list of trusted folders in {} cannot be read: {error}",
                        path.display()
                    ))
                })?;
                Ok(listed.folders)
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
            Err(error) => Err(unusable(format!(
                "the list of trusted folders in {} cannot be read: {error}",
                path.display()
            ))),
        }
    }

    /// Adds a folder, given by its real path. Returns false if it was already listed.
    pub fn add(&self, folder: &Path) -> Result<bool, ErrorInfo> {
        self.change(|folders| {
            let new = !folders.iter().any(|known| known == folder);
            if new {
                folders.push(folder.to_owned());
            }
            new
        })
    }

    /// Removes a folder. Returns false if it was not listed.
    pub fn remove(&self, folder: &Path) -> Result<bool, ErrorInfo> {
        self.change(|folders| {
            let before = folders.len();
            folders.retain(|known| known != folder);
            folders.len() < before
        })
    }

    /// Changes the list under a lock against other processes.
    fn change(&self, change: impl FnOnce(&mut Vec<PathBuf>) -> bool) -> Result<bool, ErrorInfo> {
        let unwritable = |error: io::Error| {
            unusable(format!(
                "the list of trusted folders in {} cannot be written: {error}",
                self.path().display()
            ))
        };
        DirBuilder::new().recursive(true).mode(0o700).create(&self.home).map_err(unwritable)?;
        let lock = File::open(&self.home).map_err(unwritable)?;
        rustix::fs::flock(&lock, FlockOperation::LockExclusive).map_err(|error| unwritable(error.into()))?;
        let mut folders = self.folders()?;
        if !change(&mut folders) {
            return Ok(false);
        }
        self.write(&TrustedFolders { folders }).map_err(unwritable)?;
        Ok(true)
    }

    /// Writes the list atomically: readers see either the old or the new list.
    fn write(&self, listed: &TrustedFolders) -> io::Result<()> {
        let temporary = self.home.join(format!("trusted-folders.{:016x}.tmp", fastrand::u64(..)));
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&temporary)?;
        let mut text = serde_json::to_vec_pretty(listed)?;
        text.push(b'\n');
        let written = file.write_all(&text).and_then(|()| file.sync_all());
        let renamed = written.and_then(|()| std::fs::rename(&temporary, self.path()));
        if renamed.is_err() {
            // The original error is reported. This only removes the temporary file.
            let _ = std::fs::remove_file(&temporary);
        }
        renamed
    }
}
