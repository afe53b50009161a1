//! Plays a recording back, call by call, in order and without delays.

use std::collections::VecDeque;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use futures_util::stream;
use qwen_events::{ErrorInfo, ErrorKind};

use crate::record::{RecordedCall, RecordedPiece};
use crate::request::{Model, ModelError, Pieces, Request};

/// A model that says what another one said.
pub(crate) struct Replay {
    name: Arc<str>,
    file: String,
    calls: Mutex<VecDeque<RecordedCall>>,
}

impl Replay {
    /// Reads the recording at `path`.
    pub fn open(path: &Path, name: Arc<str>) -> Result<Self, ErrorInfo> {
        let file = path.display().to_string();
        let wrong = |code, why: String| ErrorInfo::new(ErrorKind::Settings, code, why);
        let text = std::fs::read_to_string(path)
            .map_err(|e| wrong("replay_unreadable", format!("the recording `{file}` cannot be read: {e}")))?;
        let lines = (1..).zip(text.lines()).filter(|(_, line)| !line.trim().is_empty());
        let calls = lines.map(|(number, line)| {
            serde_json::from_str(line).map_err(|e| {
                let why = format!("line {number} of the recording `{file}` is not a recorded call: {e}");
                wrong("replay_invalid", why)
            })
        });
        let calls = Mutex::new(calls.collect::<Result<_, _>>()?);
        Ok(Self { name, file, calls })
    }
}

impl Model for Replay {
    fn name(&self) -> &str {
        &self.name
    }

    fn call(&self, _request: Request) -> Pieces {
        let next = self.calls.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
        let Some(call) = next else {
            let message = format!("the recording `{}` has no further call", self.file);
            let error = ErrorInfo::new(ErrorKind::Model, "replay_exhausted", message);
            return Box::pin(stream::iter([Err(ModelError(error))]));
        };
        let pieces = call.pieces.into_iter().map(|(_, piece)| piece);
        Box::pin(stream::unfold(pieces, |mut pieces| async move {
            tokio::task::coop::consume_budget().await;
            let piece: RecordedPiece = pieces.next()?;
            Some((piece.into(), pieces))
        }))
    }
}
