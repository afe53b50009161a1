//! Tools that the host runs: the model sees them like all others, and their calls wait for the host.

use std::sync::Arc;

use qwen_events::{ToolCall, ToolSpec};
use qwen_tools::{CallContext, Outcome, Registry, Tool, ToolFuture};

use crate::context::TurnContext;

/// The result that the model gets if the turn ends before the host has answered.
const UNANSWERED: &str = "not answered: the turn ended before the host gave the result of this call";

struct HostTool(ToolSpec);

impl Tool for HostTool {
    fn spec(&self) -> &ToolSpec {
        &self.0
    }

    fn is_deferrable(&self) -> bool {
        true
    }

    fn run<'a>(&'a self, _: &'a ToolCall, _: &'a CallContext) -> ToolFuture<'a> {
        // Unreachable: its calls go to the host.
        Box::pin(std::future::ready(unanswered()))
    }
}

/// `tools` plus those that the host runs. A host tool replaces a built-in tool of the same name.
pub(crate) fn with_host_tools(tools: Arc<Registry>, specs: &[ToolSpec]) -> Arc<Registry> {
    if specs.is_empty() {
        return tools;
    }
    let mut all = Registry::clone(&tools);
    for spec in specs {
        all.add(Arc::new(HostTool(spec.clone())));
    }
    Arc::new(all)
}

impl TurnContext {
    /// Accepts the host's answers to its calls among `calls`, from the moment the host learns of them.
    pub fn expect_host(&self, calls: &[Arc<ToolCall>]) {
        if self.host_tools.is_empty() {
            return;
        }
        let by_host = calls.iter().filter(|call| self.host_tools.contains(&call.name));
        self.session.process.overrides.in_flight().expect_host_answers(by_host.map(|call| call.id.clone()));
    }
}

/// Waits for the host's answer to a call of one of its tools.
pub(super) async fn wait(
    context: &TurnContext,
    call: &Arc<ToolCall>,
    cx: &crate::graph::RunContext,
) -> Outcome {
    match context.session.process.overrides.in_flight().wait_for_answer(call, cx.cancel.token()).await {
        Some(result) => Outcome {
            text: result.text.to_string(),
            media: result.media,
            error_code: result.is_error.then_some("host_tool_failed"),
            ..Outcome::default()
        },
        None => unanswered(),
    }
}

fn unanswered() -> Outcome {
    Outcome { cancelled: true, ..Outcome::failure("cancelled", UNANSWERED) }
}
