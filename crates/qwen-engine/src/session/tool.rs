//! Tools that the user runs with a command.

use std::sync::Arc;

use qwen_events::ToolCall;
use qwen_tools::{CallContext, DiscardedOutput};

use super::Session;
use crate::Cancel;

impl Session {
    /// Runs a tool outside the conversation and returns its result. No permission question is asked, because
    /// the user typed the command.
    pub async fn run_tool(&self, call: &ToolCall, cancel: &Cancel) -> Result<String, String> {
        let Some(tool) = self.context.base_tools.get(&call.name) else {
            return Err(format!("The tool {} is not available in this session.", call.name));
        };
        let resources = self.context.resources.clone();
        let cx = CallContext::new(resources, cancel.token().clone(), Arc::new(DiscardedOutput));
        let outcome = tool.run(call, &cx).await;
        if outcome.error_code.is_none() && !outcome.cancelled { Ok(outcome.text) } else { Err(outcome.text) }
    }
}
