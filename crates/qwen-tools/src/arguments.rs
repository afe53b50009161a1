//! Reads the arguments of a call field by field. Errors name the field and the expected value.

use std::collections::BTreeMap;

use qwen_events::{ToolCall, ToolSpec};
use serde::Deserialize;
use serde_json::{Map, Value};

pub struct Arguments {
    tool: std::sync::Arc<str>,
    fields: Map<String, Value>,
}

#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("{tool}: {problem}")]
pub struct ArgumentError {
    tool: std::sync::Arc<str>,
    problem: String,
}

/// The parts of a tool's schema that a call is checked against: argument names and the required list.
/// Skipping the descriptions keeps parsing cheap.
#[derive(Deserialize)]
struct Schema {
    properties: BTreeMap<String, Property>,
    #[serde(default)]
    required: Vec<String>,
}

#[derive(Deserialize)]
struct Property {
    /// A type name, or a list of type names.
    #[serde(default, rename = "type")]
    kind: Value,
}

/// Arguments of Claude's tools that have no effect here. They are not offered, and calls with them are accepted.
const WITHOUT_EFFECT: &[&str] = &["allowedPrompts", "dangerouslyDisableSandbox", "pages"];

/// Arguments that the model is not offered: the directory to which a `cd` carried over, which calls get from us, and
/// arguments of Claude's tool that models send by habit and that have no effect here.
const ADDED: &[(&str, &str)] =
    &[("Bash", "directory"), ("Task", "mode"), ("Task", "model"), ("Task", "name"), ("Task", "team_name")];

impl Arguments {
    pub fn parse(call: &ToolCall) -> Result<Self, ArgumentError> {
        let refuse = |problem: String| ArgumentError { tool: call.name.clone(), problem };
        if call.malformed.is_some() {
            return Err(refuse("the arguments are not a JSON object; send one JSON object".to_owned()));
        }
        match serde_json::from_str(call.arguments.as_str()) {
            Ok(fields) => Ok(Self { tool: call.name.clone(), fields }),
            Err(error) => Err(refuse(format!("the arguments are not a JSON object: {error}"))),
        }
    }

    /// Checks the names of a call's arguments and that the required ones are there, before any permission
    /// request.
    pub fn check(call: &ToolCall, spec: &ToolSpec) -> Result<(), ArgumentError> {
        let Ok(schema) = serde_json::from_str(spec.parameters.as_str()) else { return Ok(()) };
        let given = Self::parse(call)?;
        given.check_names(&schema)?;
        given.check_required(&schema)
    }

    /// Refuses arguments that the tool does not have. Otherwise they would be ignored silently.
    fn check_names(&self, Schema { properties: known, .. }: &Schema) -> Result<(), ArgumentError> {
        let is_known = |name: &str| {
            known.contains_key(name) || WITHOUT_EFFECT.contains(&name) || ADDED.contains(&(&*self.tool, name))
        };
        let unknown = self.fields.keys().find(|name| !is_known(name));
        let Some(name) = unknown else { return Ok(()) };
        let shown: String = name.chars().take(80).flat_map(char::escape_debug).collect();
        let names: Vec<String> = known.keys().map(|name| format!("`{name}`")).collect();
        let problem = format!("there is no argument `{shown}`; the arguments are {}", names.join(", "));
        Err(ArgumentError { tool: self.tool.clone(), problem })
    }

    /// Refuses arguments without a required one.
    fn check_required(&self, Schema { properties, required }: &Schema) -> Result<(), ArgumentError> {
        required.iter().try_for_each(|field| match properties.get(field) {
            Some(property) if property.kind == "string" => self.text(field).map(|_| ()),
            _ if self.non_null(field).is_none() => Err(self.refuse(field, "is missing")),
            _ => Ok(()),
        })
    }

    /// Returns an error about the value of `field`.
    pub fn refuse(&self, field: &str, problem: impl std::fmt::Display) -> ArgumentError {
        ArgumentError { tool: self.tool.clone(), problem: format!("`{field}` {problem}") }
    }

    /// Reads a required string.
    pub fn text(&self, field: &str) -> Result<&str, ArgumentError> {
        match self.optional_text(field)? {
            Some(text) => Ok(text),
            None => Err(self.refuse(field, "is missing; it must be a string")),
        }
    }

    /// Reads an optional string.
    pub fn optional_text(&self, field: &str) -> Result<Option<&str>, ArgumentError> {
        match self.non_null(field) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(other) => Err(self.mismatch(field, "a string", other)),
        }
    }

    /// Reads a required string that is not empty and contains no NUL, so that system calls accept it.
    pub fn nonempty_text(&self, field: &str) -> Result<&str, ArgumentError> {
        let text = self.text(field)?;
        if text.trim().is_empty() {
            return Err(self.refuse(field, "is empty"));
        }
        self.without_nul(field, text)
    }

    /// Like [`Arguments::nonempty_text`], but optional.
    pub fn optional_nonempty_text(&self, field: &str) -> Result<Option<&str>, ArgumentError> {
        match self.optional_text(field)? {
            None => Ok(None),
            Some(_) => self.nonempty_text(field).map(Some),
        }
    }

    fn without_nul<'a>(&self, field: &str, text: &'a str) -> Result<&'a str, ArgumentError> {
        match text.find('\0') {
            Some(at) => Err(self.refuse(field, format_args!("contains a NUL character at byte {at}"))),
            None => Ok(text),
        }
    }

    /// Reads an optional boolean. Also accepts strings such as `"true"`, which models send.
    pub fn optional_bool(&self, field: &str) -> Result<Option<bool>, ArgumentError> {
        match self.non_null(field) {
            None => Ok(None),
            Some(Value::Bool(value)) => Ok(Some(*value)),
            Some(Value::String(text)) if text == "true" || text == "false" => Ok(Some(text == "true")),
            Some(other) => Err(self.mismatch(field, "true or false", other)),
        }
    }

    /// Reads an optional integer within `range`. Also accepts `"10"` and `10.0`, which models send.
    pub fn optional_number(
        &self,
        field: &str,
        range: std::ops::RangeInclusive<u64>,
    ) -> Result<Option<u64>, ArgumentError> {
        let number = match self.non_null(field) {
            None => return Ok(None),
            Some(Value::Number(number)) => number.as_u64().or_else(|| to_integer(number.as_f64()?)),
            Some(Value::String(text)) => text.parse().ok(),
            Some(other) => return Err(self.mismatch(field, "a whole number", other)),
        };
        match number.filter(|number| range.contains(number)) {
            Some(number) => Ok(Some(number)),
            None if *range.end() == u64::MAX => {
                Err(self.refuse(field, format_args!("must be a whole number of at least {}", range.start())))
            }
            None => Err(self.refuse(
                field,
                format_args!("must be a whole number from {} to {}", range.start(), range.end()),
            )),
        }
    }

    /// Reads an optional list of strings.
    pub fn optional_texts(&self, field: &str) -> Result<Vec<&str>, ArgumentError> {
        match self.non_null(field) {
            None => Ok(Vec::new()),
            Some(Value::Array(items)) => items
                .iter()
                .map(|item| item.as_str().ok_or_else(|| self.mismatch(field, "a list of strings", item)))
                .collect(),
            Some(other) => Err(self.mismatch(field, "a list of strings", other)),
        }
    }

    /// Reads a required list.
    pub fn list(&self, field: &str) -> Result<&[Value], ArgumentError> {
        match self.non_null(field) {
            None => Err(self.refuse(field, "is missing; it must be a list")),
            Some(Value::Array(items)) => Ok(items),
            Some(other) => Err(self.mismatch(field, "a list", other)),
        }
    }

    /// A field's value; `null` counts as absent.
    pub fn non_null(&self, field: &str) -> Option<&Value> {
        self.fields.get(field).filter(|value| !value.is_null())
    }

    fn mismatch(&self, field: &str, expected: &str, got: &Value) -> ArgumentError {
        let got = match got {
            Value::Null => "null",
            Value::Bool(_) => "a boolean",
            Value::Number(_) => "a number",
            Value::String(_) => "a string",
            Value::Array(_) => "a list",
            Value::Object(_) => "an object",
        };
        self.refuse(field, format_args!("must be {expected}, not {got}"))
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "checked to be a whole number in range"
)]
fn to_integer(number: f64) -> Option<u64> {
    (number.fract() == 0.0 && (0.0..1e15).contains(&number)).then_some(number as u64)
}

#[cfg(test)]
mod tests {
    use qwen_events::{CallId, Json};

    use super::*;

    #[test]
    fn a_call_with_other_arguments_than_its_tool_needs_is_refused_and_one_that_fits_is_not() {
        let parameters =
            r#"{"properties":{"s":{"type":"string"},"l":{"type":"array"},"n":{}},"required":["s","l"]}"#;
        let spec =
            ToolSpec { name: "t".into(), description: "".into(), parameters: Json::trusted(parameters) };
        for (json, problem) in [
            ("{}", Some("t: `s` is missing; it must be a string")),
            (r#"{"s":5,"l":[]}"#, Some("t: `s` must be a string, not a number")),
            (r#"{"s":"x"}"#, Some("t: `l` is missing")),
            (r#"{"s":"","l":[]}"#, None),
            (r#"{"s":"","l":[],"n":1}"#, None),
            (r#"{"x":1}"#, Some("t: there is no argument `x`; the arguments are `l`, `n`, `s`")),
        ] {
            let (id, arguments) = (CallId::new("1"), Json::trusted(json));
            let call = ToolCall { id, name: "t".into(), arguments, malformed: None, provider_fields: None };
            let refused = Arguments::check(&call, &spec).err().map(|error| error.to_string());
            assert_eq!(refused.as_deref(), problem, "{json}");
        }
    }

    fn arguments(json: &str) -> Arguments {
        let call = ToolCall::new(CallId::new("1"), "t".into(), Json::trusted(json));
        Arguments::parse(&call).unwrap()
    }

    #[test]
    fn numbers_and_booleans_are_accepted_as_models_write_them() {
        for json in [r#"{"n":10}"#, r#"{"n":10.0}"#, r#"{"n":"10"}"#] {
            assert_eq!(arguments(json).optional_number("n", 0..=10), Ok(Some(10)), "{json}");
        }
        for json in [r#"{"b":true}"#, r#"{"b":"true"}"#] {
            assert_eq!(arguments(json).optional_bool("b"), Ok(Some(true)), "{json}");
        }
        for json in ["{}", r#"{"n":null}"#] {
            assert_eq!(arguments(json).optional_number("n", 0..=10), Ok(None), "{json}");
        }
    }

    #[test]
    fn an_error_names_the_tool_the_field_and_what_is_expected() {
        let error = |result: Result<_, ArgumentError>| result.map(|_: u64| ()).unwrap_err().to_string();
        let number = |json| error(arguments(json).optional_number("n", 1..=9).map(Option::unwrap_or_default));
        for json in
            [r#"{"n":0}"#, r#"{"n":10}"#, r#"{"n":1.5}"#, r#"{"n":-1}"#, r#"{"n":"x"}"#, r#"{"n":1e300}"#]
        {
            assert_eq!(number(json), "t: `n` must be a whole number from 1 to 9", "{json}");
        }
        assert_eq!(number(r#"{"n":[]}"#), "t: `n` must be a whole number, not a list");
        let text = |json| error(arguments(json).nonempty_text("s").map(|_| 0));
        assert_eq!(text("{}"), "t: `s` is missing; it must be a string");
        assert_eq!(text(r#"{"s":1}"#), "t: `s` must be a string, not a number");
        assert_eq!(text(r#"{"s":" "}"#), "t: `s` is empty");
        assert_eq!(text(r#"{"s":"a\u0000"}"#), "t: `s` contains a NUL character at byte 1");
    }
}
