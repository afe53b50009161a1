//! `--settings-profile`: a complete set of settings that replaces all files, so that concurrent runs for
//! different users share nothing by accident.

use std::path::PathBuf;

use qwen_events::ErrorInfo;

use super::super::Invocation;
use super::super::file::{self, Document, Layer, Node, Value, unusable};

/// The parts of a profile, and the layers that they replace.
const PARTS: [(&str, &str, Layer); 4] = [
    ("systemDefaults", "system_defaults", Layer::SystemDefaults),
    ("user", "user", Layer::User),
    ("workspace", "workspace", Layer::Workspace),
    ("system", "system", Layer::System),
];

/// The settings of a profile in ascending precedence.
pub(super) fn load(profile: &str, invocation: &Invocation) -> Result<Vec<Document>, ErrorInfo> {
    let (text, name) = if profile.trim_start().starts_with('{') {
        (profile.to_owned(), "--settings-profile".to_owned())
    } else {
        let path = profile_path(profile, invocation);
        let text = file::read_file(&path).map_err(|error| {
            unusable(format!("--settings-profile {profile}: {} cannot be read: {error}", path.display()))
        })?;
        (text, path.to_string_lossy().into_owned())
    };
    let root = file::parse_loose(&text, Layer::Given, &name)?;
    let mut documents = Vec::new();
    let mut parts = 0;
    for (key, other_key, layer) in PARTS {
        let Some(node) = root.at(key).or_else(|| root.at(other_key)) else { continue };
        parts += 1;
        documents.push(part(node, layer, invocation)?);
    }
    let overrides = root.at("overrides");
    if let Some(overrides) = overrides {
        documents.push(file::check(with_paths(overrides))?);
    } else if parts == 0 {
        // Without any parts, the profile itself is the settings.
        documents.push(file::check(root)?);
    }
    Ok(documents)
}

/// A bare name refers to a file in our home directory; anything else is a path.
fn profile_path(profile: &str, invocation: &Invocation) -> PathBuf {
    let is_name = !profile.contains('/') && !profile.ends_with(".json");
    match invocation.qwen_home() {
        Some(home) if is_name => invocation.cwd.join(home).join("profiles").join(format!("{profile}.json")),
        _ => invocation.cwd.join(profile),
    }
}

/// A part is an object, or the path of a file or of a directory with a `settings.json` in it.
fn part(node: &Node, layer: Layer, invocation: &Invocation) -> Result<Document, ErrorInfo> {
    let Value::Text(path) = &node.value else { return file::check(node.clone()) };
    let mut path = invocation.cwd.join(path);
    if path.is_dir() {
        let inner = path.join(".qwen");
        path = if layer == Layer::Workspace && inner.is_dir() { inner } else { path }.join("settings.json");
    }
    file::load(&path, layer)?
        .ok_or_else(|| unusable(format!("{}: there is no file {}", node.origin, path.display())))
}

/// Override keys may be whole paths, such as `model.name`.
fn with_paths(overrides: &Node) -> Node {
    let mut root = Node::empty(overrides.origin.clone());
    for field in overrides.object().into_iter().flat_map(|object| &object.0) {
        root.put(&field.key, &field.origin, field.node.clone());
    }
    root
}
