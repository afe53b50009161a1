//! `--input-format stream-json`: a worker that is driven by JSON lines.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;

use qwen_dialects::{Dialect, decode};
use qwen_engine::{Cancel, Emitter, Nobody, Session, Stop, TurnInput};
use qwen_events::{
    Body, CancelResult, Command, ControlReply, EndStatus, ErrorInfo, ErrorKind, Prompt, PromptId, SessionId,
};
use tokio::sync::mpsc;

use crate::input::{Input, Line, Lines, MAX_LINE};
use crate::output::Output;
use crate::settings::Config;
use crate::signals::{Ending, Signals};
use crate::stream::{self, pump};
use crate::{exit, setup};

/// What one line of input comes to.
type Incoming = Result<Vec<Command>, ErrorInfo>;

/// Serves until standard input ends or a signal comes, and returns the exit code.
pub async fn run(config: Config) -> u8 {
    let (output, input, signals) = match (Output::stdout(), Input::stdin(), Signals::new()) {
        (Ok(output), Ok(input), Ok(signals)) => (output, input, signals),
        (Err(error), ..) | (_, Err(error), _) | (.., Err(error)) => {
            exit::say(&format!("qwen: standard input and output cannot be used: {error}"));
            return 1;
        }
    };
    let (sender, receiver) = mpsc::channel(stream::CAPACITY);
    let (lines, incoming) = mpsc::channel(64);
    let reading = tokio::spawn(read(Lines::new(input), lines));
    let reader = setup::reader(&config);
    let emit = setup::emitter(&config, sender);
    let cancel = Cancel::default();
    let served = async {
        let mut worker = Worker { config, emit, gone: cancel.clone(), session: None, queue: VecDeque::new(), failed: false };
        worker.serve(incoming, signals).await
    };
    let written = async {
        let written = pump(receiver, reader, &output).await;
        if written.is_err() {
            cancel.stop(Stop { status: EndStatus::Interrupted, error: None });
        }
        written
    };
    let (code, written) = tokio::join!(served, written);
    reading.abort();
    match written {
        Ok(()) => code,
        // The host is gone; there is nobody left to tell.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => 0,
        Err(error) => {
            exit::say(&format!("qwen: standard output: {error}"));
            1
        }
    }
}

/// Reads lines and hands on what they mean, until the end of input.
async fn read(mut lines: Lines, sender: mpsc::Sender<Incoming>) {
    loop {
        let incoming = match lines.next().await {
            Ok(Some(Line::Whole(line))) if line.iter().all(u8::is_ascii_whitespace) => continue,
            Ok(Some(Line::Whole(line))) => decode(&line),
            Ok(Some(Line::TooLong)) => {
                let message = format!("the line is longer than {} MiB and was skipped", MAX_LINE / 1024 / 1024);
                Err(ErrorInfo::new(ErrorKind::Input, "line_too_long", message))
            }
            Ok(None) => return,
            Err(error) => {
                let message = format!("standard input: {error}");
                // The worker may be ending already, and then nobody needs to know.
                let _ = sender.send(Err(ErrorInfo::new(ErrorKind::Input, "unreadable_stdin", message))).await;
                return;
            }
        };
        if sender.send(incoming).await.is_err() {
            return;
        }
    }
}

struct Worker {
    config: Config,
    emit: Emitter,
    /// Fires when nobody reads our output any more.
    gone: Cancel,
    session: Option<Session>,
    queue: VecDeque<Prompt>,
    /// The last turn ended in an error.
    failed: bool,
}

/// Whether the worker goes on.
enum Flow {
    On,
    Exit(u8),
}

impl Worker {
    async fn serve(&mut self, mut incoming: mpsc::Receiver<Incoming>, mut signals: Signals) -> u8 {
        self.emit.emit(Body::Ready).await;
        loop {
            while let Some(prompt) = self.queue.pop_front() {
                if let Flow::Exit(code) = self.turn(prompt, &mut incoming, &mut signals).await {
                    return code;
                }
            }
            tokio::select! {
                line = incoming.recv() => match line {
                    Some(line) => if let Flow::Exit(code) = self.take(line, None).await { return code },
                    None => return self.exit_code(),
                },
                ending = signals.next() => return ending.exit_code(),
                _ = self.gone.stopped() => return 0,
            }
        }
    }

    /// The exit code at the end of input.
    fn exit_code(&self) -> u8 {
        let tells = self.config.dialect == Dialect::Claude && !self.config.qwen_sdk;
        u8::from(tells && self.failed)
    }

    /// Runs one turn while input goes on being read.
    async fn turn(
        &mut self,
        prompt: Prompt,
        incoming: &mut mpsc::Receiver<Incoming>,
        signals: &mut Signals,
    ) -> Flow {
        let mut session = match self.session_for(&prompt) {
            Ok(session) => session,
            Err(error) => {
                self.emit.emit(Body::Error(Box::new(error))).await;
                return Flow::On;
            }
        };
        session.remember(prompt.history);
        let prompt_id = prompt.prompt_id.clone().unwrap_or_else(|| session.next_prompt_id());
        let input = TurnInput {
            prompt_id: Some(prompt_id.clone()),
            message_uuid: prompt.uuid,
            parts: prompt.parts,
            model: prompt.options.model,
            sampling: prompt.options.sampling,
            tools: prompt.options.tool_overrides,
        };
        let cancel = Cancel::default();
        let emit = self.emit.clone();
        let gone = self.gone.clone();
        let mut ending: Option<Ending> = None;
        let mut open = true;
        let end = {
            let turn = session.turn(input, &emit, &cancel);
            tokio::pin!(turn);
            loop {
                tokio::select! {
                    end = &mut turn => break end,
                    line = incoming.recv(), if open => match line {
                        Some(line) => {
                            if let Flow::Exit(_) = self.take(line, Some((&prompt_id, &cancel))).await {
                                cancel.stop(Stop::cancelled());
                            }
                        }
                        None => open = false,
                    },
                    signal = signals.next(), if ending.is_none() => {
                        ending = Some(signal);
                        cancel.stop(signal.stop());
                    }
                    stop = gone.stopped(), if !cancel.is_stopped() => cancel.stop(stop),
                }
            }
        };
        self.failed = end.status != EndStatus::Done;
        self.session = Some(session);
        ending.map_or(Flow::On, |signal| Flow::Exit(signal.exit_code()))
    }

    /// The session that a prompt belongs to. The first prompt's name is adopted.
    fn session_for(&mut self, prompt: &Prompt) -> Result<Session, ErrorInfo> {
        let claude = self.config.dialect == Dialect::Claude;
        let named = prompt.session_id.as_deref().filter(|_| !claude);
        let wanted = match named {
            None => None,
            Some("_new") => Some(SessionId::from_random(fastrand::u128(..))),
            Some(text) => Some(SessionId::parse(text).map_err(|error| {
                ErrorInfo::new(ErrorKind::Input, "invalid_session_id", format!("session_id '{text}': {error}"))
                    .with_param("session_id")
            })?),
        };
        match (self.session.take(), wanted) {
            (Some(held), None) => Ok(held),
            (Some(held), Some(id)) if held.setup().id == id => Ok(held),
            (Some(held), Some(id)) if named != Some("_new") => {
                self.session = Some(held);
                let message = format!("this worker holds another session, and '{id}' is not known here");
                Err(ErrorInfo::new(ErrorKind::Input, "unknown_session", message).with_param("session_id"))
            }
            (_, wanted) => {
                let id = wanted.unwrap_or_else(|| self.config.session_id.clone());
                setup::session(&self.config, id, Arc::new(Nobody))
            }
        }
    }

    /// Takes what a line means. `running` is the turn under way.
    async fn take(&mut self, line: Incoming, running: Option<(&PromptId, &Cancel)>) -> Flow {
        match line {
            Err(error) => self.emit.emit(Body::Error(Box::new(error))).await,
            Ok(commands) => {
                for command in commands {
                    self.obey(command, running).await;
                }
            }
        }
        Flow::On
    }

    async fn obey(&mut self, command: Command, running: Option<(&PromptId, &Cancel)>) {
        match command {
            Command::Prompt(prompt) => self.queue.push_back(*prompt),
            Command::Heartbeat { .. } => self.emit.emit(Body::Heartbeat(self.session_id())).await,
            Command::Cancel { prompt_id, reason, request_id, .. } => {
                let hit = running.filter(|(id, _)| prompt_id.as_ref().is_none_or(|wanted| wanted == *id));
                if let Some((_, cancel)) = hit {
                    cancel.stop(Stop::cancelled());
                }
                let message = if hit.is_some() { "the turn is being cancelled" } else { "there is nothing to cancel" };
                let result = CancelResult {
                    session_id: self.session_id(),
                    prompt_id: hit.map(|(id, _)| id.clone()).or(prompt_id),
                    cancelled: hit.is_some(),
                    message: message.into(),
                    reason,
                    request_id,
                };
                self.emit.emit(Body::CancelResult(Box::new(result))).await;
            }
            Command::Control { request_id, nested, .. } => {
                let error = ErrorInfo::new(ErrorKind::Input, "unsupported", "this control request is not supported");
                let reply = ControlReply { request_id, nested, result: Err(error) };
                self.emit.emit(Body::ControlReply(Box::new(reply))).await;
            }
            Command::Reply(reply) => {
                let message = format!("nothing was asked under the request_id '{}'", reply.request_id);
                let error = ErrorInfo::new(ErrorKind::Input, "unknown_request_id", message);
                self.emit.emit(Body::Error(Box::new(error))).await;
            }
            Command::Hint(_) | Command::HintCancel { .. } | Command::ControlCancel { .. } | Command::Requires { .. } => {
                let error = ErrorInfo::new(ErrorKind::Input, "unsupported", "this request is not supported");
                self.emit.emit(Body::Error(Box::new(error))).await;
            }
        }
    }

    fn session_id(&self) -> SessionId {
        self.session.as_ref().map_or_else(|| self.config.session_id.clone(), |s| s.setup().id.clone())
    }
}
