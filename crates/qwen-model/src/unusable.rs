//! A model that cannot be called: for sessions that report the error only when a turn needs the model.

use std::sync::Arc;

use futures_util::stream;
use qwen_events::ErrorInfo;

use crate::request::{Model, ModelError, Pieces, Request};

struct Unusable {
    name: Arc<str>,
    error: ErrorInfo,
}

/// A model whose calls all fail with `error`.
pub fn unusable(name: impl Into<Arc<str>>, error: ErrorInfo) -> Arc<dyn Model> {
    Arc::new(Unusable { name: name.into(), error })
}

impl Model for Unusable {
    fn name(&self) -> &str {
        &self.name
    }

    fn call(&self, _request: Request) -> Pieces {
        Box::pin(stream::iter([Err(ModelError(self.error.clone()))]))
    }
}

/// Answers only requests that name a model.
struct Unchosen {
    model: Arc<dyn Model>,
    error: ErrorInfo,
}

/// `model`, which fails with `error` where a request does not say which of the server's models it wants.
pub fn unchosen(model: Arc<dyn Model>, error: ErrorInfo) -> Arc<dyn Model> {
    Arc::new(Unchosen { model, error })
}

impl Model for Unchosen {
    fn name(&self) -> &str {
        self.model.name()
    }

    fn call(&self, request: Request) -> Pieces {
        if request.model.is_some() {
            return self.model.call(request);
        }
        Box::pin(stream::iter([Err(ModelError(self.error.clone()))]))
    }
}
