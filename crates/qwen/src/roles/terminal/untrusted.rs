//! What the working directory's own configuration would enable if the folder were trusted.

use std::path::Path;

use serde_json::Value;

use crate::cli::Run;
use crate::settings::file::{self, Layer};
use crate::settings::{Config, Invocation, SettingsFile, Trust};

/// The most lines of a list; the file itself has the rest.
const MAX_LINES: usize = 60;

/// The most characters of a line.
const MAX_LINE: usize = 200;

/// The configuration of the folder, as lines; empty if it has none or is trusted.
pub fn found(run: &Run, config: &Config, invocation: &Invocation) -> Vec<String> {
    let folders = &config.settings.security.trusted_folders;
    let mut lines = Vec::new();
    let files = config.extensions.settings_files.iter();
    for ignored in files.filter(|file| file.state == SettingsFile::NOT_TRUSTED) {
        lines.push(format!("{}:", shown(&ignored.path, invocation)));
        match file::load(&ignored.path, Layer::Workspace) {
            Ok(Some(document)) => flatten("", &document.root.to_json(), &mut lines),
            Ok(None) => {}
            Err(error) => lines.push(format!("  {error}")),
        }
    }
    let home = invocation.qwen_home().map(|home| invocation.cwd.join(home));
    let own = invocation.cwd.join(".qwen");
    if Some(&own) != home.as_ref() {
        for name in ["agents", "skills", "commands"] {
            let names = entries(&own.join(name));
            if !names.is_empty() {
                lines.push(format!(".qwen/{name}: {}", names.join(", ")));
            }
        }
    }
    // Most folders have nothing to trust, so the decision is left for last.
    let trust = || Trust::new(invocation, run.configuration.trust_workspace, folders).decision();
    if lines.is_empty() || trust().is_trusted() {
        return Vec::new();
    }
    let hidden = lines.len().saturating_sub(MAX_LINES);
    lines.truncate(MAX_LINES);
    if hidden > 0 {
        lines.push(format!("({hidden} more lines)"));
    }
    lines
}

fn shown(path: &Path, invocation: &Invocation) -> String {
    path.strip_prefix(&invocation.cwd).unwrap_or(path).display().to_string()
}

fn entries(folder: &Path) -> Vec<String> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    let mut names: Vec<String> =
        entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

/// JSON as lines of `  key.key: value`.
fn flatten(path: &str, value: &Value, lines: &mut Vec<String>) {
    let below = |key: &str| if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") };
    let line = |text: &str| {
        let text: String = format!("  {path}: {text}").chars().take(MAX_LINE).collect();
        text
    };
    match value {
        Value::Object(fields) => {
            for (key, value) in fields {
                flatten(&below(key), value, lines);
            }
        }
        Value::Array(items) if items.iter().any(|item| item.is_object() || item.is_array()) => {
            for value in items {
                flatten(path, value, lines);
            }
        }
        Value::Array(items) => {
            let words: Vec<String> = items.iter().map(word).collect();
            lines.push(line(&words.join(", ")));
        }
        Value::String(_) | Value::Number(_) | Value::Bool(_) | Value::Null => lines.push(line(&word(value))),
    }
}

fn word(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}
