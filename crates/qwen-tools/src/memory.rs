//! Memory files, which store facts across sessions.

use std::path::PathBuf;

/// The heading of the section that holds the facts.
pub(crate) const HEADING: &str = "## Qwen Added Memories";

#[derive(Debug, Clone, Default)]
pub struct MemoryFiles {
    /// Facts for all projects of the user: `$QWEN_HOME/QWEN.md`.
    pub user: Option<PathBuf>,
    /// Facts for the project: `QWEN.md` in its directory.
    pub project: Option<PathBuf>,
}

/// Returns a memory file with the fact added, or `None` if it already contains the fact.
pub(crate) fn with_fact(text: &str, fact: &str) -> Option<String> {
    let lines: Vec<&str> = text.lines().collect();
    let Some(heading) = lines.iter().position(|line| line.trim() == HEADING) else {
        let mut text = text.trim_end().to_owned();
        if !text.is_empty() {
            text.push_str("\n\n");
        }
        return Some(format!("{text}{HEADING}\n\n- {fact}\n"));
    };
    let section = lines.get(heading + 1..).unwrap_or_default();
    let section = &section[..section.iter().position(|line| line.starts_with('#')).unwrap_or(section.len())];
    if section.iter().filter_map(|line| line.trim().strip_prefix("- ")).any(|known| is_same_fact(known, fact))
    {
        return None;
    }
    // Insert after the last non-blank line, so that the blank lines before the next section remain.
    let last = section.iter().rposition(|line| !line.trim().is_empty()).map_or(0, |at| at + 1);
    let at = heading + 1 + last;
    let mut with: Vec<String> = lines.iter().map(|line| (*line).to_owned()).collect();
    let entry = if last == 0 { format!("\n- {fact}") } else { format!("- {fact}") };
    with.insert(at, entry);
    Some(with.join("\n") + "\n")
}

fn is_same_fact(known: &str, fact: &str) -> bool {
    known.trim().to_lowercase() == fact.to_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn facts_are_kept_under_their_heading_each_once() {
        for (text, expected) in [
            ("", Some("## Qwen Added Memories\n\n- New.\n")),
            ("# Mine\n\ntext\n\n\n", Some("# Mine\n\ntext\n\n## Qwen Added Memories\n\n- New.\n")),
            ("## Qwen Added Memories\n", Some("## Qwen Added Memories\n\n- New.\n")),
            ("## Qwen Added Memories\n- Old.\n", Some("## Qwen Added Memories\n- Old.\n- New.\n")),
            (
                "a\n## Qwen Added Memories\n\n- Old.\n\n# Other\n- New.\n",
                Some("a\n## Qwen Added Memories\n\n- Old.\n- New.\n\n# Other\n- New.\n"),
            ),
            ("## Qwen Added Memories\n- new.\n", None),
            ("## Qwen Added Memories\n-  NEW. \n# Other\n", None),
        ] {
            assert_eq!(with_fact(text, "New.").as_deref(), expected, "{text:?}");
        }
    }
}
