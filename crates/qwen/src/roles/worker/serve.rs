//! The loop of a worker: one turn at a time, and everything else at once.

use std::collections::{HashSet, VecDeque};
use std::sync::{Arc, Weak};
use std::time::Duration;

use qwen_dialects::{Dialect, qwen};
use qwen_engine::{Cancel, Emitter, Session};
use qwen_events::{
    Body, Command, EndStatus, ErrorInfo, ErrorKind, ModelUsage, Part, Prompt, PromptId, PromptOrigin,
    SessionId, TurnEnd,
};
use qwen_tools::Workbench;
use tokio::sync::mpsc;

use super::Incoming;
use super::control_host::ControlHost;
use super::gauges::Gauges;
use super::heart::{self, Heart};
use super::held::used_before;
use super::hints::Search;
use super::host_tools::superseded;
use super::mcp::OpenChange;
use super::steering::Turned;
use super::waiting::admit;
use crate::runtime::code_pages;
use crate::runtime::exit;
use crate::session::setup::Parts;
use crate::session::stored::{self, Past};
use crate::settings::{Beginning, Config};

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
    pub(super) claimed: Option<Past>,
    pub(super) session_id: SessionId,
    /// Whether the host gave the session its name, and so knows it by that.
    pub(super) named: bool,
    pub(super) queue: VecDeque<Queued>,
    /// The names of turns that were taken so far, by session.
    pub(super) prompt_ids: HashSet<Claim>,
    pub(super) last: Option<TurnEnd>,
    pub(super) sums: Sums,
    pub(super) heart: Option<Heart>,
    pub(super) gauges: Gauges,
    /// What the calls of the session share.
    pub(super) bench: Weak<Workbench>,
    /// Suggestions that are being looked for.
    pub(super) searches: Vec<Search>,
    /// Changes of MCP servers that are under way.
    pub(super) changes: Vec<OpenChange>,
    /// What the host has turned since the session began.
    pub(super) turned: Turned,
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
            turned: Turned::default(),
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
        self.parts.overrides.in_flight().attach_host();
        match stored::claim(&self.config) {
            Ok(past) => self.claimed = past,
            Err(error) => {
                let code = error.exit_code();
                exit::say(&format!("qwen: {error}"));
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

    async fn listen(&mut self, incoming: &mut mpsc::Receiver<Incoming>) -> u8 {
        // What was needed to start is needed no more.
        code_pages::give_back();
        let mut resting = false;
        loop {
            let ending = self.ending.clone();
            while !self.config.await_initialize
                && let Some(queued) = self.queue.pop_front()
            {
                resting = false;
                if ending.is_stopped() {
                    self.queue.push_front(queued);
                    return ending.cause().status.exit_code();
                }
                if let Flow::Exit(code) = Box::pin(self.turn(queued, incoming)).await {
                    return code;
                }
            }
            tokio::select! {
                line = incoming.recv() => match line {
                    Some(line) => if let Flow::Exit(code) = self.take(line, None).await { return code },
                    // Who says nothing more says no `initialize` either.
                    None if std::mem::take(&mut self.config.await_initialize) => {}
                    None => return self.exit_code(),
                },
                stop = ending.stopped() => return stop.status.exit_code(),
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

    /// Goes on with the turn that was left unfinished.
    pub(super) fn queue_unfinished(&mut self) {
        let prompt = Prompt::default();
        self.queue.push_back(Queued { prompt, claim: None, withdrawn: false, goes_on: true });
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
                self.emit.emit(heart::beat(&self.parts.overrides, asked, running.is_some())).await;
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
                    exit::say(&format!("qwen: {error}"));
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
        if let Some(turn) = running.filter(|_| self.parts.overrides.in_flight().is_paused()) {
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
