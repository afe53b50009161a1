//! Front matter: the lines between two `---` at the start of a Markdown file, in the subset of YAML that is
//! common there.

use std::collections::BTreeMap;
use std::io::Read;
use std::path::{Path, PathBuf};

use qwen_tools::workspace::Workspace;

/// A value of the front matter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Value {
    Text(String),
    List(Vec<String>),
}

/// The parsed front matter. Nested keys are stored as `above.below`, and all keys without case, `-` and `_`,
/// because similar programs spell them differently.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct FrontMatter(BTreeMap<String, Value>);

/// The front matter of a text and the rest; `None` if the text does not start with front matter.
pub(crate) fn split(text: &str) -> Option<(FrontMatter, &str)> {
    let text = text.trim_start_matches('\u{feff}');
    let (first, rest) = text.split_once('\n')?;
    if first.trim_end() != "---" {
        return None;
    }
    let mut end = 0;
    for line in rest.split_inclusive('\n') {
        if line.trim_end() == "---" {
            return Some((FrontMatter::read(&rest[..end]), &rest[end + line.len()..]));
        }
        end += line.len();
    }
    None
}

/// The owner of definition files. In a project, a link may lead to files that the user never approved; in the
/// user's home, links are the user's choice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DefinitionSource {
    User,
    Project,
}

impl DefinitionSource {
    /// Resolves a link if links are followed for this source.
    pub(crate) fn real(self, path: PathBuf) -> PathBuf {
        match self {
            Self::User => path.canonicalize().unwrap_or(path),
            Self::Project => path,
        }
    }
}

/// The text of a user-written file; the error is shown to the user. A link out of the directory is not
/// followed, because the user did not approve its target.
pub(crate) fn read_file(path: &Path, largest: u64) -> Result<String, String> {
    let problem = |error: &dyn std::fmt::Display| format!("it cannot be read: {error}");
    let (Some(place), Some(name)) = (path.parent(), path.file_name().and_then(|name| name.to_str())) else {
        return Err(problem(&"its name is not UTF-8"));
    };
    let workspace = Workspace::new(place, &[]).map_err(|error| problem(&error))?;
    let opened = workspace.open_file(name).map_err(|error| problem(&error))?;
    if opened.metadata.len() > largest {
        return Err(format!("it is larger than {largest} bytes"));
    }
    let mut text = String::new();
    opened.file.take(largest).read_to_string(&mut text).map_err(|error| problem(&error))?;
    Ok(text)
}

impl FrontMatter {
    fn read(text: &str) -> Self {
        let lines: Vec<&str> = text.lines().filter(|line| !line.trim_start().starts_with('#')).collect();
        let mut found = Self::default();
        found.block(&lines, "");
        found
    }

    /// Parses the least indented keys, each with the lines that belong to it.
    fn block(&mut self, lines: &[&str], above: &str) {
        let Some(margin) = lines.iter().find(|line| !line.trim().is_empty()).map(|line| indent(line)) else {
            return;
        };
        let mut at = 0;
        while let Some(line) = lines.get(at) {
            at += 1;
            let Some((key, value)) = line.split_once(':').filter(|_| indent(line) == margin) else {
                continue;
            };
            let below = lines.get(at..).unwrap_or_default();
            // A list may have the same indentation as its key.
            let belongs = |line: &&&str| {
                line.trim().is_empty() || indent(line) > margin || line.trim().starts_with("- ")
            };
            let below = &below[..below.iter().take_while(belongs).count()];
            at += below.len();
            let key = format!("{above}{}", plain_key(key));
            match read_value(value.trim(), below) {
                Some(value) => drop(self.0.insert(key, value)),
                None => self.block(below, &format!("{key}.")),
            }
        }
    }

    /// The value as text; a list is joined.
    pub(crate) fn text(&self, key: &str) -> Option<String> {
        let text = match self.0.get(&plain_key(key))? {
            Value::Text(text) => text.clone(),
            Value::List(items) => items.join(", "),
        };
        Some(text).filter(|text| !text.trim().is_empty())
    }

    /// The value as a list; a text is split at commas.
    pub(crate) fn list(&self, key: &str) -> Option<Vec<String>> {
        Some(match self.0.get(&plain_key(key))? {
            Value::Text(text) => items(text),
            Value::List(items) => items.clone(),
        })
    }
}

fn plain_key(key: &str) -> String {
    let is_significant = |c: &char| !matches!(c, '-' | '_' | '"' | '\'' | ' ');
    key.chars().filter(is_significant).collect::<String>().to_lowercase()
}

/// The value after a colon, with the lines below it. `None` if those lines are nested keys.
fn read_value(value: &str, below: &[&str]) -> Option<Value> {
    if value.starts_with(['|', '>']) && value.len() <= 2 {
        let margin = below.iter().find(|line| !line.trim().is_empty()).map_or(0, |line| indent(line));
        let lines: Vec<&str> = below.iter().map(|line| line.get(margin..).unwrap_or_default()).collect();
        let glue = if value.starts_with('|') { "\n" } else { " " };
        return Some(Value::Text(lines.join(glue).trim().to_owned()));
    }
    if let Some(list) = value.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
        return Some(Value::List(items(list)));
    }
    let mut lines = below.iter().map(|line| line.trim()).filter(|line| !line.is_empty());
    if !value.is_empty() {
        // A long text continues below, with more indentation.
        let whole: Vec<&str> = [value].into_iter().chain(lines).collect();
        return Some(Value::Text(unquoted(&whole.join(" "))));
    }
    if lines.clone().next().is_none_or(|first| first.starts_with("- ")) {
        return Some(Value::List(
            lines.by_ref().filter_map(|line| line.strip_prefix("- ")).map(unquoted).collect(),
        ));
    }
    None
}

/// The items of a comma-separated list; a comma in parentheses belongs to its item.
fn items(list: &str) -> Vec<String> {
    let mut depth = 0_i32;
    let parts = list.split(|c| {
        depth += i32::from(c == '(') - i32::from(c == ')');
        c == ',' && depth <= 0
    });
    parts.map(unquoted).filter(|item| !item.is_empty()).collect()
}

fn unquoted(text: &str) -> String {
    let text = text.trim();
    let inner = ['"', '\''].into_iter().find_map(|quote| text.strip_prefix(quote)?.strip_suffix(quote));
    match inner {
        Some(inner) if text.starts_with('"') => inner.replace("\\n", "\n").replace("\\\"", "\""),
        Some(inner) => inner.replace("''", "'"),
        None => text.split_once(" #").map_or(text, |(value, _)| value.trim_end()).to_owned(),
    }
}

fn indent(line: &str) -> usize {
    line.len() - line.trim_start().len()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn common_front_matter_is_parsed() {
        let text = "---\nname: reviewer # the name\ndescription: >\n  Reads code\n  and judges it\n\ntools: Read, Bash(git a,b), 'Grep'\n\
                    disallowed-tools: [\"Edit\", Write]\nlimits:\n  max_turns: 3\n  maxWallTime: 90s\nskills:\n- one\n- \"two\"\n\
                    quoted: \"a: b\"\nlong: one\n  two\n---\n\nYou review.\n---\nmore\n";
        let (front, body) = split(text).unwrap();
        assert_eq!(body, "\nYou review.\n---\nmore\n");
        for (key, expected) in [
            ("name", "reviewer"),
            ("description", "Reads code and judges it"),
            ("limits.maxTurns", "3"),
            ("limits.max_wall_time", "90s"),
            ("quoted", "a: b"),
            ("long", "one two"),
        ] {
            assert_eq!(front.text(key).as_deref(), Some(expected), "{key}");
        }
        assert_eq!(front.list("tools").unwrap(), ["Read", "Bash(git a,b)", "Grep"]);
        assert_eq!(front.list("disallowedTools").unwrap(), ["Edit", "Write"]);
        assert_eq!(front.list("skills").unwrap(), ["one", "two"]);
        assert_eq!(front.text("nothing"), None);
    }

    #[test]
    fn a_text_without_both_lines_has_no_front_matter() {
        for text in ["", "---", "name: x\n", "---\nname: x\n", "--- x\nname: y\n---\n"] {
            assert_eq!(split(text), None, "{text:?}");
        }
        let (front, body) = split("\u{feff}---\r\nname: x\r\n---\r\nBody").unwrap();
        assert_eq!((front.text("name").as_deref(), body), (Some("x"), "Body"));
    }

    proptest! {
        #[test]
        fn no_text_is_too_odd_to_be_read(text in "(---\n)?[ a-c:|>\\[\\],#\"'\u{e9}-]{0,40}(\n[ a-c:|>-]{0,12}){0,8}(\n---\n)?.{0,10}") {
            if let Some((front, _)) = split(&text) {
                front.text("a");
                front.list("b");
            }
        }
    }
}
