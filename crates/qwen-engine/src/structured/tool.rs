//! `structured_output`: the tool with which the model returns a structured answer.

use std::sync::Arc;

use qwen_events::{ToolCall, ToolDeclaration, ToolSpec};
use qwen_tools::{CallContext, Outcome, Tool, ToolFuture};

use super::{DECLARATION, StructuredAnswer, complaint};

pub(super) struct StructuredOutputTool {
    pub answer: Arc<StructuredAnswer>,
    /// Its name in the session's vocabulary.
    pub name: &'static str,
}

impl Tool for StructuredOutputTool {
    fn spec(&self) -> &ToolSpec {
        &self.answer.form.spec
    }

    fn declaration(&self) -> Option<&'static ToolDeclaration> {
        Some(&DECLARATION)
    }

    fn run<'a>(&'a self, call: &'a ToolCall, _: &'a CallContext) -> ToolFuture<'a> {
        let outcome = match self.answer.accept_arguments(&call.arguments) {
            Ok(()) => Outcome::success("The result was taken."),
            Err(problem) => Outcome::failure("invalid_result", complaint(&problem, self.name)),
        };
        Box::pin(std::future::ready(outcome))
    }
}
