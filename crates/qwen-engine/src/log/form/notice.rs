//! Log form of events about a session, a command or a search.

use std::sync::Arc;

use qwen_events::{
    CommandCall, CommandKind, CommandResult, CommandResultBody, Level, PromptId, SessionEvent, SessionId,
    Thinking,
};
use serde::{Deserialize, Serialize};

use super::Raw;

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(in crate::log) enum NoticeForm {
    Finished,
    Compressed {
        original_tokens: u64,
        new_tokens: u64,
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        manual: bool,
    },
    MaxTokens {
        message: Arc<str>,
    },
    MaxTurns {
        limit: u64,
    },
    Cancelled,
    Retry {
        attempt: u32,
        max_retries: u32,
        delay_ms: u64,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        status: Option<u16>,
        error: Arc<str>,
    },
    Waiting {
        reason: Arc<str>,
        delay_ms: u64,
        until: u64,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        status: Option<u16>,
    },
    ModelFallback {
        from: Arc<str>,
        to: Arc<str>,
        reason: Arc<str>,
    },
    LoopDetected {
        message: Arc<str>,
    },
    ModeChanged {
        mode: Arc<str>,
    },
    Steered {
        prompt_id: Arc<str>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        message_uuid: Option<Arc<str>>,
    },
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(in crate::log) enum ThinkingForm {
    TotExpand { candidates: Vec<Arc<str>> },
    TotEvaluate { chosen: u64, scores: Vec<f64> },
    TotBacktrack { reason: Arc<str>, to_depth: u64 },
    GotPlan { node_ids: Vec<Arc<str>>, edge_count: u64 },
    GotNodeStart { id: Arc<str> },
    GotNodeComplete { id: Arc<str>, result_summary: Arc<str> },
    GotNodeFailed { id: Arc<str>, error: Arc<str> },
    GotExpand { id: Arc<str>, nodes_added: u64, edges_added: u64 },
}

#[derive(Debug, Serialize, Deserialize)]
pub(in crate::log) struct CommandResultForm {
    prompt_id: Arc<str>,
    kind: KindForm,
    path: Vec<Arc<str>>,
    args: Arc<str>,
    result: ResultBodyForm,
}

#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum KindForm {
    Slash,
    At,
    Help,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum ResultBodyForm {
    Message { level: LevelForm, content: Arc<str> },
    Dialog { name: Arc<str>, data: Raw },
    Tool { name: Arc<str>, arguments: Raw },
    SubmitPrompt { content: Arc<str> },
}

#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum LevelForm {
    Info,
    Warning,
    Error,
}

impl From<&SessionEvent> for NoticeForm {
    fn from(event: &SessionEvent) -> Self {
        match event.clone() {
            SessionEvent::Finished => Self::Finished,
            SessionEvent::Compressed { original_tokens, new_tokens, manual } => {
                Self::Compressed { original_tokens, new_tokens, manual }
            }
            SessionEvent::MaxTokens { message } => Self::MaxTokens { message },
            SessionEvent::MaxTurns { limit } => Self::MaxTurns { limit },
            SessionEvent::Cancelled => Self::Cancelled,
            SessionEvent::Retry { attempt, max_retries, delay_ms, status, error } => {
                Self::Retry { attempt, max_retries, delay_ms, status, error }
            }
            SessionEvent::Waiting { reason, delay_ms, until, status } => {
                Self::Waiting { reason, delay_ms, until, status }
            }
            SessionEvent::ModelFallback { from, to, reason } => Self::ModelFallback { from, to, reason },
            SessionEvent::LoopDetected { message } => Self::LoopDetected { message },
            SessionEvent::ModeChanged { mode } => Self::ModeChanged { mode },
            SessionEvent::Steered { prompt_id, message_uuid } => {
                Self::Steered { prompt_id: prompt_id.as_str().into(), message_uuid }
            }
        }
    }
}

impl From<NoticeForm> for SessionEvent {
    fn from(form: NoticeForm) -> Self {
        match form {
            NoticeForm::Finished => Self::Finished,
            NoticeForm::Compressed { original_tokens, new_tokens, manual } => {
                Self::Compressed { original_tokens, new_tokens, manual }
            }
            NoticeForm::MaxTokens { message } => Self::MaxTokens { message },
            NoticeForm::MaxTurns { limit } => Self::MaxTurns { limit },
            NoticeForm::Cancelled => Self::Cancelled,
            NoticeForm::Retry { attempt, max_retries, delay_ms, status, error } => {
                Self::Retry { attempt, max_retries, delay_ms, status, error }
            }
            NoticeForm::Waiting { reason, delay_ms, until, status } => {
                Self::Waiting { reason, delay_ms, until, status }
            }
            NoticeForm::ModelFallback { from, to, reason } => Self::ModelFallback { from, to, reason },
            NoticeForm::LoopDetected { message } => Self::LoopDetected { message },
            NoticeForm::ModeChanged { mode } => Self::ModeChanged { mode },
            NoticeForm::Steered { prompt_id, message_uuid } => {
                Self::Steered { prompt_id: PromptId::new(prompt_id), message_uuid }
            }
        }
    }
}

impl From<&Thinking> for ThinkingForm {
    fn from(step: &Thinking) -> Self {
        match step.clone() {
            Thinking::TotExpand { candidates } => Self::TotExpand { candidates },
            Thinking::TotEvaluate { chosen, scores } => Self::TotEvaluate { chosen, scores },
            Thinking::TotBacktrack { reason, to_depth } => Self::TotBacktrack { reason, to_depth },
            Thinking::GotPlan { node_ids, edge_count } => Self::GotPlan { node_ids, edge_count },
            Thinking::GotNodeStart { id } => Self::GotNodeStart { id },
            Thinking::GotNodeComplete { id, result_summary } => Self::GotNodeComplete { id, result_summary },
            Thinking::GotNodeFailed { id, error } => Self::GotNodeFailed { id, error },
            Thinking::GotExpand { id, nodes_added, edges_added } => {
                Self::GotExpand { id, nodes_added, edges_added }
            }
        }
    }
}

impl From<ThinkingForm> for Thinking {
    fn from(form: ThinkingForm) -> Self {
        match form {
            ThinkingForm::TotExpand { candidates } => Self::TotExpand { candidates },
            ThinkingForm::TotEvaluate { chosen, scores } => Self::TotEvaluate { chosen, scores },
            ThinkingForm::TotBacktrack { reason, to_depth } => Self::TotBacktrack { reason, to_depth },
            ThinkingForm::GotPlan { node_ids, edge_count } => Self::GotPlan { node_ids, edge_count },
            ThinkingForm::GotNodeStart { id } => Self::GotNodeStart { id },
            ThinkingForm::GotNodeComplete { id, result_summary } => {
                Self::GotNodeComplete { id, result_summary }
            }
            ThinkingForm::GotNodeFailed { id, error } => Self::GotNodeFailed { id, error },
            ThinkingForm::GotExpand { id, nodes_added, edges_added } => {
                Self::GotExpand { id, nodes_added, edges_added }
            }
        }
    }
}

impl From<&CommandResult> for CommandResultForm {
    fn from(result: &CommandResult) -> Self {
        Self {
            prompt_id: result.prompt_id.as_str().into(),
            kind: match result.command.kind {
                CommandKind::Slash => KindForm::Slash,
                CommandKind::At => KindForm::At,
                CommandKind::Help => KindForm::Help,
            },
            path: result.command.path.clone(),
            args: result.command.args.clone(),
            result: match result.body.clone() {
                CommandResultBody::Message { level, content } => {
                    let level = match level {
                        Level::Info => LevelForm::Info,
                        Level::Warning => LevelForm::Warning,
                        Level::Error => LevelForm::Error,
                    };
                    ResultBodyForm::Message { level, content }
                }
                CommandResultBody::Dialog { name, data } => ResultBodyForm::Dialog { name, data: Raw(data) },
                CommandResultBody::Tool { name, arguments } => {
                    ResultBodyForm::Tool { name, arguments: Raw(arguments) }
                }
                CommandResultBody::SubmitPrompt { content } => ResultBodyForm::SubmitPrompt { content },
            },
        }
    }
}

impl CommandResultForm {
    /// The result of a command in `session`.
    pub fn into_result(self, session: &SessionId) -> CommandResult {
        CommandResult {
            session_id: session.clone(),
            prompt_id: PromptId::new(self.prompt_id),
            message_uuid: None,
            message_origin: None,
            cleared_session: None,
            command: CommandCall {
                kind: match self.kind {
                    KindForm::Slash => CommandKind::Slash,
                    KindForm::At => CommandKind::At,
                    KindForm::Help => CommandKind::Help,
                },
                path: self.path,
                args: self.args,
            },
            body: match self.result {
                ResultBodyForm::Message { level, content } => {
                    let level = match level {
                        LevelForm::Info => Level::Info,
                        LevelForm::Warning => Level::Warning,
                        LevelForm::Error => Level::Error,
                    };
                    CommandResultBody::Message { level, content }
                }
                ResultBodyForm::Dialog { name, data } => CommandResultBody::Dialog { name, data: data.0 },
                ResultBodyForm::Tool { name, arguments } => {
                    CommandResultBody::Tool { name, arguments: arguments.0 }
                }
                ResultBodyForm::SubmitPrompt { content } => CommandResultBody::SubmitPrompt { content },
            },
        }
    }
}
