//! A model that goes in circles: the same calls with the same results, again and again. Readers are told; it is for them
//! to judge, because whoever waits for something asks the same too.

use qwen_events::{Body, Message, Part, Role, SessionEvent, ToolResult};

use super::ReactState;
use crate::graph::RunContext;

/// So many times in a row are worth a word.
const ROUNDS: usize = 10;

/// Tells readers when the calls whose results have come in make a round too many.
pub(super) async fn tell(state: &ReactState, cx: &RunContext) {
    // What a sub-agent does ends with it.
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

/// How often the calls of the last message were made in a row with these results; at most one more than are counted.
fn rounds(messages: &[Message], results: &[ToolResult]) -> usize {
    let Some((asked, before)) = messages.split_last().filter(|(last, _)| last.role == Role::Assistant) else {
        return 0;
    };
    let same = |pair: &[Message]| match pair {
        [earlier, answers] => {
            answers.role == Role::Tool && calls(earlier).eq(calls(asked)) && told(answers).eq(words(results))
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

fn told(message: &Message) -> impl Iterator<Item = &str> {
    message.parts.iter().filter_map(|part| match part {
        Part::Result(result) => Some(&*result.text),
        _ => None,
    })
}

fn words(results: &[ToolResult]) -> impl Iterator<Item = &str> {
    results.iter().map(|result| &*result.text)
}
