//! Leaves the text of sub-agents out of the stream, as Claude's CLI does unless the host requests it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use qwen_dialects::Encoder;
use qwen_events::{Body, Event, MessageEnd};

/// An encoder that writes only the tool calls and tool results of sub-agents, unless their text is wanted
/// too.
pub struct AgentTextFilter {
    encoder: Box<dyn Encoder>,
    forwards: Arc<AtomicBool>,
}

impl AgentTextFilter {
    pub fn new(encoder: Box<dyn Encoder>, forwards: Arc<AtomicBool>) -> Self {
        Self { encoder, forwards }
    }
}

impl Encoder for AgentTextFilter {
    fn encode(&mut self, event: &Event, out: &mut Vec<u8>) {
        if event.scope.parent.is_none() || self.forwards.load(Ordering::Relaxed) {
            return self.encoder.encode(event, out);
        }
        if matches!(event.body, Body::TextDelta(_) | Body::ThoughtDelta(_) | Body::ThoughtSignature(_)) {
            return;
        }
        // A message that was not streamed has its text only here.
        if let Body::MessageEnd(end) = &event.body {
            let body = Body::MessageEnd(Box::new(MessageEnd { text: "".into(), ..(**end).clone() }));
            return self.encoder.encode(&Event { body, ..event.clone() }, out);
        }
        self.encoder.encode(event, out);
    }
}
