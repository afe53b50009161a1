//! The main loop of a worker: one turn at a time, and everything else concurrently.

use std::sync::{Arc, Weak};
use std::time::Duration;

use qwen_dialects::{Dialect, qwen};
use qwen_engine::{Cancel, Emitter, Stop};
use qwen_events::{Body, Command, ErrorInfo, ErrorKind, Part, Prompt, PromptId, PromptOrigin};
use qwen_tools::SessionResources;
use tokio::sync::mpsc;

use super::control::ControlChannel;
use super::heartbeat::{HeartbeatTimer, heartbeat};
use super::hints::HintSearches;
use super::host::ControlHost;
use super::queue::{PromptKey, TurnQueue, used_before};
use super::session_slot::SessionSlot;
use super::tool_results::superseded;
use super::usage::UsageLedger;
use super::{Incoming, refuse_start};
use crate::runtime::{code_pages, exit};
use crate::session::ProcessContext;

/// A worker that is idle for this long releases its code pages. A prompt that follows the start or another
/// turn sooner finds them mapped.
const REST_AFTER: Duration = Duration::from_millis(250);

/// A worker: its components and their shared state.
pub(super) struct Worker {
    pub(super) process: ProcessContext,
    pub(super) emit: Emitter,
    pub(super) host: Arc<ControlHost>,
    /// Stopped when the process must end: by a signal, or because the reader of our output has disconnected.
    pub(super) ending: Cancel,
    pub(super) sessions: SessionSlot,
    pub(super) queue: TurnQueue,
    pub(super) control: ControlChannel,
    pub(super) usage: UsageLedger,
    /// The state that the tool calls of the current session share; dangling before the first turn.
    pub(super) resources: Weak<SessionResources>,
    /// No turn starts before the host sends `initialize`.
    pub(super) awaits_initialize: bool,
    /// The number of prompts without an id that joined a turn, used for their generated ids.
    pub(super) steered: u64,
    /// The number of lines of input so far.
    inputs: u64,
    heartbeat: HeartbeatTimer,
    pub(super) hints: HintSearches,
}

/// The turn that runs while a line is handled.
#[derive(Clone, Copy)]
pub(super) struct RunningTurn<'a> {
    pub prompt_id: &'a PromptId,
    pub cancel: &'a Cancel,
    /// True if it ends with a terminal record; false for a command.
    pub is_turn: bool,
}

pub(super) enum Flow {
    Continue,
    /// End with this exit code.
    Exit(u8),
}

impl Worker {
    pub(super) fn new(
        process: ProcessContext,
        emit: Emitter,
        host: Arc<ControlHost>,
        ending: Cancel,
    ) -> Self {
        Self {
            sessions: SessionSlot::new(&process, host.clone()),
            awaits_initialize: process.config.claude.await_initialize,
            process,
            emit,
            host,
            ending,
            queue: TurnQueue::default(),
            control: ControlChannel::default(),
            usage: UsageLedger::default(),
            resources: Weak::new(),
            steered: 0,
            inputs: 0,
            heartbeat: HeartbeatTimer::default(),
            hints: HintSearches::default(),
        }
    }

    /// Queues a first prompt, unless it is empty.
    pub(super) fn with_prompt(mut self, prompt: &str) -> Self {
        if !prompt.trim().is_empty() {
            let prompt = Prompt { parts: vec![Part::Text(prompt.into())], ..Prompt::default() };
            self.queue.push(prompt, None);
        }
        self
    }

    /// Serves until input ends, a signal arrives or the host ends the session.
    pub(super) async fn serve(mut self, mut incoming: mpsc::Receiver<Incoming>) -> u8 {
        self.process.services.overrides.in_flight().attach_host();
        if let Err(error) = self.sessions.claim(&self.process) {
            let dialect = self.process.config.stream.dialect;
            return refuse_start(error, dialect, &self.emit, &mut incoming).await;
        }
        self.emit.emit(Body::Ready).await;
        let code = Box::pin(self.listen(&mut incoming)).await;
        self.end_queued_prompts(&mut incoming).await;
        self.heartbeat.stop();
        self.end_session(&mut incoming).await;
        self.host.close();
        code
    }

    /// Ends the session and runs its `SessionEnd` hooks. A host that asked for the end still reads and
    /// answers; one whose input ended, or whose worker was signalled, is not asked.
    async fn end_session(&mut self, incoming: &mut mpsc::Receiver<Incoming>) {
        let Some(mut session) = self.sessions.take() else { return };
        if self.ending.is_stopped() || incoming.is_closed() || self.host.is_discarding() {
            self.host.close();
        }
        let ended = session.end("other", &self.emit);
        tokio::pin!(ended);
        let mut is_open = true;
        loop {
            tokio::select! {
                biased;
                () = &mut ended => return,
                line = incoming.recv(), if is_open => match line {
                    Some(line) => self.deliver_replies(line),
                    None => {
                        is_open = false;
                        self.host.close();
                    }
                },
            }
        }
    }

    /// Delivers the host's answers in a line. Nothing else has an effect after the end of the session.
    fn deliver_replies(&self, line: Incoming) {
        for command in line.into_iter().flatten() {
            if let Command::Reply { reply, session_id } = command {
                // An answer to no question changes nothing, and the stream has ended.
                let _ = self.host.answer(*reply, session_id.as_deref());
            }
        }
    }

    async fn listen(&mut self, incoming: &mut mpsc::Receiver<Incoming>) -> u8 {
        // A spare of a hub keeps its code pages for its first prompt; all workers of the hub share them.
        let mut resting = self.process.config.stream.supervision.is_active();
        let host = self.host.clone();
        loop {
            let ending = self.ending.clone();
            while !self.awaits_initialize
                && let Some(queued) = self.queue.pop()
            {
                resting = false;
                if ending.is_stopped() {
                    self.queue.push_front(queued);
                    return ending.cause().status.exit_code();
                }
                if let Flow::Exit(code) = Box::pin(self.run_turn(queued, incoming)).await {
                    return code;
                }
            }
            tokio::select! {
                line = incoming.recv() => match line {
                    Some(line) => if let Flow::Exit(code) = self.handle_line(line, None).await { return code },
                    // A host that closes stdin before `initialize` will never send it.
                    None if std::mem::take(&mut self.awaits_initialize) => {}
                    None => return self.exit_code(),
                },
                stop = ending.stopped() => return stop.status.exit_code(),
                () = host.discarding() => return 0,
                () = tokio::time::sleep(REST_AFTER), if !resting => {
                    code_pages::release();
                    resting = true;
                }
            }
        }
    }

    /// The exit code at the end of input. Only the Claude SDKs expect a failed last turn to be an error.
    fn exit_code(&self) -> u8 {
        let config = &self.process.config;
        let reports_failure = config.stream.dialect == Dialect::Claude && !config.claude.qwen_sdk;
        u8::from(reports_failure && self.usage.last_turn_failed())
    }

    /// Handles one line of input.
    pub(super) async fn handle_line(&mut self, line: Incoming, running: Option<RunningTurn<'_>>) -> Flow {
        self.inputs += 1;
        match line {
            Err(error) => self.emit.emit(Body::Error(Box::new(error.for_input(Some(self.inputs))))).await,
            Ok(commands) => {
                for command in commands {
                    if let Flow::Exit(code) = self.dispatch(command, running).await {
                        return Flow::Exit(code);
                    }
                }
            }
        }
        Flow::Continue
    }

    async fn dispatch(&mut self, command: Command, running: Option<RunningTurn<'_>>) -> Flow {
        match command {
            Command::Prompt(mut prompt) => {
                prompt.input = Some(self.inputs);
                self.host.report_prompt(self.inputs);
                self.prompt(*prompt, running).await;
            }
            Command::Heartbeat { session_id, interval_ms } => {
                let session_id = self.sessions.addressed(session_id.as_deref());
                self.emit
                    .emit(heartbeat(&self.process.services.overrides, session_id, running.is_some()))
                    .await;
                self.set_heartbeat_interval(interval_ms);
            }
            Command::Cancel { session_id, prompt_id, reason, request_id } => {
                self.cancel(session_id, prompt_id, reason, request_id, running).await;
            }
            Command::Control { request_id, nested, body } => {
                return self.control(request_id, nested, *body, running).await;
            }
            Command::Reply { reply, session_id } => {
                if let Err(error) = self.host.answer(*reply, session_id.as_deref()) {
                    self.emit.emit(Body::Error(Box::new(error))).await;
                }
            }
            Command::Requires { protocol_version, capabilities } => {
                if let Err(error) = supported(protocol_version.as_deref(), &capabilities) {
                    exit::report(&format!("qwen: {error}"));
                    // Every dialect except qwen writes a fatal error as a terminal record, and a running turn
                    // has one anyway.
                    let is_terminal = self.process.config.stream.dialect != Dialect::Qwen;
                    match running.filter(|running| running.is_turn && is_terminal) {
                        Some(turn) => turn.cancel.stop(Stop::failed(error)),
                        None => self.emit.emit(Body::Fatal(Box::new(error))).await,
                    }
                    return Flow::Exit(1);
                }
            }
            Command::HintCancel { prompt_id, .. } => self.hints.cancel(prompt_id.as_ref()),
            Command::ControlCancel { request_id } => self.control.cancel(&request_id),
            Command::Hint(request) => {
                let session_id = self.sessions.addressed(request.session_id.as_deref());
                self.hints.answer(*request, session_id, &self.process, &self.emit).await;
            }
        }
        Flow::Continue
    }

    pub(super) fn set_heartbeat_interval(&mut self, milliseconds: Option<u64>) {
        self.heartbeat.set_interval(milliseconds, &self.emit, &self.host, &self.process.services.overrides);
    }

    /// Queues a prompt, or reports why it cannot run.
    async fn prompt(&mut self, prompt: Prompt, running: Option<RunningTurn<'_>>) {
        // A stateless host sends the whole conversation with a tool response.
        if prompt.origin == PromptOrigin::ToolResponse
            && (prompt.history.is_empty() || self.awaits_result_in(&prompt))
        {
            return self.tool_response(prompt, running).await;
        }
        let key = self.prompt_key(&prompt);
        let is_new = key.as_ref().is_some_and(|key| self.queue.reserve(key));
        if let Some((_, id)) = key.as_ref().filter(|_| !is_new && prompt.resend) {
            return self.rejoin(id, prompt.input, running).await;
        }
        if let Some((_, id)) = key.as_ref().filter(|_| !is_new && !prompt.continuation) {
            let refusal = used_before(id).for_input(prompt.input);
            self.emit.emit(Body::Error(Box::new(refusal))).await;
            return;
        }
        if running.is_some()
            && let Some(call) = self.command_in(&prompt)
            && self.process.commands.is_live(&call)
        {
            self.run_live_command(call, prompt.prompt_id).await;
            return;
        }
        let Some(prompt) = self.steer_turn(prompt, running) else { return };
        if let Err(error) = self.queue.admit(&prompt) {
            self.queue.release(key.as_ref().filter(|_| is_new));
            self.emit.emit(Body::Error(Box::new(error.for_input(prompt.input)))).await;
            return;
        }
        if let Some(turn) = running.filter(|_| self.process.services.overrides.in_flight().is_paused()) {
            turn.cancel.stop(superseded());
        }
        let unfinished = self.sessions.unfinished().map(|unfinished| &unfinished.start.prompt_id);
        if prompt.resend && unfinished.is_some() && prompt.prompt_id.as_ref() == unfinished {
            self.queue.push_resent(prompt, key);
        } else {
            self.queue.push(prompt, key);
        }
    }

    /// The prompt id that a prompt reserves. Context for the next turn starts no turn, and a session that
    /// starts with the prompt has no used ids yet.
    fn prompt_key(&self, prompt: &Prompt) -> Option<PromptKey> {
        let id = prompt.prompt_id.clone().filter(|_| prompt.origin != PromptOrigin::System)?;
        let is_claude = self.process.config.stream.dialect == Dialect::Claude;
        match prompt.session_id.as_ref().filter(|_| !is_claude) {
            Some(name) if &**name == "_new" => None,
            Some(name) => Some((name.clone(), id)),
            None => Some((self.sessions.id().as_str().into(), id)),
        }
    }
}

/// Checks the protocol version and the capabilities that the host requires.
fn supported(version: Option<&str>, capabilities: &[Arc<str>]) -> Result<(), ErrorInfo> {
    let major = |text: &str| text.split('.').next().unwrap_or_default().to_owned();
    let message = match version {
        Some(version) if major(version) != major(qwen::PROTOCOL_VERSION) => {
            format!(
                "protocol version '{version}' is not supported; this is version {}",
                qwen::PROTOCOL_VERSION
            )
        }
        _ => match capabilities.iter().find(|wanted| !qwen::CAPABILITIES.contains(&&***wanted)) {
            Some(unknown) => format!("the capability '{unknown}' is not supported"),
            None => return Ok(()),
        },
    };
    Err(ErrorInfo::new(ErrorKind::UnsupportedProtocol, "unsupported_protocol", message))
}
