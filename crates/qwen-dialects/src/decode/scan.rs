//! One pass over a valid JSON line, for what the grammar allows and we reject: deep nesting, duplicate keys
//! in one object, lone surrogates.

use std::borrow::Cow;
use std::collections::HashSet;

use qwen_events::ErrorInfo;

use super::error::{refuse, refuse_at};

/// The maximum nesting depth.
pub(super) const MAX_DEPTH: usize = 128;

/// An open object or array.
struct Level<'a> {
    /// The number of the object, counted from the line's start; none in an array.
    object: Option<usize>,
    /// In an object, the last key; in an array, the index.
    key: Cow<'a, str>,
    place: usize,
    /// In an object, true if a key is expected next.
    key_due: bool,
}

/// Checks `text`, which must be one JSON value.
pub(crate) fn check(text: &str) -> Result<(), ErrorInfo> {
    let bytes = text.as_bytes();
    let mut levels: Vec<Level<'_>> = Vec::new();
    let mut keys: HashSet<(usize, Cow<'_, str>)> = HashSet::new();
    let mut objects = 0;
    let mut at = 0;
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'{' | b'[' => {
                if levels.len() == MAX_DEPTH {
                    let message =
                        format!("the line is nested deeper than {MAX_DEPTH} levels; send it flatter");
                    return Err(refuse("too_deep", message));
                }
                let object = (*byte == b'{').then_some(objects);
                objects += 1;
                levels.push(Level { object, key: Cow::Borrowed(""), place: 0, key_due: object.is_some() });
            }
            b'}' | b']' => {
                levels.pop();
            }
            b',' => {
                if let Some(level) = levels.last_mut() {
                    level.place += 1;
                    level.key_due = level.object.is_some();
                }
            }
            b'"' => {
                let end = string_end(bytes, at);
                let content = &text[at + 1..end];
                let mut keyed = None;
                if let Some(level) = levels.last_mut().filter(|level| level.key_due) {
                    level.key_due = false;
                    level.key = unescaped(content, &text[at..=end]);
                    keyed = level.object.map(|object| (object, level.key.clone()));
                }
                if content.contains("\\u") && has_lone_surrogate(content) {
                    let message = "a text has an unpaired surrogate (\\ud800 to \\udfff alone), which is not a character";
                    return Err(refuse_at("lone_surrogate", &path(&levels), message));
                }
                if let Some((object, key)) = keyed
                    && !keys.insert((object, key.clone()))
                {
                    let message = format!("the key {key:?} is there twice in one object; send it once");
                    return Err(refuse_at("duplicate_key", &path(&levels), message));
                }
                at = end;
            }
            _ => {}
        }
        at += 1;
    }
    Ok(())
}

/// The position of the closing quote of the string that starts at `start`.
fn string_end(bytes: &[u8], start: usize) -> usize {
    let mut at = start + 1;
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'"' => return at,
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
    bytes.len().saturating_sub(1)
}

fn unescaped<'a>(content: &'a str, quoted: &'a str) -> Cow<'a, str> {
    if content.contains('\\') {
        serde_json::from_str::<String>(quoted).map_or(Cow::Borrowed(content), Cow::Owned)
    } else {
        Cow::Borrowed(content)
    }
}

/// True if a `\u` escape of a surrogate lacks its other half.
fn has_lone_surrogate(content: &str) -> bool {
    let bytes = content.as_bytes();
    let unit = |at: usize| {
        let digits = bytes.get(at..at + 6)?.strip_prefix(b"\\u")?;
        u16::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
    };
    let mut at = 0;
    while at < bytes.len() {
        if bytes[at] != b'\\' {
            at += 1;
            continue;
        }
        match unit(at) {
            Some(0xd800..=0xdbff) => match unit(at + 6) {
                Some(0xdc00..=0xdfff) => at += 12,
                _ => return true,
            },
            Some(0xdc00..=0xdfff) => return true,
            Some(_) => at += 6,
            None => at += 2,
        }
    }
    false
}

/// The current path, such as `input.parts[0].text`.
fn path(levels: &[Level<'_>]) -> String {
    let mut path = String::new();
    for level in levels {
        if level.object.is_none() {
            path.push('[');
            path.push_str(&level.place.to_string());
            path.push(']');
        } else {
            if !path.is_empty() {
                path.push('.');
            }
            path.push_str(&level.key);
        }
    }
    path
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Option<(&'static str, Option<String>)> {
        check(text).err().map(|error| (error.code, error.param.map(|param| param.to_string())))
    }

    #[test]
    fn a_key_twice_is_found_at_any_level_however_it_is_spelt() {
        let at = |path: &str| Some(("duplicate_key", Some(path.to_owned())));
        assert_eq!(found(r#"{"a":1,"a":2}"#), at("a"));
        assert_eq!(found(r#"{"a":1,"\u0061" : 2}"#), at("a"));
        assert_eq!(found(r#"{"x":[{"y":1},{"y":2,"z":{"q":0,"q":1}}]}"#), at("x[1].z.q"));
        assert_eq!(found(r#"{"a":"a","b":"a","c":["a","a"],"d":{"a":1}}"#), None);
        assert_eq!(found(r#"{"a":"b\":","b":"\\"}"#), None);
    }

    #[test]
    fn half_a_surrogate_pair_is_found_in_keys_and_values() {
        let at = |path: &str| Some(("lone_surrogate", Some(path.to_owned())));
        assert_eq!(found(r#"{"a":["x","\ud83e"]}"#), at("a[1]"));
        assert_eq!(found(r#"{"a":"\udd80\ud83e"}"#), at("a"));
        assert_eq!(found(r#"{"a":"\ud83e\n"}"#), at("a"));
        assert_eq!(found(r#"{"a":"\ud83e\udd80 \\ud83e"}"#), None);
        assert!(matches!(found(r#"{"\ud83e":1}"#), Some(("lone_surrogate", _))));
    }

    #[test]
    fn nesting_is_bounded() {
        let nested = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        assert_eq!(found(&nested(MAX_DEPTH)), None);
        assert_eq!(found(&nested(MAX_DEPTH + 1)), Some(("too_deep", None)));
        assert_eq!(found(&nested(1_000_000)), Some(("too_deep", None)));
    }
}
