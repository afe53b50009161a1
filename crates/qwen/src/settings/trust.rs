//! Which folders are trusted. Until a folder is, what it brings along does nothing: its settings, hooks, MCP servers,
//! agents and commands.
//!
//! A folder is known by its real path and by nothing in it, so that nothing in it can make it look like another one.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use qwen_events::ErrorInfo;
use rustix::fs::FlockOperation;
use serde::{Deserialize, Serialize};

use super::Invocation;
use super::file::unusable;

/// Whether a folder is trusted, and who says so.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision {
    /// `--trust-workspace`.
    ByFlag,
    /// `security.trustedFolders` of the user's or the machine's settings.
    BySettings,
    /// `qwen trust`.
    ByList,
    /// Nobody says so.
    No,
}

impl Decision {
    /// Whether what the folder brings along counts.
    pub fn is_trusted(self) -> bool {
        self != Self::No
    }

    /// Who says so, in words.
    pub fn why(self) -> &'static str {
        match self {
            Self::ByFlag => "trusted for this run (--trust-workspace)",
            Self::BySettings => "trusted (security.trustedFolders)",
            Self::ByList => "trusted (qwen trust)",
            Self::No => "not trusted",
        }
    }
}

/// The trust in the working directory, decided when somebody asks: most runs meet nothing that needs it.
#[derive(Debug, Clone)]
pub struct Trust {
    folder: PathBuf,
    by_flag: bool,
    by_settings: Vec<PathBuf>,
    list: Option<TrustList>,
    decided: OnceLock<Decision>,
}

impl Trust {
    /// The trust in the working directory of `invocation`, given what the user's own settings and flags say.
    pub fn new(invocation: &Invocation, by_flag: bool, trusted_folders: &[String]) -> Self {
        // From where we happen to be, `.`, or a variable that is empty, would be any folder at all.
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

    /// The decision.
    pub fn decision(&self) -> Decision {
        *self.decided.get_or_init(|| self.decide())
    }

    fn decide(&self) -> Decision {
        if self.by_flag {
            return Decision::ByFlag;
        }
        // A folder that cannot be looked at is nobody's.
        let Ok(folder) = self.folder.canonicalize() else { return Decision::No };
        let is_in =
            |trusted: &PathBuf| trusted.canonicalize().is_ok_and(|trusted| folder.starts_with(trusted));
        if self.by_settings.iter().any(is_in) {
            return Decision::BySettings;
        }
        // A list that cannot be read trusts nobody; `qwen trust --list` says what is wrong with it.
        let listed = self.list.as_ref().and_then(|list| list.folders().ok()).unwrap_or_default();
        // Each was written down by its real path; if that leads elsewhere now, it is another folder.
        let is_listed = |trusted: &PathBuf| trusted.is_absolute() && folder.starts_with(trusted);
        if listed.iter().any(is_listed) { Decision::ByList } else { Decision::No }
    }
}

/// The folders that `qwen trust` was told about.
#[derive(Debug, Clone)]
pub struct TrustList {
    home: PathBuf,
}

#[derive(Serialize, Deserialize, Default)]
struct TrustedFolders {
    folders: Vec<PathBuf>,
}

impl TrustList {
    /// The list of this user; none without a home to keep it in.
    pub fn of(invocation: &Invocation) -> Option<Self> {
        Some(Self { home: invocation.cwd.join(invocation.qwen_home()?) })
    }

    /// Where it is kept.
    pub fn path(&self) -> PathBuf {
        self.home.join("trusted-folders.json")
    }

    /// The folders.
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

    /// Adds a folder, given by its real path; false when it was there already.
    pub fn add(&self, folder: &Path) -> Result<bool, ErrorInfo> {
        self.change(|folders| {
            let new = !folders.iter().any(|known| known == folder);
            if new {
                folders.push(folder.to_owned());
            }
            new
        })
    }

    /// Takes a folder out; false when it was not there.
    pub fn remove(&self, folder: &Path) -> Result<bool, ErrorInfo> {
        self.change(|folders| {
            let before = folders.len();
            folders.retain(|known| known != folder);
            folders.len() < before
        })
    }

    /// Changes the list while no other process does.
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

    /// Writes the list in one step: whoever reads it sees the old one or the new one.
    fn write(&self, listed: &TrustedFolders) -> io::Result<()> {
        let temporary = self.home.join(format!("trusted-folders.{:016x}.tmp", fastrand::u64(..)));
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&temporary)?;
        let mut text = serde_json::to_vec_pretty(listed)?;
        text.push(b'\n');
        let written = file.write_all(&text).and_then(|()| file.sync_all());
        let renamed = written.and_then(|()| std::fs::rename(&temporary, self.path()));
        if renamed.is_err() {
            // What went wrong is told; a left-over file would only be in the way.
            let _ = std::fs::remove_file(&temporary);
        }
        renamed
    }
}
