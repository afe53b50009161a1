//! The control plane: answers the control requests of workers on behalf of a Rust host.
//!
//! Rationale: every request has one answer and a deadline. The rules apply first (deny beats ask beats
//! allow), then the host's callback. Without a rule and a callback, after the deadline, and when a callback
//! panics, the answer is no. A hook event is passed to every function that is registered under the
//! callback's name, and tools of the host are offered to the worker as MCP servers without another process.

mod policy;
mod tools;

use std::collections::HashMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

pub use policy::{PermissionRules, Ruling};
pub use tools::{HostTool, ToolServer};

/// The future that a callback returns.
pub type CallbackFuture<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// A tool call that needs permission.
#[derive(Debug, Clone)]
pub struct PermissionRequest {
    pub session_id: String,
    pub tool_name: String,
    pub arguments: Value,
}

#[derive(Debug, Clone, PartialEq)]
pub enum PermissionResult {
    Allow,
    /// The call runs with these arguments instead.
    AllowWith(Value),
    /// The call does not run, for this reason.
    Deny(String),
    /// Someone else has to decide; no one is left to, so the call does not run.
    Ask,
}

/// Decides about tool calls.
pub type PermissionCallback =
    Arc<dyn Fn(PermissionRequest) -> CallbackFuture<PermissionResult> + Send + Sync>;

/// Receives the event's input and returns the hook's JSON.
pub type HookCallback = Arc<dyn Fn(Value) -> CallbackFuture<Value> + Send + Sync>;

#[derive(Clone)]
pub struct ControlPlane {
    /// Rules, which are applied before the callback.
    pub rules: PermissionRules,
    /// Called if no rule decides.
    pub on_permission: Option<PermissionCallback>,
    /// Hooks: the event and its callback.
    pub hooks: Vec<(String, HookCallback)>,
    /// Tools of the host, by server name.
    pub servers: HashMap<String, Arc<ToolServer>>,
    /// The time limit of an answer.
    pub deadline: Duration,
}

impl Default for ControlPlane {
    fn default() -> Self {
        Self {
            rules: PermissionRules::default(),
            on_permission: None,
            hooks: Vec::new(),
            servers: HashMap::new(),
            deadline: Duration::from_secs(60),
        }
    }
}

impl ControlPlane {
    /// The body of the `initialize` request that declares the host's hooks and tool servers to a worker.
    pub fn initialize(&self) -> Value {
        let mut events: HashMap<&str, Vec<Value>> = HashMap::new();
        for (place, (event, _)) in self.hooks.iter().enumerate() {
            events.entry(event).or_default().push(json!({"hookCallbackIds": [format!("hook-{place}")]}));
        }
        json!({"hooks": events, "sdkMcpServers": self.servers.keys().collect::<Vec<_>>()})
    }

    /// The `response` to a worker's control request.
    pub async fn answer(&self, question: &Value) -> Value {
        let answer = tokio::time::timeout(self.deadline, self.decide(question)).await;
        match answer {
            Ok(Ok(result)) => json!({"subtype": "success", "result": result}),
            Ok(Err(why)) => json!({"subtype": "error", "error": {"message": why, "retryable": false}}),
            Err(_) => {
                let message = format!("the host did not answer within {} s", self.deadline.as_secs_f64());
                json!({"subtype": "error", "error": {"message": message, "retryable": false}})
            }
        }
    }

    async fn decide(&self, question: &Value) -> Result<Value, String> {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        match question["subtype"].as_str() {
            Some("can_use_tool") => {
                let request = PermissionRequest {
                    session_id: text(&question["session_id"]),
                    tool_name: text(&question["tool"]["name"]),
                    arguments: question["tool"]["arguments"].clone(),
                };
                Ok(match self.permit(request).await? {
                    PermissionResult::Allow => json!({"behavior": "allow"}),
                    PermissionResult::AllowWith(input) => json!({"behavior": "allow", "updatedInput": input}),
                    PermissionResult::Deny(message) => json!({"behavior": "deny", "message": message}),
                    PermissionResult::Ask => json!({"behavior": "ask"}),
                })
            }
            Some("hook_callback") => {
                let place = question["callback_id"]
                    .as_str()
                    .and_then(|id| id.strip_prefix("hook-")?.parse::<usize>().ok());
                let hook = place.and_then(|place| self.hooks.get(place));
                let (_, hook) = hook.ok_or("there is no such hook")?;
                guarded(hook(question["input"].clone())).await
            }
            Some("mcp_message") => {
                let name = text(&question["server_name"]);
                let server =
                    self.servers.get(&name).ok_or_else(|| format!("there is no server '{name}' here"))?;
                let server = server.clone();
                let message = question["message"].clone();
                let reply = guarded(Box::pin(async move { server.handle(&message).await })).await?;
                Ok(json!({"mcp_response": reply}))
            }
            other => Err(format!("this host does not answer questions of the kind {other:?}")),
        }
    }

    async fn permit(&self, request: PermissionRequest) -> Result<PermissionResult, String> {
        match (self.rules.ruling(&request.tool_name, &request.arguments), &self.on_permission) {
            (Some(Ruling::Allow), _) => Ok(PermissionResult::Allow),
            (Some(Ruling::Deny), _) => Ok(PermissionResult::Deny("a rule of the host forbids it".to_owned())),
            (Some(Ruling::Ask) | None, Some(callback)) => guarded(callback(request)).await,
            (Some(Ruling::Ask) | None, None) => Ok(PermissionResult::Deny("no one can allow it".to_owned())),
        }
    }
}

/// The result of a callback; an error if it panics. A callback that is no longer awaited is cancelled.
async fn guarded<T: Send + 'static>(answer: CallbackFuture<T>) -> Result<T, String> {
    let mut task = tokio::task::JoinSet::new();
    task.spawn(answer);
    match task.join_next().await {
        Some(Ok(answer)) => Ok(answer),
        _ => Err("the host's callback failed".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asks(command: &str) -> Value {
        json!({"type": "control_request", "subtype": "can_use_tool", "session_id": "s",
            "tool": {"name": "run_shell_command", "arguments": {"command": command}}})
    }

    async fn behavior(plane: &ControlPlane, command: &str) -> String {
        plane.answer(&asks(command)).await["result"]["behavior"].as_str().unwrap_or("error").to_owned()
    }

    #[tokio::test]
    async fn without_a_rule_and_a_callback_the_answer_is_no() {
        assert_eq!(behavior(&ControlPlane::default(), "ls").await, "deny");
    }

    #[tokio::test]
    async fn rules_come_before_the_callback_and_deny_comes_first() {
        let words = |list: &[&str]| list.iter().map(|word| (*word).to_owned()).collect();
        let plane = ControlPlane {
            rules: PermissionRules {
                allow: words(&["run_shell_command(git *)"]),
                ask: words(&["run_shell_command(git push*)"]),
                deny: words(&["run_shell_command(*rm*)"]),
            },
            on_permission: Some(Arc::new(|_| Box::pin(async { PermissionResult::Deny("asked".to_owned()) }))),
            ..ControlPlane::default()
        };
        for (command, expected) in
            [("git log", "allow"), ("git push", "deny"), ("git log; rm x", "deny"), ("make", "deny")]
        {
            assert_eq!(behavior(&plane, command).await, expected, "{command}");
        }
    }

    #[tokio::test]
    async fn a_callback_that_never_returns_or_panics_is_no_permission() {
        let never: PermissionCallback = Arc::new(|_| Box::pin(std::future::pending()));
        let panics: PermissionCallback = Arc::new(|_| Box::pin(async { panic!("on purpose") }));
        for callback in [never, panics] {
            let deadline = Duration::from_millis(20);
            let plane = ControlPlane { on_permission: Some(callback), deadline, ..ControlPlane::default() };
            assert_eq!(plane.answer(&asks("ls")).await["subtype"], "error");
        }
    }
}
