//! Log errors.

use std::fmt;
use std::io;

use qwen_events::{ErrorInfo, ErrorKind, SessionId};

#[derive(Debug)]
pub enum LogError {
    /// The session has no log.
    Unknown(SessionId),
    /// Another process uses this session.
    InUse(SessionId),
    /// A session with this id already exists.
    Exists(SessionId),
    /// The first line is not a valid header.
    Damaged(SessionId),
    /// A later version of the program wrote it.
    Newer {
        id: SessionId,
        /// The version of the format.
        version: u64,
    },
    /// The session has no such message, prompt or checkpoint.
    NoSuchPoint {
        id: SessionId,
        /// The point that was requested.
        point: String,
    },
    /// `qwen sessions prune` removed the checkpoint.
    Pruned {
        id: SessionId,
        /// The checkpoint that was requested.
        point: String,
    },
    /// The state at a point of the session cannot be changed as requested.
    Uneditable {
        id: SessionId,
        /// The reason, as a clause.
        why: String,
    },
    /// No directory for logs is available.
    NotOnDisk,
    /// A system call failed.
    System {
        id: SessionId,
        /// The attempted action, as a participle.
        action: &'static str,
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
