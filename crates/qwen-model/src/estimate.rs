//! Token estimates for providers that report no usage: about four bytes per token.

use qwen_events::{Part, Usage};

use crate::request::Request;

/// The bytes that make up one token, on average.
const BYTES_A_TOKEN: usize = 4;

/// The tokens of a text of `bytes` bytes.
pub(crate) fn tokens(bytes: usize) -> u64 {
    bytes.div_ceil(BYTES_A_TOKEN) as u64
}

/// The estimated prompt tokens of a request. Images are excluded: their size does not determine their cost.
pub(crate) fn prompt_tokens(request: &Request) -> u64 {
    let messages = request.messages.iter().flat_map(|message| &message.parts).map(|part| match part {
        Part::Text(text) | Part::Thought { text, .. } => text.len(),
        Part::Call(call) => call.name.len() + call.arguments.as_str().len(),
        Part::Result(result) => result.text.len(),
        Part::Media(_) => 0,
    });
    let tools = request
        .tools
        .iter()
        .map(|tool| tool.name.len() + tool.description.len() + tool.parameters.as_str().len());
    tokens(request.system.len() + request.situation.len() + messages.sum::<usize>() + tools.sum::<usize>())
}

/// The estimated usage of an answer that was cut off before its server reported one.
pub fn unfinished(request: &Request, completion_bytes: usize, thought_bytes: usize) -> Usage {
    usage(prompt_tokens(request), completion_bytes, thought_bytes)
}

/// What an answer is estimated from while it arrives.
#[derive(Debug)]
pub(crate) struct Estimate {
    prompt_tokens: u64,
    pub text_bytes: usize,
    pub thought_bytes: usize,
}

impl Estimate {
    pub(crate) fn new(prompt_tokens: u64) -> Self {
        Self { prompt_tokens, text_bytes: 0, thought_bytes: 0 }
    }

    pub(crate) fn usage(&self) -> Usage {
        usage(self.prompt_tokens, self.text_bytes, self.thought_bytes)
    }
}

/// An estimated usage.
pub(crate) fn usage(prompt_tokens: u64, completion_bytes: usize, thought_bytes: usize) -> Usage {
    Usage {
        prompt_tokens,
        completion_tokens: tokens(completion_bytes + thought_bytes),
        thought_tokens: tokens(thought_bytes),
        estimated: true,
        ..Usage::default()
    }
}
