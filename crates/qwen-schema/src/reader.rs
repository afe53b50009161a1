//! Reading a schema: compiles its patterns and lists what is malformed or not enforced.

use std::collections::HashMap;

use regex::Regex;
use serde_json::{Map, Value};

use crate::keywords::{ANNOTATIONS, TYPES};
use crate::{MAX_DEPTH, SchemaError, pattern, reference};

/// How many problems of one schema are listed.
const MAX_PROBLEMS: usize = 16;

/// The compiled patterns of `root`, and what in it is not enforced.
pub(crate) fn read(root: &Value) -> (HashMap<String, Regex>, Vec<SchemaError>) {
    let mut reader =
        Reader { root, patterns: HashMap::new(), problems: Vec::new(), pointer: String::new(), depth: 0 };
    reader.schema(root);
    (reader.patterns, reader.problems)
}

struct Reader<'a> {
    root: &'a Value,
    patterns: HashMap<String, Regex>,
    problems: Vec<SchemaError>,
    /// Where the reader is.
    pointer: String,
    depth: usize,
}

impl Reader<'_> {
    fn schema(&mut self, schema: &Value) {
        let keywords = match schema {
            Value::Bool(_) => return,
            Value::Object(keywords) => keywords,
            _ => return self.malformed("an object, true or false"),
        };
        if self.depth >= MAX_DEPTH {
            return self.unsupported("the schema is nested too deeply");
        }
        self.depth += 1;
        for (keyword, value) in keywords {
            self.at_member(keyword, |reader| reader.keyword(keyword, value));
        }
        self.depth -= 1;
    }

    fn keyword(&mut self, keyword: &str, value: &Value) {
        match keyword {
            "type" => self.need(is_types(value), "the name of a type, or several"),
            "enum" => self.need(value.is_array(), "an array"),
            "const" => {}
            "minimum" | "maximum" | "exclusiveMinimum" | "exclusiveMaximum" => {
                self.need(value.is_number(), "a number");
            }
            "multipleOf" => self.need(value.as_f64().is_some_and(|n| n > 0.0), "a number above 0"),
            "minLength" | "maxLength" | "minItems" | "maxItems" | "minProperties" | "maxProperties"
            | "minContains" | "maxContains" => self.need(count(value).is_some(), "a count"),
            "uniqueItems" => self.need(value.is_boolean(), "true or false"),
            "required" => self.need(is_names(value), "an array of names"),
            "pattern" => match value {
                Value::String(pattern) => self.pattern(pattern),
                _ => self.malformed("a regular expression"),
            },
            "properties" | "dependentSchemas" | "$defs" | "definitions" => self.read_named_schemas(value),
            "patternProperties" => {
                for pattern in value.as_object().into_iter().flat_map(Map::keys) {
                    self.pattern(pattern);
                }
                self.read_named_schemas(value);
            }
            "dependentRequired" => {
                let fits = value.as_object().is_some_and(|lists| lists.values().all(is_names));
                self.need(fits, "an object of arrays of names");
            }
            // Draft 7: either of the two keywords above, by the value's type.
            "dependencies" => match value {
                Value::Object(entries) => {
                    for (name, entry) in entries.iter().filter(|(_, entry)| !is_names(entry)) {
                        self.at_member(name, |reader| reader.schema(entry));
                    }
                }
                _ => self.malformed("an object"),
            },
            "additionalProperties"
            | "propertyNames"
            | "contains"
            | "not"
            | "if"
            | "then"
            | "else"
            | "additionalItems" => self.schema(value),
            // Draft 7 writes the schemas of the first items here.
            "items" if value.is_array() => self.list(value),
            "items" => self.schema(value),
            "allOf" | "anyOf" | "oneOf" | "prefixItems" => self.list(value),
            "$ref" => self.reference(value),
            "$schema" => {
                let known = value.as_str().is_some_and(|url| url.contains("//json-schema.org/"));
                if !known {
                    self.unsupported("only the standard drafts of `$schema` are supported");
                }
            }
            "$id" if self.depth == 1 && value.is_string() => {}
            "$id" => self.unsupported("`$id` is supported at the root only"),
            _ if ANNOTATIONS.contains(&keyword) || keyword.starts_with("x-") => {}
            "unevaluatedProperties"
            | "unevaluatedItems"
            | "$dynamicRef"
            | "$dynamicAnchor"
            | "$recursiveRef"
            | "$recursiveAnchor"
            | "$vocabulary" => {
                self.unsupported(format!("the keyword `{keyword}` is not supported"));
            }
            _ => {
                let (pointer, keyword) = (self.pointer.clone(), keyword.to_owned());
                self.problem(SchemaError::UnknownKeyword { pointer, keyword });
            }
        }
    }

    fn reference(&mut self, value: &Value) {
        let Some(reference) = value.as_str() else { return self.malformed("a reference") };
        if reference::resolve(self.root, reference).is_none() {
            self.unsupported(format!("'{reference}' does not name a schema within this one"));
        }
    }

    fn list(&mut self, value: &Value) {
        let Some(schemas) = value.as_array().filter(|list| !list.is_empty()) else {
            return self.malformed("an array of schemas, not empty");
        };
        for (n, schema) in schemas.iter().enumerate() {
            self.at_member(&n.to_string(), |reader| reader.schema(schema));
        }
    }

    fn read_named_schemas(&mut self, value: &Value) {
        let Some(schemas) = value.as_object() else { return self.malformed("an object of schemas") };
        for (name, schema) in schemas {
            self.at_member(name, |reader| reader.schema(schema));
        }
    }

    fn pattern(&mut self, source: &str) {
        if self.patterns.contains_key(source) {
            return;
        }
        match pattern::compile(source) {
            Ok(regex) => {
                self.patterns.insert(source.to_owned(), regex);
            }
            Err(reason) => self.unsupported(reason),
        }
    }

    fn at_member(&mut self, name: &str, read: impl FnOnce(&mut Self)) {
        let length = self.pointer.len();
        self.pointer.extend(["/", name]);
        read(self);
        self.pointer.truncate(length);
    }

    fn need(&mut self, fits: bool, expected: &'static str) {
        if !fits {
            self.malformed(expected);
        }
    }

    fn malformed(&mut self, expected: &'static str) {
        self.problem(SchemaError::Malformed { pointer: self.pointer.clone(), expected });
    }

    fn unsupported(&mut self, reason: impl Into<String>) {
        self.problem(SchemaError::Unsupported { pointer: self.pointer.clone(), reason: reason.into() });
    }

    fn problem(&mut self, problem: SchemaError) {
        if self.problems.len() < MAX_PROBLEMS {
            self.problems.push(problem);
        }
    }
}

pub(crate) fn is_types(value: &Value) -> bool {
    let known = |name: &Value| name.as_str().is_some_and(|name| TYPES.contains(&name));
    match value {
        Value::Array(names) => !names.is_empty() && names.iter().all(known),
        name => known(name),
    }
}

pub(crate) fn is_names(value: &Value) -> bool {
    value.as_array().is_some_and(|names| names.iter().all(Value::is_string))
}

/// A count, which may be written as `3.0`.
pub(crate) fn count(value: &Value) -> Option<u64> {
    value.as_u64().or_else(|| {
        let number = value.as_f64().filter(|n| n.fract() == 0.0 && (0.0..9e15).contains(n))?;
        format!("{number:.0}").parse().ok()
    })
}
