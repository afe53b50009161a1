//! The lines that the kernel writes: to whom they belong and what they change.

use std::borrow::Cow;
use std::rc::Rc;

use bytes::Bytes;
use qwen_events::SessionId;
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::session::{Line, Session};
use super::{Approval, SessionHub, Sessions, now};

/// The keys by which a line is passed on and understood.
#[derive(Deserialize)]
struct Keys<'a> {
    seq: Option<u64>,
    #[serde(borrow, rename = "type")]
    kind: Option<Cow<'a, str>>,
    #[serde(borrow)]
    event: Option<Cow<'a, str>>,
    #[serde(borrow)]
    session_id: Option<Cow<'a, str>>,
    #[serde(borrow)]
    prompt_id: Option<Cow<'a, str>>,
    #[serde(borrow)]
    request_id: Option<Cow<'a, str>>,
    #[serde(borrow)]
    metadata: Option<&'a RawValue>,
    #[serde(borrow)]
    result: Option<&'a RawValue>,
}

/// `metadata` of a line without a `type`.
#[derive(Deserialize)]
struct Metadata {
    turn: Option<serde::de::IgnoredAny>,
    error: Option<serde::de::IgnoredAny>,
}

/// `result` of a command.
#[derive(Deserialize)]
struct CommandResult<'a> {
    #[serde(borrow, rename = "type")]
    kind: Option<Cow<'a, str>>,
}

impl Keys<'_> {
    /// The prompt that the line ends: by the end of its turn, by a refusal, or because it joined a turn.
    fn ended_prompt(&self) -> Option<&str> {
        let ends = match self.kind.as_deref() {
            None => {
                let metadata = serde_json::from_str::<Metadata>(self.metadata?.get()).ok()?;
                metadata.turn.is_some() || metadata.error.is_some()
            }
            Some("x-qwen-session-event") => self.event.as_deref() == Some("Steered"),
            Some("result/command") => {
                let result = serde_json::from_str::<CommandResult<'_>>(self.result?.get()).ok()?;
                result.kind.as_deref() != Some("submit_prompt")
            }
            Some(_) => false,
        };
        self.prompt_id.as_deref().filter(|_| ends)
    }
}

/// The prompt that a line ends.
pub fn ended_prompt(line: &[u8]) -> Option<String> {
    serde_json::from_slice::<Keys<'_>>(line).ok()?.ended_prompt().map(str::to_owned)
}

/// Reads the kernel's output until it ends.
pub async fn run_intake(hub: Rc<dyn SessionHub>, sessions: Rc<Sessions>) {
    while let Some(bytes) = hub.next_output().await {
        for line in bytes.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
            sessions.line(line);
        }
    }
}

impl Sessions {
    fn line(&self, line: &[u8]) {
        let Ok(keys) = serde_json::from_slice::<Keys<'_>>(line) else { return };
        if keys.kind.as_deref() == Some("control_response")
            && let Some(request_id) = keys.request_id.as_deref()
            && let Some(caller) = self.awaited.borrow_mut().remove(request_id)
        {
            // The caller may no longer wait.
            let _ = caller.send(serde_json::from_slice(line).unwrap_or_default());
        }
        let Some(id) = keys.session_id.as_deref().and_then(|id| SessionId::parse(id).ok()) else { return };
        let Some(session) = self.by_id.borrow().get(&id).cloned() else { return };
        if let Some(number) = keys.seq {
            // A copy, so that a kept line does not keep the others of its batch.
            let kept = Line { number, text: Bytes::copy_from_slice(line) };
            if !session.push(kept.clone()) {
                return;
            }
            self.timeline.push(id, kept);
        }
        self.note(&session, &keys, line);
    }

    /// Updates what the server knows of a session.
    fn note(&self, session: &Rc<Session>, keys: &Keys<'_>, line: &[u8]) {
        if let Some(prompt_id) = keys.ended_prompt() {
            return self.end_prompt(session, prompt_id);
        }
        let Some(request_id) = keys.request_id.as_deref() else { return };
        match keys.kind.as_deref() {
            Some("control_request") => {
                let request: Value = serde_json::from_slice(line).unwrap_or_default();
                if request["subtype"] == "can_use_tool" {
                    let approval = Approval {
                        session: session.id.clone(),
                        prompt_id: keys.prompt_id.as_deref().map(str::to_owned),
                        request,
                        asked_at: now(),
                    };
                    self.approvals.borrow_mut().ask(request_id, approval);
                }
            }
            Some("control_cancel_request") => {
                self.approvals.borrow_mut().end(request_id, "withdrawn");
            }
            _ => {}
        }
    }

    fn end_prompt(&self, session: &Rc<Session>, prompt_id: &str) {
        let place = session.prompts.borrow().iter().position(|waiting| waiting == prompt_id);
        let Some(place) = place else { return };
        session.prompts.borrow_mut().remove(place);
        self.approvals.borrow_mut().withdraw(&session.id, Some(prompt_id));
        self.remember(session);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_a_prompt_is_recognised() {
        let ended = |line: &str| ended_prompt(line.as_bytes());
        let p = Some("p".to_owned());
        assert_eq!(
            ended(
                r#"{"seq":4,"object":"chat.completion.chunk","prompt_id":"p","metadata":{"turn":{"status":"done"}}}"#
            ),
            p
        );
        assert_eq!(
            ended(
                r#"{"seq":4,"object":"chat.completion","prompt_id":"p","metadata":{"error":{"code":"x"}}}"#
            ),
            p
        );
        assert_eq!(ended(r#"{"type":"x-qwen-session-event","event":"Steered","prompt_id":"p"}"#), p);
        assert_eq!(ended(r#"{"type":"result/command","prompt_id":"p","result":{"type":"message"}}"#), p);
        for open in [
            r#"{"object":"chat.completion.chunk","prompt_id":"p","choices":[{"delta":{"content":"\"metadata\":{\"turn\":{}}"}}]}"#,
            r#"{"type":"result/command","prompt_id":"p","result":{"type":"submit_prompt"}}"#,
            r#"{"type":"control_request","prompt_id":"p","metadata":{"reason":"x"}}"#,
            "{",
        ] {
            assert_eq!(ended(open), None, "{open}");
        }
    }
}
