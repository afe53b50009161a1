//! Plays a recording back, call by call, in order and without delays.

use std::collections::VecDeque;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use futures_util::stream;
use qwen_events::{ErrorInfo, ErrorKind};

use crate::record::{RecordedCall, RecordedPiece};
use crate::request::{Model, ModelError, Pieces, Request};

/// A model that replays the recorded answers of another one.
pub(crate) struct Replay {
    name: Arc<str>,
    recording: Arc<Recording>,
}

/// The calls that were not replayed yet.
struct Recording {
    file: String,
    calls: Mutex<VecDeque<RecordedCall>>,
}

impl Replay {
    /// Reads the recording at `path`.
    pub fn open(path: &Path, name: Arc<str>) -> Result<Self, ErrorInfo> {
        let file = path.display().to_string();
        let wrong = |code, why: String| ErrorInfo::new(ErrorKind::Input, code, why);
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
        Ok(Self { name, recording: Arc::new(Recording { file, calls }) })
    }
}

impl Model for Replay {
    fn name(&self) -> &str {
        &self.name
    }

    fn call(&self, _request: Request) -> Pieces {
        let recording = Arc::clone(&self.recording);
        let playing = None::<std::vec::IntoIter<(u64, RecordedPiece)>>;
        Box::pin(stream::unfold(playing, move |playing| {
            let recording = Arc::clone(&recording);
            async move {
                tokio::task::coop::consume_budget().await;
                let mut pieces = match playing {
                    Some(pieces) => pieces,
                    None => match recording.next_call() {
                        Ok(call) => call.pieces.into_iter(),
                        Err(error) => return Some((Err(error), Some(Vec::new().into_iter()))),
                    },
                };
                let (_, piece) = pieces.next()?;
                Some((piece.into(), Some(pieces)))
            }
        }))
    }
}

impl Recording {
    fn next_call(&self) -> Result<RecordedCall, ModelError> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner).pop_front().ok_or_else(|| {
            let message = format!("the recording `{}` has no further call", self.file);
            ModelError(ErrorInfo::new(ErrorKind::Model, "replay_exhausted", message))
        })
    }
}
