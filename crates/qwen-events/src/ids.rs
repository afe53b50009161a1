//! Identifiers of sessions, prompts, tool calls and node runs.

use std::fmt;
use std::sync::Arc;

macro_rules! name {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $name(Arc<str>);

        impl $name {
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Debug::fmt(&self.0, f)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
    };
}

name! {
    /// An opaque session id, `[A-Za-z0-9][A-Za-z0-9._-]{0,127}`: safe as a file name by construction.
    SessionId
}

name! {
    /// Identifies one turn; by default `<session_id>########<turn>`.
    PromptId
}

name! {
    /// Identifies one tool call; minted by the model or, if the model sends none, by the model client.
    CallId
}

/// The reason why a text is not a session id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionIdError;

impl fmt::Display for SessionIdError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(
            "a session id is 1 to 128 characters out of letters, digits, '.', '_' and '-', and starts with a letter or digit",
        )
    }
}

impl std::error::Error for SessionIdError {}

impl SessionId {
    /// Parses a session id and rejects anything that could be more than a name (`../x`, an empty text, a
    /// NUL).
    pub fn parse(text: &str) -> Result<Self, SessionIdError> {
        let bytes = text.as_bytes();
        let sound = (1..=128).contains(&bytes.len())
            && bytes[0].is_ascii_alphanumeric()
            && bytes.iter().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-'));
        if sound { Ok(Self(text.into())) } else { Err(SessionIdError) }
    }
}

impl SessionId {
    /// A new id from 128 random bits, in the form of a random (version 4) UUID.
    pub fn from_random(bits: u128) -> Self {
        let bits = bits & !(0xf << 76) & !(0x3 << 62) | (0x4 << 76) | (0x2 << 62);
        let hex = format!("{bits:032x}");
        Self(format!("{}-{}-{}-{}-{}", &hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..]).into())
    }
}

impl PromptId {
    /// The default id of a session's `turn`-th turn, counted from 1.
    pub fn of_turn(session: &SessionId, turn: u64) -> Self {
        Self(format!("{session}########{turn}").into())
    }

    /// An id that the client chose.
    pub fn new(text: impl Into<Arc<str>>) -> Self {
        Self(text.into())
    }
}

impl CallId {
    /// A call id as minted by the model or the model client.
    pub fn new(text: impl Into<Arc<str>>) -> Self {
        Self(text.into())
    }
}

/// One run of a graph node, from its entry to its exit.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct NodeRun {
    /// The node's name, such as `think`.
    pub name: Arc<str>,
    /// The run's id, `run-<name>-<n>`.
    pub id: Arc<str>,
}

impl NodeRun {
    /// The `n`-th run of the node `name`, counted from 1.
    pub fn new(name: &str, n: u64) -> Self {
        Self { name: name.into(), id: format!("run-{name}-{n}").into() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fresh_names_are_version_4_uuids_and_session_ids() {
        assert_eq!(SessionId::from_random(0).as_str(), "00000000-0000-4000-8000-000000000000");
        assert_eq!(SessionId::from_random(u128::MAX).as_str(), "ffffffff-ffff-4fff-bfff-ffffffffffff");
        assert!(SessionId::parse(SessionId::from_random(u128::MAX).as_str()).is_ok());
    }

    #[test]
    fn session_ids_are_file_names_and_nothing_more() {
        for good in ["a", "session-123", "0.1_x-Y", &"a".repeat(128)] {
            assert!(SessionId::parse(good).is_ok(), "{good}");
        }
        for bad in ["", "../x", ".hidden", "-flag", "a/b", "a\0b", "ä", " a", "a\n", &"a".repeat(129)] {
            assert!(SessionId::parse(bad).is_err(), "{bad:?}");
        }
    }
}
