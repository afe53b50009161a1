//! JSON Schema draft 2020-12, as far as it describes data: one implementation for `--json-schema`, host tools
//! and MCP tools.
//!
//! [`Schema::parse`] refuses a schema that uses a keyword we do not enforce, so that no caller relies on a
//! promise that is not kept. [`Schema::parse_supported`] is for schemas that others write: it enforces what
//! is supported and lists the rest, which the caller reports when the schema arrives.
//!
//! Invariant: no I/O; a reference never leaves the schema.

mod alternatives;
mod equality;
mod keywords;
mod pattern;
mod reader;
mod reference;
mod validator;

use std::collections::HashMap;

use regex::Regex;
use serde_json::Value;

/// How deep schemas may be nested, references followed.
const MAX_DEPTH: usize = 256;

/// Why a schema cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SchemaError {
    /// It is not JSON.
    #[error("it is not JSON: {0}")]
    NotJson(String),
    /// It is JSON, but neither an object nor a boolean.
    #[error("it must be a JSON object")]
    NotAnObject,
    /// A keyword has a value that it cannot have.
    #[error("`#{pointer}` must be {expected}")]
    Malformed {
        /// A JSON pointer to the keyword.
        pointer: String,
        /// What the keyword needs.
        expected: &'static str,
    },
    /// A keyword that no draft defines, perhaps a misspelt one. The standard has it ignored.
    #[error("`#{pointer}`: the keyword `{keyword}` is not supported")]
    UnknownKeyword {
        /// A JSON pointer to the keyword.
        pointer: String,
        /// The keyword that is not supported.
        keyword: String,
    },
    /// A keyword or its value is valid, but not enforced here.
    #[error("`#{pointer}`: {reason}")]
    Unsupported {
        /// A JSON pointer to the keyword.
        pointer: String,
        /// What is not supported about it.
        reason: String,
    },
}

/// A schema that values can be checked against.
#[derive(Debug)]
pub struct Schema {
    root: Value,
    /// Compiled `pattern` and `patternProperties` expressions by their source.
    patterns: HashMap<String, Regex>,
}

impl Schema {
    /// Parses a schema whose every keyword is enforced.
    pub fn parse(text: &str) -> Result<Self, SchemaError> {
        let (schema, mut problems) = Self::read(text)?;
        if problems.is_empty() { Ok(schema) } else { Err(problems.swap_remove(0)) }
    }

    /// Parses a schema and returns it with what in it is not enforced. Malformed keywords are listed too: a
    /// value is never refused because of them. Keywords that no draft defines are annotations, and not
    /// listed.
    pub fn parse_supported(text: &str) -> Result<(Self, Vec<SchemaError>), SchemaError> {
        let (schema, mut problems) = Self::read(text)?;
        problems.retain(|problem| !matches!(problem, SchemaError::UnknownKeyword { .. }));
        Ok((schema, problems))
    }

    fn read(text: &str) -> Result<(Self, Vec<SchemaError>), SchemaError> {
        let root: Value =
            serde_json::from_str(text).map_err(|error| SchemaError::NotJson(error.to_string()))?;
        if !root.is_object() {
            return Err(SchemaError::NotAnObject);
        }
        let (patterns, unsupported) = reader::read(&root);
        Ok((Self { root, patterns }, unsupported))
    }

    /// The schema as JSON.
    pub fn value(&self) -> &Value {
        &self.root
    }

    /// What is wrong with `value`, each problem one sentence that names its place; empty when the value fits.
    /// `root` is what a sentence calls the value itself, such as "the arguments".
    pub fn problems(&self, value: &Value, root: &str) -> Vec<String> {
        validator::problems(self, value, root)
    }
}
