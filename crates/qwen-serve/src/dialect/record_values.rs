//! The values in a session's lines as those of events.

use std::cell::RefCell;
use std::collections::HashSet;
use std::path::Path;
use std::sync::Arc;

use qwen_events::{
    CallId, Channel, Confirmation, ConsoleLevel, Denial, DiffStat, Display, EndStatus, ErrorInfo, ErrorKind,
    FileDiff, Finish, Json, LogScope, ModelUsage, PromptId, SessionEvent, TaskProgress, Todo, TodoStatus,
    ToolCall, ToolEnd, ToolStatus, TurnEnd, Usage,
};
use serde_json::Value;

/// How many different error codes are kept for the life of the process.
const MAX_CODES: usize = 512;

pub fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn shared(value: &Value) -> Arc<str> {
    value.as_str().unwrap_or_default().into()
}

fn number(value: &Value) -> u64 {
    value.as_u64().unwrap_or_default()
}

pub fn usage(value: &Value) -> Usage {
    Usage {
        prompt_tokens: number(&value["prompt_tokens"]),
        completion_tokens: number(&value["completion_tokens"]),
        cached_tokens: number(&value["prompt_tokens_details"]["cached_tokens"]),
        cache_write_tokens: number(&value["prompt_tokens_details"]["cache_write_tokens"]),
        thought_tokens: number(&value["completion_tokens_details"]["reasoning_tokens"]),
        estimated: value["estimated"] == true,
    }
}

pub fn finish(reason: &Value, has_calls: bool) -> Finish {
    let known = Finish::ALL.into_iter().find(|finish| reason == finish.openai());
    known.unwrap_or(if has_calls { Finish::ToolCalls } else { Finish::Stop })
}

/// A code of the worker. Events keep codes for the life of the process; the worker has few of them.
fn error_code(code: &str) -> &'static str {
    thread_local! {
        static CODES: RefCell<HashSet<&'static str>> = RefCell::default();
    }
    CODES.with_borrow_mut(|codes| match codes.get(code) {
        Some(known) => known,
        None if codes.len() < MAX_CODES && code.len() <= 64 => {
            let kept: &'static str = Box::leak(code.to_owned().into_boxed_str());
            codes.insert(kept);
            kept
        }
        None => "error",
    })
}

/// The error of a line.
pub fn error(value: &Value) -> ErrorInfo {
    let kind = match value["type"].as_str().unwrap_or_default() {
        "authentication_error" | "auth_error" => ErrorKind::Auth,
        "invalid_request_error" => ErrorKind::Input,
        "limit_reached" => ErrorKind::Limit,
        "model_error" | "server_error" | "api_error" => ErrorKind::Model,
        _ => ErrorKind::Internal,
    };
    let code = error_code(value["code"].as_str().unwrap_or("error"));
    let mut error = ErrorInfo::new(kind, code, shared(&value["message"]));
    error.param = value["param"].as_str().map(Arc::from);
    error.status = value["status"].as_u64().and_then(|status| u16::try_from(status).ok());
    error.retryable = value["retryable"] == true;
    error
}

/// The end of a turn, from its terminal record.
pub fn turn_end(prompt_id: PromptId, reply: Arc<str>, line: &Value) -> TurnEnd {
    let turn = &line["metadata"]["turn"];
    let word = turn["status"].as_str().unwrap_or_default();
    let status = EndStatus::ALL.into_iter().find(|status| status.name() == word);
    let models = turn["usage_by_model"].as_object();
    let usage_by_model: Vec<ModelUsage> = models
        .into_iter()
        .flatten()
        .map(|(model, spent)| ModelUsage {
            model: model.as_str().into(),
            calls: number(&spent["calls"]),
            usage: Usage {
                prompt_tokens: number(&spent["prompt_tokens"]),
                completion_tokens: number(&spent["completion_tokens"]),
                cached_tokens: number(&spent["cached_tokens"]),
                thought_tokens: number(&spent["reasoning_tokens"]),
                ..Usage::default()
            },
            cost_usd: spent["cost_usd"].as_f64().unwrap_or_default(),
        })
        .collect();
    let denials = turn["permission_denials"].as_array();
    TurnEnd {
        error: line["metadata"]["error"].is_object().then(|| error(&line["metadata"]["error"])),
        reply,
        finish: finish(&line["choices"][0]["finish_reason"], false),
        usage: usage(&line["usage"]),
        cost_usd: usage_by_model.iter().map(|spent| spent.cost_usd).sum(),
        usage_by_model,
        duration_ms: number(&turn["duration_ms"]),
        model_calls: number(&turn["model_calls"]),
        tool_calls: number(&turn["tool_calls"]),
        denials: denials
            .into_iter()
            .flatten()
            .map(|denial| Denial {
                tool_name: shared(&denial["tool_name"]),
                call_id: CallId::new(text(&denial["tool_call_id"])),
                arguments: Json::trusted(denial["arguments"].to_string()),
                reason: shared(&denial["reason"]),
            })
            .collect(),
        structured: Some(&turn["structured_output"])
            .filter(|value| !value.is_null())
            .map(|value| Json::trusted(value.to_string())),
        continuation: turn["continuation"] == true,
        ..TurnEnd::new(prompt_id, status.unwrap_or(EndStatus::Error))
    }
}

pub fn channel(value: &Value) -> Channel {
    if value == "stderr" { Channel::Stderr } else { Channel::Stdout }
}

pub fn console_level(word: &str) -> ConsoleLevel {
    match word {
        "error" => ConsoleLevel::Error,
        "warn" => ConsoleLevel::Warn,
        "debug" => ConsoleLevel::Debug,
        _ => ConsoleLevel::Info,
    }
}

pub fn log_scope(value: &Value) -> LogScope {
    match value.as_str() {
        Some("tool") => LogScope::Tool,
        Some("debug") => LogScope::Debug,
        _ => LogScope::System,
    }
}

/// How a call ended. A failed call that never started was refused.
pub fn status(word: &str, was_started: bool) -> ToolStatus {
    match (word, was_started) {
        ("success", _) => ToolStatus::Success,
        ("canceled", _) => ToolStatus::Cancelled,
        (_, true) => ToolStatus::Error,
        (_, false) => ToolStatus::Denied,
    }
}

pub fn tool_end(call: Arc<ToolCall>, status: ToolStatus, shown: Option<Display>) -> ToolEnd {
    let text: Arc<str> = match &shown {
        Some(Display::Text(text)) => text.clone(),
        Some(Display::FileDiff(change)) => change.diff.clone(),
        Some(Display::Plan { plan, .. }) => plan.clone(),
        Some(Display::Task(task)) => task.result.clone().unwrap_or_default(),
        Some(Display::TodoList(_)) | None => Arc::default(),
    };
    ToolEnd {
        call,
        status,
        text,
        media: Vec::new(),
        display: shown.filter(|shown| !matches!(shown, Display::Text(_))),
        error_code: None,
        output_file: None,
        exit_code: None,
        duration_ms: 0,
    }
}

fn counts(value: &Value) -> DiffStat {
    DiffStat {
        ai_added_lines: number(&value["ai_added_lines"]),
        ai_removed_lines: number(&value["ai_removed_lines"]),
        user_added_lines: number(&value["user_added_lines"]),
        user_removed_lines: number(&value["user_removed_lines"]),
    }
}

fn file_diff(value: &Value, workspace: &str) -> FileDiff {
    let name = text(&value["file_name"]);
    let path = value["file_path"].as_str().map(str::to_owned);
    FileDiff {
        file_path: path.unwrap_or_else(|| Path::new(workspace).join(&name).display().to_string()).into(),
        file_name: name.into(),
        diff: shared(&value["diff"]),
        original: value["original"].as_str().map(Arc::from),
        modified: shared(&value["modified"]),
        stat: counts(&value["stat"]),
    }
}

/// What users see of a call.
pub fn display(value: &Value, workspace: &str) -> Option<Display> {
    Some(match value["kind"].as_str()? {
        "file_diff" => Display::FileDiff(file_diff(value, workspace)),
        "todo_list" => {
            let todos = value["todos"].as_array().into_iter().flatten();
            Display::TodoList(todos.map(todo).collect())
        }
        "plan_summary" => Display::Plan { message: shared(&value["message"]), plan: shared(&value["plan"]) },
        "task_execution" => Display::Task(TaskProgress {
            agent: shared(&value["agent"]),
            description: shared(&value["description"]),
            status: match value["status"].as_str() {
                Some("completed") => "completed",
                Some("failed") => "failed",
                Some("cancelled") => "cancelled",
                _ => "running",
            },
            tool_calls: number(&value["tool_calls"]),
            tokens: number(&value["tokens"]),
            result: value["result"].as_str().map(Arc::from),
        }),
        _ => Display::Text(shared(&value["text"])),
    })
}

fn todo(value: &Value) -> Todo {
    Todo {
        id: shared(&value["id"]),
        content: shared(&value["content"]),
        status: match value["status"].as_str() {
            Some("completed") => TodoStatus::Completed,
            Some("in_progress") => TodoStatus::InProgress,
            _ => TodoStatus::Pending,
        },
    }
}

/// What someone is asked to agree to.
pub fn confirmation(value: &Value) -> Confirmation {
    match value["type"].as_str() {
        Some("edit") => Confirmation::Edit(file_diff(value, "")),
        Some("exec") => Confirmation::Exec {
            command: shared(&value["command"]),
            root_command: shared(&value["root_command"]),
        },
        Some("mcp") => Confirmation::Mcp {
            server: shared(&value["server_name"]),
            tool: shared(&value["tool_name"]),
            display: shared(&value["tool_display_name"]),
        },
        Some("plan") => Confirmation::Plan { plan: shared(&value["plan"]) },
        _ => Confirmation::Info {
            prompt: shared(&value["prompt"]),
            urls: value["urls"].as_array().into_iter().flatten().map(shared).collect(),
        },
    }
}

/// A notice by its name; none if only the `qwen` dialect has it.
pub fn session_event(name: &str, line: &Value) -> Option<SessionEvent> {
    let message = text(&line["message"]);
    let metrics = &line["metrics"];
    let status = metrics["status"].as_u64().and_then(|status| u16::try_from(status).ok());
    let small = |value: &Value| u32::try_from(number(value)).unwrap_or(u32::MAX);
    let after = |words: &str| message.split_once(words).map_or(&*message, |(_, rest)| rest).to_owned();
    Some(match name {
        "ChatCompressed" => SessionEvent::Compressed {
            original_tokens: number(&metrics["original_tokens"]),
            new_tokens: number(&metrics["compressed_tokens"]),
            manual: false,
        },
        "MAX_TOKENS" => SessionEvent::MaxTokens { message: message.into() },
        "MaxSessionTurns" => SessionEvent::MaxTurns { limit: number(&metrics["limit"]) },
        "Retry" => SessionEvent::Retry {
            attempt: small(&metrics["attempt"]),
            max_retries: small(&metrics["max_retries"]),
            delay_ms: number(&metrics["delay_ms"]),
            status,
            error: after("tried again: ").into(),
        },
        "Waiting" => SessionEvent::Waiting {
            reason: after("limit: ").into(),
            delay_ms: number(&metrics["delay_ms"]),
            until: 0,
            status,
        },
        "LoopDetected" => SessionEvent::LoopDetected { message: message.into() },
        "ModeChanged" => {
            let mode = message.trim_end_matches('.').rsplit(' ').next().unwrap_or_default();
            SessionEvent::ModeChanged { mode: mode.into() }
        }
        "Steered" => {
            SessionEvent::Steered { prompt_id: PromptId::new(text(&line["prompt_id"])), message_uuid: None }
        }
        _ => return None,
    })
}
