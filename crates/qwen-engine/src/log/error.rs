//! Why a log cannot be used.

use std::fmt;
use std::io;

use qwen_events::{ErrorInfo, ErrorKind, SessionId};

/// Why a log cannot be used.
#[derive(Debug)]
pub enum LogError {
    /// There is none of this session.
    Unknown(SessionId),
    /// Another process works in this session.
    InUse(SessionId),
    /// A session of this name is there already.
    Exists(SessionId),
    /// The first line does not say whose log it is.
    Damaged(SessionId),
    /// A later version of the program wrote it.
    Newer {
        /// The session.
        id: SessionId,
        /// The version of the format.
        version: u64,
    },
    /// The session has no such message, prompt or checkpoint.
    NoSuchPoint {
        /// The session.
        id: SessionId,
        /// What was asked for.
        point: String,
    },
    /// The checkpoint was there, and `qwen sessions prune` took it away.
    Pruned {
        /// The session.
        id: SessionId,
        /// The checkpoint.
        point: String,
    },
    /// The state at a place of the session cannot be changed as asked.
    Uneditable {
        /// The session.
        id: SessionId,
        /// Why not.
        why: String,
    },
    /// There is no directory to keep logs in.
    NotOnDisk,
    /// The system refused.
    System {
        /// The session.
        id: SessionId,
        /// What was being done.
        action: &'static str,
        /// Why not.
        source: io::Error,
    },
}

impl LogError {
    pub(super) fn io(id: &SessionId, action: &'static str, source: io::Error) -> Self {
        Self::System { id: id.clone(), action, source }
    }
}

impl fmt::Display for LogError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown(id) => write!(f, "there is no session '{id}' (see qwen sessions list)"),
            Self::InUse(id) => write!(
                f,
                "the session '{id}' is in use by another process; end that one first, or fork the session \
                 (--resume {id} --fork-session)"
            ),
            Self::Exists(id) => {
                write!(f, "there is a session '{id}' already; choose another name for the new one")
            }
            Self::Damaged(id) => {
                write!(f, "the log of the session '{id}' is damaged: its first line does not say whose it is")
            }
            Self::Newer { id, version } => write!(
                f,
                "the log of the session '{id}' has the format {version}, which a later version of qwen wrote; use that one"
            ),
            Self::NoSuchPoint { id, point } => write!(
                f,
                "the session '{id}' has no message, prompt or checkpoint '{point}' (see qwen sessions checkpoints {id})"
            ),
            Self::Pruned { id, point } => write!(
                f,
                "the checkpoint '{point}' of the session '{id}' was pruned and cannot be gone back to \
                 (see qwen sessions checkpoints {id})"
            ),
            Self::Uneditable { id, why } => {
                write!(f, "the state of the session '{id}' cannot be changed so: {why}")
            }
            Self::NotOnDisk => {
                f.write_str("there is no home directory to keep sessions in; set QWEN_HOME or HOME")
            }
            Self::System { id, action, source } => {
                write!(f, "the log of the session '{id}' cannot be {action}: {source}")
            }
        }
    }
}

impl std::error::Error for LogError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::System { source, .. } => Some(source),
            _ => None,
        }
    }
}

impl From<LogError> for ErrorInfo {
    fn from(error: LogError) -> Self {
        let code = match &error {
            LogError::Unknown(_) => "unknown_session",
            LogError::InUse(_) => "session_in_use",
            LogError::Exists(_) => "session_exists",
            LogError::Damaged(_) => "damaged_session",
            LogError::Newer { .. } => "unsupported_session",
            LogError::NoSuchPoint { .. } => "unknown_message",
            LogError::Pruned { .. } => "pruned_checkpoint",
            LogError::Uneditable { .. } => "uneditable_state",
            LogError::NotOnDisk => "no_home",
            LogError::System { .. } => "unusable_session",
        };
        Self::new(ErrorKind::Input, code, error.to_string()).with_param("session_id")
    }
}
