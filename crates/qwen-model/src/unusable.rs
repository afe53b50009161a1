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
