//! Decodes chunks into pieces.

use std::collections::VecDeque;
use std::sync::Arc;

use qwen_events::{Finish, Usage};
use qwen_http::sse;

use super::calls::Calls;
use super::chunk::{CallDelta, Choice, Chunk, Counts, Delta};
use super::message_fields::MessageFields;
use super::surrogates::SurrogateJoiner;
use crate::estimate::Estimate;
use crate::exchange::{self, Progress};
use crate::failure::{self, Failure};
use crate::request::Piece;

pub(crate) struct Decoder {
    model: Arc<str>,
    started: bool,
    calls: Calls,
    finish: Option<Finish>,
    usage: Option<Usage>,
    estimate: Estimate,
    progress: Progress,
    surrogates: SurrogateJoiner,
    message_fields: MessageFields,
}

impl Decoder {
    pub fn new(model: Arc<str>, prompt_tokens: u64) -> Self {
        Self {
            model,
            started: false,
            calls: Calls::default(),
            finish: None,
            usage: None,
            estimate: Estimate::new(prompt_tokens),
            progress: Progress::Silent,
            surrogates: SurrogateJoiner::default(),
            message_fields: MessageFields::default(),
        }
    }

    fn chunk(&mut self, json: &str, out: &mut VecDeque<Piece>) -> Result<(), Failure> {
        // Serde would accept a list as a struct.
        if !json.trim_start().starts_with('{') {
            return Err(self.invalid(json, "it is not a JSON object"));
        }
        let chunk: Chunk<'_> = match serde_json::from_str(json) {
            Ok(chunk) => chunk,
            Err(error) => match self.surrogates.repair(json) {
                Some(mended) => return self.chunk(&mended, out),
                None => return Err(self.invalid(json, &error.to_string())),
            },
        };
        let Chunk { model, choices, usage, x_groq, timings, error, message } = chunk;
        let usage = usage.or_else(|| x_groq.and_then(|extension| extension.usage));
        if choices.0.is_none() && usage.is_none() && error.is_none() && !message.0.is_empty() {
            return Err(failure::in_stream(json, &self.model));
        }
        let choice = choices.0.unwrap_or_default();
        if let Some(error) = error.or(choice.error).filter(|error| error.get() != "null") {
            return Err(failure::in_stream(error.get(), &self.model));
        }
        if !self.started {
            self.started = true;
            if !model.0.is_empty() {
                self.model = Arc::from(&*model.0);
            }
            out.push_back(Piece::Start { model: Arc::clone(&self.model) });
        }
        let delta = choice.delta.as_ref().or(choice.message.as_deref());
        let nested = choice.usage.clone().or_else(|| delta.and_then(|delta| delta.usage.clone()));
        let counts = usage.or(nested).or_else(|| timings.map(|timings| Box::new(Counts::from(*timings))));
        let read = self.choice(choice, out);
        if let Some(counts) = counts {
            // Some servers send cumulative usage with every chunk. It is emitted at once, because an
            // interrupted answer is charged too.
            let before = self.usage;
            self.usage = counted(&counts).or(before);
            out.extend(self.usage.filter(|_| self.usage != before).map(Piece::Usage));
        }
        read
    }

    fn choice(&mut self, choice: Choice<'_>, out: &mut VecDeque<Piece>) -> Result<(), Failure> {
        if let Some(delta) = choice.delta.or_else(|| choice.message.map(|message| *message)) {
            self.delta(delta, out);
        }
        let reason = &*choice.finish_reason.0;
        match reason {
            "" | "null" => return Ok(()),
            "error" | "insufficient_system_resource" => {
                let message = format!("the model `{}` stopped with `{reason}`", self.model);
                return Err(failure::network("model_stopped", message));
            }
            _ => {}
        }
        self.finish = Some(match reason {
            "length" | "max_tokens" | "model_length" => Finish::Length,
            "content_filter" | "safety" | "SAFETY" => Finish::ContentFilter,
            _ if self.calls.is_empty() => Finish::Stop,
            _ => Finish::ToolCalls,
        });
        self.progress = Progress::Finished;
        Ok(())
    }

    fn delta(&mut self, delta: Delta<'_>, out: &mut VecDeque<Piece>) {
        let (before, mut called) = (out.len(), false);
        // Some servers send the same thought under both names.
        let thought =
            if delta.reasoning_content.0.is_empty() { delta.reasoning.0 } else { delta.reasoning_content.0 };
        for thought in [thought, delta.content.thought] {
            if !thought.is_empty() {
                self.estimate.thought_bytes += thought.len();
                out.push_back(Piece::Thought(thought));
            }
        }
        self.message_fields.add(delta.reasoning_details, delta.extra_content);
        for text in [delta.content.text, delta.refusal.0] {
            if !text.is_empty() {
                self.estimate.text_bytes += text.len();
                out.push_back(Piece::Text(text));
            }
        }
        // Some servers send an empty one in every chunk.
        let legacy = delta.function_call.filter(|function| function.has_content());
        let legacy = legacy.map(|function| CallDelta { function: Some(*function), ..CallDelta::default() });
        for call in delta.tool_calls.unwrap_or_default().into_iter().chain(legacy) {
            self.estimate.text_bytes += self.calls.push(&call, out);
            called = true;
        }
        if (called || out.len() > before) && self.progress == Progress::Silent {
            self.progress = Progress::Streaming;
        }
    }

    fn invalid(&self, json: &str, reason: &str) -> Failure {
        let quoted = failure::quote(json.as_bytes());
        let message =
            format!("the model `{}` sent a chunk that cannot be read ({reason}): {quoted}", self.model);
        failure::not_an_answer("invalid_chunk", message)
    }
}

impl exchange::Decoder for Decoder {
    fn event(&mut self, event: sse::SseEvent<'_>, out: &mut VecDeque<Piece>) -> Result<(), Failure> {
        match event.data.trim_ascii() {
            "" => Ok(()),
            "[DONE]" if self.progress == Progress::Silent && self.calls.is_empty() => {
                Err(exchange::empty_stream(&self.model))
            }
            "[DONE]" => {
                self.close(out);
                Ok(())
            }
            json if event.name == "error" => Err(failure::in_stream(json, &self.model)),
            json => self.chunk(json, out),
        }
    }

    fn read_document(&mut self, json: &str, out: &mut VecDeque<Piece>) -> Result<(), Failure> {
        self.chunk(json, out)?;
        if self.progress == Progress::Silent && self.calls.is_empty() {
            let quoted = failure::quote(json.as_bytes());
            let message = format!("the model `{}` sent JSON without an answer in it: {quoted}", self.model);
            return Err(failure::not_an_answer("invalid_chunk", message));
        }
        self.close(out);
        Ok(())
    }

    fn close(&mut self, out: &mut VecDeque<Piece>) {
        self.calls.close(out);
        out.extend(self.message_fields.signature().map(Piece::ThoughtSignature));
        let finish = match self.finish {
            // Calls may follow the stop reason.
            None | Some(Finish::Stop) if !self.calls.is_empty() => Finish::ToolCalls,
            Some(finish) => finish,
            None => Finish::Stop,
        };
        if self.usage.is_none() {
            let estimated = self.estimate.usage();
            out.push_back(Piece::Usage(estimated));
        }
        out.push_back(Piece::Finish(finish));
        self.progress = Progress::Done;
    }

    fn progress(&self) -> Progress {
        self.progress
    }
}

/// The usage that a server reported; none if it reported nothing.
fn counted(counts: &Counts) -> Option<Usage> {
    let prompt = counts.prompt_tokens_details.unwrap_or_default();
    let completion = counts.completion_tokens_details.unwrap_or_default();
    let usage = Usage {
        prompt_tokens: counts.prompt_tokens.0,
        completion_tokens: counts.completion_tokens.0,
        cached_tokens: prompt.cached_tokens.0.max(counts.prompt_cache_hit_tokens.0),
        cache_write_tokens: prompt.cache_creation_input_tokens.0,
        thought_tokens: completion.reasoning_tokens.0,
        estimated: false,
    };
    (usage.total() > 0).then_some(usage)
}
