//! Records every call of a model, one JSON line each: a digest of the request and the pieces of the answer,
//! with the time since the start of the call.
//!
//! Invariant: no key is ever written. Requests are stored as digests only, and the model's own key is
//! redacted in the rest.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::Path;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Instant;

use futures_core::Stream;
use qwen_events::{ErrorInfo, ErrorKind};

use crate::openai;
use crate::request::{Model, ModelError, Piece, Pieces, Request};
use crate::secret::Secret;

pub(crate) use form::{RecordedCall, RecordedPiece};
pub(crate) use replay::Replay;

mod form;
mod replay;

/// A model whose calls are recorded.
pub(crate) struct Recorder {
    inner: Arc<dyn Model>,
    log: Arc<Log>,
}

struct Log {
    path: String,
    file: Mutex<File>,
    secrets: Vec<Secret>,
}

impl Recorder {
    /// Appends the calls of `inner` to the file at `path`, with every secret redacted.
    pub fn open(inner: Arc<dyn Model>, path: &Path, secrets: Vec<Secret>) -> Result<Self, ErrorInfo> {
        let shown = path.display().to_string();
        let mut options = OpenOptions::new();
        options.create(true).append(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let file = options.open(path).map_err(|e| {
            let message = format!("the recording `{shown}` cannot be opened for writing: {e}");
            ErrorInfo::new(ErrorKind::Settings, "record_unwritable", message)
        })?;
        Ok(Self { inner, log: Arc::new(Log { path: shown, file: Mutex::new(file), secrets }) })
    }
}

impl Model for Recorder {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn call(&self, request: Request) -> Pieces {
        let model = request.model.as_deref().unwrap_or(self.inner.name());
        let call = RecordedCall {
            request: digest(&openai::body(&request, model)),
            model: model.to_owned(),
            pieces: Vec::new(),
        };
        let inner = self.inner.call(request);
        Box::pin(Recording { inner, call: Some(call), log: Arc::clone(&self.log), started: None })
    }
}

/// The recording of one call.
struct Recording {
    inner: Pieces,
    // None once it was written.
    call: Option<RecordedCall>,
    log: Arc<Log>,
    // None before the first poll, when the call has not begun.
    started: Option<Instant>,
}

impl Stream for Recording {
    type Item = Result<Piece, ModelError>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let started = *self.started.get_or_insert_with(Instant::now);
        let Poll::Ready(item) = self.inner.as_mut().poll_next(cx) else { return Poll::Pending };
        let ms = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
        if let (Some(item), Some(call)) = (&item, &mut self.call) {
            call.pieces.extend(RecordedPiece::from_item(item).map(|piece| (ms, piece)));
        }
        if matches!(item, None | Some(Ok(Piece::Finish(_)) | Err(_))) {
            // Written before the end is emitted: a reader that sees the end can rely on the recording.
            if let Err(error) = self.write() {
                return Poll::Ready(Some(Err(ModelError(error))));
            }
        }
        Poll::Ready(item)
    }
}

impl Recording {
    fn write(&mut self) -> Result<(), ErrorInfo> {
        self.call.take().map_or(Ok(()), |call| self.log.append(&call))
    }
}

impl Drop for Recording {
    fn drop(&mut self) {
        // A cancelled call is recorded too; a failure here cannot be reported.
        if self.started.is_some() {
            let _ = self.write();
        }
    }
}

impl Log {
    fn append(&self, call: &RecordedCall) -> Result<(), ErrorInfo> {
        let failed = |e: &dyn std::fmt::Display| {
            let message = format!("the recording `{}` cannot be written: {e}", self.path);
            ErrorInfo::new(ErrorKind::Internal, "record_unwritable", message)
        };
        let mut line = serde_json::to_string(call).map_err(|e| failed(&e))?;
        for secret in &self.secrets {
            line = secret.redact(&line);
        }
        line.push('\n');
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        file.write_all(line.as_bytes()).map_err(|e| failed(&e))
    }
}

/// FNV-1a of the body, which is enough to see whether two requests are the same.
fn digest(body: &[u8]) -> String {
    let hash = body.iter().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    });
    format!("{hash:016x}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_digest_is_the_published_one() {
        assert_eq!(digest(b""), "cbf29ce484222325");
        assert_eq!(digest(b"a"), "af63dc4c8601ec8c");
        assert_eq!(digest(b"foobar"), "85944171f73967e8");
    }
}
