//! The loop of a worker: one turn at a time, and everything else at once.

use std::collections::{HashSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use qwen_dialects::{Dialect, qwen};
use qwen_engine::commands::hint;
use qwen_engine::log::Unfinished;
use qwen_engine::{Cancel, Emitter, Session, Stop, TurnInput};
use qwen_events::{
    Body, CancelResult, Command, EndStatus, ErrorInfo, ErrorKind, Message, Part, Prompt, PromptId,
    PromptOrigin, Role, SessionId, TurnEnd,
};
use tokio::sync::mpsc;

use super::Incoming;
use super::commands::After;
use super::control_host::ControlHost;
use crate::sessions::{self, Past};
use crate::settings::Config;
use crate::setup::Parts;
use crate::slash::attach;
use crate::{code_pages, exit};

/// A worker whose host wants nothing for so long after a turn is at rest. Turns that follow each other sooner find their
/// code where it was.
const REST_AFTER: Duration = Duration::from_millis(250);

/// A worker and what it holds.
pub(super) struct Worker {
    pub(super) config: Config,
    pub(super) emit: Emitter,
    pub(super) host: Arc<ControlHost>,
    pub(super) parts: Parts,
    /// Fires when the process must end: by a signal, or because nobody reads our output any more.
    pub(super) ending: Cancel,
    session: Option<Session>,
    /// The session that the command line told us to go on with, until its first prompt comes.
    claimed: Option<Past>,
    pub(super) session_id: SessionId,
    queue: VecDeque<Queued>,
    /// The names of turns that were taken so far.
    prompt_ids: HashSet<PromptId>,
    last: Option<TurnEnd>,
    pub(super) sums: Sums,
}

/// What the session has spent so far.
#[derive(Default)]
pub(super) struct Sums {
    pub requests: u64,
    pub tool_calls: u64,
    pub prompt_tokens: u64,
    pub completion_tokens: u64,
    pub cached_tokens: u64,
    /// How full the context was at the last call.
    pub context_tokens: u64,
}

struct Queued {
    prompt: Prompt,
    withdrawn: bool,
    /// Not a prompt at all: the turn that was left unfinished goes on.
    goes_on: bool,
}

/// The turn that runs while a line is obeyed.
#[derive(Clone, Copy)]
pub(super) struct Running<'a> {
    pub prompt_id: &'a PromptId,
    pub cancel: &'a Cancel,
}

/// Whether the worker goes on.
pub(super) enum Flow {
    On,
    Exit(u8),
}

impl Worker {
    pub(super) fn new(
        config: Config,
        emit: Emitter,
        host: Arc<ControlHost>,
        parts: Parts,
        ending: Cancel,
    ) -> Self {
        let session_id = config.session_id.clone();
        Self {
            config,
            emit,
            host,
            parts,
            ending,
            session: None,
            claimed: None,
            session_id,
            queue: VecDeque::new(),
            prompt_ids: HashSet::new(),
            last: None,
            sums: Sums::default(),
        }
    }

    /// Starts with a prompt, unless it is empty.
    pub(super) fn asked(mut self, prompt: &str) -> Self {
        if !prompt.trim().is_empty() {
            let prompt = Prompt { parts: vec![Part::Text(prompt.into())], ..Prompt::default() };
            self.queue.push_back(Queued { prompt, goes_on: false, withdrawn: false });
        }
        self
    }

    /// Serves until input ends, a signal comes or the host ends the session.
    pub(super) async fn serve(mut self, incoming: mpsc::Receiver<Incoming>) -> u8 {
        match sessions::claim(&self.config) {
            Ok(past) => self.claimed = past,
            Err(error) => {
                let code = error.exit_code();
                self.emit.emit(Body::Fatal(Box::new(error))).await;
                return code;
            }
        }
        self.emit.emit(Body::Ready).await;
        let code = Box::pin(self.listen(incoming)).await;
        self.host.close();
        if let Some(mut session) = self.session.take() {
            session.end("other", &self.emit).await;
        }
        code
    }

    async fn listen(&mut self, mut incoming: mpsc::Receiver<Incoming>) -> u8 {
        // What was needed to start is needed no more.
        code_pages::give_back();
        let mut resting = false;
        loop {
            while let Some(queued) = self.queue.pop_front() {
                resting = false;
                if let Flow::Exit(code) = Box::pin(self.turn(queued, &mut incoming)).await {
                    return code;
                }
            }
            let ending = self.ending.clone();
            tokio::select! {
                line = incoming.recv() => match line {
                    Some(line) => if let Flow::Exit(code) = self.take(line, None).await { return code },
                    None => return self.exit_code(),
                },
                stop = ending.stopped() => return exit::stopped(stop.status),
                () = tokio::time::sleep(REST_AFTER), if !resting => {
                    code_pages::give_back();
                    resting = true;
                }
            }
        }
    }

    /// The exit code at the end of input: only Claude's own SDKs are told about a failed last turn.
    fn exit_code(&self) -> u8 {
        let tells = self.config.dialect == Dialect::Claude && !self.config.qwen_sdk;
        let failed = self.last.as_ref().is_some_and(|end| end.status != EndStatus::Done);
        u8::from(tells && failed)
    }

    /// Runs one turn while input goes on being read.
    async fn turn(&mut self, queued: Queued, incoming: &mut mpsc::Receiver<Incoming>) -> Flow {
        let mut prompt = queued.prompt;
        let mut session = match self.session_for(&prompt) {
            Ok(session) => session,
            Err(error) => {
                self.emit.emit(Body::Error(Box::new(error))).await;
                return Flow::On;
            }
        };
        if let Some(system) = prompt.system.take() {
            session.instruct(system);
        }
        session.remember(std::mem::take(&mut prompt.history));
        let prompt_id = match session.unfinished().filter(|_| queued.goes_on) {
            Some(unfinished) => unfinished.start.prompt_id.clone(),
            None => prompt.prompt_id.clone().unwrap_or_else(|| session.next_prompt_id()),
        };
        if prompt.prompt_id.is_some() && session.has_prompt(&prompt_id) && !prompt.continuation {
            // It was used by the process that had the session before us.
            self.session = Some(session);
            self.emit.emit(Body::Error(Box::new(used_before(&prompt_id)))).await;
            return Flow::On;
        }
        if !queued.withdrawn
            && !queued.goes_on
            && let Some(call) = self.command_in(&prompt)
        {
            match self.command(call, &mut session, &prompt_id).await {
                After::Turn(words) => prompt.parts = vec![Part::Text(words)],
                After::Over(flow) => {
                    self.session.get_or_insert(session);
                    return flow;
                }
            }
        }
        let attachments = if queued.withdrawn || queued.goes_on || prompt.origin != PromptOrigin::User {
            Vec::new()
        } else {
            attach(&prompt.parts, &self.parts, &session, &prompt_id, &self.emit).await
        };
        let input = TurnInput {
            prompt_id: Some(prompt_id.clone()),
            message_uuid: prompt.uuid,
            parts: prompt.parts,
            attachments,
            model: prompt.options.model,
            sampling: self.config.sampling_with(prompt.options.sampling),
            tools: prompt.options.tool_overrides,
        };
        let emit = self.emit.clone();
        if queued.withdrawn {
            session.withdrawn(input, &emit).await;
            self.session = Some(session);
            return Flow::On;
        }
        let cancel = Cancel::default();
        let running = Running { prompt_id: &prompt_id, cancel: &cancel };
        let ending = self.ending.clone();
        let mut leaving: Option<u8> = None;
        let mut open = true;
        let end = {
            let turn = async {
                if queued.goes_on {
                    session.go_on(&emit, &cancel).await
                } else {
                    Some(session.turn(input, &emit, &cancel).await)
                }
            };
            tokio::pin!(turn);
            loop {
                tokio::select! {
                    end = &mut turn => break end,
                    line = incoming.recv(), if open => match line {
                        Some(line) => {
                            // The turn goes on meanwhile: a reader who is slow to take the answer to a line must not
                            // keep the turn from hearing a cancel.
                            let mut ended = None;
                            let taking = self.take(line, Some(running));
                            tokio::pin!(taking);
                            let flow = loop {
                                tokio::select! {
                                    biased;
                                    flow = &mut taking => break flow,
                                    end = &mut turn, if ended.is_none() => ended = Some(end),
                                }
                            };
                            if let Flow::Exit(code) = flow {
                                leaving = Some(code);
                                cancel.stop(Stop::cancelled());
                            }
                            if let Some(end) = ended {
                                break end;
                            }
                        }
                        None => {
                            open = false;
                            self.host.close();
                        }
                    },
                    stop = ending.stopped(), if !cancel.is_stopped() => cancel.stop(stop),
                }
            }
        };
        if let Some(end) = &end {
            self.account(end);
        }
        self.session = Some(session);
        match leaving {
            _ if ending.is_stopped() => Flow::Exit(exit::stopped(ending.cause().status)),
            Some(code) => Flow::Exit(code),
            None => Flow::On,
        }
    }

    /// The turn that an earlier process left unfinished, unless a turn runs.
    pub(super) fn unfinished(&self) -> Option<&Unfinished> {
        match &self.session {
            Some(session) => session.unfinished(),
            None => self.claimed.as_ref().and_then(Past::unfinished),
        }
    }

    /// Goes on with the turn that was left unfinished.
    pub(super) fn queue_unfinished(&mut self) {
        self.queue.push_back(Queued { prompt: Prompt::default(), withdrawn: false, goes_on: true });
    }

    /// The session, unless a turn runs in it.
    pub(super) fn idle_session(&self) -> Option<&Session> {
        self.session.as_ref()
    }

    fn account(&mut self, end: &TurnEnd) {
        self.sums.requests += end.model_calls;
        self.sums.tool_calls += end.tool_calls;
        self.sums.prompt_tokens += end.usage.prompt_tokens;
        self.sums.completion_tokens += end.usage.completion_tokens;
        self.sums.cached_tokens += end.usage.cached_tokens;
        // The prompts of a turn's calls grow, so the mean understates; good enough until every call is counted.
        if let Some(mean) = end.usage.total().checked_div(end.model_calls) {
            self.sums.context_tokens = mean;
        }
        self.last = Some(end.clone());
    }

    /// The session that a prompt belongs to. A worker that holds none adopts the first prompt's.
    fn session_for(&mut self, prompt: &Prompt) -> Result<Session, ErrorInfo> {
        // Claude's SDKs send what they like there, and mean the session that they started us with.
        let claude = self.config.dialect == Dialect::Claude;
        let named = prompt.session_id.as_deref().filter(|_| !claude);
        let wanted = match named {
            None => None,
            Some("_new") => Some(SessionId::from_random(fastrand::u128(..))),
            Some(text) => Some(SessionId::parse(text).map_err(|error| {
                ErrorInfo::new(
                    ErrorKind::Input,
                    "invalid_session_id",
                    format!("session_id '{text}': {error}"),
                )
                .with_param("session_id")
            })?),
        };
        match (self.session.take(), wanted) {
            (Some(held), None) => Ok(held),
            (Some(held), Some(id)) if held.setup().id == id => Ok(held),
            (Some(held), Some(id)) if named != Some("_new") && !sessions::is_kept(&self.config, &id) => {
                self.session = Some(held);
                let message = format!("session_id '{id}' is neither the session of this worker nor on disk");
                Err(ErrorInfo::new(ErrorKind::Input, "unknown_session", message).with_param("session_id"))
            }
            (held, wanted) => {
                let id = wanted.unwrap_or_else(|| self.config.session_id.clone());
                let claimed = self.claimed.take().filter(|_| id == self.config.session_id);
                match sessions::open(&self.config, &id, &self.parts, claimed) {
                    Ok(session) => {
                        self.session_id = id.clone();
                        self.host.set_session(id);
                        Ok(session)
                    }
                    Err(error) => {
                        self.session = held;
                        Err(error)
                    }
                }
            }
        }
    }

    /// Holds `session` from here on.
    pub(super) fn hold(&mut self, session: Session, id: SessionId) {
        self.session_id = id.clone();
        self.host.set_session(id);
        self.session = Some(session);
    }

    /// Takes what a line means.
    async fn take(&mut self, line: Incoming, running: Option<Running<'_>>) -> Flow {
        match line {
            Err(error) => self.emit.emit(Body::Error(Box::new(error))).await,
            Ok(commands) => {
                for command in commands {
                    if let Flow::Exit(code) = self.obey(command, running).await {
                        return Flow::Exit(code);
                    }
                }
            }
        }
        Flow::On
    }

    async fn obey(&mut self, command: Command, running: Option<Running<'_>>) -> Flow {
        match command {
            Command::Prompt(prompt) => self.prompt(*prompt, running).await,
            Command::Heartbeat { .. } => self.emit.emit(Body::Heartbeat(self.session_id.clone())).await,
            Command::Cancel { prompt_id, reason, request_id, .. } => {
                self.cancel(prompt_id, reason, request_id, running).await;
            }
            Command::Control { request_id, nested, body } => {
                return self.control(request_id, nested, *body, running).await;
            }
            Command::Reply(reply) => {
                if let Err(error) = self.host.answer(*reply) {
                    self.emit.emit(Body::Error(Box::new(error))).await;
                }
            }
            Command::Requires { protocol_version, capabilities } => {
                if let Err(error) = supported(protocol_version.as_deref(), &capabilities) {
                    self.emit.emit(Body::Fatal(Box::new(error))).await;
                    return Flow::Exit(1);
                }
            }
            // All requests are answered at once, so there is never one to take back.
            Command::HintCancel { .. } | Command::ControlCancel { .. } => {}
            Command::Hint(request) => {
                let result = hint(&request, &self.parts.commands, &self.config.cwd, &self.session_id);
                self.emit.emit(Body::HintResult(Box::new(result))).await;
            }
        }
        Flow::On
    }

    /// Queues a prompt, or says why it cannot be run.
    async fn prompt(&mut self, prompt: Prompt, running: Option<Running<'_>>) {
        if prompt.origin == PromptOrigin::System {
            // Context for the next turn; it runs none.
            match self.session_for(&prompt) {
                Ok(mut session) => {
                    session.remember([Message { role: Role::User, parts: prompt.parts }]);
                    self.session = Some(session);
                }
                Err(error) => self.emit.emit(Body::Error(Box::new(error))).await,
            }
            return;
        }
        if let Some(id) = &prompt.prompt_id
            && !self.prompt_ids.insert(id.clone())
            && !prompt.continuation
        {
            let error = used_before(id);
            self.emit.emit(Body::Error(Box::new(error))).await;
            return;
        }
        if running.is_some()
            && let Some(call) = self.command_in(&prompt)
            && self.parts.commands.is_live(&call)
        {
            self.command_beside_turn(call, prompt.prompt_id).await;
            return;
        }
        self.queue.push_back(Queued { prompt, withdrawn: false, goes_on: false });
    }

    /// Ends the running turn, or withdraws a queued prompt.
    async fn cancel(
        &mut self,
        wanted: Option<PromptId>,
        reason: Arc<str>,
        request_id: Option<Arc<str>>,
        running: Option<Running<'_>>,
    ) {
        let hit = running.filter(|turn| wanted.as_ref().is_none_or(|id| id == turn.prompt_id));
        let queued = wanted.as_ref().filter(|_| hit.is_none()).and_then(|id| {
            self.queue
                .iter_mut()
                .find(|queued| queued.prompt.prompt_id.as_ref() == Some(id) && !queued.withdrawn)
        });
        let message = match (&hit, &queued) {
            (Some(_), _) => "the turn is being cancelled",
            (None, Some(_)) => "the queued prompt is withdrawn",
            (None, None) => "there is nothing to cancel",
        };
        let cancelled = hit.is_some() || queued.is_some();
        if let Some(queued) = queued {
            queued.withdrawn = true;
        }
        let result = CancelResult {
            session_id: self.session_id.clone(),
            prompt_id: hit.map(|turn| turn.prompt_id.clone()).or(wanted),
            cancelled,
            message: message.into(),
            reason,
            request_id,
        };
        if let Some(turn) = hit {
            turn.cancel.stop(Stop::cancelled());
        }
        self.emit.emit(Body::CancelResult(Box::new(result))).await;
    }
}

fn used_before(id: &PromptId) -> ErrorInfo {
    let message =
        format!("prompt_id '{id}' was used before; a continuation says so with \"continuation\":true");
    ErrorInfo::new(ErrorKind::Input, "duplicate_prompt_id", message).with_param("prompt_id")
}

/// Whether we speak that version and have those capabilities.
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
