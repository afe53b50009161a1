//! Names on the bus: streams and subjects, version 1.

use qwen_events::SessionId;

/// The names of streams and subjects. Several buses may share servers and an account under different prefixes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Names {
    /// What all stream names begin with.
    streams: String,
    /// What all subjects begin with.
    subjects: String,
}

impl Default for Names {
    fn default() -> Self {
        Self::new("")
    }
}

impl Names {
    /// Returns the names under a prefix, which may be empty.
    pub fn new(prefix: &str) -> Self {
        if prefix.is_empty() {
            return Self { streams: String::new(), subjects: "q1".to_owned() };
        }
        Self { streams: format!("{prefix}-"), subjects: format!("{prefix}.q1") }
    }

    /// Returns what all subjects begin with.
    pub fn root(&self) -> &str {
        &self.subjects
    }

    /// Returns the name of the stream of open turns and of the numbers with which sessions continue.
    pub fn turn_stream(&self) -> String {
        format!("{}QTURN", self.streams)
    }

    /// Returns the name of the stream of logs of a shard.
    pub fn log_stream(&self, shard: u32) -> String {
        format!("{}QLOG-{shard}", self.streams)
    }

    /// Returns the name of the stream of numbered lines of a shard.
    pub fn event_stream(&self, shard: u32) -> String {
        format!("{}QEV-{shard}", self.streams)
    }

    /// Returns the subject of a session's log; `*` is every session's.
    pub fn log_subject(&self, shard: u32, session: &str) -> String {
        format!("{}.log.{shard}.{session}", self.subjects)
    }

    /// Returns the subject of a session's numbered lines.
    pub fn event_subject(&self, shard: u32, session: &str) -> String {
        format!("{}.ev.{shard}.{session}", self.subjects)
    }

    /// Returns the subject on which the bus repeats a session's numbered lines once they are stored.
    pub fn live_subject(&self, shard: u32, session: &str) -> String {
        format!("{}.live.{shard}.{session}", self.subjects)
    }

    /// Returns the subject of a node's heartbeats.
    pub fn heartbeat_subject(&self, node: &str) -> String {
        format!("{}.heartbeat.{node}", self.subjects)
    }

    /// Returns the subject of a session's entry in the stream of turns.
    pub fn turn_subject(&self, session: &str) -> String {
        format!("{}.turn.{session}", self.subjects)
    }

    /// Returns the subject of a request to one run of a process.
    pub fn node_subject(&self, name: &str, incarnation: &str, verb: &str) -> String {
        format!("{}.node.{name}.{incarnation}.{verb}", self.subjects)
    }
}

/// Returns the session id as one token of a subject. An id may contain `.`, which separates tokens, and never `~`.
pub fn token(session: &SessionId) -> String {
    session.as_str().replace('.', "~")
}

/// Returns the session of a token.
pub fn session_of_token(token: &str) -> Option<SessionId> {
    SessionId::parse(&token.replace('~', ".")).ok()
}

/// Returns true for a name that a process or a label may have on the bus: 1 to 64 letters, digits, `_` and `-`.
pub fn is_bus_name(name: &str) -> bool {
    (1..=64).contains(&name.len())
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'))
}

/// Returns the shard of a session among `shards`.
pub fn shard_of(session: &SessionId, shards: u32) -> u32 {
    crc32(session.as_str().as_bytes()) % shards.max(1)
}

/// CRC-32 as in gzip and PNG. An id is short, so a table would not pay.
fn crc32(bytes: &[u8]) -> u32 {
    let mut crc = u32::MAX;
    for byte in bytes {
        crc ^= u32::from(*byte);
        for _ in 0..8 {
            crc = (crc >> 1) ^ (0xedb8_8320 & (crc & 1).wrapping_neg());
        }
    }
    !crc
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(text: &str) -> SessionId {
        SessionId::parse(text).unwrap()
    }

    #[test]
    fn the_shard_of_a_session_is_its_checksum_modulo_the_number_of_shards() {
        assert_eq!(crc32(b"123456789"), 0xcbf4_3926);
        assert_eq!(shard_of(&id("123456789"), 3), 0xcbf4_3926 % 3);
        assert_eq!(shard_of(&id("a"), 1), 0);
    }

    #[test]
    fn a_session_id_is_one_token_and_comes_back() {
        for text in ["a", "a.b..c", "A-1_2.x", "0.0"] {
            let token = token(&id(text));
            assert!(!token.contains(['.', '*', '>', ' ']), "{token}");
            assert_eq!(session_of_token(&token), Some(id(text)));
        }
        assert_eq!(Names::default().event_subject(2, &token(&id("a.b"))), "q1.ev.2.a~b");
        assert_eq!(Names::new("team").event_subject(2, "s"), "team.q1.ev.2.s");
        assert_eq!(Names::new("team").log_stream(0), "team-QLOG-0");
        assert_eq!(session_of_token("a b"), None);
    }

    #[test]
    fn names_with_separators_and_wildcards_are_refused() {
        for name in ["node-1", "A_b", &"x".repeat(64)] {
            assert!(is_bus_name(name), "{name}");
        }
        for name in ["", "a.b", "a>", "*", "a b", "ä", &"x".repeat(65)] {
            assert!(!is_bus_name(name), "{name}");
        }
    }
}
