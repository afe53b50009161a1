//! Which files a search looks into, by the patterns of its `glob` argument.

use std::path::Path;

use globset::GlobMatcher;

use crate::builtin::walk;
use crate::{ArgumentError, Arguments};

/// The files that a `glob` argument selects.
#[derive(Default)]
pub(super) struct FileFilter {
    /// A file must match one of these, if there are any.
    included: Vec<GlobMatcher>,
    /// A file must match none of these.
    excluded: Vec<GlobMatcher>,
}

impl FileFilter {
    /// Parses one pattern or a list of patterns, separated by commas or white space. A pattern after `!`
    /// excludes files. `root` is the directory that is searched.
    pub(super) fn parse(arguments: &Arguments, text: &str, root: &Path) -> Result<Self, ArgumentError> {
        let mut filter = Self::default();
        for part in split_list(text) {
            let (part, list) = match part.strip_prefix('!') {
                Some(excluded) => (excluded, &mut filter.excluded),
                None => (part, &mut filter.included),
            };
            for pattern in spell_out(part, root) {
                list.push(walk::pattern(arguments, "glob", &pattern)?);
            }
        }
        Ok(filter)
    }

    /// True if a file, by its path relative to the root, is searched.
    pub(super) fn selects(&self, file: &Path) -> bool {
        (self.included.is_empty() || self.included.iter().any(|glob| glob.is_match(file)))
            && !self.excluded.iter().any(|glob| glob.is_match(file))
    }
}

/// Splits a list at commas and white space outside brackets. A text whose parts do not all look like patterns
/// is one pattern, because file names may contain both.
fn split_list(text: &str) -> Vec<&str> {
    let mut depth = 0_usize;
    let is_separator = |letter: char| {
        match letter {
            '{' | '[' => depth += 1,
            '}' | ']' => depth = depth.saturating_sub(1),
            _ => {}
        }
        depth == 0 && (letter == ',' || letter.is_whitespace())
    };
    let parts: Vec<&str> = text.split(is_separator).filter(|part| !part.is_empty()).collect();
    let is_list = parts.iter().all(|part| part.contains(['*', '?', '.', '/', '!', '{']));
    if is_list && !parts.is_empty() { parts } else { vec![text.trim()] }
}

/// Returns the patterns for paths relative to `root` that a pattern in any spelling means.
fn spell_out(pattern: &str, root: &Path) -> Vec<String> {
    let root = root.to_string_lossy();
    let below_root = pattern.strip_prefix(&*root).filter(|rest| rest.starts_with('/'));
    let is_anchored = below_root.is_some() || pattern.starts_with(['/', '.']) && pattern.contains('/');
    let relative = below_root.unwrap_or(pattern);
    let relative = relative.strip_prefix("./").unwrap_or(relative).trim_start_matches('/');
    if let Some(directory) = relative.strip_suffix('/') {
        return vec![format!("{directory}/**")];
    }
    // A pattern without a slash matches names in any directory.
    let anywhere = if is_anchored || relative.contains('/') { "" } else { "**/" };
    let mut patterns = vec![format!("{anywhere}{relative}")];
    if !relative.contains(['*', '?', '[', '{']) {
        patterns.push(format!("{anywhere}{relative}/**"));
    }
    patterns
}

#[cfg(test)]
mod tests {
    use qwen_events::{CallId, Json, ToolCall};

    use super::*;

    fn selects(glob: &str, file: &str) -> bool {
        let call = ToolCall::new(CallId::new("c"), "grep_search".into(), Json::trusted("{}".to_owned()));
        let arguments = Arguments::parse(&call).unwrap();
        FileFilter::parse(&arguments, glob, Path::new("/w")).unwrap().selects(Path::new(file))
    }

    #[test]
    fn lists_exclusions_directories_and_absolute_patterns_are_understood() {
        for (glob, selected, left_out) in [
            ("*.rs", "src/a.rs", "a.ts"),
            ("*.rs, *.ts", "src/a.ts", "a.js"),
            ("*.rs,*.ts", "a.rs", "a.js"),
            ("*.rs *.ts", "a.ts", "a.js"),
            ("*.{rs,ts}", "a.ts", "a.js"),
            ("src/**/*.rs", "src/a/b.rs", "a.rs"),
            ("./src/*.rs", "src/a.rs", "src/b/a.rs"),
            ("/w/src/*.rs", "src/a.rs", "a.rs"),
            ("/src/*.rs", "src/a.rs", "x/src/a.rs"),
            ("src/", "src/b/a.rs", "a.rs"),
            ("src", "src/b/a.rs", "a.rs"),
            ("!*.rs", "a.ts", "a.rs"),
            ("*.rs !*_test.rs", "a.rs", "a_test.rs"),
            ("my notes*", "my notes.txt", "my"),
        ] {
            assert!(selects(glob, selected), "{glob} {selected}");
            assert!(!selects(glob, left_out), "{glob} {left_out}");
        }
    }
}
