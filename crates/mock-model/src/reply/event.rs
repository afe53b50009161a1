//! Model output independent of the wire format; a [`WireWriter`] encodes it.

use serde_json::{Value, json};

use crate::{Step, Wire, anthropic, sse};

/// One piece of model output.
#[derive(Debug, Clone, PartialEq)]
pub enum ReplyEvent {
    /// A piece of the answer.
    Text(String),
    /// A piece of its thinking.
    Thought(String),
    /// A complete tool call.
    Call {
        id: String,
        name: String,
        /// The arguments as the model wrote them.
        arguments: String,
    },
    /// Token usage; always reported at the end of the stream.
    Usage { input: u64, output: u64 },
    /// The stop reason, with the values of the OpenAI wire: `stop`, `tool_calls`, `length`,
    /// `content_filter`.
    Finish(String),
}

impl ReplyEvent {
    /// A complete tool call.
    pub fn call(id: &str, name: &str, arguments: &str) -> Self {
        Self::Call { id: id.to_owned(), name: name.to_owned(), arguments: arguments.to_owned() }
    }

    /// As a step of a reply.
    pub fn step(self) -> Step {
        Step::Event(self)
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Block {
    Text,
    Thought,
}

/// Encodes events in one wire format and completes the stream.
pub(crate) struct WireWriter {
    wire: Wire,
    started: bool,
    open: Option<Block>,
    blocks: usize,
    calls: usize,
    usage: (u64, u64),
    finish: Option<String>,
}

impl WireWriter {
    pub(crate) fn new(wire: Wire) -> Self {
        Self { wire, started: false, open: None, blocks: 0, calls: 0, usage: (10, 5), finish: None }
    }

    /// The encoding of one event, as the bytes of one write.
    pub(crate) fn write(&mut self, event: &ReplyEvent) -> Vec<u8> {
        let mut out = Vec::new();
        if !std::mem::replace(&mut self.started, true) && self.wire == Wire::Anthropic {
            let input = if let ReplyEvent::Usage { input, .. } = event { *input } else { self.usage.0 };
            put(&mut out, anthropic::message_start(input));
        }
        match event {
            ReplyEvent::Usage { input, output } => self.usage = (*input, *output),
            ReplyEvent::Finish(reason) => self.finish = Some(reason.clone()),
            ReplyEvent::Text(piece) => match self.wire {
                Wire::OpenAi => put(&mut out, sse::text(piece)),
                Wire::Anthropic => {
                    let index = self.enter(Block::Text, &mut out);
                    put(&mut out, anthropic::text(index, piece));
                }
            },
            ReplyEvent::Thought(piece) => match self.wire {
                Wire::OpenAi => put(&mut out, sse::thought(piece)),
                Wire::Anthropic => {
                    let index = self.enter(Block::Thought, &mut out);
                    put(&mut out, anthropic::thought(index, piece));
                }
            },
            ReplyEvent::Call { id, name, arguments } => {
                match self.wire {
                    Wire::OpenAi => put(&mut out, sse::call(self.calls, id, name, arguments)),
                    Wire::Anthropic => {
                        self.leave(&mut out);
                        let index = self.blocks;
                        self.blocks += 1;
                        put(&mut out, anthropic::call_start(index, id, name));
                        put(&mut out, anthropic::arguments(index, arguments));
                        put(&mut out, anthropic::block_stop(index));
                    }
                }
                self.calls += 1;
            }
        }
        out
    }

    /// The events that close the stream; empty if no event was written.
    pub(crate) fn end(&mut self) -> Vec<u8> {
        let mut out = Vec::new();
        if !self.started {
            return out;
        }
        let natural = if self.calls > 0 { "tool_calls" } else { "stop" };
        let reason = self.finish.take().unwrap_or_else(|| natural.to_owned());
        let (input, output) = self.usage;
        match self.wire {
            Wire::OpenAi => {
                put(&mut out, sse::finish(&reason));
                put(&mut out, sse::usage(input, output));
                put(&mut out, sse::done());
            }
            Wire::Anthropic => {
                self.leave(&mut out);
                let reason = match reason.as_str() {
                    "stop" => "end_turn",
                    "tool_calls" => "tool_use",
                    "length" => "max_tokens",
                    "content_filter" => "refusal",
                    other => other,
                };
                let closing: Value = json!({
                    "delta": { "stop_reason": reason, "stop_sequence": null },
                    "usage": { "input_tokens": input, "output_tokens": output },
                });
                put(&mut out, anthropic::event("message_delta", closing));
                put(&mut out, anthropic::message_stop());
            }
        }
        out
    }

    fn enter(&mut self, block: Block, out: &mut Vec<u8>) -> usize {
        if self.open != Some(block) {
            self.leave(out);
            let start = match block {
                Block::Text => anthropic::text_start(self.blocks),
                Block::Thought => anthropic::thought_start(self.blocks),
            };
            put(out, start);
            self.open = Some(block);
            self.blocks += 1;
        }
        self.blocks - 1
    }

    fn leave(&mut self, out: &mut Vec<u8>) {
        if let Some(block) = self.open.take() {
            if block == Block::Thought {
                put(out, anthropic::signature(self.blocks - 1, "mock"));
            }
            put(out, anthropic::block_stop(self.blocks - 1));
        }
    }
}

fn put(out: &mut Vec<u8>, step: Step) {
    if let Step::Chunk(bytes) = step {
        out.extend_from_slice(&bytes);
    }
}
