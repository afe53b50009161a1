//! Parses JSON with comments and trailing commas, and records lines and columns.

use std::sync::Arc;

use super::node::{Field, Node, Object, Origin, Source, Value};

/// The deepest accepted nesting, which bounds the recursion.
const DEPTH: usize = 64;

/// A syntax error and its position.
#[derive(Debug, PartialEq, Eq)]
pub struct SyntaxError {
    /// The position of the error in its file.
    pub origin: Origin,
    /// The problem, as a clause for an error message.
    pub problem: String,
}

/// Words without quotes that errors show. Others may be secrets.
const COMMON_WORDS: &[&str] = &[
    "true",
    "false",
    "yes",
    "no",
    "on",
    "off",
    "null",
    "none",
    "nil",
    "nan",
    "infinity",
    "undefined",
    "auto",
];

/// Parses a settings file. An empty file is an empty object.
pub fn parse(text: &str, source: &Arc<Source>) -> Result<Node, SyntaxError> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut parser = Parser { text, at: 0, line: 1, line_start: 0, source };
    parser.space()?;
    if parser.peek().is_none() {
        return Ok(Node::empty(parser.origin()));
    }
    let node = parser.value(0)?;
    parser.space()?;
    match parser.peek() {
        None => Ok(node),
        Some(_) => Err(parser.unexpected("the end of the file")),
    }
}

struct Parser<'a> {
    text: &'a str,
    at: usize,
    line: u32,
    line_start: usize,
    source: &'a Arc<Source>,
}

impl Parser<'_> {
    fn origin(&self) -> Origin {
        let column = self.text[self.line_start..self.at].chars().count() + 1;
        Origin {
            source: self.source.clone(),
            line: self.line,
            column: u32::try_from(column).unwrap_or(u32::MAX),
        }
    }

    fn rest(&self) -> &str {
        &self.text[self.at..]
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn error(&self, problem: impl Into<String>) -> SyntaxError {
        SyntaxError { origin: self.origin(), problem: problem.into() }
    }

    fn unexpected(&self, expected: &str) -> SyntaxError {
        match self.rest().chars().next() {
            None => self.error(format!("expected {expected}, but the file ends here")),
            Some(found) if found.is_control() => {
                self.error(format!("expected {expected}, found {}", found.escape_debug()))
            }
            Some(found) => self.error(format!("expected {expected}, found '{found}'")),
        }
    }

    /// Skips white space and comments.
    fn space(&mut self) -> Result<(), SyntaxError> {
        loop {
            match self.peek() {
                Some(b'\n') => {
                    self.at += 1;
                    self.line += 1;
                    self.line_start = self.at;
                }
                Some(b' ' | b'\t' | b'\r') => self.at += 1,
                Some(b'/') if self.rest().starts_with("//") => {
                    self.at += self.rest().find('\n').unwrap_or(self.rest().len());
                }
                Some(b'/') if self.rest().starts_with("/*") => {
                    let Some(length) = self.rest().find("*/") else {
                        return Err(self.error("this comment has no end"));
                    };
                    let comment = &self.text[self.at..self.at + length];
                    let breaks = comment.bytes().filter(|b| *b == b'\n').count();
                    if let Some(last) = comment.rfind('\n') {
                        self.line += u32::try_from(breaks).unwrap_or(u32::MAX);
                        self.line_start = self.at + last + 1;
                    }
                    self.at += length + 2;
                }
                _ => return Ok(()),
            }
        }
    }

    fn value(&mut self, depth: usize) -> Result<Node, SyntaxError> {
        if depth > DEPTH {
            return Err(self.error(format!("this is nested more than {DEPTH} levels deep")));
        }
        let origin = self.origin();
        let value = match self.peek() {
            Some(b'{') => self.object(depth)?,
            Some(b'[') => self.list(depth)?,
            Some(b'"') => Value::Text(self.string()?),
            _ => self.word()?,
        };
        Ok(Node { origin, value })
    }

    fn object(&mut self, depth: usize) -> Result<Value, SyntaxError> {
        self.at += 1;
        let mut fields: Vec<Field> = Vec::new();
        loop {
            self.space()?;
            match self.peek() {
                Some(b'}') => break,
                Some(b'"') => {}
                _ => return Err(self.unexpected("a key in double quotes or '}'")),
            }
            let origin = self.origin();
            let key = self.string()?;
            if let Some(first) = fields.iter().find(|field| field.key == key) {
                let problem =
                    format!("the key \"{key}\" is set twice; it is already in line {}", first.origin.line);
                return Err(SyntaxError { origin, problem });
            }
            self.space()?;
            if self.peek() != Some(b':') {
                return Err(self.unexpected(&format!("':' after the key \"{key}\"")));
            }
            self.at += 1;
            self.space()?;
            let node = self.value(depth + 1)?;
            fields.push(Field { key, origin, node });
            if !self.comma(b'}', "',' or '}'")? {
                break;
            }
        }
        self.at += 1;
        Ok(Value::Object(Object(fields)))
    }

    fn list(&mut self, depth: usize) -> Result<Value, SyntaxError> {
        self.at += 1;
        let mut list = Vec::new();
        loop {
            self.space()?;
            if self.peek() == Some(b']') {
                break;
            }
            list.push(self.value(depth + 1)?);
            if !self.comma(b']', "',' or ']'")? {
                break;
            }
        }
        self.at += 1;
        Ok(Value::List(list))
    }

    /// True if a comma follows; false if `end` does.
    fn comma(&mut self, end: u8, expected: &str) -> Result<bool, SyntaxError> {
        self.space()?;
        match self.peek() {
            Some(b',') => {
                self.at += 1;
                Ok(true)
            }
            Some(byte) if byte == end => Ok(false),
            _ => Err(self.unexpected(expected)),
        }
    }

    fn string(&mut self) -> Result<String, SyntaxError> {
        let bytes = self.text.as_bytes();
        let mut end = self.at + 1;
        loop {
            match bytes.get(end) {
                None | Some(b'\n') => return Err(self.error("this text has no closing quote")),
                Some(b'"') => break,
                Some(b'\\') => end += 2,
                Some(_) => end += 1,
            }
        }
        let text = serde_json::from_str(&self.text[self.at..=end])
            .map_err(|_| self.error("this text has a control character or an unknown escape in it"))?;
        self.at = end + 1;
        Ok(text)
    }

    fn word(&mut self) -> Result<Value, SyntaxError> {
        let length = self.rest().find(|c: char| !c.is_ascii_alphanumeric() && !"+-._".contains(c));
        let word = &self.rest()[..length.unwrap_or(self.rest().len())];
        let value = match word {
            "" => return Err(self.unexpected("a value")),
            "null" => Value::Null,
            "true" => Value::Bool(true),
            "false" => Value::Bool(false),
            number => match serde_json::from_str(number) {
                Ok(number) => Value::Number(number),
                Err(_) => {
                    // An unquoted word may be a key or a password.
                    let is_common = COMMON_WORDS.iter().any(|common| common.eq_ignore_ascii_case(word));
                    let shown = if is_common { format!("`{word}`") } else { "a word".to_owned() };
                    return Err(
                        self.error(format!("expected a value, found {shown}; a text needs double quotes"))
                    );
                }
            },
        };
        self.at += word.len();
        Ok(value)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::super::node::Layer;
    use super::*;

    fn read(text: &str) -> Result<Node, SyntaxError> {
        parse(text, &Arc::new(Source { layer: Layer::User, name: "f".into() }))
    }

    #[test]
    fn comments_and_trailing_commas_are_fine() {
        let text = "// first\n{\"a\": [1, 2.5e3, /* two\nlines */ \"x\\n\",], // then\n \"b\": {\"c\": null, \"d\": true,},}\n";
        assert_eq!(
            read(text).unwrap().to_json(),
            json!({"a": [1, 2500.0, "x\n"], "b": {"c": null, "d": true}})
        );
        for nothing in ["", " \n", "// only words", "\u{feff}{}"] {
            assert_eq!(read(nothing).unwrap().to_json(), json!({}), "{nothing:?}");
        }
    }

    #[test]
    fn values_know_where_they_stand() {
        let node = read("{\n  /* a\n b */ \"ä\": {\"b\":\n 7}}").unwrap();
        let place = |path: &str| node.at(path).map(|node| (node.origin.line, node.origin.column));
        assert_eq!(place("ä"), Some((3, 12)));
        assert_eq!(place("ä.b"), Some((4, 2)));
        assert_eq!(place("x"), None);
    }

    #[test]
    fn a_syntax_error_names_its_position() {
        for (text, line, column, words) in [
            ("{\"a\" 1}", 1, 6, "':' after the key \"a\""),
            ("{\"a\": 1 \"b\": 2}", 1, 9, "expected ',' or '}', found '\"'"),
            ("{\n  a: 1}", 2, 3, "a key in double quotes"),
            ("{\"a\": yes}", 1, 7, "`yes`; a text needs double quotes"),
            ("{\"a\": 'x'}", 1, 7, "expected a value, found '''"),
            ("{\"a\": 1", 1, 8, "the file ends here"),
            ("{\"a\": \"x\n\"}", 1, 7, "no closing quote"),
            ("{\"a\": \"\\q\"}", 1, 7, "unknown escape"),
            ("{} {}", 1, 4, "the end of the file"),
            ("/* no end", 1, 1, "no end"),
            ("{\n\"a\":1,\n\"a\":2}", 3, 1, "is already in line 2"),
            (&"[".repeat(100), 1, 66, "nested"),
        ] {
            let error = read(text).unwrap_err();
            assert_eq!((error.origin.line, error.origin.column), (line, column), "{text}: {error:?}");
            assert!(error.problem.contains(words), "{text}: {error:?}");
        }
    }

    proptest! {
        #[test]
        fn no_text_is_too_odd_to_be_read_or_refused(text in "[\\[\\]{}\",:/* \n\\\\a1ä-]{0,40}") {
            let _ = read(&text);
        }
    }
}
