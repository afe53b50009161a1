//! `structured_output`: the tool with which the model returns a structured answer.

use std::sync::Arc;

use qwen_events::{ToolCall, ToolSpec};
use qwen_tools::{Outcome, Tool, ToolCx, ToolFuture};

use super::{StructuredAnswer, complaint};

pub(super) struct StructuredOutputTool(pub Arc<StructuredAnswer>);

impl Tool for StructuredOutputTool {
    fn spec(&self) -> &ToolSpec {
        &self.0.form.spec
    }

    fn run<'a>(&'a self, call: &'a ToolCall, _: &'a ToolCx) -> ToolFuture<'a> {
        let outcome = match self.0.give(&call.arguments) {
            Ok(()) => Outcome::success("The result was taken."),
            Err(problem) => Outcome::failure("invalid_result", complaint(&problem)),
        };
        Box::pin(std::future::ready(outcome))
    }
}
