//! Secret texts.

use std::fmt;

/// A key or token. It prints as `***`, so that no log, error or recording shows it by accident.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(Box<str>);

impl Secret {
    /// Wraps a secret text.
    pub fn new(text: impl Into<Box<str>>) -> Self {
        Self(text.into())
    }

    /// The text itself, for sending it only.
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// Redacts every occurrence of the secret in `text`. A secret too short to be one is ignored: redacting
    /// every `a` would hide the error rather than the key.
    pub fn redact(&self, text: &str) -> String {
        if self.0.len() < 4 { text.to_owned() } else { text.replace(&*self.0, "***") }
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

impl fmt::Display for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_never_prints() {
        let secret = Secret::new("sk-12345678");
        assert_eq!(format!("{secret} {secret:?} {:?}", Some(&secret)), "*** *** Some(***)");
        assert_eq!(secret.redact("bad key sk-12345678!"), "bad key ***!");
        assert_eq!(Secret::new("").redact("abc"), "abc");
    }
}
