//! The paths that rules deny to read or edit, for a sandbox to hide or protect: rules apply to calls, but a
//! program started by a call is limited only by the kernel.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};

use qwen_events::{Behavior, ToolKind};

use crate::policy::Policy;
use crate::rules::Scope;
use crate::rules::path_pattern::PathPattern;

/// The most directory entries that are looked at for all patterns together.
pub(crate) const MAX_ENTRIES: usize = 20_000;

/// Most paths that a sandbox protects: each is a mount.
const MAX_PROTECTED_PATHS: usize = 1000;

impl Policy {
    /// The files and directories that rules deny to read. A rule without wildcards gives its path, whether it
    /// exists or not. A rule with wildcards is matched against existing files, in its starting directory, or
    /// in the workspace if that directory is the whole file system.
    pub fn denied_reading(&self, cwd: &Path) -> Vec<PathBuf> {
        self.denied(ToolKind::Read, cwd)
    }

    /// The files and directories that rules deny to edit, found in the same way.
    pub fn denied_editing(&self, cwd: &Path) -> Vec<PathBuf> {
        let mut found = self.denied(ToolKind::Edit, cwd);
        found.truncate(MAX_PROTECTED_PATHS);
        found
    }

    fn denied(&self, kind: ToolKind, cwd: &Path) -> Vec<PathBuf> {
        let mut found = Vec::new();
        let mut budget = MAX_ENTRIES;
        for rule in self.rules(Behavior::Deny).iter().filter(|rule| self.concerns_kind(rule, kind)) {
            if let Scope::Path(pattern) = &rule.scope {
                self.paths_of(pattern, cwd, &mut budget, &mut found);
            }
        }
        found.sort_unstable();
        found.dedup();
        found
    }

    /// True if a file below a directory matches the pattern, or there are too many entries to check.
    pub(crate) fn holds(
        &self,
        directory: &Path,
        pattern: &PathPattern,
        cwd: &Path,
        budget: &mut usize,
    ) -> bool {
        let bases = pattern.bases(&self.workspace, self.anchor(cwd));
        if pattern.is_literal() && !pattern.is_a_bare_name() {
            let there = |base: &PathBuf| {
                let place = base.join(pattern.literal_start());
                place.starts_with(directory) && place != directory && place.symlink_metadata().is_ok()
            };
            return bases.iter().any(there);
        }
        let is_meant = |path: &Path| {
            bases.iter().any(|base| path.strip_prefix(base).is_ok_and(|rest| pattern.means(rest)))
        };
        let mut ahead = VecDeque::from([directory.to_owned()]);
        while let Some(directory) = ahead.pop_front() {
            for entry in std::fs::read_dir(directory).into_iter().flatten().flatten() {
                let Some(left) = budget.checked_sub(1) else { return true };
                *budget = left;
                if is_meant(&entry.path()) {
                    return true;
                }
                if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                    ahead.push_back(entry.path());
                }
            }
        }
        false
    }

    fn paths_of(&self, pattern: &PathPattern, cwd: &Path, budget: &mut usize, found: &mut Vec<PathBuf>) {
        let anchor = self.anchor(cwd);
        for base in pattern.bases(&self.workspace, anchor) {
            let start = base.join(pattern.literal_start());
            if pattern.is_literal() {
                found.push(start.clone());
            }
            if pattern.is_literal() && !pattern.is_a_bare_name() {
                continue;
            }
            let start = if pattern.is_a_bare_name() { base.clone() } else { start };
            if start == Path::new("/") {
                for root in self.workspace.roots() {
                    walk(root, &base, pattern, budget, found);
                }
            } else {
                walk(&start, &base, pattern, budget, found);
            }
        }
    }
}

/// Finds files below a directory that match a pattern. Links are not followed, because their targets have
/// their own paths.
fn walk(directory: &Path, base: &Path, pattern: &PathPattern, budget: &mut usize, found: &mut Vec<PathBuf>) {
    // Level by level: if the budget runs out, files near the top, which users usually created themselves,
    // were checked first.
    let mut ahead = VecDeque::from([directory.to_owned()]);
    while let Some(directory) = ahead.pop_front() {
        for entry in std::fs::read_dir(directory).into_iter().flatten().flatten() {
            let Some(left) = budget.checked_sub(1) else { return };
            *budget = left;
            let path = entry.path();
            if path.strip_prefix(base).is_ok_and(|rest| pattern.means(rest)) {
                found.push(path);
            } else if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                ahead.push_back(path);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use qwen_events::ToolCatalogue;

    use super::*;
    use crate::{Mode, RuleSource};

    const TOOLS: ToolCatalogue = ToolCatalogue::new(&[qwen_tools::DECLARATIONS]);

    #[test]
    fn existing_files_that_rules_deny_to_read_are_found() {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path().canonicalize().unwrap();
        for file in ["secret/key", "a/.env", ".env", "a/b/x.pem", "a/readme"] {
            let path = root.join(file);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, "").unwrap();
        }
        let found = |rule: &str| -> Vec<String> {
            let mut policy =
                Policy::new(Mode::Default, [root.clone()], Some(PathBuf::from("/nowhere/home")), TOOLS);
            policy.add_rule(Behavior::Deny, rule, RuleSource::Flag).unwrap();
            let places = policy.denied_reading(&root);
            places.iter().map(|path| path.strip_prefix(&root).unwrap_or(path).display().to_string()).collect()
        };
        for (rule, places) in [
            ("Read(/secret/**)", vec!["secret"]),
            ("Read(./secret)", vec!["secret"]),
            ("Read(secret/)", vec!["secret"]),
            ("Read(.env)", vec![".env", "a/.env"]),
            ("Read(**/.env)", vec![".env", "a/.env"]),
            ("Read(*.pem)", vec!["a/b/x.pem"]),
            ("Read(/a/*/x.*)", vec!["a/b/x.pem"]),
            ("Read(//etc/shadow)", vec!["/etc/shadow"]),
            ("Read(~/.ssh/**)", vec!["/nowhere/home/.ssh"]),
            ("Read(//**/*.pem)", vec!["a/b/x.pem"]),
            ("Edit(/secret/**)", vec![]),
            ("Bash(cat *)", vec![]),
            ("Read", vec![]),
        ] {
            assert_eq!(found(rule), places, "{rule}");
        }
    }
}
