//! Commands that the user types: they run as a separate turn, without the model, and join the
//! conversation.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use qwen_events::{Behavior, CallId, Json, Message, Part, PermissionAnswer, Role, ToolCall};
use qwen_tools::Registry;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::host::HostAnswer;
use crate::react::ReactState;
use crate::{Host, HostHookCall, Question, TOOLS};

const SHELL: &str = "run_shell_command";

/// Adds the call that runs `command` to a conversation that ends with the user's message.
pub(super) fn request(command: &str, tools: &Registry, mut state: ReactState) -> ReactState {
    let name = TOOLS.find(SHELL).map_or(SHELL, |tool| tools.name_of(tool));
    let call = Arc::new(ToolCall::new(
        CallId::new(format!("typed-{:016x}", fastrand::u64(..))),
        name.into(),
        Json::trusted(json!({"command": command}).to_string()),
    ));
    let message = Message { role: Role::Assistant, parts: vec![Part::Call(call.clone())] };
    Arc::make_mut(&mut state.messages).push(message);
    state.pending = vec![call];
    state
}

/// Answers the permission question about a command that the user typed with yes. What a rule denies stays
/// denied, because no question is asked about it.
pub(super) struct TypedByUser(pub Arc<dyn Host>);

impl Host for TypedByUser {
    fn listens(&self) -> bool {
        true
    }

    fn ask<'a>(&'a self, _: Question, _: &'a CancellationToken) -> BoxFuture<'a, PermissionAnswer> {
        Box::pin(async {
            PermissionAnswer {
                behavior: Behavior::Allow,
                message: None,
                updated_input: None,
                updated_permissions: Vec::new(),
                interrupt: false,
            }
        })
    }

    fn hook<'a>(&'a self, callback: HostHookCall<'a>, cancel: &'a CancellationToken) -> HostAnswer<'a> {
        self.0.hook(callback, cancel)
    }

    fn mcp<'a>(&'a self, server: &'a str, message: Json, cancel: &'a CancellationToken) -> HostAnswer<'a> {
        self.0.mcp(server, message, cancel)
    }
}
