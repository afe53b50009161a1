//! The kernel that runs the sessions, and the lines that it is sent.

use std::cell::RefCell;
use std::collections::HashMap;
use std::ffi::OsString;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use qwen_dialects::acp::PromptContent;
use qwen_events::{ErrorInfo, ErrorKind, Json, SessionId};
use qwen_kernel::config::{HubConfig, Keys, session_log_directory};
use qwen_kernel::front::{AcpFront, Front, LineWriter};
use qwen_kernel::{Hub, HubParts, Identity, Pool, PoolLimits, Router, SessionLogs};
use serde_json::{Map, Value, json};

use crate::runtime::exit;
use crate::settings::Invocation;

/// The maximum number of sessions with a worker.
const MAX_WORKERS: usize = 256;

/// How long running turns may take to end when the editor has gone.
const END_LIMIT: Duration = Duration::from_millis(1500);

/// Starts the kernel. `worker_args` are the flags of this process that its workers get, too.
pub fn start(worker_args: &[String]) -> Result<Hub, ErrorInfo> {
    let refuse = |message: String| ErrorInfo::new(ErrorKind::Internal, "kernel_not_started", message);
    let invocation = Invocation::current()
        .map_err(|error| refuse(format!("the working directory cannot be used: {error}")))?;
    let front: Arc<dyn Front> = Arc::new(AcpFront);
    let config = HubConfig {
        worker_pool: PoolLimits {
            min_workers: 0,
            max_workers: MAX_WORKERS,
            drain_timeout: END_LIMIT,
            kill_after: END_LIMIT,
            ..PoolLimits::default()
        },
        ..HubConfig::default()
    };
    let binary =
        std::env::current_exe().map_err(|error| refuse(format!("this program cannot be found: {error}")))?;
    let mut args = front.worker_flags();
    args.extend(worker_args.iter().cloned());
    let state = invocation.qwen_home().unwrap_or_else(|| invocation.cwd.join(".qwen")).join("hub");
    let inherited = invocation.vars().map(|(name, _)| name.to_owned()).collect();
    let keys = Rc::new(RefCell::new(Keys::new(&config, binary, args, state, inherited)));
    let default_key = keys.borrow_mut().default_key()?;
    let pool = Pool::new(config.worker_pool, default_key, fastrand::u64(..));
    let writer = LineWriter::new(&*front, "qwen".into(), env!("CARGO_PKG_VERSION"));
    let session = SessionId::from_random(fastrand::u128(..));
    let router = Router::new(front, writer, Box::new(keys), pool, Identity::default(), session);
    let variables: HashMap<String, OsString> =
        invocation.vars().map(|(name, value)| (name.to_owned(), value.into())).collect();
    let session_logs: SessionLogs =
        Box::new(move |key| session_log_directory(key, |name| variables.get(name).cloned()));
    let parts = HubParts {
        router,
        events: None,
        session_logs: Some(session_logs),
        shared: None,
        turn_ends: None,
        log: None,
        worker_stderr: Some(Box::new(exit::report)),
        write_now: None,
    };
    Hub::start(parts).map_err(|error| refuse(format!("the kernel cannot be started: {error}")))
}

/// The options of a session's worker.
pub struct WorkerOptions {
    pub cwd: PathBuf,
    pub args: Vec<String>,
    pub mcp_servers: Map<String, Value>,
}

/// Asks the hub to open a session; the answer carries `request_id`.
pub fn open(hub: &Hub, request_id: &str, id: &SessionId, options: &WorkerOptions) {
    control(hub, request_id, id, json!({"subtype": "open", "cwd": options.cwd, "args": options.args}));
}

/// Starts the session's worker and its MCP servers.
pub fn initialize(hub: &Hub, request_id: &str, id: &SessionId, options: &WorkerOptions) {
    control(hub, request_id, id, json!({"subtype": "initialize", "mcp_servers": options.mcp_servers}));
}

/// Sends a control request with this body.
pub fn control(hub: &Hub, request_id: &str, id: &SessionId, mut body: Value) {
    body["type"] = "control_request".into();
    body["request_id"] = request_id.into();
    body["session_id"] = id.as_str().into();
    hub.client_line(body.to_string().as_bytes());
}

/// Sends a prompt; one that `steers` joins the running turn.
pub fn prompt(hub: &Hub, id: &SessionId, prompt_id: &str, content: &PromptContent, steers: bool) {
    let parts = content.request_parts();
    let mut line = json!({"session_id": id.as_str(), "prompt_id": prompt_id,
        "input": {"origin": "user", "parts": parts}});
    if steers {
        line["delivery"] = "steer".into();
    }
    hub.client_line(line.to_string().as_bytes());
}

/// Cancels a prompt on behalf of the client's `session/cancel`.
pub fn cancel(hub: &Hub, id: &SessionId, prompt_id: &str) {
    let line = json!({"type": "control/cancel", "session_id": id.as_str(), "prompt_id": prompt_id,
        "reason": "session/cancel"});
    hub.client_line(line.to_string().as_bytes());
}

/// Answers a question of a worker.
pub fn answer(hub: &Hub, id: &SessionId, request_id: &str, reply: &Json) {
    let reply: Value = serde_json::from_str(reply.as_str()).unwrap_or_default();
    let line = json!({"type": "control_response", "request_id": request_id, "session_id": id.as_str(),
        "response": {"subtype": "success", "response": reply}});
    hub.client_line(line.to_string().as_bytes());
}
