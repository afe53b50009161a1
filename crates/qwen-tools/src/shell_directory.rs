//! The directory in which the next command of a session runs: a `cd` carries over, as in a terminal.
//!
//! The shell reports its directory at its end (`builtin/shell/shell_report.rs`), and the engine adds the directory to
//! the arguments of the next command before rules, hooks and users see the call: what is judged is what runs.

use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The directory that commands of the main agent run in; none for the working directory of the session.
#[derive(Debug, Default)]
pub struct ShellDirectory(Mutex<Option<PathBuf>>);

impl ShellDirectory {
    /// The directory, unless it is the session's working directory or no longer exists.
    pub fn get(&self) -> Option<PathBuf> {
        let mut directory = self.lock();
        if directory.as_ref().is_some_and(|directory| !directory.is_dir()) {
            *directory = None;
        }
        directory.clone()
    }

    /// Sets the directory; none for the session's working directory.
    pub fn set(&self, directory: Option<PathBuf>) {
        *self.lock() = directory;
    }

    fn lock(&self) -> MutexGuard<'_, Option<PathBuf>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// True if a command line may end in another directory than the one it started in.
pub fn may_change_directory(command: &str) -> bool {
    let mut words =
        command.split(|letter: char| !(letter.is_ascii_alphanumeric() || matches!(letter, '-' | '_' | '.')));
    words.any(|word| matches!(word, "cd" | "pushd" | "popd"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_that_name_a_builtin_which_changes_the_directory_are_recognised() {
        for command in ["cd a", "ls; cd a&&ls", "(pushd a)", "x=1 cd a", "if cd a; then ls; fi"] {
            assert!(may_change_directory(command), "{command}");
        }
        for command in ["ls", "abcd a", "cat cd.txt", "my-cd a"] {
            assert!(!may_change_directory(command), "{command}");
        }
    }

    #[test]
    fn a_directory_that_is_gone_is_forgotten() {
        let parent = tempfile::tempdir().unwrap();
        let directory = ShellDirectory::default();
        directory.set(Some(parent.path().join("gone")));
        assert_eq!(directory.get(), None);
        directory.set(Some(parent.path().into()));
        assert_eq!(directory.get().as_deref(), Some(parent.path()));
    }
}
