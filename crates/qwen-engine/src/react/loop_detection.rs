//! Detects a model that repeats the same calls with the same results. Readers only get a warning, because
//! polling looks the same.

use qwen_events::{Body, Message, Part, Role, SessionEvent, ToolResult};

use super::ReactState;
use crate::graph::RunContext;

/// The number of identical rounds in a row that triggers the warning.
const ROUNDS: usize = 10;

/// Warns readers when the calls whose results have arrived complete round `ROUNDS`.
pub(super) async fn warn_on_repetition(state: &ReactState, cx: &RunContext) {
    // A sub-agent's loop ends with the sub-agent.
    if rounds(&state.messages, &state.results) != ROUNDS || cx.emit.is_in_call() {
        return;
    }
    let names: Vec<&str> = state.results.iter().map(|result| &*result.name).collect();
    let message = format!(
        "the model has called {} {ROUNDS} times in a row, each time with the same arguments and the same result",
        names.join(", ")
    );
    cx.emit.emit(Body::Session(Box::new(SessionEvent::LoopDetected { message: message.into() }))).await;
}

/// How often in a row the calls of the last message were made with these results; counts at most one more
/// than needed.
fn rounds(messages: &[Message], results: &[ToolResult]) -> usize {
    let Some((asked, before)) = messages.split_last().filter(|(last, _)| last.role == Role::Assistant) else {
        return 0;
    };
    let same = |pair: &[Message]| match pair {
        [earlier, answers] => {
            answers.role == Role::Tool
                && calls(earlier).eq(calls(asked))
                && result_texts(answers).eq(outcome_texts(results))
        }
        _ => false,
    };
    1 + before.rchunks(2).take(ROUNDS).take_while(|pair| same(pair)).count()
}

fn calls(message: &Message) -> impl Iterator<Item = (&str, &str)> {
    message.parts.iter().filter_map(|part| match part {
        Part::Call(call) => Some((&*call.name, call.arguments.as_str())),
        _ => None,
    })
}

fn result_texts(message: &Message) -> impl Iterator<Item = &str> {
    message.parts.iter().filter_map(|part| match part {
        Part::Result(result) => Some(&*result.text),
        _ => None,
    })
}

fn outcome_texts(results: &[ToolResult]) -> impl Iterator<Item = &str> {
    results.iter().map(|result| &*result.text)
}
