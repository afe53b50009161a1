//! How many prompts may wait for their turn. A host that sends more is told so, line by line: to stop reading instead
//! would keep its cancels and heartbeats from being heard.

use std::collections::VecDeque;

use qwen_events::{ErrorInfo, ErrorKind, MediaSource, Part, Prompt};

use super::serve::Queued;

/// The most prompts that wait.
const MOST: usize = 10_000;

/// The most that they may say together, in bytes. One alone may say as much as a line holds.
const MOST_BYTES: usize = 128 * 1024 * 1024;

/// Whether one more prompt may wait, and why not.
pub(super) fn admit(queue: &VecDeque<Queued>, prompt: &Prompt) -> Result<(), ErrorInfo> {
    let size = size_of(prompt);
    // Small prompts, which are all but a few, are not worth adding up.
    let bytes = || queue.iter().map(|queued| size_of(&queued.prompt)).sum::<usize>();
    let too_much = size > MOST_BYTES / MOST && !queue.is_empty() && bytes().saturating_add(size) > MOST_BYTES;
    if queue.len() < MOST && !too_much {
        return Ok(());
    }
    let message = format!(
        "{} prompts wait for their turn, which is as much as this worker keeps; send this one again when some of them \
         are done",
        queue.len()
    );
    let error = ErrorInfo::new(ErrorKind::Input, "too_many_prompts", message);
    Err(ErrorInfo { retryable: true, ..error })
}

/// About how much memory a prompt takes.
fn size_of(prompt: &Prompt) -> usize {
    let of = |part: &Part| match part {
        Part::Text(text) | Part::Thought { text, .. } => text.len(),
        Part::Media(media) => match &media.source {
            MediaSource::Base64(text) | MediaSource::Url(text) => text.len(),
        },
        Part::Call(call) => call.arguments.as_str().len(),
        Part::Result(result) => result.text.len(),
    };
    let said = prompt.history.iter().flat_map(|message| &message.parts);
    prompt.parts.iter().chain(said).map(of).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn prompt(size: usize) -> Prompt {
        Prompt { parts: vec![Part::Text("x".repeat(size).into())], ..Prompt::default() }
    }

    fn queue(prompts: impl IntoIterator<Item = Prompt>) -> VecDeque<Queued> {
        let queued = |prompt| Queued { prompt, claim: None, withdrawn: false, goes_on: false };
        prompts.into_iter().map(queued).collect()
    }

    #[test]
    fn so_many_prompts_wait_and_no_more() {
        let nearly = queue((1..MOST).map(|_| prompt(1)));
        assert!(admit(&nearly, &prompt(1)).is_ok());
        let full = queue((0..MOST).map(|_| prompt(1)));
        let error = admit(&full, &prompt(1)).unwrap_err();
        assert!(error.retryable && error.code == "too_many_prompts", "{error:?}");
    }

    #[test]
    fn what_waits_may_say_so_much_together_and_one_alone_anything() {
        let half = MOST_BYTES / 2;
        assert!(admit(&queue([prompt(half)]), &prompt(half)).is_ok());
        assert!(admit(&queue([prompt(half)]), &prompt(half + 1)).is_err());
        assert!(admit(&queue([]), &prompt(MOST_BYTES + 1)).is_ok());
    }
}
