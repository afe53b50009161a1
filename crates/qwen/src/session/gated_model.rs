//! A model whose calls wait until the host has shown a sign of life.

use std::sync::Arc;
use std::time::Duration;

use futures_util::{StreamExt, stream};
use qwen_engine::Host;
use qwen_model::{Model, ModelError, Piece, Pieces, Request};

/// How long before the next attempt of a model call the host is queried.
const AHEAD: Duration = Duration::from_millis(20);

/// Delays each call of `model`, and each further attempt after a failure, until `host` lets work start.
pub fn gated(model: Arc<dyn Model>, host: Arc<dyn Host>) -> Arc<dyn Model> {
    Arc::new(GatedModel { model, host })
}

struct GatedModel {
    model: Arc<dyn Model>,
    host: Arc<dyn Host>,
}

impl Model for GatedModel {
    fn name(&self) -> &str {
        self.model.name()
    }

    fn call(&self, request: Request) -> Pieces {
        let call = GatedCall {
            pieces: self.model.call(request),
            host: self.host.clone(),
            attempts_in: Some(Duration::ZERO),
        };
        stream::unfold(call, |mut call| async move {
            let piece = call.next().await?;
            Some((piece, call))
        })
        .boxed()
    }
}

/// One call with all its attempts. A model does nothing while it is not polled.
struct GatedCall {
    pieces: Pieces,
    host: Arc<dyn Host>,
    /// How long the model will wait before its next attempt, if one follows.
    attempts_in: Option<Duration>,
}

impl GatedCall {
    async fn next(&mut self) -> Option<Result<Piece, ModelError>> {
        if let Some(pause) = self.attempts_in.take() {
            if pause > AHEAD {
                tokio::select! {
                    biased;
                    // The pause passes only while the model is polled.
                    piece = self.pieces.next() => return self.noted(piece),
                    () = tokio::time::sleep(pause.saturating_sub(AHEAD)) => {}
                }
            }
            self.host.may_start().await;
        }
        let piece = self.pieces.next().await;
        self.noted(piece)
    }

    fn noted(&mut self, piece: Option<Result<Piece, ModelError>>) -> Option<Result<Piece, ModelError>> {
        match &piece {
            Some(Ok(Piece::Retry { delay_ms, .. })) => {
                self.attempts_in = Some(Duration::from_millis(*delay_ms));
            }
            Some(Ok(Piece::Fallback { .. })) => self.attempts_in = Some(Duration::ZERO),
            _ => {}
        }
        piece
    }
}
