//! `qwen doctor`: checks everything that a run needs, and suggests a remedy for each failure.

use std::fmt::Write;
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use qwen_engine::HeadlessHost;
use qwen_events::{Message, Role};
use qwen_mcp::Status;
use qwen_model::{ModelConfig, Piece, Provider, Request};
use qwen_tools::Registry;
use serde_json::{Value, json};

use super::models;
use crate::cli::ModelsArgs;
use crate::model_list;
use crate::session::ProcessContext;
use crate::settings::{Config, Invocation};

/// How long MCP servers may take to start.
const MCP_TIMEOUT: Duration = Duration::from_secs(10);

/// How long the model may take to answer.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(120);

const SERVER: &str = "server";
const MODEL: &str = "model";
const TOOL_CALL: &str = "tool call";

/// The free space below which a disk is reported, in bytes.
const LOW_DISK: u64 = 100 * 1024 * 1024;

/// The report, and whether everything works.
pub struct Diagnosis {
    pub text: String,
    pub is_healthy: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Health {
    Ok,
    Warning,
    Failed,
    /// It depends on something that failed.
    Skipped,
}

impl Health {
    fn word(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Warning => "warning",
            Self::Failed => "failed",
            Self::Skipped => "skipped",
        }
    }
}

struct Check {
    name: &'static str,
    health: Health,
    text: String,
}

/// Checks settings, server, model, tool calls, sandbox, MCP servers and disk.
pub async fn run(args: &ModelsArgs, invocation: &mut Invocation) -> Diagnosis {
    let mut checks = Vec::new();
    match models::config_with_discovery(args, invocation).await {
        Ok(config) => {
            let count = config.diagnostics.warnings.len();
            let health = if count == 0 { Health::Ok } else { Health::Warning };
            let text = match &config.diagnostics.warnings[..] {
                [] => "read without warnings (see qwen config)".to_owned(),
                warnings => warnings.join("; "),
            };
            checks.push(Check { name: "settings", health, text });
            model(&config, &mut checks).await;
            sandbox(Some(&config), &mut checks);
            checks.push(mcp(&config).await);
            checks.push(disk(&config));
            for check in &mut checks {
                check.text = config.diagnostics.redactor.redact(&check.text).into_owned();
            }
        }
        Err(error) => {
            checks.push(Check { name: "settings", health: Health::Failed, text: error.to_string() });
            let skipped = |name| Check {
                name,
                health: Health::Skipped,
                text: "needs settings that can be read".to_owned(),
            };
            checks.extend([SERVER, MODEL, TOOL_CALL].map(skipped));
            sandbox(None, &mut checks);
            checks.extend(["mcp", "disk"].map(skipped));
        }
    }
    let is_healthy = checks.iter().all(|check| check.health != Health::Failed);
    Diagnosis { text: if args.json { as_json(&checks) } else { as_text(&checks) }, is_healthy }
}

async fn model(config: &Config, checks: &mut Vec<Check>) {
    let skipped = |name| Check { name, health: Health::Skipped, text: "needs a model".to_owned() };
    let model = match (&config.model.config, &config.model.undecided) {
        (Ok(model), None) => model,
        (Err(error), _) | (Ok(_), Some(error)) => {
            checks.push(match config.model.undecided {
                Some(_) => Check { name: SERVER, health: Health::Ok, text: "lists its models".to_owned() },
                None => skipped(SERVER),
            });
            checks.push(Check { name: MODEL, health: Health::Failed, text: error.to_string() });
            checks.push(skipped(TOOL_CALL));
            return;
        }
    };
    checks.push(server(model).await);
    checks.extend(ask_for_tool_call(model).await);
}

async fn server(model: &ModelConfig) -> Check {
    let check = |health, text: String| Check { name: SERVER, health, text };
    match model.provider {
        Provider::OpenAi | Provider::Anthropic => {}
        Provider::Demo | Provider::Script(_) | Provider::Replay(_) | Provider::Oracle(_) => {
            return check(Health::Ok, format!("'{}' needs none", model.model));
        }
    }
    match model_list::fetch(model, model_list::TIMEOUT).await {
        Ok(names) if names.contains(&model.model) => {
            let text = match names.len() {
                1 => format!("offers one model, '{}'", model.model),
                count => format!("offers {count} models, '{}' among them", model.model),
            };
            check(Health::Ok, text)
        }
        Ok(names) => {
            let listed: Vec<&str> = names.iter().take(10).map(String::as_str).collect();
            let text = format!("does not list '{}'; it offers {}", model.model, listed.join(", "));
            check(Health::Warning, text)
        }
        Err(error) => check(Health::Warning, error.to_string()),
    }
}

/// Asks the model for one tool call: whether it answers, and whether it calls the tool.
async fn ask_for_tool_call(config: &ModelConfig) -> [Check; 2] {
    let checks = |health, text: String, calls: (Health, String)| {
        [Check { name: MODEL, health, text }, Check { name: TOOL_CALL, health: calls.0, text: calls.1 }]
    };
    let failed =
        |text: String| checks(Health::Failed, text, (Health::Skipped, "needs a working model".to_owned()));
    // A diagnosis reports the first failure, so nothing is retried.
    let model = match qwen_model::build(&ModelConfig { max_retries: 0, ..config.clone() }) {
        Ok(model) => model,
        Err(error) => return failed(error.to_string()),
    };
    let tools: Vec<_> =
        Registry::builtin().specs().iter().filter(|tool| &*tool.name == "list_directory").cloned().collect();
    let request = Request {
        system: "You are being tested. Call the tool list_directory with the path \".\" and do nothing else."
            .into(),
        situation: Arc::default(),
        messages: Arc::new(vec![Message::text(Role::User, "Look around: list the directory.")]),
        tools: tools.into(),
        sampling: qwen_events::Sampling::default(),
        model: None,
        response_schema: None,
        caller: None,
        trace: None,
    };
    let mut pieces = model.call(request);
    let (mut called, mut answered) = (false, false);
    let deadline = tokio::time::Instant::now() + ANSWER_TIMEOUT;
    loop {
        let piece = match tokio::time::timeout_at(deadline, pieces.next()).await {
            Ok(Some(piece)) => piece,
            Ok(None) => break,
            // A small model may not stop by itself; it answers all the same.
            Err(_) if answered || called => break,
            Err(_) => {
                let limit = ANSWER_TIMEOUT.as_secs();
                return failed(format!("'{}' gave no answer within {limit} s", config.model));
            }
        };
        match piece {
            Ok(Piece::Call { .. }) => called = true,
            Ok(Piece::Text(_) | Piece::Thought(_)) => answered = true,
            Ok(_) => {}
            Err(error) => return failed(error.0.to_string()),
        }
    }
    let name = &config.model;
    let answers = format!("'{name}' answers");
    match (called, answered) {
        (true, _) => checks(Health::Ok, answers, (Health::Ok, format!("'{name}' calls tools"))),
        (false, true) => {
            let text = format!("'{name}' called no tool when asked to; choose a model with tool support");
            checks(Health::Ok, answers, (Health::Warning, text))
        }
        (false, false) => failed(format!("'{name}' gave an empty answer")),
    }
}

fn sandbox(config: Option<&Config>, checks: &mut Vec<Check>) {
    let report = qwen_sandbox::report();
    let off = config.is_some_and(|config| config.sandbox.mode == qwen_sandbox::SandboxMode::Off);
    let (health, text) = match (off, report.enforceable()) {
        (true, _) => (Health::Warning, "switched off by the settings".to_owned()),
        (false, true) => (Health::Ok, "can be enforced (see qwen sandbox)".to_owned()),
        (false, false) => {
            (Health::Warning, "cannot be enforced on this machine (see qwen sandbox)".to_owned())
        }
    };
    checks.push(Check { name: "sandbox", health, text });
}

async fn mcp(config: &Config) -> Check {
    let check = |health, text: String| Check { name: "mcp", health, text };
    if config.extensions.mcp_servers.is_empty() {
        return check(Health::Ok, "no servers are configured".to_owned());
    }
    let process = match ProcessContext::new(Arc::new(config.clone()), Arc::new(HeadlessHost), None) {
        Ok(process) => process,
        Err(error) => return check(Health::Failed, error.to_string()),
    };
    process.services.mcp.connect_all(MCP_TIMEOUT).await;
    let servers = process.services.mcp.status();
    let failed: Vec<String> = servers
        .iter()
        .filter(|server| server.status != Status::Connected)
        .map(|server| format!("{}: {}", server.name, server.error.as_deref().unwrap_or("not connected")))
        .collect();
    let _ = tokio::time::timeout(MCP_TIMEOUT, process.services.mcp.shutdown()).await;
    match &failed[..] {
        [] => check(Health::Ok, format!("{} servers connect", servers.len())),
        failed => check(Health::Failed, failed.join("; ")),
    }
}

fn disk(config: &Config) -> Check {
    let check = |health, text: String| Check { name: "disk", health, text };
    let Some(home) = &config.workspace.qwen_home else {
        return check(Health::Warning, "there is no home directory: sessions are not stored".to_owned());
    };
    let home = config.workspace.cwd.join(home);
    let existing = home.ancestors().find(|path| path.is_dir()).unwrap_or(&home);
    let Ok(stat) = rustix::fs::statvfs(existing) else {
        return check(Health::Failed, format!("{} cannot be inspected", existing.display()));
    };
    let free = stat.f_bavail.saturating_mul(stat.f_frsize);
    if rustix::fs::access(existing, rustix::fs::Access::WRITE_OK).is_err() {
        return check(Health::Failed, format!("{} cannot be written", existing.display()));
    }
    let text = format!("{} MiB free in {}", free / 1024 / 1024, existing.display());
    check(if free < LOW_DISK { Health::Warning } else { Health::Ok }, text)
}

fn as_text(checks: &[Check]) -> String {
    let mut text = String::new();
    for check in checks {
        // Writing to a `String` cannot fail.
        let _ =
            writeln!(text, "{:9} {:8} {}", check.name, check.health.word(), check.text.replace('\n', " "));
    }
    text
}

fn as_json(checks: &[Check]) -> String {
    let one = |check: &Check| json!({"check": check.name.replace(' ', "_"), "status": check.health.word(), "message": check.text});
    format!("{:#}\n", Value::Array(checks.iter().map(one).collect()))
}
