//! A model whose calls wait until the host has shown a sign of life.

use std::sync::Arc;

use futures_util::{StreamExt, stream};
use qwen_engine::Host;
use qwen_model::{Model, Pieces, Request};

/// Delays each call of `model` until `host` lets work start.
pub fn leashed(model: Arc<dyn Model>, host: Arc<dyn Host>) -> Arc<dyn Model> {
    Arc::new(LeashedModel { model, host })
}

struct LeashedModel {
    model: Arc<dyn Model>,
    host: Arc<dyn Host>,
}

impl Model for LeashedModel {
    fn name(&self) -> &str {
        self.model.name()
    }

    fn call(&self, request: Request) -> Pieces {
        let (model, host) = (self.model.clone(), self.host.clone());
        let call = async move {
            host.may_start().await;
            model.call(request)
        };
        stream::once(call).flatten().boxed()
    }
}
