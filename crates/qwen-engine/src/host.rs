//! Who answers questions: a person at a terminal, a program on the control channel, a policy, a test. The engine
//! cannot tell them apart.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use qwen_events::{Behavior, Confirmation, Decision, PermissionAnswer, ToolCall};

/// May this call run?
pub struct Question {
    /// The call.
    pub call: Arc<ToolCall>,
    /// What a person is shown.
    pub confirmation: Confirmation,
    /// Why we ask.
    pub reason: Arc<str>,
}

/// Answers what the engine asks.
pub trait Host: Send + Sync {
    /// Whether anyone listens; without a listener a question is a denial and is not even shown.
    fn listens(&self) -> bool;

    /// Answers a question about a call. Dropping the future withdraws the question.
    fn ask(&self, question: Question) -> BoxFuture<'_, PermissionAnswer>;
}

/// Judges calls before anyone is asked.
pub trait Permissions: Send + Sync {
    /// The judgement on `call`.
    fn judge(&self, call: &ToolCall) -> Decision;

    /// What a person is shown when asked about `call`.
    fn confirmation(&self, call: &ToolCall) -> Confirmation;

    /// The approval mode: `plan`, `default`, `auto-edit` or `yolo`.
    fn mode(&self) -> Arc<str>;
}

/// The host of a headless run: nobody is there, so the answer is no.
pub struct Nobody;

impl Host for Nobody {
    fn listens(&self) -> bool {
        false
    }

    fn ask(&self, _question: Question) -> BoxFuture<'_, PermissionAnswer> {
        Box::pin(async {
            PermissionAnswer {
                behavior: Behavior::Deny,
                message: None,
                updated_input: None,
                updated_permissions: Vec::new(),
                interrupt: false,
            }
        })
    }
}
