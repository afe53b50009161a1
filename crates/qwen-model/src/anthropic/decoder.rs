//! Decodes events into pieces.

use std::collections::VecDeque;
use std::sync::Arc;

use qwen_events::{Finish, Usage};
use qwen_http::sse;
use serde_json::value::RawValue;

use super::REDACTED;
use super::event::{Block, Counts, Delta, Event, Message};
use crate::call_id;
use crate::estimate::Estimate;
use crate::exchange::{self, Progress};
use crate::failure::{self, Failure};
use crate::request::Piece;

pub(crate) struct Decoder {
    model: Arc<str>,
    started: bool,
    calls: Vec<Call>,
    /// The signature of the open thinking block; it may arrive in pieces.
    proof: String,
    counts: Counts,
    /// The most recently emitted usage.
    given: Option<Usage>,
    finish: Option<Finish>,
    /// True if the server paused a long answer.
    paused: bool,
    estimate: Estimate,
    progress: Progress,
}

struct Call {
    /// The index of the block.
    block: u64,
    id: Arc<str>,
    name: Arc<str>,
    /// Arguments in the block's start event; emitted at the block's end if no others arrived.
    early: Option<Box<str>>,
}

impl Decoder {
    pub fn new(model: Arc<str>, prompt_tokens: u64) -> Self {
        Self {
            model,
            started: false,
            calls: Vec::new(),
            proof: String::new(),
            counts: Counts::default(),
            given: None,
            finish: None,
            paused: false,
            estimate: Estimate::new(prompt_tokens),
            progress: Progress::Silent,
        }
    }

    fn start(&mut self, model: &str, out: &mut VecDeque<Piece>) {
        if !self.started {
            self.started = true;
            if !model.is_empty() {
                self.model = Arc::from(model);
            }
            out.push_back(Piece::Start { model: Arc::clone(&self.model) });
        }
    }

    fn handle_event(&mut self, event: Event<'_>, out: &mut VecDeque<Piece>) -> Result<(), Failure> {
        match &*event.kind.0 {
            "message_start" => {
                let message = event.message.unwrap_or_default();
                self.start(&message.model.0, out);
                self.count(message.usage, out);
            }
            "content_block_start" => {
                self.start("", out);
                self.begin_block(event.index, &event.content_block.unwrap_or_default(), out);
            }
            "content_block_delta" => self.delta(event.index, event.delta.unwrap_or_default(), out),
            "content_block_stop" => self.end_block(event.index, out),
            "message_delta" => {
                self.count(event.usage, out);
                self.stop(&event.delta.unwrap_or_default().stop_reason.0);
            }
            "message_stop" => return self.end(out),
            "error" => {
                let error = event.error.map_or("{}", RawValue::get);
                return Err(failure::in_stream(error, &self.model));
            }
            // Pings, and events of later versions of the wire.
            _ => {}
        }
        Ok(())
    }

    fn begin_block(&mut self, index: u64, block: &Block<'_>, out: &mut VecDeque<Piece>) {
        self.sign(out);
        match &*block.kind.0 {
            "text" => self.text(block.text.0.clone(), out),
            "thinking" => {
                self.thought(block.thinking.0.clone(), out);
                self.proof.push_str(&block.signature.0);
            }
            "redacted_thinking" => {
                self.proof = format!("{REDACTED}{}", block.data.0);
                self.sign(out);
            }
            "tool_use" => {
                let id = Some(&*block.id.0)
                    .filter(|id| !id.is_empty() && self.calls.iter().all(|c| *c.id != **id));
                let early =
                    block.input.map(RawValue::get).filter(|input| !matches!(*input, "null" | "{}" | "\"\""));
                let call = Call {
                    block: index,
                    id: id.map_or_else(call_id::new_id, Arc::from),
                    name: Arc::from(&*block.name.0),
                    early: Some(early.unwrap_or("{}").into()),
                };
                self.estimate.text_bytes += call.name.len();
                out.push_back(call.piece(self.calls.len(), Box::default()));
                self.calls.push(call);
                self.note_output();
            }
            _ => {}
        }
    }

    fn delta(&mut self, index: u64, delta: Delta<'_>, out: &mut VecDeque<Piece>) {
        self.text(delta.text.0, out);
        self.thought(delta.thinking.0, out);
        self.proof.push_str(&delta.signature.0);
        let json = delta.partial_json.0;
        let calls = self.calls.iter_mut().enumerate().rev();
        if let Some((at, call)) = calls.filter(|_| !json.is_empty()).find(|(_, call)| call.block == index) {
            call.early = None;
            self.estimate.text_bytes += json.len();
            out.push_back(call.piece(at, json));
        }
    }

    fn end_block(&mut self, index: u64, out: &mut VecDeque<Piece>) {
        self.sign(out);
        for (at, call) in self.calls.iter_mut().enumerate().filter(|(_, call)| call.block == index) {
            if let Some(arguments) = call.early.take() {
                self.estimate.text_bytes += arguments.len();
                out.push_back(call.piece(at, arguments));
            }
        }
    }

    fn text(&mut self, text: Box<str>, out: &mut VecDeque<Piece>) {
        if !text.is_empty() {
            self.estimate.text_bytes += text.len();
            out.push_back(Piece::Text(text));
            self.note_output();
        }
    }

    fn thought(&mut self, text: Box<str>, out: &mut VecDeque<Piece>) {
        if !text.is_empty() {
            self.estimate.thought_bytes += text.len();
            out.push_back(Piece::Thought(text));
            self.note_output();
        }
    }

    /// Emits the signature of the ended thinking block, if there is one.
    fn sign(&mut self, out: &mut VecDeque<Piece>) {
        if !self.proof.is_empty() {
            out.push_back(Piece::ThoughtSignature(std::mem::take(&mut self.proof).into()));
            self.note_output();
        }
    }

    fn note_output(&mut self) {
        if self.progress == Progress::Silent {
            self.progress = Progress::Streaming;
        }
    }

    /// Updates the counts. They are cumulative and sent in parts: absent counts stay unchanged. They are
    /// emitted at once, because an interrupted answer is charged too.
    fn count(&mut self, counts: Option<Counts>, out: &mut VecDeque<Piece>) {
        let Some(new) = counts else { return };
        let known = &mut self.counts;
        for (known, new) in [
            (&mut known.input_tokens, new.input_tokens),
            (&mut known.output_tokens, new.output_tokens),
            (&mut known.cache_read_input_tokens, new.cache_read_input_tokens),
            (&mut known.cache_creation_input_tokens, new.cache_creation_input_tokens),
        ] {
            if new.0 > 0 {
                *known = new;
            }
        }
        if let Some(usage) = self.counted() {
            self.push_usage(usage, out);
        }
    }

    fn push_usage(&mut self, usage: Usage, out: &mut VecDeque<Piece>) {
        if self.given != Some(usage) {
            self.given = Some(usage);
            out.push_back(Piece::Usage(usage));
        }
    }

    fn stop(&mut self, reason: &str) {
        self.paused = reason == "pause_turn";
        self.finish = match reason {
            "" => return,
            "max_tokens" | "model_context_window_exceeded" => Some(Finish::Length),
            "refusal" => Some(Finish::ContentFilter),
            _ => Some(self.natural_finish()),
        };
        self.progress = Progress::Finished;
    }

    fn natural_finish(&self) -> Finish {
        if self.calls.is_empty() { Finish::Stop } else { Finish::ToolCalls }
    }

    fn end(&mut self, out: &mut VecDeque<Piece>) -> Result<(), Failure> {
        if self.progress == Progress::Silent {
            return Err(exchange::empty_stream(&self.model));
        }
        exchange::Decoder::close(self, out);
        Ok(())
    }

    /// The usage that the server reported; none if it reported nothing.
    fn counted(&self) -> Option<Usage> {
        let counts = &self.counts;
        let cached = counts.cache_read_input_tokens.0.saturating_add(counts.cache_creation_input_tokens.0);
        let prompt_tokens = counts.input_tokens.0.saturating_add(cached);
        let usage = Usage {
            prompt_tokens,
            completion_tokens: counts.output_tokens.0,
            cached_tokens: counts.cache_read_input_tokens.0,
            cache_write_tokens: counts.cache_creation_input_tokens.0,
            ..Usage::default()
        };
        (usage.total() > 0).then_some(usage)
    }

    fn invalid(&self, json: &str, reason: &str) -> Failure {
        let quoted = failure::quote(json.as_bytes());
        let message =
            format!("the model `{}` sent an event that cannot be read ({reason}): {quoted}", self.model);
        failure::not_an_answer("invalid_chunk", message)
    }

    fn read<'a, T: serde::Deserialize<'a>>(&self, json: &'a str) -> Result<T, Failure> {
        // Serde would accept a list as a struct.
        if !json.trim_start().starts_with('{') {
            return Err(self.invalid(json, "it is not a JSON object"));
        }
        serde_json::from_str(json).map_err(|e| self.invalid(json, &e.to_string()))
    }
}

impl exchange::Decoder for Decoder {
    fn event(&mut self, event: sse::SseEvent<'_>, out: &mut VecDeque<Piece>) -> Result<(), Failure> {
        match event.data.trim_ascii() {
            "" => Ok(()),
            "[DONE]" => self.end(out),
            json => self.handle_event(self.read(json)?, out),
        }
    }

    fn read_document(&mut self, json: &str, out: &mut VecDeque<Piece>) -> Result<(), Failure> {
        let message: Message<'_> = self.read(json)?;
        if let Some(error) = message.error.filter(|error| error.get() != "null") {
            return Err(failure::in_stream(error.get(), &self.model));
        }
        if &*message.kind.0 != "message" {
            return Err(self.invalid(json, "it is not a message"));
        }
        self.start(&message.model.0, out);
        self.count(message.usage, out);
        for (index, block) in (0..).zip(&message.content) {
            self.begin_block(index, block, out);
            self.end_block(index, out);
        }
        self.stop(if message.stop_reason.0.is_empty() { "end_turn" } else { &message.stop_reason.0 });
        self.close(out);
        Ok(())
    }

    fn close(&mut self, out: &mut VecDeque<Piece>) {
        self.sign(out);
        let estimated = || self.estimate.usage();
        let usage = self.counted().unwrap_or_else(estimated);
        self.push_usage(usage, out);
        if self.paused && self.calls.is_empty() {
            out.push_back(Piece::Paused);
        } else {
            out.push_back(Piece::Finish(self.finish.unwrap_or_else(|| self.natural_finish())));
        }
        self.progress = Progress::Done;
    }

    fn progress(&self) -> Progress {
        self.progress
    }
}

impl Call {
    fn piece(&self, at: usize, arguments: Box<str>) -> Piece {
        Piece::Call {
            index: u32::try_from(at).unwrap_or(u32::MAX),
            id: Arc::clone(&self.id),
            name: Arc::clone(&self.name),
            arguments,
        }
    }
}
