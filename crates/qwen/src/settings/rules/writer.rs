//! Adds a permission rule to a hand-written settings file. Comments and order stay, and nothing else changes.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::Path;

use rustix::fs::FlockOperation;
use serde_json::Value;

use crate::settings::file::{self, Layer};

/// Adds `rule` to `permissions.allow` in the file `path`, which need not exist. Returns false if the rule was
/// already present.
pub fn add_allow_rule(path: &Path, rule: &str) -> Result<bool, String> {
    let wrong = |error: io::Error| format!("{} cannot be written: {error}", path.display());
    let folder = path.parent().unwrap_or(Path::new("."));
    DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(wrong)?;
    let lock = File::open(folder).map_err(wrong)?;
    rustix::fs::flock(&lock, FlockOperation::LockExclusive).map_err(|error| wrong(error.into()))?;
    let text = match fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
        Err(error) => return Err(wrong(error)),
    };
    let name = path.to_string_lossy();
    let before = rules(&text, &name)?;
    if before.iter().any(|known| known == rule) {
        return Ok(false);
    }
    let changed =
        with_rule(&text, rule).ok_or_else(|| format!("{name}: permissions.allow cannot be found"))?;
    // Parse the result and compare it with the intended rules before writing it.
    let after = rules(&changed, &name)?;
    if after.len() != before.len() + 1 || !after.iter().any(|known| known == rule) {
        return Err(format!(
            "{name}: the rule cannot be added without changing something else; add it by hand"
        ));
    }
    let temporary = folder.join(format!("settings.{:016x}.tmp", fastrand::u64(..)));
    let mut options = OpenOptions::new();
    let mut fresh = options.write(true).create_new(true).mode(0o600).open(&temporary).map_err(wrong)?;
    let written = fresh.write_all(changed.as_bytes()).and_then(|()| fresh.sync_all());
    written.and_then(|()| fs::rename(&temporary, path)).map(|()| true).map_err(|error| {
        // The original error is reported. This only removes the temporary file.
        let _ = fs::remove_file(&temporary);
        wrong(error)
    })
}

/// The allow rules that a text defines.
fn rules(text: &str, name: &str) -> Result<Vec<String>, String> {
    if text.trim().is_empty() {
        return Ok(Vec::new());
    }
    let document = file::parse(text, Layer::User, name).map_err(|error| error.message.to_string())?;
    let listed = document.root.at("permissions.allow").map(file::Node::to_json);
    Ok(match listed {
        Some(Value::Array(rules)) => {
            rules.iter().filter_map(|rule| rule.as_str().map(str::to_owned)).collect()
        }
        Some(Value::String(rule)) => vec![rule],
        _ => Vec::new(),
    })
}

/// Returns the text with `rule` added.
fn with_rule(text: &str, rule: &str) -> Option<String> {
    let quoted = Value::from(rule).to_string();
    if text.trim().is_empty() {
        return Some(format!("{{\n  \"permissions\": {{\n    \"allow\": [{quoted}]\n  }}\n}}\n"));
    }
    let root = Span::of_value(text, 0)?;
    let Some(permissions) = root.member(text, "permissions") else {
        return Some(
            root.insert_first(text, &format!("\n  \"permissions\": {{\n    \"allow\": [{quoted}]\n  }}")),
        );
    };
    match permissions.member(text, "allow") {
        Some(allow) => Some(allow.insert_first(text, &quoted)),
        None => Some(permissions.insert_first(text, &format!("\n    \"allow\": [{quoted}]"))),
    }
}

/// The byte range of a value in a text; the end is exclusive.
#[derive(Clone, Copy)]
struct Span {
    start: usize,
    end: usize,
}

impl Span {
    /// The value that starts at `at`, after blanks and comments.
    fn of_value(text: &str, at: usize) -> Option<Self> {
        let start = skip_blank(text, at);
        let bytes = text.as_bytes();
        let end = match bytes.get(start)? {
            b'"' => end_of_string(text, start)?,
            b'{' | b'[' => {
                let mut depth = 0usize;
                let mut at = start;
                loop {
                    at = skip_blank(text, at);
                    match bytes.get(at)? {
                        b'"' => {
                            at = end_of_string(text, at)?;
                            continue;
                        }
                        b'{' | b'[' => depth += 1,
                        b'}' | b']' => depth -= 1,
                        _ => {}
                    }
                    at += 1;
                    if depth == 0 {
                        break at;
                    }
                }
            }
            _ => {
                let rest = &text[start..];
                start + rest.find([',', '}', ']', '\n', '/']).unwrap_or(rest.len())
            }
        };
        Some(Self { start, end })
    }

    /// The value of a key of this object.
    fn member(self, text: &str, key: &str) -> Option<Self> {
        if text.as_bytes()[self.start] != b'{' {
            return None;
        }
        let mut at = self.start + 1;
        loop {
            at = skip_blank(text, at);
            match text.as_bytes().get(at)? {
                b'}' => return None,
                b',' => at += 1,
                b'"' => {
                    let name = Self { start: at, end: end_of_string(text, at)? };
                    let colon = skip_blank(text, name.end);
                    let value = Self::of_value(text, colon + 1)?;
                    let spelt: String = serde_json::from_str(&text[name.start..name.end]).ok()?;
                    if spelt == key {
                        return Some(value);
                    }
                    at = value.end;
                }
                _ => return None,
            }
        }
    }

    /// The text with `inserted` as the first element of this object or list.
    fn insert_first(self, text: &str, inserted: &str) -> String {
        let open = self.start + 1;
        let is_empty = matches!(text.as_bytes().get(skip_blank(text, open)), Some(b'}' | b']'));
        let comma = match (is_empty, text.as_bytes()[self.start]) {
            (true, _) => "",
            (false, b'[') => ", ",
            (false, _) => ",",
        };
        format!("{}{inserted}{comma}{}", &text[..open], &text[open..])
    }
}

fn end_of_string(text: &str, start: usize) -> Option<usize> {
    let mut escaped = false;
    for (at, byte) in text.bytes().enumerate().skip(start + 1) {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'"' => return Some(at + 1),
            _ => {}
        }
    }
    None
}

/// The position after blanks and comments.
fn skip_blank(text: &str, at: usize) -> usize {
    let mut at = at;
    loop {
        let rest = &text[at..];
        let blank = rest.len() - rest.trim_start_matches([' ', '\t', '\r', '\n', '\u{feff}']).len();
        at += blank;
        let rest = &text[at..];
        if rest.starts_with("//") {
            at += rest.find('\n').unwrap_or(rest.len());
        } else if rest.starts_with("/*") {
            at += rest.find("*/").map_or(rest.len(), |end| end + 2);
        } else if blank == 0 {
            return at;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_and_order_stay() {
        let cases = [
            ("", "{\n  \"permissions\": {\n    \"allow\": [\"R\"]\n  }\n}\n"),
            ("{}", "{\n  \"permissions\": {\n    \"allow\": [\"R\"]\n  }}"),
            (
                "{ // mine\n  \"model\": {\"name\": \"x, ]}\"} }",
                "{\n  \"permissions\": {\n    \"allow\": [\"R\"]\n  }, // mine\n  \"model\": {\"name\": \"x, ]}\"} }",
            ),
            ("{\"permissions\": {/* c */}}", "{\"permissions\": {\n    \"allow\": [\"R\"]/* c */}}"),
            (
                "{\"permissions\": {\"allow\": [\n // first\n \"A\"]}}",
                "{\"permissions\": {\"allow\": [\"R\", \n // first\n \"A\"]}}",
            ),
        ];
        for (before, after) in cases {
            assert_eq!(with_rule(before, "R").as_deref(), Some(after), "{before}");
            assert!(rules(after, "settings.json").unwrap().contains(&"R".to_owned()), "{after}");
        }
    }
}
