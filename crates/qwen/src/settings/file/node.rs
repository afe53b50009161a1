//! Settings as a tree in which every value has its source position.

use std::fmt;
use std::sync::Arc;

use serde_json::Number;

/// The sources of settings, from the lowest to the highest precedence.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Layer {
    /// The default values of this program.
    BuiltIn,
    /// The administrator's defaults, which users can change.
    SystemDefaults,
    /// The user's own settings file.
    User,
    /// The project's settings, if its folder is trusted.
    Workspace,
    /// The administrator's overrides, which users cannot change.
    System,
    /// Environment variables of this process.
    Environment,
    /// The files and texts of `--settings-profile` and `--settings`.
    Given,
    /// Individual flags of the command line.
    Flag,
}

impl Layer {
    /// The name shown to users.
    pub fn name(self) -> &'static str {
        match self {
            Self::BuiltIn => "built-in",
            Self::SystemDefaults => "system defaults",
            Self::User => "user",
            Self::Workspace => "workspace",
            Self::System => "system",
            Self::Environment => "environment",
            Self::Given => "--settings",
            Self::Flag => "flag",
        }
    }
}

/// A file, a variable or a flag.
#[derive(Debug, PartialEq, Eq)]
pub struct Source {
    pub layer: Layer,
    /// The path, or the name of the variable or flag.
    pub name: Box<str>,
}

/// The position of a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Origin {
    /// The file, variable or flag.
    pub source: Arc<Source>,
    /// The line, from 1; 0 where there are no lines.
    pub line: u32,
    /// The column, from 1, in characters.
    pub column: u32,
}

impl Origin {
    /// A position in a source without lines.
    pub fn new(layer: Layer, name: impl Into<Box<str>>) -> Self {
        Self { source: Arc::new(Source { layer, name: name.into() }), line: 0, column: 0 }
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            0 => f.write_str(&self.source.name),
            line => write!(f, "{}:{line}", self.source.name),
        }
    }
}

/// A value and its position.
#[derive(Debug, Clone, PartialEq)]
pub struct Node {
    pub origin: Origin,
    pub value: Value,
}

/// A JSON value whose parts have positions.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    Null,
    Bool(bool),
    Number(Number),
    Text(String),
    List(Vec<Node>),
    Object(Object),
}

/// The fields of an object, in the order in which they were written.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Object(pub Vec<Field>);

/// A field of an object.
#[derive(Debug, Clone, PartialEq)]
pub struct Field {
    pub key: String,
    /// The position of the key.
    pub origin: Origin,
    pub node: Node,
}

impl Object {
    /// The value of a key.
    pub fn get(&self, key: &str) -> Option<&Node> {
        self.0.iter().find(|field| field.key == key).map(|field| &field.node)
    }

    /// The value of a key.
    pub fn get_mut(&mut self, key: &str) -> Option<&mut Node> {
        self.0.iter_mut().find(|field| field.key == key).map(|field| &mut field.node)
    }

    pub fn remove(&mut self, key: &str) -> Option<Field> {
        let place = self.0.iter().position(|field| field.key == key)?;
        Some(self.0.remove(place))
    }
}

impl Node {
    pub fn empty(origin: Origin) -> Self {
        Self { origin, value: Value::Object(Object::default()) }
    }

    pub fn text(origin: Origin, text: impl Into<String>) -> Self {
        Self { origin, value: Value::Text(text.into()) }
    }

    /// Converts plain JSON; every part gets the position `origin`.
    pub fn of_json(origin: &Origin, json: serde_json::Value) -> Self {
        use serde_json::Value as Json;
        let value = match json {
            Json::Null => Value::Null,
            Json::Bool(value) => Value::Bool(value),
            Json::Number(number) => Value::Number(number),
            Json::String(text) => Value::Text(text),
            Json::Array(list) => {
                Value::List(list.into_iter().map(|json| Self::of_json(origin, json)).collect())
            }
            Json::Object(fields) => Value::Object(Object(
                fields
                    .into_iter()
                    .map(|(key, json)| Field {
                        key,
                        origin: origin.clone(),
                        node: Self::of_json(origin, json),
                    })
                    .collect(),
            )),
        };
        Self { origin: origin.clone(), value }
    }

    /// Converts to plain JSON, without positions.
    pub fn to_json(&self) -> serde_json::Value {
        use serde_json::Value as Json;
        match &self.value {
            Value::Null => Json::Null,
            Value::Bool(value) => Json::Bool(*value),
            Value::Number(number) => Json::Number(number.clone()),
            Value::Text(text) => Json::String(text.clone()),
            Value::List(list) => Json::Array(list.iter().map(Self::to_json).collect()),
            Value::Object(Object(fields)) => {
                Json::Object(fields.iter().map(|field| (field.key.clone(), field.node.to_json())).collect())
            }
        }
    }

    /// The fields, if this is an object.
    pub fn object(&self) -> Option<&Object> {
        match &self.value {
            Value::Object(object) => Some(object),
            _ => None,
        }
    }

    /// The fields, if this is an object.
    pub fn object_mut(&mut self) -> Option<&mut Object> {
        match &mut self.value {
            Value::Object(object) => Some(object),
            _ => None,
        }
    }

    /// The value at a path such as `model.name`.
    pub fn at(&self, path: &str) -> Option<&Node> {
        path.split('.').try_fold(self, |node, key| node.object()?.get(key))
    }

    /// Removes the field at a path.
    pub fn remove(&mut self, path: &str) -> Option<Field> {
        match path.split_once('.') {
            None => self.object_mut()?.remove(path),
            Some((key, rest)) => self.object_mut()?.get_mut(key)?.remove(rest),
        }
    }

    /// Sets the value at a path, creates missing objects, and replaces parents that are not objects.
    pub fn put(&mut self, path: &str, origin: &Origin, node: Node) {
        let (key, rest) = match path.split_once('.') {
            None => (path, None),
            Some((key, rest)) => (key, Some(rest)),
        };
        if self.object().is_none() {
            *self = Self::empty(origin.clone());
        }
        let Some(object) = self.object_mut() else { return };
        let place = object.0.iter().position(|field| field.key == key).unwrap_or_else(|| {
            let node = Self::empty(origin.clone());
            object.0.push(Field { key: key.to_owned(), origin: origin.clone(), node });
            object.0.len() - 1
        });
        match rest {
            None => object.0[place].node = node,
            Some(rest) => object.0[place].node.put(rest, origin, node),
        }
    }
}
