//! The queue of prompts that wait for their turn. A host that exceeds the queue's capacity gets an error for
//! each further prompt. If the worker stopped reading instead, cancels and heartbeats would be delayed.

use std::collections::{HashSet, VecDeque};
use std::sync::Arc;

use qwen_events::{ErrorInfo, ErrorKind, MediaSource, Part, Prompt, PromptId};

/// The maximum number of queued prompts.
const MAX_PROMPTS: usize = 10_000;

/// The maximum total size of queued prompts. A single prompt may be as large as a line.
const MAX_BYTES: usize = 128 * 1024 * 1024;

/// A prompt id and the session that it belongs to, as the request named it.
pub(super) type PromptKey = (Arc<str>, PromptId);

pub(super) struct QueuedPrompt {
    pub prompt: Prompt,
    /// The id that it reserved, which is released if the prompt is refused.
    pub key: Option<PromptKey>,
    /// Cancelled while it waited: its turn ends before it starts.
    pub withdrawn: bool,
    /// Not a prompt: the session's unfinished turn continues.
    pub continues_turn: bool,
    /// True if the message whose calls are continued is sent again.
    pub replays_message: bool,
}

impl QueuedPrompt {
    fn new(prompt: Prompt) -> Self {
        Self { prompt, key: None, withdrawn: false, continues_turn: false, replays_message: true }
    }
}

/// The prompts that wait for their turn, and the prompt ids in use.
#[derive(Default)]
pub(super) struct TurnQueue {
    prompts: VecDeque<QueuedPrompt>,
    used_ids: HashSet<PromptKey>,
}

impl TurnQueue {
    pub fn is_empty(&self) -> bool {
        self.prompts.is_empty()
    }

    pub fn pop(&mut self) -> Option<QueuedPrompt> {
        self.prompts.pop_front()
    }

    pub fn push_front(&mut self, queued: QueuedPrompt) {
        self.prompts.push_front(queued);
    }

    pub fn push(&mut self, prompt: Prompt, key: Option<PromptKey>) {
        self.prompts.push_back(QueuedPrompt { key, ..QueuedPrompt::new(prompt) });
    }

    /// Queues a prompt before all others; its id is already reserved.
    pub fn push_first(&mut self, prompt: Prompt) {
        self.push_front(QueuedPrompt::new(prompt));
    }

    /// Queues a prompt that is sent again and whose turn was left unfinished: that turn continues.
    pub fn push_resent(&mut self, prompt: Prompt, key: Option<PromptKey>) {
        self.prompts.push_back(QueuedPrompt { key, continues_turn: true, ..QueuedPrompt::new(prompt) });
    }

    /// Queues the continuation of the session's unfinished turn.
    pub fn push_continuation(&mut self, replays_message: bool) {
        let queued = QueuedPrompt::new(Prompt::default());
        self.prompts.push_back(QueuedPrompt { continues_turn: true, replays_message, ..queued });
    }

    /// Reserves a prompt id. Returns false if it was used before.
    pub fn reserve(&mut self, key: &PromptKey) -> bool {
        self.used_ids.insert(key.clone())
    }

    /// Releases the id of a prompt that was refused.
    pub fn release(&mut self, key: Option<&PromptKey>) {
        if let Some(key) = key {
            self.used_ids.remove(key);
        }
    }

    /// Checks whether one more prompt fits in the queue.
    pub fn admit(&self, prompt: &Prompt) -> Result<(), ErrorInfo> {
        let size = size_of(prompt);
        // Small prompts, which are all but a few, need no summing.
        let bytes = || self.prompts.iter().map(|queued| size_of(&queued.prompt)).sum::<usize>();
        let too_much = size > MAX_BYTES / MAX_PROMPTS
            && !self.prompts.is_empty()
            && bytes().saturating_add(size) > MAX_BYTES;
        if self.prompts.len() < MAX_PROMPTS && !too_much {
            return Ok(());
        }
        let message = format!(
            "{} prompts wait for their turn, which is as much as this worker keeps; send this one again when some of them \
             are done",
            self.prompts.len()
        );
        let error = ErrorInfo::new(ErrorKind::Input, "too_many_prompts", message);
        Err(ErrorInfo { retryable: true, ..error }
            .for_prompt(prompt.session_id.as_deref(), prompt.prompt_id.clone()))
    }

    /// The position of the queued prompt `id`; with a `session`, only if the prompt belongs to it.
    pub fn find(&self, id: &PromptId, session: Option<&str>) -> Option<usize> {
        self.prompts.iter().position(|queued| {
            let own = queued.prompt.session_id.as_deref();
            !queued.withdrawn
                && queued.prompt.prompt_id.as_ref() == Some(id)
                && session.is_none_or(|session| own.is_none_or(|name| name == session))
        })
    }

    /// Withdraws the prompt at `position`. With `at_once` it leaves the queue and its id is returned, so that
    /// its end can be reported now; otherwise it stays in the queue and its turn ends before it starts.
    pub fn withdraw(&mut self, position: usize, at_once: impl Fn(&Prompt) -> bool) -> Option<PromptId> {
        let queued = self.prompts.get_mut(position)?;
        if at_once(&queued.prompt) {
            return self.prompts.remove(position).and_then(|queued| queued.prompt.prompt_id);
        }
        queued.withdrawn = true;
        None
    }

    /// Removes a queued prompt as if it had never been sent. Returns false if none has that message id.
    pub fn forget(&mut self, uuid: &str) -> bool {
        let matches = |queued: &QueuedPrompt| {
            !queued.withdrawn && !queued.continues_turn && queued.prompt.uuid.as_deref() == Some(uuid)
        };
        let Some(position) = self.prompts.iter().position(matches) else { return false };
        if let Some(queued) = self.prompts.remove(position) {
            self.release(queued.key.as_ref());
        }
        true
    }

    /// The message ids of the queued prompts.
    pub fn waiting_uuids(&self) -> Vec<&str> {
        let waiting = self.prompts.iter().filter(|queued| !queued.withdrawn);
        waiting.filter_map(|queued| queued.prompt.uuid.as_deref()).collect()
    }
}

/// The error for a prompt id that was used before.
pub(super) fn used_before(id: &PromptId) -> ErrorInfo {
    let message = format!("prompt_id '{id}' was used before; a continuation needs \"continuation\":true");
    ErrorInfo::new(ErrorKind::Input, "duplicate_prompt_id", message)
        .with_param("prompt_id")
        .for_prompt(None, Some(id.clone()))
}

/// The approximate memory size of a prompt, in bytes.
fn size_of(prompt: &Prompt) -> usize {
    let of_part = |part: &Part| match part {
        Part::Text(text) | Part::Thought { text, .. } => text.len(),
        Part::Media(media) => match &media.source {
            MediaSource::Base64(text) | MediaSource::Url(text) => text.len(),
        },
        Part::Call(call) => call.arguments.as_str().len(),
        Part::Result(result) => result.text.len(),
    };
    let history = prompt.history.iter().flat_map(|message| &message.parts);
    prompt.parts.iter().chain(history).map(of_part).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn prompt(size: usize) -> Prompt {
        Prompt { parts: vec![Part::Text("x".repeat(size).into())], ..Prompt::default() }
    }

    fn queue(prompts: impl IntoIterator<Item = Prompt>) -> TurnQueue {
        let mut queue = TurnQueue::default();
        prompts.into_iter().for_each(|prompt| queue.push(prompt, None));
        queue
    }

    #[test]
    fn the_number_of_waiting_prompts_is_bounded() {
        let nearly = queue((1..MAX_PROMPTS).map(|_| prompt(1)));
        assert!(nearly.admit(&prompt(1)).is_ok());
        let full = queue((0..MAX_PROMPTS).map(|_| prompt(1)));
        let error = full.admit(&prompt(1)).unwrap_err();
        assert!(error.retryable && error.code == "too_many_prompts", "{error:?}");
    }

    #[test]
    fn the_size_of_waiting_prompts_is_bounded_and_one_alone_may_have_any_size() {
        let half = MAX_BYTES / 2;
        assert!(queue([prompt(half)]).admit(&prompt(half)).is_ok());
        assert!(queue([prompt(half)]).admit(&prompt(half + 1)).is_err());
        assert!(queue([]).admit(&prompt(MAX_BYTES + 1)).is_ok());
    }
}
