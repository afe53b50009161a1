//! Answers of tools that the host runs: to the turn that waits for them, or to one that an earlier process left waiting.

use qwen_dialects::Dialect;
use qwen_engine::Stop;
use qwen_events::{Body, CallId, EndStatus, ErrorInfo, ErrorKind, Part, Prompt, ToolResult};

use super::serve::{Running, Worker};

impl Worker {
    /// Takes the results that a tool response brings. Each that nobody waits for costs one error, and the others count.
    pub(super) async fn tool_response(&mut self, mut prompt: Prompt, running: Option<Running<'_>>) {
        let results = results(std::mem::take(&mut prompt.parts));
        let taken = match running {
            Some(turn) => self.belongs(&prompt, turn),
            None => self.take_up(&mut prompt, &results),
        };
        if let Err(error) = taken {
            return self.emit.emit(Body::Error(Box::new(error))).await;
        }
        for result in results {
            if let Err(error) = self.parts.overrides.in_flight().answer(result) {
                self.emit.emit(Body::Error(Box::new(error))).await;
            }
        }
    }

    /// Whether the running turn waits for one of the results in a prompt.
    pub(super) fn waits_for(&self, prompt: &Prompt) -> bool {
        let answers = |id: &CallId| self.parts.overrides.in_flight().awaits_host_answer(id);
        prompt.parts.iter().any(|part| matches!(part, Part::Result(result) if answers(&result.call_id)))
    }

    /// Whether a response means the turn that runs.
    fn belongs(&self, prompt: &Prompt, turn: Running<'_>) -> Result<(), ErrorInfo> {
        // Claude's SDKs send what they like there.
        let named = prompt.session_id.as_deref().filter(|_| self.config.dialect != Dialect::Claude);
        if let Some(id) = named.filter(|id| *id != self.session_id.as_str()) {
            let message = format!("session_id '{id}' is not the session whose turn runs");
            return Err(ErrorInfo::new(ErrorKind::Input, "unknown_session", message).with_param("session_id"));
        }
        if let Some(id) = prompt.prompt_id.as_ref().filter(|id| *id != turn.prompt_id) {
            let message =
                format!("the turn '{id}' waits for nothing; the turn that runs is '{}'", turn.prompt_id);
            return Err(
                ErrorInfo::new(ErrorKind::Input, "unknown_tool_call", message).with_param("prompt_id")
            );
        }
        Ok(())
    }

    /// Takes up the turn that an earlier process left waiting for one of the results.
    fn take_up(&mut self, prompt: &mut Prompt, results: &[ToolResult]) -> Result<(), ErrorInfo> {
        let ids: Vec<CallId> = results.iter().map(|result| result.call_id.clone()).collect();
        if self.unfinished().is_none() && prompt.session_id.is_none() {
            // Nothing waits, and who answers nothing is told so for each answer.
            return Ok(());
        }
        let mut session = self.session_for(prompt)?;
        let tools = std::mem::take(&mut prompt.options.host_tools);
        let awaited = session.awaits_host(&ids, tools);
        self.give_back(session);
        if awaited {
            self.queue_unfinished();
        }
        Ok(())
    }
}

/// Why a turn ends that waited for the host when the host went on with something else.
pub(super) fn superseded() -> Stop {
    let message = "a new prompt came while the turn waited for the host to run a tool";
    let error = ErrorInfo::new(ErrorKind::Input, "superseded", message);
    Stop { status: EndStatus::Interrupted, error: Some(error) }
}

/// Why a turn ends that waits for the host when nobody is left to bring what it waits for.
pub(super) fn unattended() -> Stop {
    let message =
        "the input ended while the turn waited for the host to run a tool: go on by resuming the session";
    let error = ErrorInfo::new(ErrorKind::Input, ErrorInfo::INPUT_ENDED, message);
    Stop { status: EndStatus::Interrupted, error: Some(error) }
}

fn results(parts: Vec<Part>) -> Vec<ToolResult> {
    let result = |part| if let Part::Result(result) = part { Some(result) } else { None };
    parts.into_iter().filter_map(result).collect()
}
