//! The files and directories that are mounted over hidden paths. They are in a small file system in memory
//! whose files belong to no user of the sandbox, so that even root cannot read them.

use std::collections::{HashMap, HashSet};
use std::ffi::{CStr, CString};
use std::path::{Path, PathBuf};

use crate::hidden::{Cover, CoverEntry, CoverFile, HiddenView};
use crate::kernel::namespaces::text;
use crate::kernel::{self, Outcome};

/// The names of the covers without properties.
pub(crate) const PLAIN_FILE: &CStr = c"file";
pub(crate) const PLAIN_DIRECTORY: &CStr = c"directory";

/// How covers are kept from being read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CoverStyle {
    /// By a mount that maps their owner to none. They look like what they cover.
    Unowned,
    /// By their kind: devices without a driver. For kernels before 6.3.
    Device,
}

/// One operation that makes covers.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum CoverStep {
    Directory {
        at: CString,
    },
    File {
        at: CString,
        file: CoverFile,
    },
    Device {
        at: CString,
    },
    /// Sets the permissions of a complete directory.
    Close {
        at: CString,
        mode: libc::mode_t,
    },
}

/// The cover of each hidden path that has its own.
#[derive(Debug, Default)]
pub(crate) struct CoverNames(HashMap<PathBuf, CoverName>);

/// A cover, by its name in the directory of covers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CoverName {
    pub name: CString,
    pub is_directory: bool,
}

impl CoverNames {
    pub(crate) fn find(&self, path: &Path) -> Option<CoverName> {
        self.0.get(path).cloned()
    }
}

/// Plans the covers of a view in a directory.
pub(crate) fn plan_covers(
    view: &HiddenView,
    stage: &Path,
    style: CoverStyle,
) -> (Vec<CoverStep>, CoverNames) {
    let at = |name: &CStr| text(&stage.join(name.to_str().unwrap_or_default()));
    let nothing = CoverFile { size: 0, modified: 0, executable: false };
    let mut names = CoverNames::default();
    let mut steps = vec![CoverStep::Directory { at: at(PLAIN_DIRECTORY) }];
    steps.push(CoverStep::Close { at: at(PLAIN_DIRECTORY), mode: 0 });
    if style == CoverStyle::Device {
        steps.push(CoverStep::Device { at: at(PLAIN_FILE) });
        return (steps, names);
    }
    steps.push(CoverStep::File { at: at(PLAIN_FILE), file: nothing });
    for (number, hidden) in view.paths.iter().enumerate() {
        let name = format!("hidden{number}");
        let place = stage.join(&name);
        let is_directory = match &hidden.cover {
            Cover::Plain => continue,
            Cover::File(file) => {
                steps.push(CoverStep::File { at: text(&place), file: *file });
                false
            }
            Cover::Directory(entries) => {
                plan_directory(&place, entries, &mut steps);
                true
            }
        };
        let name = CString::new(name).unwrap_or_default();
        names.0.insert(hidden.path.clone(), CoverName { name, is_directory });
    }
    (steps, names)
}

/// Searchable, so that git finds the tracked files, but not to be listed.
fn plan_directory(place: &Path, entries: &[(PathBuf, CoverEntry)], steps: &mut Vec<CoverStep>) {
    let mut made: Vec<PathBuf> = vec![place.to_owned()];
    let mut known: HashSet<PathBuf> = made.iter().cloned().collect();
    steps.push(CoverStep::Directory { at: text(place) });
    for (name, entry) in entries {
        let mut parents: Vec<&Path> = name.ancestors().skip(1).collect();
        parents.reverse();
        for parent in parents.into_iter().map(|parent| place.join(parent)) {
            if known.insert(parent.clone()) {
                steps.push(CoverStep::Directory { at: text(&parent) });
                made.push(parent);
            }
        }
        let at = text(&place.join(name));
        match entry {
            CoverEntry::File(file) => steps.push(CoverStep::File { at, file: *file }),
            CoverEntry::Directory => {
                steps.push(CoverStep::Directory { at: at.clone() });
                steps.push(CoverStep::Close { at, mode: 0 });
            }
        }
    }
    steps.extend(made.iter().map(|directory| CoverStep::Close { at: text(directory), mode: 0o111 }));
}

/// Takes one step. Runs after a fork. Opens no file: a mount with a file that is open for writing, also in a
/// process that another thread forked, cannot become read-only.
pub(crate) fn take(step: &CoverStep) -> Outcome {
    match step {
        CoverStep::Directory { at } => kernel::make_directory(at, 0o700),
        CoverStep::File { at, file } => {
            let mode = if file.executable { 0o100 } else { 0 };
            kernel::make_empty_file(at, mode)?;
            kernel::set_size(at, file.size)?;
            kernel::set_modified(at, file.modified)
        }
        CoverStep::Device { at } => kernel::make_void_device(at),
        CoverStep::Close { at, mode } => kernel::change_mode(at, *mode),
    }
}
