//! Results of host tools: for the turn that waits for them, or for a turn that an earlier process left
//! waiting.

use qwen_dialects::Dialect;
use qwen_engine::Stop;
use qwen_events::{Body, CallId, EndStatus, ErrorInfo, ErrorKind, Part, Prompt, ToolResult};

use super::worker::{RunningTurn, Worker};

impl Worker {
    /// Delivers the results of a tool response. A result that no call waits for is an error; the others are
    /// still delivered.
    pub(super) async fn tool_response(&mut self, mut prompt: Prompt, running: Option<RunningTurn<'_>>) {
        let results = results(std::mem::take(&mut prompt.parts));
        let taken = match running {
            Some(turn) => self.check_running_turn(&prompt, turn),
            None => self.resume_waiting_turn(&mut prompt, &results),
        };
        if let Err(error) = taken {
            let error = error.for_prompt(prompt.session_id.as_deref(), prompt.prompt_id.clone());
            return self.emit.emit(Body::Error(Box::new(error))).await;
        }
        for result in results {
            if let Err(error) = self.process.services.overrides.in_flight().answer(result) {
                self.emit.emit(Body::Error(Box::new(error))).await;
            }
        }
    }

    /// True if the running turn waits for one of the results in a prompt.
    pub(super) fn awaits_result_in(&self, prompt: &Prompt) -> bool {
        let answers = |id: &CallId| self.process.services.overrides.in_flight().awaits_host_answer(id);
        prompt.parts.iter().any(|part| matches!(part, Part::Result(result) if answers(&result.call_id)))
    }

    /// Checks that a response belongs to the running turn.
    fn check_running_turn(&self, prompt: &Prompt, turn: RunningTurn<'_>) -> Result<(), ErrorInfo> {
        // Claude hosts send arbitrary session ids.
        let named =
            prompt.session_id.as_deref().filter(|_| self.process.config.stream.dialect != Dialect::Claude);
        if let Some(id) = named.filter(|id| *id != self.sessions.id().as_str()) {
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

    /// Queues the turn that an earlier process left waiting for one of the results.
    fn resume_waiting_turn(&mut self, prompt: &mut Prompt, results: &[ToolResult]) -> Result<(), ErrorInfo> {
        let ids: Vec<CallId> = results.iter().map(|result| result.call_id.clone()).collect();
        if self.sessions.unfinished().is_none() && prompt.session_id.is_none() {
            // No turn waits: each result becomes an error below.
            return Ok(());
        }
        let mut session = self.sessions.session_for(prompt, &self.process)?;
        let tools = std::mem::take(&mut prompt.options.host_tools);
        let awaited = session.awaits_host(&ids, tools);
        self.sessions.put_back(session);
        if awaited {
            self.queue.push_continuation(true);
        }
        Ok(())
    }
}

/// The end of a turn that waited for the host when the host sent a new prompt instead.
pub(super) fn superseded() -> Stop {
    let message = "a new prompt came while the turn waited for the host to run a tool";
    let error = ErrorInfo::new(ErrorKind::Input, "superseded", message);
    Stop { status: EndStatus::Interrupted, error: Some(error) }
}

/// The end of a turn that waits for the host when standard input has ended.
pub(super) fn unattended() -> Stop {
    let message =
        "the input ended while the turn waited for the host to run a tool: resume the session to continue";
    let error = ErrorInfo::new(ErrorKind::Input, ErrorInfo::INPUT_ENDED, message);
    Stop { status: EndStatus::Interrupted, error: Some(error) }
}

fn results(parts: Vec<Part>) -> Vec<ToolResult> {
    let result = |part| if let Part::Result(result) = part { Some(result) } else { None };
    parts.into_iter().filter_map(result).collect()
}
