//! The messages of a turn.

use serde_json::json;
use tokio::sync::mpsc;

use super::AgentError;
use super::messages::{AgentMessage, MessageKind, TurnResult, TurnText};
use super::options::TurnOptions;
use super::session::Session;

/// A prompt without a terminal record.
struct OpenPrompt {
    id: String,
    /// True once a line of its turn was read.
    is_started: bool,
}

/// The messages of one turn, or of all turns of a stream of prompts, up to and including the last terminal
/// record.
///
/// A stream that is dropped before its end cancels its turns.
pub struct TurnStream<'a> {
    session: &'a mut Session,
    first: Option<String>,
    open: Vec<OpenPrompt>,
    input: Option<mpsc::Receiver<String>>,
    options: TurnOptions,
    text: TurnText,
}

/// What a stream waits for.
enum Next {
    Message(Option<AgentMessage>),
    Prompt(Option<String>),
}

impl<'a> TurnStream<'a> {
    pub(super) fn new(
        session: &'a mut Session,
        prompt_id: Option<String>,
        input: Option<mpsc::Receiver<String>>,
        options: TurnOptions,
    ) -> Self {
        let open = prompt_id.iter().map(|id| OpenPrompt { id: id.clone(), is_started: false }).collect();
        Self { session, first: prompt_id, open, input, options, text: TurnText::default() }
    }

    /// The id of the stream's prompt, for [`Session::rewind_files`]; none for a stream of prompts.
    pub fn prompt_id(&self) -> Option<&str> {
        self.first.as_deref()
    }

    /// The session, for requests while the turn runs.
    pub fn session(&self) -> &Session {
        self.session
    }

    pub fn interrupt(&self) -> Result<(), AgentError> {
        self.session.interrupt()
    }

    /// Adds a prompt to the running turn before its next model call. The message `Steered` reports it. If the
    /// turn ends before, it is an ordinary prompt, and the stream ends with its result.
    pub fn steer(&mut self, prompt: &str) -> Result<String, AgentError> {
        let id = self.session.send_prompt(prompt, &TurnOptions::default(), Some("steer"))?;
        self.open.push(OpenPrompt { id: id.clone(), is_started: false });
        Ok(id)
    }

    /// The next message; none after the last terminal record. A prompt that the worker refuses is an error,
    /// after which the stream may be read on.
    pub async fn next(&mut self) -> Result<Option<AgentMessage>, AgentError> {
        loop {
            if self.open.is_empty() && self.input.is_none() {
                return Ok(None);
            }
            let next = match &mut self.input {
                None => Next::Message(self.session.lines.next().await),
                Some(input) => tokio::select! {
                    prompt = input.recv() => Next::Prompt(prompt),
                    message = self.session.lines.next() => Next::Message(message),
                },
            };
            match next {
                Next::Prompt(Some(prompt)) => {
                    let id = self.session.send_prompt(&prompt, &self.options, None)?;
                    self.open.push(OpenPrompt { id, is_started: false });
                }
                Next::Prompt(None) => self.input = None,
                Next::Message(None) => {
                    self.open.clear();
                    self.input = None;
                    return Err(AgentError::Ended);
                }
                Next::Message(Some(message)) => {
                    if let Some(fork) = message.announced_fork() {
                        self.session.follow_fork(fork);
                    }
                    if self.is_of_this_stream(&message) {
                        self.accept(&message).await?;
                        return Ok(Some(message));
                    }
                }
            }
        }
    }

    /// Reads to the end of the stream and returns the last result.
    pub async fn result(mut self) -> Result<TurnResult, AgentError> {
        while self.next().await?.is_some() {}
        self.session.last_result.clone().ok_or(AgentError::Ended)
    }

    /// False for lines of turns whose stream was dropped.
    fn is_of_this_stream(&mut self, message: &AgentMessage) -> bool {
        let Some(id) = message.prompt_id().filter(|id| self.session.abandoned.contains(*id)) else {
            return true;
        };
        if message.kind() == MessageKind::Result || message.ends_command() {
            self.session.abandoned.remove(id);
        }
        false
    }

    /// Notes what a message means for the open prompts.
    async fn accept(&mut self, message: &AgentMessage) -> Result<(), AgentError> {
        let Some(at) = self.prompt_of(message) else { return Ok(()) };
        self.text.read(message);
        let kind = message.kind();
        if kind == MessageKind::Result || message.ends_command() {
            self.open.remove(at);
            let result = TurnResult::read(message.clone(), self.text.take());
            self.session.last_result = Some(result);
            if let Some(store) = self.session.store.take() {
                self.session.store = Some(store.flush().await?);
            }
        } else if !self.open[at].is_started && message.refuses_prompt() {
            self.open.remove(at);
            return Err(AgentError::refused(&message["metadata"]["error"]));
        } else if kind == MessageKind::SessionEvent && message["event"] == "Steered" {
            self.open.remove(at);
        } else {
            self.open[at].is_started = true;
        }
        Ok(())
    }

    /// The index of the open prompt that a message belongs to. A refusal of the kernel names only its
    /// session.
    fn prompt_of(&self, message: &AgentMessage) -> Option<usize> {
        match message.prompt_id() {
            Some(id) => self.open.iter().position(|prompt| prompt.id == id),
            None => {
                let about_session = message["metadata"]["error"]["param"] == "session_id";
                let refuses = about_session && message.kind() == MessageKind::Error;
                self.open.iter().position(|prompt| refuses && !prompt.is_started)
            }
        }
    }
}

impl Drop for TurnStream<'_> {
    fn drop(&mut self) {
        for prompt in std::mem::take(&mut self.open) {
            let line =
                json!({"type": "control/cancel", "session_id": self.session.id(), "prompt_id": prompt.id});
            // A kernel that has ended has no turn left.
            let _ = self.session.send(&line);
            self.session.abandoned.insert(prompt.id);
        }
    }
}
