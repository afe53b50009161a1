//! `qwen config`: every effective setting and its origin.

use std::fmt::Write;

use qwen_events::ErrorInfo;
use qwen_redact::Redactor;
use serde_json::{Value as Json, json};

use crate::cli::ConfigArgs;
use crate::settings::file::{self, Node, Object, Value, nearest};
use crate::settings::{Invocation, Layered};

/// A setting without children.
struct Leaf<'a> {
    path: String,
    node: &'a Node,
    secret: bool,
}

/// Returns the text to print.
pub fn run(args: &ConfigArgs, invocation: &mut Invocation) -> Result<String, ErrorInfo> {
    let layered = match &args.run {
        Some(run) => Layered::load(run, invocation)?,
        None => Layered::for_display(&args.configuration, invocation)?,
    };
    let settings = layered.settings()?;
    let redactor = crate::settings::redactor(&settings, invocation);
    let root = layered.with_built_in(invocation);
    let mut leaves = Vec::new();
    collect(&root, String::new(), false, &mut leaves);
    leaves.sort_by(|a, b| a.path.cmp(&b.path));
    if let Some(key) = &args.key {
        leaves.retain(|leaf| {
            leaf.path
                .strip_prefix(key.as_str())
                .is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
        });
        if leaves.is_empty() {
            return Err(nothing(key));
        }
    }
    let mut text = if args.json {
        format!("{:#}\n", as_json(&leaves, &layered, invocation, &redactor))
    } else {
        as_text(&leaves, &layered, invocation, args.key.is_none(), &redactor)
    };
    if !args.json {
        for warning in &layered.warnings {
            // Writing to a `String` cannot fail.
            let _ = writeln!(text, "warning: {}", redactor.redact(warning));
        }
    }
    Ok(text)
}

fn nothing(key: &str) -> ErrorInfo {
    let schema = file::schema();
    let known =
        schema.get("properties").and_then(Json::as_object).map(|keys| keys.keys().map(String::as_str));
    let first = key.split(['.', '[']).next().unwrap_or(key);
    let near = known.and_then(|known| nearest(first, known)).filter(|near| *near != first);
    let near = near.map(|near| format!("; did you mean '{near}'?")).unwrap_or_default();
    let message = format!("nothing is set under '{key}'{near}");
    ErrorInfo::new(qwen_events::ErrorKind::Input, "unknown_key", message)
}

/// Collects the leaves. Values whose path makes them secret are marked.
fn collect<'a>(node: &'a Node, path: String, secret: bool, leaves: &mut Vec<Leaf<'a>>) {
    match &node.value {
        Value::Object(Object(fields)) if !fields.is_empty() => {
            for field in fields {
                let path = if path.is_empty() { field.key.clone() } else { format!("{path}.{}", field.key) };
                let secret = secret || is_secret(&path);
                collect(&field.node, path, secret, leaves);
            }
        }
        Value::List(list) if !list.is_empty() => {
            for (place, node) in list.iter().enumerate() {
                collect(node, format!("{path}[{place}]"), secret, leaves);
            }
        }
        _ => leaves.push(Leaf { path, node, secret }),
    }
}

/// True if every value at this path is a secret, whatever it looks like.
fn is_secret(path: &str) -> bool {
    let last = path.rsplit('.').next();
    let server = path.starts_with("mcpServers.") && matches!(last, Some("headers" | "env"));
    server || matches!(path, "model.apiKey" | "model.headers" | "env")
}

impl Leaf<'_> {
    fn value(&self, redactor: &Redactor) -> Json {
        match self.node.to_json() {
            _ if self.secret => json!("***"),
            Json::String(text) => json!(redactor.redact(&text)),
            other => other,
        }
    }
}

fn as_json(leaves: &[Leaf<'_>], layered: &Layered, invocation: &Invocation, redactor: &Redactor) -> Json {
    let setting = |leaf: &Leaf<'_>| {
        let origin = &leaf.node.origin;
        let place = json!({
            "value": leaf.value(redactor),
            "source": origin.source.layer.name(),
            "place": origin.to_string(),
        });
        (leaf.path.clone(), place)
    };
    let file = |file: &crate::settings::SettingsFile| json!({"source": file.layer.name(), "path": file.path.to_string_lossy(), "state": file.state});
    let decision = layered.trust.decision();
    let warnings = layered.warnings.iter().map(|warning| redactor.redact(warning));
    let mut trust = json!({"folder": invocation.cwd.to_string_lossy(), "trusted": decision.is_trusted(), "why": decision.reason()});
    if !layered.trust.changes().is_empty() {
        trust["changes"] = layered.trust.changes().into();
    }
    json!({
        "settings": leaves.iter().map(setting).collect::<serde_json::Map<_, _>>(),
        "files": layered.files.iter().map(file).collect::<Vec<_>>(),
        "trust": trust,
        "warnings": warnings.collect::<Vec<_>>(),
    })
}

fn as_text(
    leaves: &[Leaf<'_>],
    layered: &Layered,
    invocation: &Invocation,
    whole: bool,
    redactor: &Redactor,
) -> String {
    let rows: Vec<[String; 3]> = leaves
        .iter()
        .map(|leaf| {
            let origin = &leaf.node.origin;
            let (layer, place) = (origin.source.layer.name(), origin.to_string());
            let from = if layer == place { place } else { format!("{layer}, {place}") };
            [leaf.path.clone(), leaf.value(redactor).to_string(), from]
        })
        .collect();
    let width = |column: usize, most: usize| {
        rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0).min(most)
    };
    let (keys, values) = (width(0, 40), width(1, 50));
    let mut text = String::new();
    // Writing to a `String` cannot fail.
    for [key, value, from] in &rows {
        let _ = writeln!(text, "{key:keys$}  {value:values$}  {from}");
    }
    if whole {
        let _ = writeln!(text, "\n{} is {}", invocation.cwd.display(), layered.trust.decision().reason());
        for change in layered.trust.changes() {
            let _ = writeln!(text, "  {change}");
        }
        for file in &layered.files {
            let _ = writeln!(text, "{:17} {}: {}", file.layer.name(), file.path.display(), file.state);
        }
    }
    text
}
