//! Deserializes typed settings from a tree, and reports invalid values with their positions.

use std::cell::RefCell;
use std::fmt;

use serde::de::value::{BorrowedStrDeserializer, StrDeserializer};
use serde::de::{
    self, Deserialize, DeserializeSeed, Deserializer, Expected, IntoDeserializer, MapAccess, SeqAccess,
    Unexpected, Visitor,
};
use serde::forward_to_deserialize_any;

use super::nearest::nearest;
use super::node::{Field, Node, Object, Origin, Value};
use super::sourced;

/// A value with the wrong type or range for its key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InvalidValue {
    /// The position of the value in its file.
    pub origin: Option<Origin>,
    /// Its key, such as `model.maxRetries`.
    pub path: String,
    /// What was expected and what was found.
    pub problem: String,
}

/// A key that no setting has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnknownKey {
    /// The position of the key in its file.
    pub origin: Origin,
    /// The key, such as `model.nmae`.
    pub path: String,
    /// A similar known key.
    pub nearest: Option<String>,
}

/// Deserializes a `T` and collects unknown keys.
pub fn read<'a, T: Deserialize<'a>>(node: &'a Node) -> Result<(T, Vec<UnknownKey>), InvalidValue> {
    let unknown = RefCell::new(Vec::new());
    let value = T::deserialize(Reader { node, path: None, unknown: &unknown })?;
    Ok((value, unknown.into_inner()))
}

/// The keys above a value.
#[derive(Clone, Copy)]
struct Path<'p> {
    above: Option<&'p Path<'p>>,
    key: &'p str,
}

impl fmt::Display for Path<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.above {
            Some(above) if self.key.starts_with('[') => write!(f, "{above}{}", self.key),
            Some(above) => write!(f, "{above}.{}", self.key),
            None => f.write_str(self.key),
        }
    }
}

struct Reader<'a, 'p> {
    node: &'a Node,
    path: Option<&'p Path<'p>>,
    unknown: &'p RefCell<Vec<UnknownKey>>,
}

impl<'a, 'p> Reader<'a, 'p> {
    fn placed<T>(&self, result: Result<T, InvalidValue>) -> Result<T, InvalidValue> {
        result.map_err(|invalid| invalid.at(self.node, self.path))
    }

    fn fields(&self, object: &'a Object, known: Option<&'static [&'static str]>) -> Fields<'a, 'p> {
        let mut fields: Vec<&Field> =
            object.0.iter().filter(|field| field.node.value != Value::Null).collect();
        if let Some(known) = known {
            fields.retain(|field| known.contains(&field.key.as_str()) || self.is_unknown(field, known));
        }
        Fields { rest: fields.into_iter(), at: None, path: self.path, unknown: self.unknown }
    }

    /// Records an unknown key; its value is skipped.
    fn is_unknown(&self, field: &Field, known: &[&str]) -> bool {
        let path = |key: &str| Path { above: self.path, key }.to_string();
        // Editors read `$schema`; keys like `//` are comments in plain JSON.
        if !field.key.starts_with(['$', '/']) {
            self.unknown.borrow_mut().push(UnknownKey {
                origin: field.origin.clone(),
                path: path(&field.key),
                nearest: nearest(&field.key, known.iter().copied()).map(path),
            });
        }
        false
    }
}

impl<'a> Deserializer<'a> for Reader<'a, '_> {
    type Error = InvalidValue;

    fn deserialize_any<V: Visitor<'a>>(self, visitor: V) -> Result<V::Value, InvalidValue> {
        let result = match &self.node.value {
            Value::Null => visitor.visit_unit(),
            Value::Bool(value) => visitor.visit_bool(*value),
            Value::Number(number) => match (number.as_u64(), number.as_i64(), number.as_f64()) {
                (Some(number), ..) => visitor.visit_u64(number),
                (None, Some(number), _) => visitor.visit_i64(number),
                (None, None, number) => visitor.visit_f64(number.unwrap_or(f64::NAN)),
            },
            Value::Text(text) => visitor.visit_borrowed_str(text),
            Value::List(list) => visitor.visit_seq(Items {
                rest: list.iter().enumerate(),
                path: self.path,
                unknown: self.unknown,
            }),
            Value::Object(object) => visitor.visit_map(self.fields(object, None)),
        };
        self.placed(result)
    }

    fn deserialize_option<V: Visitor<'a>>(self, visitor: V) -> Result<V::Value, InvalidValue> {
        match self.node.value {
            Value::Null => visitor.visit_none(),
            _ => visitor.visit_some(self),
        }
    }

    fn deserialize_newtype_struct<V: Visitor<'a>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, InvalidValue> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_struct<V: Visitor<'a>>(
        self,
        name: &'static str,
        known: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, InvalidValue> {
        if name == sourced::NAME {
            return visitor.visit_map(WithOrigin { reader: Some(self), origin: None });
        }
        match &self.node.value {
            Value::Object(object) => {
                let result = visitor.visit_map(self.fields(object, Some(known)));
                self.placed(result)
            }
            // Serde would accept a list as the struct's fields in order, which is never intended.
            Value::List(_) => self.placed(Err(de::Error::invalid_type(Unexpected::Seq, &visitor))),
            _ => self.deserialize_any(visitor),
        }
    }

    fn deserialize_enum<V: Visitor<'a>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, InvalidValue> {
        let result = match &self.node.value {
            Value::Text(text) => {
                let word: StrDeserializer<'_, InvalidValue> = text.as_str().into_deserializer();
                visitor.visit_enum(word)
            }
            other => Err(de::Error::invalid_type(unexpected(other), &"a text")),
        };
        self.placed(result)
    }

    forward_to_deserialize_any! {
        <V: Visitor<'a>>
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit unit_struct seq tuple
        tuple_struct map identifier ignored_any
    }
}

struct Fields<'a, 'p> {
    rest: std::vec::IntoIter<&'a Field>,
    at: Option<&'a Field>,
    path: Option<&'p Path<'p>>,
    unknown: &'p RefCell<Vec<UnknownKey>>,
}

impl<'a> MapAccess<'a> for Fields<'a, '_> {
    type Error = InvalidValue;

    fn next_key_seed<K: DeserializeSeed<'a>>(&mut self, seed: K) -> Result<Option<K::Value>, InvalidValue> {
        self.at = self.rest.next();
        let Some(field) = self.at else { return Ok(None) };
        seed.deserialize(BorrowedStrDeserializer::new(&field.key)).map(Some)
    }

    fn next_value_seed<V: DeserializeSeed<'a>>(&mut self, seed: V) -> Result<V::Value, InvalidValue> {
        let Some(field) = self.at.take() else { return Err(de::Error::custom("a value without a key")) };
        let path = Path { above: self.path, key: &field.key };
        let value = seed.deserialize(Reader { node: &field.node, path: Some(&path), unknown: self.unknown });
        // A value of the right type may still be rejected by its own validation.
        value.map_err(|invalid| invalid.at(&field.node, Some(&path)))
    }
}

struct Items<'a, 'p> {
    rest: std::iter::Enumerate<std::slice::Iter<'a, Node>>,
    path: Option<&'p Path<'p>>,
    unknown: &'p RefCell<Vec<UnknownKey>>,
}

impl<'a> SeqAccess<'a> for Items<'a, '_> {
    type Error = InvalidValue;

    fn next_element_seed<T: DeserializeSeed<'a>>(
        &mut self,
        seed: T,
    ) -> Result<Option<T::Value>, InvalidValue> {
        let Some((place, node)) = self.rest.next() else { return Ok(None) };
        let key = format!("[{place}]");
        let path = Path { above: self.path, key: &key };
        let value = seed.deserialize(Reader { node, path: Some(&path), unknown: self.unknown });
        value.map(Some).map_err(|invalid| invalid.at(node, Some(&path)))
    }
}

/// Deserializes a value together with its position.
struct WithOrigin<'a, 'p> {
    reader: Option<Reader<'a, 'p>>,
    origin: Option<String>,
}

impl<'a> MapAccess<'a> for WithOrigin<'a, '_> {
    type Error = InvalidValue;

    fn next_key_seed<K: DeserializeSeed<'a>>(&mut self, seed: K) -> Result<Option<K::Value>, InvalidValue> {
        let key = match (&self.reader, &self.origin) {
            (Some(_), _) => sourced::VALUE,
            (None, Some(_)) => sourced::ORIGIN,
            (None, None) => return Ok(None),
        };
        seed.deserialize(BorrowedStrDeserializer::new(key)).map(Some)
    }

    fn next_value_seed<V: DeserializeSeed<'a>>(&mut self, seed: V) -> Result<V::Value, InvalidValue> {
        if let Some(reader) = self.reader.take() {
            self.origin = Some(reader.node.origin.to_string());
            return seed.deserialize(reader);
        }
        seed.deserialize(self.origin.take().unwrap_or_default().into_deserializer())
    }
}

fn unexpected(value: &Value) -> Unexpected<'_> {
    match value {
        Value::Null => Unexpected::Unit,
        Value::Bool(value) => Unexpected::Bool(*value),
        Value::Number(number) => Unexpected::Float(number.as_f64().unwrap_or(f64::NAN)),
        Value::Text(text) => Unexpected::Str(text),
        Value::List(_) => Unexpected::Seq,
        Value::Object(_) => Unexpected::Map,
    }
}

impl InvalidValue {
    fn new(problem: String) -> Self {
        Self { origin: None, path: String::new(), problem }
    }

    /// Adds the position of the invalid value, unless it is set already.
    fn at(mut self, node: &Node, path: Option<&Path<'_>>) -> Self {
        if self.origin.is_none() {
            self.origin = Some(node.origin.clone());
            self.path = path.map(Path::to_string).unwrap_or_default();
        }
        self
    }
}

impl de::Error for InvalidValue {
    fn custom<T: fmt::Display>(message: T) -> Self {
        Self::new(message.to_string())
    }

    fn invalid_type(found: Unexpected<'_>, expected: &dyn Expected) -> Self {
        Self::new(format!(
            "expected {}, found {}",
            expected_words(&expected.to_string()),
            found_words(&found)
        ))
    }

    fn invalid_value(found: Unexpected<'_>, expected: &dyn Expected) -> Self {
        Self::invalid_type(found, expected)
    }

    fn unknown_variant(word: &str, expected: &'static [&'static str]) -> Self {
        let words: Vec<String> = expected.iter().map(|word| format!("\"{word}\"")).collect();
        Self::new(format!("expected {}, found {}", words.join(" or "), found_words(&Unexpected::Str(word))))
    }

    fn missing_field(field: &'static str) -> Self {
        Self::new(format!("\"{field}\" is missing here"))
    }
}

impl fmt::Display for InvalidValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.problem)
    }
}

impl std::error::Error for InvalidValue {}

/// Serde's description of the expected type, in terms of JSON instead of Rust.
fn expected_words(expected: &str) -> &str {
    match expected {
        "a string" => "a text",
        "a boolean" => "true or false",
        "u8" | "u16" | "u32" | "u64" | "usize" => "a whole number, not negative",
        "i8" | "i16" | "i32" | "i64" | "isize" => "a whole number",
        "a nonzero u64" => "a whole number above 0",
        "f32" | "f64" => "a number",
        "a sequence" => "a list",
        "a map" => "an object",
        other if other.starts_with("struct ") => "an object",
        other => other,
    }
}

/// The longest text that an error shows, in bytes.
const MAX_SHOWN: usize = 24;

fn found_words(found: &Unexpected<'_>) -> String {
    match found {
        Unexpected::Bool(value) => value.to_string(),
        Unexpected::Unsigned(number) => number.to_string(),
        Unexpected::Signed(number) => number.to_string(),
        Unexpected::Float(number) => number.to_string(),
        Unexpected::Str(text) => {
            // A longer text may be a key or a password.
            let is_word =
                text.len() <= MAX_SHOWN && text.chars().all(|c| c.is_ascii_alphabetic() || "-_ ".contains(c));
            if is_word || text.len() <= MAX_SHOWN / 3 {
                format!("the text \"{}\"", text.escape_debug())
            } else {
                format!("a text of {} characters", text.chars().count())
            }
        }
        Unexpected::Unit => "null".to_owned(),
        Unexpected::Seq => "a list".to_owned(),
        Unexpected::Map => "an object".to_owned(),
        other => other.to_string(),
    }
}
