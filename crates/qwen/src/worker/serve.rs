//! The loop of a worker: one turn at a time, and everything else at once.

use std::collections::{HashSet, VecDeque};
use std::sync::{Arc, Weak};
use std::time::Duration;

use qwen_dialects::{Dialect, qwen};
use qwen_engine::log::Unfinished;
use qwen_engine::{AnswerForm, Cancel, Emitter, Session, Stop, TurnInput};
use qwen_events::{
    Body, Command, EndStatus, ErrorInfo, ErrorKind, ModelUsage, Part, Prompt, PromptId, PromptOrigin,
    SessionId, TurnEnd,
};
use qwen_tools::Workbench;
use tokio::sync::mpsc;

use super::Incoming;
use super::commands::After;
use super::control_host::ControlHost;
use super::gauges::Gauges;
use super::heart::{self, Heart};
use super::hints::Search;
use super::host_tools::superseded;
use super::mcp::OpenChange;
use super::waiting::admit;
use crate::sessions::{self, Past};
use crate::settings::{Beginning, Config};
use crate::setup::Parts;
use crate::slash::{Attached, attach};
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
    pub(super) session: Option<Session>,
    /// The session that the command line told us to go on with, until its first prompt comes.
    claimed: Option<Past>,
    pub(super) session_id: SessionId,
    /// Whether the host gave the session its name, and so knows it by that.
    pub(super) named: bool,
    pub(super) queue: VecDeque<Queued>,
    /// The names of turns that were taken so far, by session.
    prompt_ids: HashSet<Claim>,
    last: Option<TurnEnd>,
    pub(super) sums: Sums,
    pub(super) heart: Option<Heart>,
    pub(super) gauges: Gauges,
    /// What the calls of the session share.
    pub(super) bench: Weak<Workbench>,
    /// Suggestions that are being looked for.
    pub(super) searches: Vec<Search>,
    /// Changes of MCP servers that are under way.
    pub(super) changes: Vec<OpenChange>,
}

/// What the session has spent so far.
#[derive(Default)]
pub(super) struct Sums {
    pub requests: u64,
    pub tool_calls: u64,
    pub prompt_tokens: u64,
    pub completion_tokens: u64,
    pub cached_tokens: u64,
    pub thought_tokens: u64,
    /// What each turn spent, by model.
    pub by_model: Vec<ModelUsage>,
}

/// A turn's name and the session that it is in, as the request named it.
pub(super) type Claim = (Arc<str>, PromptId);

pub(super) struct Queued {
    pub prompt: Prompt,
    /// The name that it took, which is free again if it is refused.
    pub claim: Option<Claim>,
    pub withdrawn: bool,
    /// Not a prompt at all: the turn that was left unfinished goes on.
    pub goes_on: bool,
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
        let named = !matches!(config.beginning, Beginning::Named);
        Self {
            named,
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
            heart: None,
            gauges: Gauges::default(),
            bench: Weak::new(),
            searches: Vec::new(),
            changes: Vec::new(),
        }
    }

    /// Starts with a prompt, unless it is empty.
    pub(super) fn asked(mut self, prompt: &str) -> Self {
        if !prompt.trim().is_empty() {
            let prompt = Prompt { parts: vec![Part::Text(prompt.into())], ..Prompt::default() };
            self.queue.push_back(Queued { prompt, claim: None, goes_on: false, withdrawn: false });
        }
        self
    }

    /// Serves until input ends, a signal comes or the host ends the session.
    pub(super) async fn serve(mut self, mut incoming: mpsc::Receiver<Incoming>) -> u8 {
        self.parts.dials.bustle().attend();
        match sessions::claim(&self.config) {
            Ok(past) => self.claimed = past,
            Err(error) => {
                let code = error.exit_code();
                self.emit.emit(Body::Fatal(Box::new(error))).await;
                return code;
            }
        }
        self.emit.emit(Body::Ready).await;
        let code = Box::pin(self.listen(&mut incoming)).await;
        self.dismiss(&mut incoming).await;
        self.host.close();
        self.heart = None;
        if let Some(mut session) = self.session.take() {
            session.end("other", &self.emit).await;
        }
        code
    }

    /// The session of a prompt whose turn has come; none where the prompt is refused, which is told.
    pub(super) async fn begin(&mut self, queued: &Queued) -> Option<Session> {
        let prompt = &queued.prompt;
        let refusal = match self.session_for(prompt) {
            Ok(session) => match &prompt.prompt_id {
                // It was used by the process that had the session before us.
                Some(id) if session.has_prompt(id) && !prompt.continuation => {
                    self.session = Some(session);
                    used_before(id)
                }
                _ => return Some(session),
            },
            Err(error) => {
                if let Some(claim) = &queued.claim {
                    self.prompt_ids.remove(claim);
                }
                error
            }
        };
        self.emit.emit(Body::Error(Box::new(refusal))).await;
        None
    }

    async fn listen(&mut self, incoming: &mut mpsc::Receiver<Incoming>) -> u8 {
        // What was needed to start is needed no more.
        code_pages::give_back();
        let mut resting = false;
        loop {
            let ending = self.ending.clone();
            while let Some(queued) = self.queue.pop_front() {
                resting = false;
                if ending.is_stopped() {
                    self.queue.push_front(queued);
                    return exit::stopped(ending.cause().status);
                }
                if let Flow::Exit(code) = Box::pin(self.turn(queued, incoming)).await {
                    return code;
                }
            }
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
        if queued.withdrawn || queued.prompt.origin == PromptOrigin::System {
            self.unspoken(queued, Stop::cancelled()).await;
            return Flow::On;
        }
        let Some(mut session) = self.begin(&queued).await else { return Flow::On };
        let mut prompt = queued.prompt;
        self.bench = Arc::downgrade(&session.setup().place.bench);
        if let Some(system) = prompt.system.take() {
            session.instruct(system);
        }
        session.take_over(std::mem::take(&mut prompt.history));
        let prompt_id = match session.unfinished().filter(|_| queued.goes_on) {
            Some(unfinished) => unfinished.start.prompt_id.clone(),
            None => prompt.prompt_id.clone().unwrap_or_else(|| session.next_prompt_id()),
        };
        if !queued.goes_on
            && let Some(call) = self.command_in(&prompt)
        {
            match self.command(call, &mut session, &prompt_id, incoming).await {
                After::Turn(words) => prompt.parts = vec![Part::Text(words)],
                After::Over(flow) => {
                    self.session.get_or_insert(session);
                    return flow;
                }
            }
        }
        let answer_form =
            match prompt.options.json_schema.take().map(|schema| AnswerForm::parse(schema.as_str())) {
                None => None,
                Some(Ok(form)) => Some(Arc::new(form)),
                Some(Err(error)) => {
                    if let Some(claim) = &queued.claim {
                        self.prompt_ids.remove(claim);
                    }
                    self.session = Some(session);
                    self.emit.emit(Body::Error(Box::new(error))).await;
                    return Flow::On;
                }
            };
        let Attached { parts: attachments, resources } =
            if queued.goes_on || prompt.origin != PromptOrigin::User {
                Attached::default()
            } else {
                attach(&prompt.parts, &self.parts, &session, &prompt_id, &self.emit).await
            };
        let input = TurnInput {
            prompt_id: Some(prompt_id.clone()),
            message_uuid: prompt.uuid,
            parts: prompt.parts,
            attachments,
            resources,
            model: prompt.options.model,
            sampling: self.config.sampling_with(prompt.options.sampling),
            tools: prompt.options.tool_overrides,
            host_tools: prompt.options.host_tools,
            answer_form,
        };
        let emit = self.emit.clone();
        let cancel = Cancel::default();
        let seal = session.sealer();
        let turn = async {
            if queued.goes_on {
                session.go_on(&emit, &cancel).await
            } else {
                Some(session.turn(input, &emit, &cancel).await)
            }
        };
        let running = Running { prompt_id: &prompt_id, cancel: &cancel };
        let (end, leaving) = self.beside_input(turn, running, incoming, &seal).await;
        if let Some(end) = &end {
            self.account(end);
        }
        self.read_gauges(&session);
        self.session = Some(session);
        leaving.map_or(Flow::On, Flow::Exit)
    }

    /// Does `work` while input goes on being read. Returns what came of it, and the exit code where the worker ends
    /// behind it. Where that leaves the work waiting for the host, `seal` keeps it open for whoever comes after us.
    pub(super) async fn beside_input<T>(
        &mut self,
        work: impl Future<Output = T>,
        running: Running<'_>,
        incoming: &mut mpsc::Receiver<Incoming>,
        seal: &(dyn Fn() + Send + Sync),
    ) -> (T, Option<u8>) {
        let cancel = running.cancel;
        let ending = self.ending.clone();
        let dials = self.parts.dials.clone();
        let mut leaving: Option<u8> = None;
        let mut open = true;
        tokio::pin!(work);
        let done = loop {
            tokio::select! {
                done = &mut work => break done,
                line = incoming.recv(), if open => match line {
                    Some(line) => {
                        // The work goes on meanwhile: a reader who is slow to take the answer to a line must not keep
                        // it from hearing a cancel.
                        let mut ended = None;
                        let taking = self.take(line, Some(running));
                        tokio::pin!(taking);
                        let flow = loop {
                            tokio::select! {
                                biased;
                                flow = &mut taking => break flow,
                                done = &mut work, if ended.is_none() => ended = Some(done),
                            }
                        };
                        if let Flow::Exit(code) = flow {
                            leaving = Some(code);
                            cancel.stop(Stop::cancelled());
                        }
                        if let Some(done) = ended {
                            break done;
                        }
                    }
                    None => {
                        open = false;
                        self.host.close();
                    }
                },
                stop = ending.stopped(), if !cancel.is_stopped() => {
                    if dials.bustle().is_paused() {
                        seal();
                    }
                    cancel.stop(stop);
                }
                // Nobody is left to answer for the host's tools; whoever takes up the session may.
                () = dials.bustle().paused(), if !open && !cancel.is_stopped() => {
                    if self.queue.is_empty() {
                        seal();
                    }
                    cancel.stop(Stop { status: EndStatus::Interrupted, error: None });
                }
            }
        };
        if ending.is_stopped() {
            leaving = Some(exit::stopped(ending.cause().status));
        }
        (done, leaving)
    }

    /// The turn that an earlier process left unfinished, unless a turn runs.
    pub(super) fn unfinished(&self) -> Option<&Unfinished> {
        match &self.session {
            Some(session) => session.unfinished(),
            None => self.claimed.as_ref().and_then(Past::unfinished),
        }
    }

    /// About how many tokens the session has that the command line named, before its first turn here.
    pub(super) fn claimed_tokens(&self) -> Option<u64> {
        self.claimed.as_ref().filter(|_| self.session.is_none()).map(Past::tokens)
    }

    /// Goes on with the turn that was left unfinished.
    pub(super) fn queue_unfinished(&mut self) {
        let prompt = Prompt::default();
        self.queue.push_back(Queued { prompt, claim: None, withdrawn: false, goes_on: true });
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
        self.sums.thought_tokens += end.usage.thought_tokens;
        self.sums.by_model.extend(end.usage_by_model.iter().cloned());
        self.last = Some(end.clone());
    }

    /// The session that a prompt belongs to. A worker that holds none adopts the first prompt's.
    pub(super) fn session_for(&mut self, prompt: &Prompt) -> Result<Session, ErrorInfo> {
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
                        self.named |= named.is_some_and(|name| name != "_new");
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

    /// Holds a session again that was borrowed.
    pub(super) fn give_back(&mut self, session: Session) {
        self.session = Some(session);
    }

    /// Holds `session` from here on.
    pub(super) fn hold(&mut self, session: Session, id: SessionId) {
        self.session_id = id.clone();
        self.host.set_session(id);
        self.session = Some(session);
    }

    /// Takes what a line means.
    pub(super) async fn take(&mut self, line: Incoming, running: Option<Running<'_>>) -> Flow {
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
            Command::Heartbeat { session_id, interval_ms } => {
                let asked = self.addressed(session_id.as_deref());
                self.emit.emit(heart::beat(&self.parts.dials, asked, running.is_some())).await;
                self.beat_every(interval_ms);
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
                    self.emit.emit(Body::Fatal(Box::new(error))).await;
                    return Flow::Exit(1);
                }
            }
            Command::HintCancel { prompt_id, .. } => self.hint_cancel(prompt_id.as_ref()),
            Command::ControlCancel { request_id } => self.control_cancel(&request_id),
            Command::Hint(request) => self.hint(*request).await,
        }
        Flow::On
    }

    /// Queues a prompt, or says why it cannot be run.
    async fn prompt(&mut self, prompt: Prompt, running: Option<Running<'_>>) {
        if prompt.origin == PromptOrigin::ToolResponse && prompt.history.is_empty() {
            return self.tool_response(prompt, running).await;
        }
        if prompt.origin == PromptOrigin::ToolResponse && self.waits_for(&prompt) {
            // A host that keeps no state sends the whole conversation along.
            return self.tool_response(prompt, running).await;
        }
        let claim = self.claim(&prompt);
        let mut is_new = false;
        if let Some(claim) = &claim {
            is_new = self.prompt_ids.insert(claim.clone());
            if !is_new && !prompt.continuation {
                let error = used_before(&claim.1);
                self.emit.emit(Body::Error(Box::new(error))).await;
                return;
            }
        }
        if running.is_some()
            && let Some(call) = self.command_in(&prompt)
            && self.parts.commands.is_live(&call)
        {
            self.command_beside_turn(call, prompt.prompt_id).await;
            return;
        }
        if let Err(error) = admit(&self.queue, &prompt) {
            if let Some(claim) = claim.filter(|_| is_new) {
                self.prompt_ids.remove(&claim);
            }
            self.emit.emit(Body::Error(Box::new(error))).await;
            return;
        }
        if let Some(turn) = running.filter(|_| self.parts.dials.bustle().is_paused()) {
            // The host goes on with something else.
            turn.cancel.stop(superseded());
        }
        self.queue.push_back(Queued { prompt, claim, withdrawn: false, goes_on: false });
    }

    /// The name that a prompt takes for its turn. Context for the next turn runs none, and a session that begins with
    /// the prompt has no names yet.
    fn claim(&self, prompt: &Prompt) -> Option<Claim> {
        let id = prompt.prompt_id.clone().filter(|_| prompt.origin != PromptOrigin::System)?;
        let claude = self.config.dialect == Dialect::Claude;
        match prompt.session_id.as_ref().filter(|_| !claude) {
            Some(name) if &**name == "_new" => None,
            Some(name) => Some((name.clone(), id)),
            None => Some((self.session_id.as_str().into(), id)),
        }
    }

    /// The session that a request is about, in the words of whoever asked.
    pub(super) fn addressed(&self, named: Option<&str>) -> SessionId {
        named.and_then(|name| SessionId::parse(name).ok()).unwrap_or_else(|| self.session_id.clone())
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
