//! The forms in which models print calls.

use qwen_events::ToolSpec;
use serde_json::{Map, Value};

/// A call that was printed as text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct TextCall {
    pub name: String,
    /// JSON, or the text that the model printed if it is not valid JSON. Such a call fails, and its result
    /// tells the model how to write arguments.
    pub arguments: String,
}

/// The name of a call whose text contains none.
const UNNAMED: &str = "tool_call";

/// Reads the content of `<tool_call>…</tool_call>`: one or several JSON objects, a list of them, or
/// `<function=…>`. A text that cannot be read becomes one call that fails.
pub(super) fn read_tagged(content: &str, tools: &[ToolSpec]) -> Vec<TextCall> {
    let content = strip_fence(content.trim());
    if content.starts_with("<function") {
        return read_functions(content, tools);
    }
    let mut calls = Vec::new();
    for value in serde_json::Deserializer::from_str(content).into_iter::<Value>() {
        let Some(found) = value.ok().and_then(|value| read_values(&value)) else {
            return vec![malformed(content)];
        };
        calls.extend(found);
    }
    if calls.is_empty() { vec![malformed(content)] } else { calls }
}

/// Reads the content of a fenced block: calls of known tools with arguments, and nothing else.
pub(super) fn read_fenced(content: &str, tools: &[ToolSpec]) -> Option<Vec<TextCall>> {
    let value: Value = serde_json::from_str(content.trim()).ok()?;
    let calls = read_values(&value)?;
    let is_known = |call: &TextCall| tools.iter().any(|tool| *tool.name == *call.name);
    (!calls.is_empty() && calls.iter().all(is_known)).then_some(calls)
}

/// Reads `<function=NAME><parameter=KEY>VALUE</parameter></function>`, once or several times.
pub(super) fn read_functions(content: &str, tools: &[ToolSpec]) -> Vec<TextCall> {
    let mut calls = Vec::new();
    // The values may contain tags of other forms, such as `<parameter name="x">` in a file that is written.
    for part in split_tags(content, "<function") {
        let Some((name, body)) = split_attribute(part) else { return vec![malformed(content)] };
        let body = body.rsplit_once("</function>").map_or(body, |(body, _)| body);
        let mut arguments = Map::new();
        for parameter in split_tags(body, "<parameter") {
            let Some((key, value)) = split_attribute(parameter) else { return vec![malformed(content)] };
            let value = value.rsplit_once("</parameter>").map_or(value, |(value, _)| value);
            let value = value.strip_prefix('\n').unwrap_or(value);
            let value = value.strip_suffix('\n').unwrap_or(value);
            let value = typed_value(value, &name, &key, tools);
            arguments.insert(key, value);
        }
        let arguments = if arguments.is_empty() && body.trim_start().starts_with('{') {
            // Some models print the arguments as JSON here.
            body.trim().to_owned()
        } else {
            Value::from(arguments).to_string()
        };
        calls.push(TextCall { name, arguments });
    }
    if calls.is_empty() { vec![malformed(content)] } else { calls }
}

/// The name of the first function of a text that begins with `<function=`.
pub(super) fn function_name(content: &str) -> Option<String> {
    split_attribute(content.strip_prefix("<function")?).map(|(name, _)| name)
}

/// The texts after each opening tag of the form that the first one has: `<tag=NAME>` or `<tag name="NAME">`.
fn split_tags<'a>(text: &'a str, tag: &str) -> Vec<&'a str> {
    let next = |at: usize| text[at + tag.len()..].chars().next();
    let form = text.find(tag).and_then(next);
    let found = text.match_indices(tag).map(|(at, _)| at);
    let starts: Vec<usize> = found.filter(|&at| next(at) == form).collect();
    let ends = starts.iter().skip(1).copied().chain([text.len()]);
    starts.iter().zip(ends).map(|(&start, end)| &text[start + tag.len()..end]).collect()
}

/// Splits `=NAME>rest`, ` name="NAME">rest` into name and rest.
fn split_attribute(text: &str) -> Option<(String, &str)> {
    let (attribute, rest) = text.split_once('>')?;
    let (_, name) = attribute.split_once('=')?;
    let name = name.trim().trim_matches(['"', '\'']);
    (!name.is_empty() && !name.contains('<')).then(|| (name.to_owned(), rest))
}

/// A value as its declared type: text stays text, everything else is read as JSON if it is JSON.
fn typed_value(text: &str, tool: &str, key: &str, tools: &[ToolSpec]) -> Value {
    let schema = tools.iter().find(|spec| *spec.name == *tool);
    let schema = schema.and_then(|spec| serde_json::from_str::<Value>(spec.parameters.as_str()).ok());
    let kind = schema.as_ref().map(|schema| &schema["properties"][key]["type"]);
    if kind.is_some_and(|kind| kind == "string") {
        return text.into();
    }
    serde_json::from_str(text.trim()).unwrap_or_else(|_| text.into())
}

/// Reads one call or a list of calls.
fn read_values(value: &Value) -> Option<Vec<TextCall>> {
    match value {
        Value::Array(values) => values.iter().map(read_value).collect(),
        value => read_value(value).map(|call| vec![call]),
    }
}

/// Reads one call: its name and arguments under the keys that models use, nested in `function` or not.
fn read_value(value: &Value) -> Option<TextCall> {
    let object = value.as_object()?;
    if let Some(function @ Value::Object(_)) = object.get("function") {
        return read_value(function);
    }
    let name = ["name", "tool", "tool_name", "function"].iter().find_map(|key| object.get(*key)?.as_str())?;
    let keys = ["arguments", "parameters", "args", "input", "tool_input"];
    let arguments = match keys.iter().find_map(|key| object.get(*key))? {
        Value::String(text) => text.clone(),
        Value::Null => "{}".to_owned(),
        arguments => arguments.to_string(),
    };
    Some(TextCall { name: name.to_owned(), arguments })
}

/// Removes the code fence around a text.
fn strip_fence(text: &str) -> &str {
    let Some(inner) = text.strip_prefix("```").and_then(|inner| inner.strip_suffix("```")) else {
        return text;
    };
    inner.trim_start_matches(|letter: char| letter.is_ascii_alphanumeric()).trim()
}

/// A call that cannot be read. Its name is taken from the text if it is there.
fn malformed(content: &str) -> TextCall {
    let name = content.split("\"name\"").nth(1).and_then(|rest| rest.split('"').nth(1));
    TextCall { name: name.unwrap_or(UNNAMED).to_owned(), arguments: content.to_owned() }
}
