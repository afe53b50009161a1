//! The results of searches and commands, read from their texts: hosts of Claude get them as fields.

/// The files that `Glob` found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundFiles<'a> {
    pub filenames: Vec<&'a str>,
    /// True if there are more.
    pub is_truncated: bool,
}

impl<'a> FoundFiles<'a> {
    /// Reads the text of a result: a heading, then one path per line.
    pub fn parse(text: &'a str) -> Self {
        let (head, _) = text.split_once('\n').unwrap_or((text, ""));
        Self { filenames: text.lines().skip(1).collect(), is_truncated: head.contains(", the newest ") }
    }
}

/// What `Grep` found. Which fields exist depends on its mode.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundLines<'a> {
    pub num_files: usize,
    pub filenames: Vec<&'a str>,
    pub content: Option<&'a str>,
    pub num_lines: Option<usize>,
    pub num_matches: Option<u64>,
}

impl<'a> FoundLines<'a> {
    /// Reads the text of a search in this mode: `content`, `count` or `files_with_matches`.
    pub fn parse(text: &'a str, mode: &str) -> Self {
        let (head, body) = text.split_once('\n').unwrap_or((text, ""));
        let found = Self {
            num_files: body.lines().count(),
            filenames: Vec::new(),
            content: None,
            num_lines: None,
            num_matches: None,
        };
        match mode {
            "content" => {
                // A line with a number belongs to the file above it.
                let is_line =
                    |line: &&str| line.starts_with(|first: char| first.is_ascii_digit()) || *line == "--";
                let filenames: Vec<&str> = body.lines().filter(|line| !is_line(line)).collect();
                Self {
                    num_files: filenames.len(),
                    filenames,
                    content: Some(body),
                    num_lines: Some(body.lines().filter(is_line).count()),
                    ..found
                }
            }
            "count" => {
                let counts = body.lines().filter_map(|line| line.rsplit_once(':')?.1.parse::<u64>().ok());
                Self { content: Some(body), num_matches: Some(counts.sum()), ..found }
            }
            // Only a heading that introduces a list ends with a colon.
            _ if !head.ends_with(':') => Self { num_files: 0, ..found },
            _ => Self { filenames: body.lines().collect(), ..found },
        }
    }
}

/// What the model reads of a command that wrote nothing.
pub const NO_OUTPUT: &str = "(no output)";

/// The output of a command, without its last line end.
pub fn command_output(text: &str) -> &str {
    let output = text.strip_prefix(NO_OUTPUT).map_or(text, |notes| notes.strip_prefix('\n').unwrap_or(notes));
    output.strip_suffix('\n').unwrap_or(output)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fields_of_a_search_are_read_from_its_text() {
        let glob = FoundFiles::parse("2 files, newest first:\na.rs\nb.rs\n");
        assert_eq!((glob.filenames, glob.is_truncated), (vec!["a.rs", "b.rs"], false));
        assert!(FoundFiles::parse("No file matches x.").filenames.is_empty());
        let files = FoundLines::parse("Found 1 file:\na.rs\n", "files_with_matches");
        assert_eq!((files.num_files, files.filenames), (1, vec!["a.rs"]));
        let counts = FoundLines::parse("Matching lines in 2 files:\na:2\nb:3\n", "count");
        assert_eq!((counts.num_matches, counts.num_files), (Some(5), 2));
        let lines = FoundLines::parse("2 matches in 1 file:\na.rs\n1: x\n3: x\n", "content");
        assert_eq!((lines.num_lines, lines.filenames), (Some(2), vec!["a.rs"]));
        let nothing = FoundLines::parse("No files found: no line matches x.", "files_with_matches");
        assert_eq!(nothing.num_files, 0);
    }
}
