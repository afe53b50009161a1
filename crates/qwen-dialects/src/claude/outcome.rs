//! The end of a turn: the `result` line and the lines that must precede it.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use qwen_events::{AgentUsage, EndStatus, ErrorInfo, Finish, Json, ModelUsage, TurnEnd, Usage};

use super::stream::limit::{cut_middle, json_len, pieces, text_limit};
use super::stream::{AssistantBlock, Stream};
use super::wire::message::{Block, Content, TokenUsage, UserMessage, UserRole};
use super::wire::result::{
    AgentTokens, DeferredToolUse, ModelTokens, PermissionDenial, ResultError, ResultLine, Subtype,
};
use super::wire::{Message, UserLine};
use super::words::{
    NO_STRUCTURED_OUTPUT, SYNTHETIC, TOOL_DEFERRED, api_error_kind, api_error_text, claude_reason,
    is_api_error, stop_reason, tokens, with_claude_fields,
};
use crate::line::push_line;
use crate::payload::Payload;

/// The message of a cancelled turn for Qwen's SDKs.
const CANCELLED: &str = "Operation cancelled.";

/// What the result of a turn repeats of the line that started it.
#[derive(Debug, Default)]
pub(super) struct PromptEcho {
    /// The author, as the host described it.
    pub origin: Option<Json>,
    /// The host's id of the line.
    pub uuid: Option<Arc<str>>,
}

/// The usage that a `result` reports.
pub(super) struct ReportedUsage<'a> {
    pub usage: &'a Usage,
    /// Tokens by model, of all turns so far.
    pub by_model: &'a [ModelUsage],
    /// The price in US dollars, of all turns so far.
    pub cost_usd: f64,
}

/// The end of a turn in the dialect's terms.
struct Outcome<'a> {
    subtype: Subtype,
    is_error: bool,
    /// The answer; error subtypes have none.
    result: Option<Cow<'a, str>>,
    /// The error; `success` has none.
    error: Option<Cow<'a, str>>,
    terminal_reason: &'static str,
    api_error_status: Option<u16>,
}

impl Stream {
    /// Writes the end of a turn. `tool_cancelled` is true if the cancel hit a tool call.
    pub(super) fn push_turn_end(
        &mut self,
        out: &mut Vec<u8>,
        end: &TurnEnd,
        spent: &ReportedUsage<'_>,
        echo: &PromptEcho,
        tool_cancelled: bool,
    ) {
        if end.status == EndStatus::Cancelled {
            self.push_interruption(out, tool_cancelled);
        }
        let api_error =
            end.error.as_ref().filter(|error| end.status == EndStatus::Error && is_api_error(error));
        if let Some(error) = api_error.filter(|_| !self.qwen_sdk) {
            self.push_synthetic(out, &api_error_text(error), Some(api_error_kind(error.status)));
        }
        let outcome = self.outcome(end, api_error, tool_cancelled);
        let uuid = self.uuids.next();
        self.push_result(
            out,
            ResultLine {
                duration_ms: end.duration_ms,
                duration_api_ms: end.api_duration_ms,
                num_turns: end.model_calls,
                stop_reason: match &end.postponed {
                    Some(_) => Some(TOOL_DEFERRED.into()),
                    None => (end.status == EndStatus::Done || end.is_refused() || end.status.is_limit())
                        .then(|| stop_reason(end.finish).into()),
                },
                total_cost_usd: spent.cost_usd,
                usage: {
                    let usage = tokens(spent.usage, self.qwen_sdk);
                    if self.claude_host { with_claude_fields(usage) } else { usage }
                },
                model_usage: self.model_usage(spent.by_model),
                agent_usage: self.agent_usage(&end.usage_by_agent),
                permission_denials: end.denials.iter().map(PermissionDenial::from).collect(),
                deferred_tool_use: end.postponed.as_deref().map(|call| DeferredToolUse {
                    id: call.id.as_str().into(),
                    name: call.name.as_ref().into(),
                    input: Payload::new(&call.arguments),
                }),
                structured_output: end.structured.as_ref().map(Payload::new),
                structured_result: end.structured.as_ref().filter(|_| self.qwen_sdk).map(Payload::new),
                origin: echo.origin.as_ref().map(Payload::new),
                user_message_uuid: echo.uuid.as_deref().filter(|_| self.claude_host).map(Cow::Borrowed),
                ..self.result_line(uuid.as_str(), outcome)
            },
        );
    }

    fn model_usage<'a>(&self, by_model: &'a [ModelUsage]) -> BTreeMap<Cow<'a, str>, ModelTokens> {
        let report = |spent: &ModelUsage| {
            let usage = tokens(&spent.usage, self.qwen_sdk);
            ModelTokens {
                input_tokens: usage.input_tokens,
                output_tokens: usage.output_tokens,
                cache_read_input_tokens: usage.cache_read_input_tokens,
                cache_creation_input_tokens: usage.cache_creation_input_tokens,
                thinking_tokens: Some(spent.usage.thought_tokens).filter(|tokens| *tokens > 0),
                web_search_requests: 0,
                context_window: self.model_limits.context_window,
                max_output_tokens: self.model_limits.max_output_tokens,
                cost_usd: spent.cost_usd,
            }
        };
        by_model.iter().map(|spent| (spent.model.as_ref().into(), report(spent))).collect()
    }

    fn agent_usage<'a>(&self, by_agent: &'a [AgentUsage]) -> BTreeMap<Cow<'a, str>, AgentTokens> {
        let report = |spent: &AgentUsage| {
            let usage = tokens(&spent.usage, self.qwen_sdk);
            AgentTokens {
                runs: spent.runs,
                model_calls: spent.model_calls,
                tool_calls: spent.tool_calls,
                input_tokens: usage.input_tokens,
                output_tokens: usage.output_tokens,
                cache_read_input_tokens: usage.cache_read_input_tokens,
                cache_creation_input_tokens: usage.cache_creation_input_tokens,
                cost_usd: spent.cost_usd,
            }
        };
        by_agent.iter().map(|spent| (spent.agent.as_ref().into(), report(spent))).collect()
    }

    /// Writes the end of a command that was not sent to the model: its output as a message, then a
    /// `result`.
    pub(super) fn push_command_answer(
        &mut self,
        out: &mut Vec<u8>,
        words: &str,
        is_error: bool,
        origin: Option<&Json>,
    ) {
        self.push_synthetic(out, words, None);
        let outcome = Outcome {
            subtype: Subtype::Success,
            is_error,
            result: Some(words.into()),
            error: None,
            terminal_reason: "completed",
            api_error_status: None,
        };
        let uuid = self.uuids.next();
        let origin = origin.map(Payload::new);
        self.push_result(out, ResultLine { origin, ..self.result_line(uuid.as_str(), outcome) });
    }

    /// Writes the only record of a fatal error.
    pub(super) fn push_fatal(&mut self, out: &mut Vec<u8>, error: &ErrorInfo) {
        let outcome = Outcome {
            subtype: Subtype::ErrorDuringExecution,
            is_error: true,
            result: None,
            error: Some(error.message.as_ref().into()),
            terminal_reason: "fatal",
            api_error_status: error.status,
        };
        let uuid = self.uuids.next();
        self.push_result(out, self.result_line(uuid.as_str(), outcome));
    }

    fn outcome<'a>(
        &self,
        end: &'a TurnEnd,
        api_error: Option<&'a ErrorInfo>,
        tool_cancelled: bool,
    ) -> Outcome<'a> {
        let failed = |subtype, fallback: &'static str, terminal_reason| Outcome {
            subtype,
            is_error: true,
            result: None,
            error: Some(end.error.as_ref().map_or(fallback.into(), |error| error.message.as_ref().into())),
            terminal_reason,
            api_error_status: None,
        };
        let answered = |text: Cow<'a, str>, is_error, terminal_reason| Outcome {
            subtype: Subtype::Success,
            is_error,
            result: Some(text),
            error: None,
            terminal_reason,
            api_error_status: None,
        };
        match (end.status, api_error) {
            // An answer that was cut off is not the answer that was asked for.
            (EndStatus::Done, _) if end.finish == Finish::Length && !self.qwen_sdk => {
                answered(end.reply.as_ref().into(), true, "api_error")
            }
            (EndStatus::Done, _) => {
                let reason = if end.postponed.is_some() { TOOL_DEFERRED } else { "completed" };
                answered(end.reply.as_ref().into(), false, reason)
            }
            (EndStatus::Error, Some(error)) if self.qwen_sdk => Outcome {
                api_error_status: error.status,
                ..failed(Subtype::ErrorDuringExecution, "The model could not be reached.", "api_error")
            },
            (EndStatus::Error, Some(error)) => Outcome {
                api_error_status: error.status,
                ..answered(api_error_text(error).into(), true, "api_error")
            },
            (EndStatus::Error, None)
                if end.error.as_ref().is_some_and(|error| error.code == NO_STRUCTURED_OUTPUT) =>
            {
                failed(
                    Subtype::ErrorMaxStructuredOutputRetries,
                    "There is no answer of the form that was asked for.",
                    NO_STRUCTURED_OUTPUT,
                )
            }
            (EndStatus::Error, None) => failed(Subtype::ErrorDuringExecution, "The turn failed.", "error"),
            (EndStatus::Cancelled, _) if self.qwen_sdk => Outcome {
                error: Some(CANCELLED.into()),
                ..failed(Subtype::ErrorDuringExecution, CANCELLED, "cancelled")
            },
            (EndStatus::Cancelled, _) => failed(
                Subtype::ErrorDuringExecution,
                "The request was interrupted by the user.",
                if tool_cancelled { "aborted_tools" } else { "aborted_streaming" },
            ),
            (EndStatus::Interrupted, _) => failed(
                Subtype::ErrorDuringExecution,
                "The process was told to stop before the turn was over.",
                end.status.name(),
            ),
            (
                EndStatus::MaxTurns
                | EndStatus::Budget
                | EndStatus::MaxToolCalls
                | EndStatus::MaxWallTime
                | EndStatus::MaxTokens,
                _,
            ) => {
                let (subtype, text) = describe_limit(end.status);
                failed(subtype, text, end.status.name())
            }
        }
    }

    /// Writes a `result`. An answer too long for one line is truncated here; the `assistant` lines have all
    /// of it.
    fn push_result(&self, out: &mut Vec<u8>, line: ResultLine<'_>) {
        let start = out.len();
        let mut message = Message::Result(Box::new(line));
        push_line(out, &message);
        let excess = (out.len() - start).saturating_sub(self.longest);
        if excess > 0
            && let Message::Result(line) = &mut message
            && let Some(answer) = &line.result
        {
            let room = json_len(answer).saturating_sub(excess);
            line.result = Some(cut_middle(answer, room, None).into());
            out.truncate(start);
            push_line(out, &message);
        }
    }

    /// A `result` without usage.
    fn result_line<'a>(&'a self, uuid: &'a str, outcome: Outcome<'a>) -> ResultLine<'a> {
        ResultLine {
            subtype: outcome.subtype,
            uuid: uuid.into(),
            session_id: self.session_id.as_str().into(),
            is_error: outcome.is_error,
            duration_ms: 0,
            duration_api_ms: 0,
            num_turns: 0,
            result: outcome.result,
            errors: outcome.error.clone().map(|error| vec![error]),
            error: outcome.error.filter(|_| self.qwen_sdk).map(|message| ResultError { message }),
            stop_reason: None,
            total_cost_usd: 0.0,
            usage: TokenUsage::default(),
            model_usage: BTreeMap::new(),
            agent_usage: BTreeMap::new(),
            permission_denials: Vec::new(),
            terminal_reason: Some(if self.claude_host {
                claude_reason(outcome.terminal_reason).into()
            } else {
                outcome.terminal_reason.into()
            }),
            api_error_status: outcome.api_error_status,
            deferred_tool_use: None,
            structured_output: None,
            structured_result: None,
            origin: None,
            user_message_uuid: None,
        }
    }

    /// Writes a message of this program in place of the model's.
    fn push_synthetic(&mut self, out: &mut Vec<u8>, words: &str, error: Option<&'static str>) {
        let message_id = self.uuids.next();
        for piece in pieces(words, text_limit(self.longest)) {
            self.push_assistant(
                out,
                AssistantBlock {
                    parent: None,
                    message_id: message_id.as_str(),
                    model: SYNTHETIC,
                    block: Block::Text { text: piece.into() },
                    stop_reason: Some("end_turn"),
                    usage: TokenUsage::default(),
                    aborted: false,
                    error,
                },
            );
        }
    }

    /// Writes the conversation's note about a cancel.
    fn push_interruption(&mut self, out: &mut Vec<u8>, tool_cancelled: bool) {
        let text = if tool_cancelled {
            "[Request interrupted by user for tool use]"
        } else {
            "[Request interrupted by user]"
        };
        let uuid = self.uuids.next();
        push_line(
            out,
            &Message::User(UserLine {
                uuid: Some(uuid.as_str().into()),
                session_id: Some(self.session_id.as_str().into()),
                parent_tool_use_id: None,
                message: UserMessage {
                    role: UserRole::User,
                    content: Content::Blocks(vec![Block::Text { text: text.into() }]),
                },
                tool_use_result: None,
                is_replay: false,
            }),
        );
    }
}

/// The subtype and the text of a turn that ended at a limit.
fn describe_limit(status: EndStatus) -> (Subtype, &'static str) {
    match status {
        EndStatus::MaxTurns => (Subtype::ErrorMaxTurns, "The limit on model calls was reached."),
        EndStatus::Budget => (Subtype::ErrorMaxBudgetUsd, "The limit on money was reached."),
        EndStatus::MaxToolCalls => (Subtype::ErrorDuringExecution, "The limit on tool calls was reached."),
        EndStatus::MaxWallTime => (Subtype::ErrorDuringExecution, "The limit on time was reached."),
        EndStatus::MaxTokens => (Subtype::ErrorDuringExecution, "The limit on tokens was reached."),
        EndStatus::Done | EndStatus::Error | EndStatus::Cancelled | EndStatus::Interrupted => {
            (Subtype::ErrorDuringExecution, "The turn failed.")
        }
    }
}
