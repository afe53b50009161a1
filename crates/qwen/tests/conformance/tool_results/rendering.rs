//! How results are written to a golden file: what depends on the machine is replaced, and what repeats is
//! shortened.

use std::path::Path;

use mock_model::Request;
use serde_json::Value;

/// The longest run of lines of the same shape that is written in full.
const LONGEST_RUN: usize = 8;
/// The lines that are kept at either end of a longer run.
const KEPT_LINES: usize = 2;
/// The longest line that is written in full, in characters.
const LONGEST_LINE: usize = 320;
/// The characters that are kept at either end of a longer line.
const KEPT_CHARS: usize = 60;

/// The messages after the last one of the assistant.
pub fn last_results(request: &Request) -> String {
    let body = request.full_body();
    let messages = body["messages"].as_array().unwrap();
    let at = messages.iter().rposition(|message| message["role"] == "assistant").unwrap();
    let texts = messages[at + 1..].iter().map(|message| match message["role"].as_str() {
        Some("tool") => content(&message["content"]),
        role => {
            format!("[message of the role {}]\n{}", role.unwrap_or_default(), content(&message["content"]))
        }
    });
    texts.collect::<Vec<String>>().join("\n")
}

fn content(content: &Value) -> String {
    let Some(parts) = content.as_array() else { return content.as_str().unwrap_or_default().to_owned() };
    let texts = parts.iter().map(|part| match part["text"].as_str() {
        Some(text) => text.to_owned(),
        None => part.to_string(),
    });
    texts.collect::<Vec<String>>().join("\n")
}

/// Writes results of a session in one directory.
pub struct Rendering {
    directory: String,
}

impl Rendering {
    pub fn in_directory(directory: &Path) -> Self {
        Self { directory: directory.to_string_lossy().into_owned() }
    }

    /// One case: its title, the arguments of the call and the result, each of whose lines is marked.
    pub fn section(&self, tool: &str, title: &str, arguments: &Value, result: &str) -> String {
        let mut text = format!("== {tool}: {title}\n");
        if !arguments.is_null() {
            text.push_str(&shorten(&self.normalize(&arguments.to_string())));
            text.push('\n');
        }
        let result = self.normalize(result);
        let lines: Vec<&str> = result.split('\n').collect();
        for run in lines.chunk_by(|one, other| shape(one) == shape(other)) {
            write_run(&mut text, run);
        }
        text.push('\n');
        text
    }

    fn normalize(&self, text: &str) -> String {
        replace_process_ids(&replace_output_files(&text.replace(&self.directory, "[cwd]")))
    }
}

fn write_run(text: &mut String, run: &[&str]) {
    let mut write = |lines: &[&str]| {
        for line in lines {
            // Carriage returns and other control characters are written visibly; tabs stay.
            let line: String = shorten(line)
                .chars()
                .map(|char| {
                    let is_hidden = char.is_control() && char != '\t';
                    if is_hidden { char.escape_default().to_string() } else { char.to_string() }
                })
                .collect();
            text.push_str(&format!("| {line}\n"));
        }
    };
    if run.len() <= LONGEST_RUN {
        return write(run);
    }
    write(&run[..KEPT_LINES]);
    let between = run.len() - 2 * KEPT_LINES;
    let last = &run[run.len() - KEPT_LINES..];
    text.push_str(&format!("[{between} lines like these]\n"));
    write_run(text, last);
}

/// A line without its numbers.
fn shape(line: &str) -> String {
    let mut shape = String::new();
    for char in line.trim_start().chars() {
        match char.is_ascii_digit() {
            true if shape.ends_with('#') => {}
            true => shape.push('#'),
            false => shape.push(char),
        }
    }
    shape
}

fn shorten(line: &str) -> String {
    let chars: Vec<char> = line.chars().collect();
    if chars.len() <= LONGEST_LINE {
        return line.to_owned();
    }
    let (start, end) = (&chars[..KEPT_CHARS], &chars[chars.len() - KEPT_CHARS..]);
    let between = chars.len() - 2 * KEPT_CHARS;
    format!("{}[{between} characters]{}", start.iter().collect::<String>(), end.iter().collect::<String>())
}

/// Replaces the paths of files that hold complete output.
fn replace_output_files(text: &str) -> String {
    let mut rest = text;
    let mut out = String::new();
    while let Some(at) = rest.find("/qwen-of-") {
        let start = rest[..at].rfind(|char: char| char.is_whitespace()).map_or(0, |space| space + 1);
        let Some(length) = rest[at..].find(".txt") else { break };
        out.push_str(&rest[..start]);
        out.push_str("[output file]");
        rest = &rest[at + length + ".txt".len()..];
    }
    out + rest
}

fn replace_process_ids(text: &str) -> String {
    let mut parts = text.split("(process ");
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        out.push_str("(process [id]");
        out.push_str(part.trim_start_matches(|char: char| char.is_ascii_digit()));
    }
    out
}
