//! The hunks of a changed file.

use crate::FileDiff;

/// One hunk of a unified diff.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DiffHunk<'a> {
    /// Its first line in the old text, from 1, and how many of the old lines it has.
    pub old: (u64, u64),
    /// The same in the new text.
    pub new: (u64, u64),
    /// The lines, each after ` `, `-` or `+`.
    pub lines: Vec<&'a str>,
}

impl FileDiff {
    /// The hunks of the change; a new file has none.
    pub fn hunks(&self) -> Vec<DiffHunk<'_>> {
        if self.original.is_none() { Vec::new() } else { hunks(&self.diff) }
    }
}

fn hunks(diff: &str) -> Vec<DiffHunk<'_>> {
    let mut hunks: Vec<DiffHunk<'_>> = Vec::new();
    for line in diff.lines() {
        if let Some(header) = line.strip_prefix("@@ -")
            && let Some((old, rest)) = header.split_once(" +")
        {
            let new = rest.split(" @@").next().unwrap_or(rest);
            hunks.push(DiffHunk { old: range(old), new: range(new), lines: Vec::new() });
        } else if let Some(hunk) = hunks.last_mut() {
            hunk.lines.push(line);
        }
    }
    hunks
}

/// First line and number of lines of `3,2`; `3` alone is one line.
fn range(text: &str) -> (u64, u64) {
    let (start, count) = text.split_once(',').unwrap_or((text, "1"));
    (start.parse().unwrap_or(0), count.parse().unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_unified_diff_becomes_hunks() {
        let diff = "--- a/x\n+++ b/x\n@@ -1,2 +1 @@\n-1\n--- two\n+new\n@@ -9 +8,2 @@ fn f\n same\n+more\n";
        assert_eq!(
            hunks(diff),
            [
                DiffHunk { old: (1, 2), new: (1, 1), lines: vec!["-1", "--- two", "+new"] },
                DiffHunk { old: (9, 1), new: (8, 2), lines: vec![" same", "+more"] },
            ]
        );
        assert_eq!(hunks(""), []);
    }
}
