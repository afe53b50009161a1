//! Folder trust. The settings, hooks, MCP servers, agents and commands of an untrusted folder have no effect.
//!
//! A folder is identified by its real path and by nothing inside it, so that its contents cannot make it look
//! like another folder. Trust is bound to the content that it had then (`content.rs`): after a change the
//! folder is not trusted until the user has seen the difference.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use qwen_events::ErrorInfo;
use rustix::fs::FlockOperation;
use serde::{Deserialize, Serialize};

use super::content::{FolderContent, TreeContent, UserDirectories, relative_name};
use crate::settings::Invocation;
use crate::settings::file::unusable;

/// Whether a folder is trusted, and the source of that decision.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TrustDecision {
    /// Trusted for this process by `--trust-workspace`.
    ByFlag,
    /// `security.trustedFolders` of the user's or the machine's settings.
    BySettings,
    /// Trusted earlier, by `qwen trust` or the dialog.
    ByList,
    /// The folder was trusted, and its content is different now.
    Changed,
    /// No source trusts the folder.
    No,
}

impl TrustDecision {
    /// True if the folder's configuration is used.
    pub fn is_trusted(self) -> bool {
        match self {
            Self::ByFlag | Self::BySettings | Self::ByList => true,
            Self::Changed | Self::No => false,
        }
    }

    /// The source of the decision, as text for users.
    pub fn reason(self) -> &'static str {
        match self {
            Self::ByFlag => "trusted for this run (--trust-workspace)",
            Self::BySettings => "trusted (security.trustedFolders)",
            Self::ByList => "trusted (qwen trust)",
            Self::Changed => "not trusted: its configuration changed since it was trusted",
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
    own: UserDirectories,
    decided: OnceLock<(TrustDecision, Vec<String>)>,
}

/// The most changes that a warning lists.
const MAX_CHANGES: usize = 20;

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
            list: TrustList::locate(invocation),
            own: UserDirectories::resolve(invocation),
            decided: OnceLock::new(),
        }
    }

    pub fn decision(&self) -> TrustDecision {
        self.decided.get_or_init(|| self.decide()).0
    }

    /// The changes since the folder was trusted, as lines that start with `+`, `-` or `~`. Empty unless the
    /// decision is [`TrustDecision::Changed`].
    pub fn changes(&self) -> &[String] {
        &self.decided.get_or_init(|| self.decide()).1
    }

    /// A warning that lists the changes, if the trust was decided and the folder has changed.
    pub fn warning(&self) -> Option<String> {
        let (_, changes) = self.decided.get()?;
        let mut listed = changes.iter().take(MAX_CHANGES).map(String::as_str).collect::<Vec<_>>().join("; ");
        if changes.len() > MAX_CHANGES {
            listed = format!("{listed}; and {} more", changes.len() - MAX_CHANGES);
        }
        (!changes.is_empty()).then(|| {
            format!(
                "the configuration of {} is ignored, because this folder is not trusted any more: it changed since it \
                 was trusted ({listed}); review the changes, then trust them with 'qwen trust', or for one run with \
                 --trust-workspace",
                self.folder.display()
            )
        })
    }

    fn decide(&self) -> (TrustDecision, Vec<String>) {
        let decided = |decision| (decision, Vec::new());
        if self.by_flag {
            return decided(TrustDecision::ByFlag);
        }
        // A folder that cannot be resolved is not trusted.
        let Ok(folder) = self.folder.canonicalize() else { return decided(TrustDecision::No) };
        let content = FolderContent::collect(&folder, &self.own);
        // An unreadable list trusts no folder; `qwen trust --list` reports its error.
        let listed = self.list.as_ref().and_then(|list| list.read().ok()).unwrap_or_default();
        // Each entry was stored as a real path. If that path now resolves elsewhere, it is another folder.
        let is_listed = |trusted: &&PathBuf| trusted.is_absolute() && folder.starts_with(trusted);
        let mut changes = None;
        for trusted in listed.folders.iter().filter(is_listed) {
            let before = listed.content(trusted, &folder).cloned().unwrap_or_default();
            if before == content {
                return decided(TrustDecision::ByList);
            }
            changes = Some(content.changes_since(&before));
        }
        let is_in =
            |trusted: &PathBuf| trusted.canonicalize().is_ok_and(|trusted| folder.starts_with(trusted));
        if changes.is_none() && self.by_settings.iter().any(is_in) {
            // The setting names no content: the first one that is found there is what the user trusts.
            let before = listed.content(&folder, &folder);
            match before {
                Some(before) if *before != content => changes = Some(content.changes_since(before)),
                Some(_) => return decided(TrustDecision::BySettings),
                None => {
                    if !content.is_empty() {
                        let tree = TreeContent::from([(String::new(), content)]);
                        // Without the record, the next run trusts what it finds.
                        let _ = self.list.as_ref().map(|list| list.record(&folder, tree));
                    }
                    return decided(TrustDecision::BySettings);
                }
            }
        }
        match changes {
            Some(changes) => (TrustDecision::Changed, changes),
            None => decided(TrustDecision::No),
        }
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
    /// The content that each folder had when it was trusted.
    #[serde(default)]
    contents: BTreeMap<PathBuf, TreeContent>,
}

impl TrustedFolders {
    /// The content that `folder` had when `trusted`, which contains it, was trusted.
    fn content(&self, trusted: &Path, folder: &Path) -> Option<&FolderContent> {
        self.contents.get(trusted)?.get(&relative_name(trusted, folder))
    }
}

/// The effect of trusting a folder.
#[derive(Debug, PartialEq, Eq)]
pub enum TrustChange {
    /// The folder was not listed.
    Added,
    /// The folder was listed with the same content.
    Same,
    /// The folder was listed with another content; the differences as lines.
    Updated(Vec<String>),
}

impl TrustList {
    /// The list of this user; none without a home directory.
    pub fn locate(invocation: &Invocation) -> Option<Self> {
        Some(Self { home: invocation.cwd.join(invocation.qwen_home()?) })
    }

    /// The path of the list file.
    pub fn path(&self) -> PathBuf {
        self.home.join("trusted-folders.json")
    }

    pub fn folders(&self) -> Result<Vec<PathBuf>, ErrorInfo> {
        Ok(self.read()?.folders)
    }

    fn read(&self) -> Result<TrustedFolders, ErrorInfo> {
        let path = self.path();
        let unreadable = |error: &dyn std::fmt::Display| {
            unusable(format!("the list of trusted folders in {} cannot be read: {error}", path.display()))
        };
        match std::fs::read(&path) {
            Ok(text) => serde_json::from_slice(&text).map_err(|error| unreadable(&error)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(TrustedFolders::default()),
            Err(error) => Err(unreadable(&error)),
        }
    }

    /// Adds a folder, given by its real path, with the content that the user trusts.
    pub fn add(&self, folder: &Path, content: &TreeContent) -> Result<TrustChange, ErrorInfo> {
        self.change(|listed| {
            let is_new = !listed.folders.iter().any(|known| known == folder);
            if is_new {
                listed.folders.push(folder.to_owned());
            }
            let before = listed.contents.insert(folder.to_owned(), content.clone()).unwrap_or_default();
            match is_new {
                true => TrustChange::Added,
                false if before == *content => TrustChange::Same,
                false => TrustChange::Updated(changes_between(&before, content)),
            }
        })
    }

    /// Records the content of a folder that the settings trust.
    fn record(&self, folder: &Path, content: TreeContent) -> Result<(), ErrorInfo> {
        self.change(|listed| {
            listed.contents.insert(folder.to_owned(), content);
        })
    }

    /// Removes a folder. Returns false if it was not listed.
    pub fn remove(&self, folder: &Path) -> Result<bool, ErrorInfo> {
        self.change(|listed| {
            let before = listed.folders.len();
            listed.folders.retain(|known| known != folder);
            listed.contents.remove(folder);
            listed.folders.len() < before
        })
    }

    /// Changes the list under a lock against other processes.
    fn change<T>(&self, change: impl FnOnce(&mut TrustedFolders) -> T) -> Result<T, ErrorInfo> {
        let unwritable = |error: io::Error| {
            unusable(format!(
                "the list of trusted folders in {} cannot be written: {error}",
                self.path().display()
            ))
        };
        DirBuilder::new().recursive(true).mode(0o700).create(&self.home).map_err(unwritable)?;
        let lock = File::open(&self.home).map_err(unwritable)?;
        rustix::fs::flock(&lock, FlockOperation::LockExclusive).map_err(|error| unwritable(error.into()))?;
        let mut listed = self.read()?;
        let changed = change(&mut listed);
        self.write(&listed).map_err(unwritable)?;
        Ok(changed)
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

/// The differences between two contents, with the folder of each.
fn changes_between(before: &TreeContent, after: &TreeContent) -> Vec<String> {
    let none = FolderContent::default();
    let folders: BTreeSet<&String> = before.keys().chain(after.keys()).collect();
    let changes = folders.into_iter().flat_map(|folder| {
        let [before, after] = [before, after].map(|tree| tree.get(folder).unwrap_or(&none));
        let place = if folder.is_empty() { String::new() } else { format!("{folder}: ") };
        after.changes_since(before).into_iter().map(move |line| match line.split_once(' ') {
            Some((sign, rest)) => format!("{sign} {place}{rest}"),
            None => line,
        })
    });
    changes.collect()
}
