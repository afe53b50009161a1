//! User-defined commands: `NAME.md`, a prompt with a placeholder for arguments.

use std::path::Path;
use std::sync::Arc;

use crate::front_matter::{self, FrontMatter};

/// The maximum size of a command file, in bytes.
const MAX_BYTES: u64 = 64 * 1024;

/// The maximum number of commands below one directory.
const MAX_FILES: usize = 200;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Template {
    pub name: Arc<str>,
    pub description: Arc<str>,
    pub argument_hint: Arc<str>,
    body: Arc<str>,
}

impl Template {
    fn read(name: &str, text: &str) -> Self {
        let (front, body) = front_matter::split(text).unwrap_or_else(|| (FrontMatter::default(), text));
        let first = || body.lines().find(|line| !line.trim().is_empty()).unwrap_or_default().to_owned();
        let description: String = front.text("description").unwrap_or_else(first).chars().take(120).collect();
        let hint = front.text("argument-hint").unwrap_or_else(|| "[arguments]".to_owned());
        let argument_hint: String = hint.chars().take(120).collect();
        Self {
            name: name.into(),
            description: description.into(),
            argument_hint: argument_hint.into(),
            body: body.trim().into(),
        }
    }

    /// The prompt with the arguments in place of the placeholder; appended if there is none.
    pub(super) fn fill(&self, args: &str) -> String {
        filled(&self.body, args)
    }
}

/// A text with the arguments in place of the placeholder; appended if there is none.
pub(crate) fn filled(body: &str, args: &str) -> String {
    if body.contains("$ARGUMENTS") || body.contains("{{args}}") {
        // In one pass, so that arguments that look like a placeholder are not replaced.
        let pieces =
            body.split("$ARGUMENTS").map(|piece| piece.split("{{args}}").collect::<Vec<_>>().join(args));
        return pieces.collect::<Vec<_>>().join(args);
    }
    if args.is_empty() { body.to_owned() } else { format!("{body}\n\n{args}") }
}

/// The maximum depth of nested command directories.
const MAX_DEPTH: usize = 4;

/// The commands in a directory, and those below it as `folder:name`, each with `prefix`. Unreadable files are
/// skipped.
pub(super) fn load(place: &Path, prefix: &str) -> Vec<Template> {
    let mut found = Vec::new();
    collect(place, prefix, 0, &mut found);
    found
}

fn collect(place: &Path, prefix: &str, depth: usize, found: &mut Vec<Template>) {
    let Ok(entries) = std::fs::read_dir(place) else { return };
    for entry in entries.flatten() {
        let (path, Ok(kind)) = (entry.path(), entry.file_type()) else { continue };
        let Some(stem) = path.file_stem().and_then(|stem| stem.to_str()).filter(|stem| is_name(stem)) else {
            continue;
        };
        if kind.is_dir() && depth < MAX_DEPTH {
            collect(&path, &format!("{prefix}{stem}:"), depth + 1, found);
        } else if kind.is_file()
            && path.extension().is_some_and(|extension| extension == "md")
            && entry.metadata().is_ok_and(|metadata| metadata.len() <= MAX_BYTES)
            && found.len() < MAX_FILES
            && let Ok(text) = std::fs::read_to_string(&path)
        {
            found.push(Template::read(&format!("{prefix}{stem}"), &text));
        }
    }
}

fn is_name(stem: &str) -> bool {
    stem.starts_with(|c: char| c.is_ascii_alphanumeric())
        && stem.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_take_their_place() {
        let cases = [
            ("Fix $ARGUMENTS now", "it", "Fix it now"),
            ("Fix {{args}} and $ARGUMENTS", "it", "Fix it and it"),
            ("Fix {{args}}", "$ARGUMENTS", "Fix $ARGUMENTS"),
            ("Fix $ARGUMENTS", "{{args}}", "Fix {{args}}"),
            ("Fix", "", "Fix"),
            ("Fix", "it", "Fix\n\nit"),
        ];
        for (body, args, expected) in cases {
            assert_eq!(Template::read("x", body).fill(args), expected, "{body}");
        }
    }

    #[test]
    fn directories_are_part_of_the_name() {
        let place = tempfile::tempdir().unwrap();
        for path in ["a.md", "git/b.md", "git/pr/c.md", "1/2/3/4/d.md", "1/2/3/4/5/e.md", "no.txt"] {
            let file = place.path().join(path);
            std::fs::create_dir_all(file.parent().unwrap()).unwrap();
            std::fs::write(file, "---\nargument-hint: <n>\n---\nx").unwrap();
        }
        let mut found = load(place.path(), "");
        found.sort_by(|a, b| a.name.cmp(&b.name));
        let names: Vec<&str> = found.iter().map(|template| &*template.name).collect();
        assert_eq!(names, ["1:2:3:4:d", "a", "git:b", "git:pr:c"]);
        assert!(found.iter().all(|template| &*template.argument_hint == "<n>"));
    }

    #[test]
    fn the_description_comes_from_the_front_matter_or_the_first_line() {
        let cases = [
            ("---\ndescription: Mends things\n---\nFix it", "Mends things", "Fix it"),
            ("---\ndescription: \"Mends\"\nmodel: x\n---\n\nFix it", "Mends", "Fix it"),
            ("Fix it\nnow", "Fix it", "Fix it\nnow"),
            ("---\nno end", "---", "---\nno end"),
        ];
        for (text, description, body) in cases {
            let template = Template::read("x", text);
            assert_eq!((&*template.description, &*template.body), (description, body), "{text:?}");
        }
    }
}
