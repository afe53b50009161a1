//! Explaining why a value fits none of several schemas.

use std::fmt::Write;

use serde_json::Value;

use crate::Schema;
use crate::equality::is_of_type;
use crate::validator::Validator;

/// How many alternatives are explained one by one.
const MAX_EXPLAINED: usize = 4;
/// The longest quotation of a schema or a value.
const MAX_QUOTE: usize = 200;

/// Why `value` fits none of `schemas`: what is wrong with it by each alternative that allows its type, or by
/// all of them.
pub(crate) fn explain(schema: &Schema, schemas: &[Value], value: &Value, depth: usize, at: &str) -> String {
    let allows = |alternative: &&Value| {
        alternative.get("type").and_then(Value::as_str).is_some_and(|name| is_of_type(value, name))
    };
    let likely: Vec<&Value> = schemas.iter().filter(allows).collect();
    let shown = if likely.is_empty() { schemas.iter().collect() } else { likely };
    if shown.len() > MAX_EXPLAINED {
        return format!("fits none of its {} alternatives", schemas.len());
    }
    let mut text = String::from("fits no alternative: ");
    for (n, alternative) in shown.into_iter().enumerate() {
        let problem = Validator::first_problem(schema, alternative, value, depth, at).unwrap_or_default();
        let separator = if n == 0 { "" } else { ", or " };
        let _ = write!(text, "{separator}{problem}");
    }
    text
}

/// JSON for a message, cut where it is long.
pub(crate) fn quote(value: &Value) -> String {
    let text = value.to_string();
    match text.char_indices().nth(MAX_QUOTE) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}
