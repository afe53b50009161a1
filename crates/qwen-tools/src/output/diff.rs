//! File diffs for display.

use std::path::Path;
use std::time::Duration;

use qwen_events::{DiffStat, FileDiff};
use similar::{ChangeTag, TextDiff};

/// Time limit for computing a minimal diff; after it, an approximate one is used.
const TIME_LIMIT: Duration = Duration::from_millis(200);
/// Unchanged lines around each change.
const CONTEXT: usize = 3;

/// The change of a file from `original` (none when it is new) to `modified`.
pub(crate) fn file_diff(shown: &Path, path: &Path, original: Option<&str>, modified: &str) -> FileDiff {
    let name = shown.to_string_lossy();
    let diff = TextDiff::configure().timeout(TIME_LIMIT).diff_lines(original.unwrap_or_default(), modified);
    let mut stat = DiffStat::default();
    for change in diff.iter_all_changes() {
        match change.tag() {
            ChangeTag::Insert => stat.ai_added_lines += 1,
            ChangeTag::Delete => stat.ai_removed_lines += 1,
            ChangeTag::Equal => {}
        }
    }
    let before = if original.is_some() { format!("a/{name}") } else { "/dev/null".to_owned() };
    let text = diff.unified_diff().context_radius(CONTEXT).header(&before, &format!("b/{name}")).to_string();
    FileDiff {
        file_name: name.into(),
        file_path: path.to_string_lossy().into(),
        diff: text.into(),
        original: original.map(Into::into),
        modified: modified.into(),
        stat,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn diff(original: Option<&str>, modified: &str) -> (String, u64, u64) {
        let diff = file_diff(Path::new("a.txt"), Path::new("/w/a.txt"), original, modified);
        (diff.diff.to_string(), diff.stat.ai_added_lines, diff.stat.ai_removed_lines)
    }

    #[test]
    fn a_change_is_a_unified_diff_with_its_line_counts() {
        assert_eq!(
            diff(Some("one\ntwo\nthree\n"), "one\n2\nthree\nfour\n"),
            ("--- a/a.txt\n+++ b/a.txt\n@@ -1,3 +1,4 @@\n one\n-two\n+2\n three\n+four\n".to_owned(), 2, 1)
        );
        assert_eq!(diff(None, "x\n"), ("--- /dev/null\n+++ b/a.txt\n@@ -0,0 +1 @@\n+x\n".to_owned(), 1, 0));
        assert_eq!(diff(Some("same\n"), "same\n"), (String::new(), 0, 0));
    }

    #[test]
    fn a_missing_last_line_end_is_said() {
        assert!(diff(Some("a\n"), "a").0.contains("\\ No newline at end of file"));
    }
}
