//! Restores secrets in input that a host or a hook returns after seeing it redacted.

use std::fmt;

use qwen_events::Json;
use qwen_redact::{REDACTION_MARK, Redactor};
use serde_json::Value;

/// A text that was changed around a redacted secret.
#[derive(Debug, PartialEq, Eq)]
pub struct RedactedValueChanged {
    path: String,
}

impl fmt::Display for RedactedValueChanged {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = &self.path;
        write!(
            f,
            "{path} was changed, and a secret in it was shown as {REDACTION_MARK}: send it as it was, or without {REDACTION_MARK}"
        )
    }
}

/// `wanted` with the secrets of `original` restored in every text that equals its redacted form. A changed
/// text that still contains a redaction mark would run with the mark: that is an error.
pub fn restore_redacted(
    redactor: &Redactor,
    original: &Json,
    wanted: &Json,
) -> Result<Json, RedactedValueChanged> {
    let shown = redactor.redact_json(original.as_str());
    if *shown == *original.as_str() {
        return Ok(wanted.clone());
    }
    let parsed = |text: &str| serde_json::from_str::<Value>(text).ok();
    let (Some(original), Some(shown), Some(mut value)) =
        (parsed(original.as_str()), parsed(&shown), parsed(wanted.as_str()))
    else {
        return Ok(wanted.clone());
    };
    let mut hidden = Vec::new();
    differing(&shown, &original, &mut hidden);
    restore(&mut value, Some((&shown, &original)), &hidden, "")?;
    Ok(Json::trusted(value.to_string()))
}

/// Every text whose redacted form differs from the original.
fn differing<'a>(shown: &'a Value, original: &'a Value, found: &mut Vec<(&'a str, &'a str)>) {
    match (shown, original) {
        (Value::String(shown), Value::String(original)) if shown != original => found.push((shown, original)),
        (Value::Array(shown), Value::Array(original)) => {
            shown.iter().zip(original).for_each(|(shown, original)| differing(shown, original, found));
        }
        (Value::Object(shown), Value::Object(original)) => {
            for (key, shown) in shown {
                // A key that was itself redacted is not found, and its value is skipped.
                original.get(key).into_iter().for_each(|original| differing(shown, original, found));
            }
        }
        _ => {}
    }
}

/// Restores secrets: those at the same path, or else those of the only text with this redacted form.
fn restore(
    value: &mut Value,
    same_place: Option<(&Value, &Value)>,
    hidden: &[(&str, &str)],
    path: &str,
) -> Result<(), RedactedValueChanged> {
    match value {
        Value::String(text) => {
            if let Some((Value::String(shown), Value::String(original))) = same_place
                && shown == text
            {
                text.clone_from(original);
                return Ok(());
            }
            let mut candidates: Vec<&str> =
                hidden.iter().filter(|(shown, _)| shown == text).map(|(_, original)| *original).collect();
            candidates.dedup();
            match candidates.as_slice() {
                [original] => (*original).clone_into(text),
                _ if text.contains(REDACTION_MARK) => {
                    return Err(RedactedValueChanged { path: path.to_owned() });
                }
                _ => {}
            }
            Ok(())
        }
        Value::Array(items) => items.iter_mut().enumerate().try_for_each(|(at, item)| {
            let same_place =
                same_place.and_then(|(shown, original)| Some((shown.get(at)?, original.get(at)?)));
            restore(item, same_place, hidden, &format!("{path}[{at}]"))
        }),
        Value::Object(fields) => fields.iter_mut().try_for_each(|(key, field)| {
            let same_place =
                same_place.and_then(|(shown, original)| Some((shown.get(key)?, original.get(key)?)));
            let path = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
            restore(field, same_place, hidden, &path)
        }),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn back(original: Value, wanted: Value) -> Result<Value, String> {
        let redactor = Redactor::new(["correct-horse-battery"]);
        let json = |value: Value| Json::trusted(value.to_string());
        restore_redacted(&redactor, &json(original), &json(wanted))
            .map(|json| serde_json::from_str(json.as_str()).unwrap())
            .map_err(|error| error.to_string())
    }

    #[test]
    fn a_redacted_text_that_is_returned_unchanged_gets_its_secrets_back() {
        let original =
            json!({"command": "login correct-horse-battery", "n": [1, {"deep": "correct-horse-battery"}]});
        let shown = json!({"command": "login c***", "n": [1, {"deep": "c***"}]});
        assert_eq!(back(original.clone(), shown), Ok(original.clone()));
        let moved = json!({"command": "login c***", "timeout": 5});
        assert_eq!(
            back(original.clone(), moved),
            Ok(json!({"command": "login correct-horse-battery", "timeout": 5}))
        );
        assert_eq!(back(original, json!({"command": "true"})), Ok(json!({"command": "true"})));
    }

    #[test]
    fn a_change_next_to_a_redacted_value_is_refused_by_name() {
        let original = json!({"command": "login correct-horse-battery"});
        let error = back(original, json!({"command": "login -v c***"})).unwrap_err();
        assert!(error.starts_with("command was changed"), "{error}");
    }

    #[test]
    fn each_place_gets_its_own_secret_back() {
        let redactor = Redactor::new(["correct-horse-battery", "clever-donkey-charger"]);
        let json = |value: Value| Json::trusted(value.to_string());
        let original = json!({"a": "clever-donkey-charger", "b": "correct-horse-battery"});
        let shown = json(json!({"a": "c***", "b": "c***"}));
        let back = restore_redacted(&redactor, &json(original.clone()), &shown).unwrap();
        assert_eq!(back.as_str(), original.to_string());
        // For any other path it is ambiguous which of the two is meant.
        assert!(restore_redacted(&redactor, &json(original), &json(json!({"x": "c***"}))).is_err());
    }

    #[test]
    fn stars_are_stars_where_nothing_was_hidden() {
        let original = json!({"command": "echo ***"});
        assert_eq!(back(original, json!({"command": "echo **** x"})), Ok(json!({"command": "echo **** x"})));
    }
}
