//! The text after `oracle:`, such as `game24?q=0.3&seed=7`.

use std::str::FromStr;

use qwen_events::{ErrorInfo, ErrorKind};

/// The kind of an oracle and its settings.
pub(super) struct Spec {
    pub kind: String,
    settings: Vec<(String, String)>,
    allowed: Vec<&'static str>,
}

impl Spec {
    /// Reads the form `kind?name=value&name=value`.
    pub fn parse(text: &str) -> Result<Self, ErrorInfo> {
        let (kind, rest) = text.split_once('?').unwrap_or((text, ""));
        let mut settings = Vec::new();
        for pair in rest.split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').ok_or_else(|| {
                invalid(format!("the oracle's setting '{pair}' has no value; write {pair}=VALUE"))
            })?;
            settings.push((name.to_owned(), value.to_owned()));
        }
        Ok(Self { kind: kind.to_owned(), settings, allowed: Vec::new() })
    }

    /// The setting `name`, or `default`.
    pub fn take<T: FromStr>(&mut self, name: &'static str, default: T) -> Result<T, ErrorInfo> {
        self.allowed.push(name);
        let Some((_, value)) = self.settings.iter().find(|(known, _)| known == name) else {
            return Ok(default);
        };
        value.parse().map_err(|_| {
            invalid(format!("the oracle's setting {name}={value} is not a value that {name} can have"))
        })
    }

    /// The setting `name`, between 0 and 1, or `default`.
    pub fn probability(&mut self, name: &'static str, default: f64) -> Result<f64, ErrorInfo> {
        let value = self.take(name, default)?;
        if (0.0..=1.0).contains(&value) {
            return Ok(value);
        }
        Err(invalid(format!("the oracle's setting {name}={value} is a probability: from 0 to 1")))
    }

    /// Fails if a setting is unknown.
    pub fn finish(&self) -> Result<(), ErrorInfo> {
        match self.settings.iter().find(|(name, _)| !self.allowed.contains(&name.as_str())) {
            None => Ok(()),
            Some((name, _)) => Err(invalid(format!(
                "the oracle '{}' has no setting '{name}'; it has {}",
                self.kind,
                self.allowed.join(", ")
            ))),
        }
    }

    /// The error for an unknown kind.
    pub fn unknown_kind(&self) -> ErrorInfo {
        invalid(format!(
            "there is no oracle '{}'; the oracles are game24, sort, intersect and capacity",
            self.kind
        ))
    }
}

fn invalid(message: String) -> ErrorInfo {
    ErrorInfo::new(ErrorKind::Settings, "oracle_invalid", message)
}
