//! Settings files: their keys, how they are parsed, and the errors for invalid values.

mod aliases;
mod foreign;
mod hooks;
mod jsonc;
mod mcp;
mod nearest;
mod node;
mod read;
mod sourced;
mod typed;
mod words;

use std::path::Path;
use std::sync::Arc;

use qwen_events::{ErrorInfo, ErrorKind};
use qwen_mcp::{McpConfigError, parse_server};

pub use hooks::{HookGroup, HookKind, Hooks, OnFailure};
pub use mcp::McpServer;
pub use nearest::{distance, nearest};
pub use node::{Layer, Node, Object, Origin, Source, Value};
pub use sourced::Sourced;
pub use typed::{
    Agent, Credential, Limits, Mcp, Model, Output, Sandbox, Settings, Telemetry, TerminalSettings,
};

/// The largest accepted settings file, in bytes.
const LARGEST: u64 = 4 * 1024 * 1024;

/// The validated settings of one source.
pub struct Document {
    /// The settings as a tree.
    pub root: Node,
    /// Warnings about the file, one sentence each.
    pub warnings: Vec<String>,
    /// Keys that were ignored, with a warning for each.
    pub unknown_keys: Vec<String>,
}

impl Document {
    /// Warns about every unknown key, also those of Qwen Code: a Claude host does not use them.
    pub fn with_all_warnings(mut self) -> Self {
        let name = &self.root.origin.source.name;
        let unreported =
            |key: &&String| !self.warnings.iter().any(|warning| warning.contains(&format!("\"{key}\"")));
        let keys: Vec<&String> = self.unknown_keys.iter().filter(unreported).collect();
        let more: Vec<String> =
            keys.iter().map(|key| format!("{name}: the key \"{key}\" is unknown and ignored")).collect();
        self.warnings.extend(more);
        self
    }

    /// Replaces the warnings about unknown keys by a single one, for files written for another program.
    pub fn with_one_warning(mut self) -> Self {
        if !self.unknown_keys.is_empty() {
            let keys = self.unknown_keys.join(", ");
            self.warnings =
                vec![format!("{}: not supported here and ignored: {keys}", self.root.origin.source.name)];
        }
        self
    }
}

/// Loads a file; `None` if it does not exist.
pub fn load(path: &Path, layer: Layer) -> Result<Option<Document>, ErrorInfo> {
    let text = match read_file(path) {
        Ok(text) => text,
        Err(error)
            if matches!(error.kind(), std::io::ErrorKind::NotFound | std::io::ErrorKind::NotADirectory) =>
        {
            return Ok(None);
        }
        Err(error) => {
            return Err(unusable(format!("the settings in {} cannot be read: {error}", path.display())));
        }
    };
    parse(&text, layer, &path.to_string_lossy()).map(Some)
}

/// Reads a regular file of at most [`LARGEST`] bytes.
pub fn read_file(path: &Path) -> std::io::Result<String> {
    use std::io::Read;
    use std::os::unix::fs::OpenOptionsExt;
    // Opening or reading a pipe would block.
    let at_once = rustix::fs::OFlags::NONBLOCK.bits().cast_signed();
    let mut file = std::fs::OpenOptions::new().read(true).custom_flags(at_once).open(path)?;
    let about = file.metadata()?;
    if !about.is_file() {
        return Err(std::io::Error::other("it is not a regular file"));
    }
    if about.len() > LARGEST {
        return Err(std::io::Error::other("it is larger than 4 MiB"));
    }
    let mut text = String::new();
    file.read_to_string(&mut text)?;
    Ok(text)
}

/// Parses and validates settings. `name` is used in error messages.
pub fn parse(text: &str, layer: Layer, name: &str) -> Result<Document, ErrorInfo> {
    check(parse_loose(text, layer, name)?)
}

/// Parses settings without checking the keys. `name` is used in error messages.
pub fn parse_loose(text: &str, layer: Layer, name: &str) -> Result<Node, ErrorInfo> {
    let source = Arc::new(Source { layer, name: name.into() });
    jsonc::parse(text, &source).map_err(|error| {
        let Origin { line, column, .. } = error.origin;
        unusable(format!("the settings in {name}, line {line}, column {column}: {}", error.problem))
    })
}

/// Validates the settings of a source.
pub fn check(mut root: Node) -> Result<Document, ErrorInfo> {
    if root.object().is_none() {
        return Err(unusable(format!("the settings in {} must be an object in braces", root.origin)));
    }
    aliases::translate(&mut root);
    let (settings, unknown) = read::read::<Settings>(&root).map_err(|invalid| invalid_values(&invalid))?;
    settings.check().map_err(|(path, problem)| {
        let origin = root.at(&path).map_or(&root.origin, |node| &node.origin);
        invalid_values(&read::InvalidValue { origin: Some(origin.clone()), path, problem })
    })?;
    check_servers(&root)?;
    // An unknown key that resembles none of ours probably belongs to a newer version of Qwen Code.
    let is_foreign_file = root.at(foreign::MARK).is_some();
    let is_foreign =
        |key: &read::UnknownKey| foreign::is_known(&key.path) || is_foreign_file && key.nearest.is_none();
    let warnings = unknown.iter().filter(|key| !is_foreign(key)).map(|key| {
        let suggestion =
            key.nearest.as_ref().map(|near| format!("; did you mean \"{near}\"?")).unwrap_or_default();
        format!("{}: the key \"{}\" is unknown and ignored{suggestion}", key.origin, key.path)
    });
    let warnings = warnings.collect();
    for key in &unknown {
        root.remove(&key.path);
    }
    let unknown_keys = unknown.into_iter().map(|key| key.path).collect();
    Ok(Document { root, warnings, unknown_keys })
}

/// Validates the MCP servers as the MCP client does.
fn check_servers(root: &Node) -> Result<(), ErrorInfo> {
    for field in root.at("mcpServers").and_then(Node::object).into_iter().flat_map(|object| &object.0) {
        if let Err(error) = parse_server(&field.key, &field.node.to_json()) {
            let problem = match error {
                McpConfigError::Server { problem, .. } => problem,
                other => other.to_string(),
            };
            let path = format!("mcpServers.{}", field.key);
            return Err(invalid_values(&read::InvalidValue {
                origin: Some(field.origin.clone()),
                path,
                problem,
            }));
        }
    }
    Ok(())
}

/// Reads the merged settings of all sources.
pub fn settings(root: &Node) -> Result<Settings, ErrorInfo> {
    read::read(root).map(|(settings, _)| settings).map_err(|invalid| invalid_values(&invalid))
}

/// True if `word` is a top-level key.
pub fn is_key(word: &str) -> bool {
    schema().get("properties").and_then(|keys| keys.get(word)).is_some()
}

/// The JSON Schema of a settings file, for editors.
pub fn schema() -> schemars::Schema {
    schemars::schema_for!(Settings)
}

fn invalid_values(invalid: &read::InvalidValue) -> ErrorInfo {
    let place = match &invalid.origin {
        None => "the settings".to_owned(),
        Some(Origin { source, line: 0, .. }) => source.name.to_string(),
        Some(Origin { source, line, column }) => {
            format!("the settings in {}, line {line}, column {column}", source.name)
        }
    };
    // Under these keys every value may be a secret, however short.
    let may_be_secret = ["apikey", "token", "secret", "password", "headers", "env.", "credentials"]
        .iter()
        .any(|part| invalid.path.to_ascii_lowercase().contains(part));
    let problem = match invalid.problem.split_once(", found ") {
        Some((expected, _)) if may_be_secret => format!("{expected}, found another value"),
        _ => invalid.problem.clone(),
    };
    let key = if invalid.path.is_empty() { String::new() } else { format!("\"{}\": ", invalid.path) };
    let from_flag = invalid.origin.as_ref().is_some_and(|origin| origin.source.layer == Layer::Flag);
    if from_flag {
        return super::bad_flag(format!("{place}: {problem}"));
    }
    let error = unusable(format!("{place}: {key}{problem}"));
    if invalid.path.is_empty() { error } else { error.with_param(invalid.path.as_str()) }
}

/// The error for invalid settings.
pub(super) fn unusable(message: String) -> ErrorInfo {
    ErrorInfo::new(ErrorKind::Settings, "invalid_settings", message)
}

#[cfg(test)]
mod tests;
