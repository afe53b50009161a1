//! Reads JSON field by field, so that every error can name the field and the expected value.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use qwen_events::{ErrorInfo, Json};
use serde::Deserialize;
use serde::de::{MapAccess, Visitor};
use serde_json::value::RawValue;

use super::error::{missing, refuse_at};

type Result<T> = std::result::Result<T, ErrorInfo>;

/// An unparsed JSON value and its path.
#[derive(Debug, Clone)]
pub(super) struct Value<'a> {
    text: &'a str,
    path: String,
}

/// One level of a JSON object.
#[derive(Debug, Clone)]
pub(super) struct Object<'a> {
    fields: Vec<(Cow<'a, str>, &'a str)>,
    path: String,
}

/// The type of a JSON value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Null,
    Bool,
    Number,
    String,
    Array,
    Object,
}

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Bool => "a boolean",
            Self::Number => "a number",
            Self::String => "a string",
            Self::Array => "an array",
            Self::Object => "an object",
        }
    }
}

/// A string that borrows from the line if it has no escapes.
#[derive(Deserialize)]
struct Text<'a>(#[serde(borrow)] Cow<'a, str>);

/// The fields of an object, in order.
struct Fields<'a>(Vec<(Cow<'a, str>, &'a str)>);

impl<'de: 'a, 'a> Deserialize<'de> for Fields<'a> {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        struct Read;
        impl<'de> Visitor<'de> for Read {
            type Value = Vec<(Cow<'de, str>, &'de str)>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> std::result::Result<Self::Value, A::Error> {
                let mut fields = Vec::new();
                while let Some((Text(key), value)) = map.next_entry::<Text<'de>, &'de RawValue>()? {
                    fields.push((key, value.get()));
                }
                Ok(fields)
            }
        }
        deserializer.deserialize_map(Read).map(Fields)
    }
}

impl<'a> Value<'a> {
    /// A complete JSON text at `path`.
    pub(super) fn new(text: &'a str, path: impl Into<String>) -> Self {
        Self { text: text.trim_matches([' ', '\t', '\r', '\n']), path: path.into() }
    }

    pub(super) fn path(&self) -> &str {
        &self.path
    }

    pub(super) fn kind(&self) -> Kind {
        match self.text.as_bytes().first() {
            Some(b'{') => Kind::Object,
            Some(b'[') => Kind::Array,
            Some(b'"') => Kind::String,
            Some(b't' | b'f') => Kind::Bool,
            Some(b'n') | None => Kind::Null,
            Some(_) => Kind::Number,
        }
    }

    /// The error that the value is not `expected`.
    pub(super) fn type_error(&self, expected: &str) -> ErrorInfo {
        let found = self.kind().name();
        let message = if self.path.is_empty() {
            format!("this is {found}; it must be {expected}")
        } else {
            format!("`{}` is {found}; it must be {expected}", self.path)
        };
        refuse_at("wrong_type", &self.path, message)
    }

    pub(super) fn text(&self) -> Result<Cow<'a, str>> {
        self.text_or("a string")
    }

    /// The text; `expected` describes the alternatives in the error.
    pub(super) fn text_or(&self, expected: &str) -> Result<Cow<'a, str>> {
        if self.kind() != Kind::String {
            return Err(self.type_error(expected));
        }
        serde_json::from_str::<Text<'a>>(self.text).map(|text| text.0).map_err(|_| self.type_error(expected))
    }

    pub(super) fn string(&self) -> Result<Arc<str>> {
        self.text().map(Arc::from)
    }

    pub(super) fn bool(&self) -> Result<bool> {
        if self.kind() == Kind::Bool {
            Ok(self.text == "true")
        } else {
            Err(self.type_error("true or false"))
        }
    }

    /// A number, clamped to the representable range.
    pub(super) fn number(&self) -> Result<f64> {
        let number: f64 = match self.kind() {
            Kind::Number => self.text.parse().map_err(|_| self.type_error("a number"))?,
            _ => return Err(self.type_error("a number")),
        };
        Ok(number.clamp(f64::MIN, f64::MAX))
    }

    /// An unsigned integer; larger numbers are clamped to the maximum.
    pub(super) fn count(&self) -> Result<u64> {
        const EXPECTED: &str = "a whole number that is not negative";
        if let Ok(count) = self.text.parse::<u64>() {
            return Ok(count);
        }
        let number = self.number().map_err(|_| self.type_error(EXPECTED))?;
        if number < 0.0 || number.fract() != 0.0 {
            return Err(refuse_at(
                "wrong_type",
                &self.path,
                format!("`{}` is {}; it must be {EXPECTED}", self.path, self.text),
            ));
        }
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "whole and positive; saturates"
        )]
        let count = number as u64;
        Ok(count)
    }

    pub(super) fn integer(&self) -> Result<i64> {
        if let Ok(integer) = self.text.parse::<i64>() {
            return Ok(integer);
        }
        let number = self.number().map_err(|_| self.type_error("a whole number"))?;
        #[expect(clippy::cast_possible_truncation, reason = "saturates")]
        let integer = number as i64;
        Ok(integer)
    }

    pub(super) fn array(&self) -> Result<Vec<Value<'a>>> {
        self.array_or("an array")
    }

    /// The items; `expected` describes the alternatives in the error.
    pub(super) fn array_or(&self, expected: &str) -> Result<Vec<Value<'a>>> {
        if self.kind() != Kind::Array {
            return Err(self.type_error(expected));
        }
        let items: Vec<&'a RawValue> =
            serde_json::from_str(self.text).map_err(|_| self.type_error(expected))?;
        let item = |(place, item): (usize, &'a RawValue)| Value {
            text: item.get(),
            path: format!("{}[{place}]", self.path),
        };
        Ok(items.into_iter().enumerate().map(item).collect())
    }

    /// An array of strings.
    pub(super) fn strings(&self) -> Result<Vec<Arc<str>>> {
        self.array_or("an array of strings")?.iter().map(Value::string).collect()
    }

    pub(super) fn object(&self) -> Result<Object<'a>> {
        self.object_or("an object")
    }

    /// The object; `expected` describes the alternatives in the error.
    pub(super) fn object_or(&self, expected: &str) -> Result<Object<'a>> {
        if self.kind() != Kind::Object {
            return Err(self.type_error(expected));
        }
        let Fields(fields) = serde_json::from_str(self.text).map_err(|_| self.type_error(expected))?;
        Ok(Object { fields, path: self.path.clone() })
    }

    /// Returns the value as it was written.
    pub(super) fn json(&self) -> Json {
        Json::trusted(self.text)
    }
}

impl<'a> Object<'a> {
    pub(super) fn path(&self) -> &str {
        &self.path
    }

    /// The path of a field of this object.
    pub(super) fn path_of(&self, name: &str) -> String {
        if self.path.is_empty() { name.to_owned() } else { format!("{}.{name}", self.path) }
    }

    /// A field; null is the same as absent.
    pub(super) fn get(&self, name: &str) -> Option<Value<'a>> {
        self.get_raw(name).filter(|value| value.kind() != Kind::Null)
    }

    /// A field, null included.
    pub(super) fn get_raw(&self, name: &str) -> Option<Value<'a>> {
        let (_, text) = self.fields.iter().find(|(key, _)| key == name)?;
        Some(Value { text, path: self.path_of(name) })
    }

    /// The first of several spellings of a field.
    pub(super) fn any(&self, names: &[&str]) -> Option<Value<'a>> {
        names.iter().find_map(|name| self.get(name))
    }

    /// Returns a required field, or an error that names it.
    pub(super) fn need(&self, name: &str, expected: &str) -> Result<Value<'a>> {
        self.get(name).ok_or_else(|| missing(&self.path_of(name), expected))
    }

    /// A required field with several spellings; the error names the first.
    pub(super) fn need_any(&self, names: &[&str], expected: &str) -> Result<Value<'a>> {
        let name = names.first().copied().unwrap_or_default();
        self.any(names).ok_or_else(|| missing(&self.path_of(name), expected))
    }

    pub(super) fn string(&self, name: &str) -> Result<Option<Arc<str>>> {
        self.get(name).map(|value| value.string()).transpose()
    }

    pub(super) fn bool(&self, name: &str) -> Result<Option<bool>> {
        self.get(name).map(|value| value.bool()).transpose()
    }

    pub(super) fn count(&self, name: &str) -> Result<Option<u64>> {
        self.get(name).map(|value| value.count()).transpose()
    }

    /// Every field, in order.
    pub(super) fn entries(&self) -> impl Iterator<Item = (&str, Value<'a>)> {
        self.fields.iter().map(|(key, text)| (&**key, Value { text, path: self.path_of(key) }))
    }
}
