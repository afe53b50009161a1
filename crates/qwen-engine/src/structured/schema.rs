//! JSON Schemas for answers: the keywords of draft 2020-12 that describe data. A schema that says something we could not
//! hold an answer to is refused, so that nobody relies on a promise that is not kept.

use std::collections::HashMap;

use qwen_events::{ErrorInfo, ErrorKind};
use regex::Regex;
use serde_json::{Map, Value};

/// Keywords that promise nothing about the data.
const ANNOTATIONS: [&str; 21] = [
    "$schema",
    "$id",
    "$comment",
    "$anchor",
    "$defs",
    "definitions",
    "title",
    "description",
    "default",
    "example",
    "examples",
    "deprecated",
    "readOnly",
    "writeOnly",
    "format",
    "contentEncoding",
    "contentMediaType",
    "contentSchema",
    "discriminator",
    "id",
    "$vocabulary",
];

/// The names of types.
const TYPES: [&str; 7] = ["null", "boolean", "object", "array", "number", "integer", "string"];

/// How deep schemas may be nested, references followed.
pub(super) const MOST_DEPTH: usize = 256;

/// A schema that answers can be held to.
#[derive(Debug)]
pub struct Schema {
    pub(super) root: Value,
    pub(super) patterns: HashMap<String, Regex>,
}

impl Schema {
    /// Reads a schema. The error says which keyword, where, cannot be used.
    pub fn parse(text: &str) -> Result<Self, ErrorInfo> {
        let root: Value =
            serde_json::from_str(text).map_err(|error| refused(&format!("it is not JSON: {error}")))?;
        if !root.is_object() {
            return Err(refused("it must be a JSON object"));
        }
        let mut reading = Reading { root: &root, patterns: HashMap::new() };
        reading.schema(&root, &mut String::new()).map_err(|why| refused(&why))?;
        let patterns = reading.patterns;
        Ok(Self { root, patterns })
    }

    /// The schema itself.
    pub fn value(&self) -> &Value {
        &self.root
    }

    /// What a reference points to.
    pub(super) fn target(&self, reference: &str) -> Option<&Value> {
        target(&self.root, reference)
    }
}

/// What a reference within `root` points to.
fn target<'a>(root: &'a Value, reference: &str) -> Option<&'a Value> {
    let pointer = reference.strip_prefix('#')?;
    if pointer.contains('%') {
        // Names in references are encoded like those in addresses.
        return root.pointer(&decoded(pointer)?);
    }
    root.pointer(pointer)
}

fn decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        if byte == b'%' {
            let digits = [rest.next()?, rest.next()?];
            bytes.push(u8::from_str_radix(std::str::from_utf8(&digits).ok()?, 16).ok()?);
        } else {
            bytes.push(byte);
        }
    }
    String::from_utf8(bytes).ok()
}

fn refused(why: &str) -> ErrorInfo {
    let message = format!("the JSON Schema of the answer cannot be used: {why}");
    ErrorInfo::new(ErrorKind::Usage, "invalid_json_schema", message).with_param("json_schema")
}

/// A schema that is being read.
struct Reading<'a> {
    root: &'a Value,
    patterns: HashMap<String, Regex>,
}

impl Reading<'_> {
    fn schema(&mut self, schema: &Value, at: &mut String) -> Result<(), String> {
        let keywords = match schema {
            Value::Bool(_) => return Ok(()),
            Value::Object(keywords) => keywords,
            _ => return Err(format!("`#{at}` must be an object, true or false")),
        };
        for (keyword, value) in keywords {
            let length = at.len();
            at.extend(["/", keyword]);
            self.keyword(keyword, value, at)?;
            at.truncate(length);
        }
        Ok(())
    }

    fn keyword(&mut self, keyword: &str, value: &Value, at: &mut String) -> Result<(), String> {
        match keyword {
            "type" => named_types(value, at),
            "enum" => need(value.is_array(), at, "an array"),
            "const" => Ok(()),
            "minimum" | "maximum" | "exclusiveMinimum" | "exclusiveMaximum" => {
                need(value.is_number(), at, "a number")
            }
            "multipleOf" => need(value.as_f64().is_some_and(|n| n > 0.0), at, "a number above 0"),
            "minLength" | "maxLength" | "minItems" | "maxItems" | "minProperties" | "maxProperties"
            | "minContains" | "maxContains" => need(count(value).is_some(), at, "a count"),
            "uniqueItems" => need(value.is_boolean(), at, "true or false"),
            "required" => need(is_names(value), at, "an array of names"),
            "pattern" => match value {
                Value::String(pattern) => self.pattern(pattern, at),
                _ => Err(wrong(at, "a regular expression")),
            },
            "properties" | "dependentSchemas" | "$defs" | "definitions" => self.named(value, at),
            "patternProperties" => {
                for pattern in value.as_object().into_iter().flat_map(Map::keys) {
                    self.pattern(pattern, at)?;
                }
                self.named(value, at)
            }
            "dependentRequired" => {
                let lists = value.as_object().ok_or_else(|| wrong(at, "an object"))?;
                need(lists.values().all(is_names), at, "an object of arrays of names")
            }
            "additionalProperties" | "propertyNames" | "contains" | "not" | "if" | "then" | "else" => {
                self.schema(value, at)
            }
            "items" if value.is_array() => {
                Err(format!("`#{at}` is an array; the schemas of single items go into `prefixItems`"))
            }
            "items" => self.schema(value, at),
            "allOf" | "anyOf" | "oneOf" | "prefixItems" => {
                let schemas = value.as_array().filter(|list| !list.is_empty());
                let schemas = schemas.ok_or_else(|| wrong(at, "an array of schemas, not empty"))?;
                for (n, schema) in schemas.iter().enumerate() {
                    let length = at.len();
                    at.extend(["/", &n.to_string()]);
                    self.schema(schema, at)?;
                    at.truncate(length);
                }
                Ok(())
            }
            "$ref" => {
                let reference = value.as_str().ok_or_else(|| wrong(at, "a reference"))?;
                match target(self.root, reference) {
                    Some(schema) if schema.is_object() || schema.is_boolean() => Ok(()),
                    _ => Err(format!("`#{at}` points to '{reference}', and there is no such schema in it")),
                }
            }
            _ if ANNOTATIONS.contains(&keyword) || keyword.starts_with("x-") => Ok(()),
            _ => Err(format!("`#{at}`: the keyword `{keyword}` is not supported")),
        }
    }

    fn named(&mut self, value: &Value, at: &mut String) -> Result<(), String> {
        for (name, schema) in value.as_object().ok_or_else(|| wrong(at, "an object of schemas"))? {
            let length = at.len();
            at.extend(["/", name]);
            self.schema(schema, at)?;
            at.truncate(length);
        }
        Ok(())
    }

    fn pattern(&mut self, pattern: &str, at: &str) -> Result<(), String> {
        if !self.patterns.contains_key(pattern) {
            let regex = Regex::new(pattern)
                .map_err(|error| format!("`#{at}`: the pattern {pattern:?} cannot be used: {error}"))?;
            self.patterns.insert(pattern.to_owned(), regex);
        }
        Ok(())
    }
}

fn named_types(value: &Value, at: &str) -> Result<(), String> {
    let known = |name: &Value| name.as_str().is_some_and(|name| TYPES.contains(&name));
    let fits = match value {
        Value::Array(names) => !names.is_empty() && names.iter().all(known),
        name => known(name),
    };
    need(fits, at, "the name of a type, or several")
}

fn is_names(value: &Value) -> bool {
    value.as_array().is_some_and(|names| names.iter().all(Value::is_string))
}

/// A count, which may be written as `3.0`.
pub(super) fn count(value: &Value) -> Option<u64> {
    value.as_u64().or_else(|| {
        let number = value.as_f64().filter(|n| n.fract() == 0.0 && (0.0..9e15).contains(n))?;
        format!("{number:.0}").parse().ok()
    })
}

fn need(fits: bool, at: &str, expected: &str) -> Result<(), String> {
    if fits { Ok(()) } else { Err(wrong(at, expected)) }
}

fn wrong(at: &str, expected: &str) -> String {
    format!("`#{at}` must be {expected}")
}
