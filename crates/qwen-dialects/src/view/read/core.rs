//! `{"type","value"}` events.

use super::super::event::{End, Tokens, ViewEvent, ViewLine};
use super::super::words;
use super::{Reader, channel_of};
use crate::check::syntax::Object;
use crate::core::wire::{CoreLine, TurnTotals};

pub(super) struct CoreReader;

impl Reader for CoreReader {
    fn read(&mut self, object: &Object<'_>) -> Option<Vec<ViewLine>> {
        let Ok(line) = object.read::<CoreLine<'_>>() else { return channel_of(None, object) };
        let mut parent = None;
        let seen = match line {
            CoreLine::Content(text) => ViewEvent::Text(text.into()),
            CoreLine::Thought(thought) => {
                parent = thought.parent_call_id;
                words::of_thought(&thought.subject, &thought.description).map_or_else(
                    || ViewEvent::Thought {
                        subject: thought.subject.into(),
                        text: thought.description.into(),
                    },
                    ViewEvent::Step,
                )
            }
            CoreLine::ToolCallRequest(request) => {
                parent = request.parent_call_id;
                ViewEvent::Call {
                    id: request.call_id.into(),
                    name: request.name.into(),
                    arguments: request.args.get().to_owned(),
                }
            }
            CoreLine::ToolCallConfirmation(question) => {
                parent = question.request.parent_call_id;
                ViewEvent::Approval {
                    id: question.request.call_id.into(),
                    name: question.request.name.into(),
                    words: question.request.args.get().to_owned(),
                }
            }
            CoreLine::ToolCallResponse(response) => {
                parent = response.parent_call_id;
                let text = response.response_parts.into_iter().find_map(|part| part.text);
                ViewEvent::CallEnd {
                    id: response.call_id.into(),
                    name: String::new(),
                    ok: response.error.is_none(),
                    text: text.unwrap_or_default().into(),
                }
            }
            CoreLine::ChatCompressed(sizes) => ViewEvent::Notice(format!(
                "the conversation was compressed from {} to {} tokens",
                sizes.original_token_count, sizes.new_token_count
            )),
            CoreLine::MaxSessionTurns(notice)
            | CoreLine::MaxTokens(notice)
            | CoreLine::LoopDetected(notice) => ViewEvent::Notice(notice.message.into()),
            CoreLine::Retry(retry) => ViewEvent::Notice(format!(
                "retry {} of {}: {}",
                retry.attempt, retry.max_retries, retry.message
            )),
            CoreLine::ModelFallback(fallback) => ViewEvent::Notice(format!(
                "{} continues in place of {}: {}",
                fallback.to, fallback.from, fallback.reason
            )),
            CoreLine::ModeChanged(mode) => {
                ViewEvent::Notice(format!("the approval mode is now {}", mode.mode))
            }
            CoreLine::Steered(steered) => {
                ViewEvent::Notice(format!("the prompt {} joins the turn", steered.prompt_id))
            }
            CoreLine::Custom(value) => ViewEvent::Notice(value.get().to_owned()),
            CoreLine::InputError(error) | CoreLine::Warning(error) => {
                ViewEvent::Error(error.error.message.into())
            }
            CoreLine::Finished(finished) => {
                let status =
                    if finished.reason == "STOP" { "done".to_owned() } else { finished.reason.into() };
                end(status, None, Some(&finished.turn))
            }
            CoreLine::UserCancelled(cancelled) => end("cancelled".to_owned(), None, Some(&cancelled.turn)),
            CoreLine::Error(failed) => {
                let code = failed.error.code.as_deref().unwrap_or("error").to_owned();
                end(code, Some(failed.error.message.into()), failed.turn.as_ref())
            }
        };
        Some(vec![ViewLine { parent: parent.map(|id| id.as_ref().into()), ..ViewLine::new(seen) }])
    }
}

fn end(status: String, error: Option<String>, turn: Option<&TurnTotals<'_>>) -> ViewEvent {
    let tokens = turn.map(|turn| Tokens {
        read: turn.usage_metadata.prompt_token_count,
        written: turn.usage_metadata.candidates_token_count,
    });
    ViewEvent::TurnEnd(End {
        status,
        errors: error.into_iter().collect(),
        tokens,
        denials: turn.map_or(0, |turn| turn.permission_denials.len()),
        ..End::default()
    })
}
