//! One turn of a worker, while input is still being read.

use std::pin::{Pin, pin};
use std::sync::Arc;

use qwen_engine::commands::with_local_files;
use qwen_engine::{AnswerSchema, Cancel, Session, Stop, TurnInput};
use qwen_events::{Body, EndStatus, ErrorInfo, Message, Part, Prompt, PromptId, PromptOrigin, Role, TurnEnd};
use tokio::sync::mpsc;

use super::Incoming;
use super::queue::{QueuedPrompt, used_before};
use super::slash_commands::AfterCommand;
use super::tool_results::unattended;
use super::worker::{Flow, RunningTurn, Worker};
use crate::session::main_agent;
use crate::session::setup::workspace_notice;
use crate::session::slash::{Attachments, HostMessage, attach};

/// Terminal records of prompts that never ran are synced to disk in batches of this size. One sync each would
/// take longer than a worker has after SIGTERM.
const SYNC_BATCH: usize = 512;

/// What remains of a prompt after the command in it ran.
enum Expanded {
    Prompt(Box<ExpandedPrompt>),
    /// The command needed no turn.
    Handled(Flow),
}

/// A prompt whose command, if it had one, was replaced by what the command submits.
struct ExpandedPrompt {
    prompt: Prompt,
    /// The shell command that the user typed.
    typed_command: Option<Arc<str>>,
    /// True if a command submitted the prompt.
    is_submitted: bool,
}

impl From<Prompt> for ExpandedPrompt {
    fn from(prompt: Prompt) -> Self {
        Self { prompt, typed_command: None, is_submitted: false }
    }
}

impl Worker {
    /// Runs one turn while input is still being read.
    pub(super) async fn run_turn(
        &mut self,
        queued: QueuedPrompt,
        incoming: &mut mpsc::Receiver<Incoming>,
    ) -> Flow {
        if queued.withdrawn || queued.prompt.origin == PromptOrigin::System {
            self.end_without_turn(queued, Stop::cancelled()).await;
            return Flow::Continue;
        }
        let Some(mut session) = self.open_session(&queued).await else { return Flow::Continue };
        let mut prompt = queued.prompt;
        self.resources = Arc::downgrade(&session.context().resources);
        if let Some(system) = prompt.system.take() {
            session.instruct(system);
        }
        session.merge_history(std::mem::take(&mut prompt.history));
        let prompt_id = match session.unfinished().filter(|_| queued.continues_turn) {
            Some(unfinished) => unfinished.start.prompt_id.clone(),
            None => prompt.prompt_id.clone().unwrap_or_else(|| session.next_prompt_id()),
        };
        let expanded = if queued.continues_turn {
            Expanded::Prompt(Box::new(prompt.into()))
        } else {
            self.expand_command(prompt, &mut session, &prompt_id, incoming).await
        };
        let expanded = match expanded {
            Expanded::Prompt(prompt) => *prompt,
            Expanded::Handled(flow) => {
                self.sessions.put_back_unless_replaced(session);
                return flow;
            }
        };
        let (session_id, input_line) = (expanded.prompt.session_id.clone(), expanded.prompt.input);
        let input = match self.turn_input(expanded, queued.continues_turn, &session, &prompt_id).await {
            Ok(input) => input,
            Err(error) => {
                self.queue.release(queued.key.as_ref());
                self.sessions.put_back(session);
                let refusal = error.for_prompt(session_id.as_deref(), Some(prompt_id)).for_input(input_line);
                self.emit.emit(Body::Error(Box::new(refusal))).await;
                return Flow::Continue;
            }
        };
        self.usage.add_earlier(session.spent_before());
        let emit = self.emit.clone();
        let cancel = Cancel::default();
        let seal = session.sealer();
        let (end, leaving) = {
            let turn = pin!(async {
                if queued.continues_turn {
                    session.continue_unfinished(queued.replays_message, &emit, &cancel).await
                } else {
                    Some(session.turn(input, &emit, &cancel).await)
                }
            });
            let running = RunningTurn { prompt_id: &prompt_id, cancel: &cancel, is_turn: true };
            self.while_reading_input(turn, running, incoming, &seal).await
        };
        if let Some(end) = &end {
            self.usage.add_turn(end);
        }
        self.queue_undelivered();
        self.usage.measure_context(&session);
        self.sessions.put_back(session);
        leaving.map_or(Flow::Continue, Flow::Exit)
    }

    /// Runs the command in a prompt, if there is one, and returns the prompt that remains.
    async fn expand_command(
        &mut self,
        mut prompt: Prompt,
        session: &mut Session,
        prompt_id: &PromptId,
        incoming: &mut mpsc::Receiver<Incoming>,
    ) -> Expanded {
        let Some(call) = self.command_in(&prompt) else { return Expanded::Prompt(Box::new(prompt.into())) };
        let message = HostMessage { uuid: prompt.uuid.clone(), origin: prompt.message_origin.clone() };
        match self.run_command(call, message, session, prompt_id, incoming).await {
            AfterCommand::Turn(prompt_text) => {
                prompt.parts = vec![Part::Text(prompt_text)];
                Expanded::Prompt(Box::new(ExpandedPrompt { is_submitted: true, ..prompt.into() }))
            }
            AfterCommand::TypedCommand(command) => {
                prompt.parts = vec![Part::Text(format!("!{command}").into())];
                prompt.verbatim = true;
                Expanded::Prompt(Box::new(ExpandedPrompt { typed_command: Some(command), ..prompt.into() }))
            }
            AfterCommand::Done(flow) => Expanded::Handled(flow),
        }
    }

    /// Completes a prompt to the input of its turn. Fails if its answer schema is invalid.
    async fn turn_input(
        &self,
        expanded: ExpandedPrompt,
        continues_turn: bool,
        session: &Session,
        prompt_id: &PromptId,
    ) -> Result<TurnInput, ErrorInfo> {
        let ExpandedPrompt { mut prompt, typed_command, is_submitted } = expanded;
        let schema = prompt.options.json_schema.take();
        let schema = schema.map(|schema| AnswerSchema::parse(schema.as_str())).transpose()?;
        let Attachments { parts: mut attachments, resources } =
            if continues_turn || prompt.origin != PromptOrigin::User || prompt.verbatim {
                Attachments::default()
            } else {
                prompt.parts = with_local_files(std::mem::take(&mut prompt.parts));
                attach(&prompt.parts, &self.process, session, prompt_id, is_submitted, &self.emit).await
            };
        if !continues_turn && session.history().is_empty() {
            attachments.extend(workspace_notice(&self.process));
        }
        let options = &mut prompt.options;
        let warnings = main_agent::unknown_tools(options.tool_overrides.as_deref(), &options.host_tools);
        let config = &self.process.config;
        options.sampling = config.model.sampling_with(std::mem::take(&mut options.sampling));
        options.tool_overrides = main_agent::tools(config, options.tool_overrides.take());
        prompt.prompt_id = Some(prompt_id.clone());
        let answer_schema = schema.map(Arc::new);
        Ok(TurnInput { prompt, attachments, resources, answer_schema, typed_command, warnings })
    }

    /// Runs `work` while lines are read and handled. Returns its result, and an exit code if the worker must
    /// end afterwards. If that interrupts work that waits for the host, `seal` leaves the turn unfinished for
    /// a later process. `work` is pinned by the caller, because moving the state of a turn means copying many
    /// kilobytes.
    pub(super) async fn while_reading_input<T>(
        &mut self,
        mut work: Pin<&mut impl Future<Output = T>>,
        running: RunningTurn<'_>,
        incoming: &mut mpsc::Receiver<Incoming>,
        seal: &(dyn Fn() + Send + Sync),
    ) -> (T, Option<u8>) {
        let cancel = running.cancel;
        let ending = self.ending.clone();
        let overrides = self.process.services.overrides.clone();
        let mut leaving: Option<u8> = None;
        let mut open = true;
        let done = loop {
            tokio::select! {
                done = &mut work => break done,
                line = incoming.recv(), if open => match line {
                    Some(line) => {
                        // The work continues meanwhile: a slow reader of the line's answer must not delay it.
                        let mut ended = None;
                        let handling = self.handle_line(line, Some(running));
                        tokio::pin!(handling);
                        let flow = loop {
                            tokio::select! {
                                biased;
                                flow = &mut handling => break flow,
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
                    if overrides.in_flight().is_paused() {
                        seal();
                    }
                    cancel.stop(stop);
                }
                // The host closed its input and cannot send the tool results; a later process may.
                () = overrides.in_flight().paused(), if !open && !cancel.is_stopped() => {
                    if self.queue.is_empty() {
                        seal();
                    }
                    cancel.stop(unattended());
                }
            }
        };
        if ending.is_stopped() {
            leaving = Some(ending.cause().status.exit_code());
        }
        (done, leaving)
    }

    /// Removes the session for a prompt whose turn starts. Returns none after reporting a refusal.
    async fn open_session(&mut self, queued: &QueuedPrompt) -> Option<Session> {
        let prompt = &queued.prompt;
        let refusal = match self.sessions.session_for(prompt, &self.process) {
            Ok(mut session) => match &prompt.prompt_id {
                // An earlier process that held the session used this id.
                Some(id) if session.has_prompt(id) && !prompt.continuation && !queued.continues_turn => {
                    self.sessions.put_back(session);
                    if let Some(end) = self.ended_turn(id).filter(|_| prompt.resend) {
                        self.emit.unredacted().emit(Body::TurnEnd(Box::new(end))).await;
                        return None;
                    }
                    used_before(id)
                }
                _ => {
                    if self.control.take_changed_skills() {
                        session.set_skills(self.process.skills.clone());
                    }
                    return Some(session);
                }
            },
            Err(error) => {
                self.queue.release(queued.key.as_ref());
                error
            }
        };
        let refusal = refusal
            .for_prompt(prompt.session_id.as_deref(), prompt.prompt_id.clone())
            .for_input(prompt.input);
        self.emit.emit(Body::Error(Box::new(refusal))).await;
        None
    }

    /// Ends the queued prompts, so that each has its terminal record.
    pub(super) async fn end_queued_prompts(&mut self, incoming: &mut mpsc::Receiver<Incoming>) {
        let mut stop = Stop::cancelled();
        if self.ending.is_stopped() {
            stop = self.ending.cause();
            // Lines that were read before the signal are still handled.
            for _ in 0..incoming.len() {
                let Ok(line) = incoming.try_recv() else { break };
                if let Flow::Exit(_) = self.handle_line(line, None).await {
                    break;
                }
            }
        }
        let held = self.emit.holding();
        let live = std::mem::replace(&mut self.emit, held);
        let mut since = 0;
        while let Some(queued) = self.queue.pop() {
            if !queued.continues_turn {
                let stop = if queued.withdrawn { Stop::cancelled() } else { stop.clone() };
                self.end_without_turn(queued, stop).await;
                since += 1;
            }
            if since == SYNC_BATCH || self.queue.is_empty() {
                self.emit.release().await;
                since = 0;
            }
        }
        self.emit = live;
    }

    /// Ends a prompt without running its turn.
    async fn end_without_turn(&mut self, queued: QueuedPrompt, stop: Stop) {
        let Some(mut session) = self.open_session(&queued).await else { return };
        let prompt = queued.prompt;
        if prompt.origin == PromptOrigin::System {
            session.remember([Message { role: Role::User, parts: prompt.parts }]);
            if self.process.config.claude.claude_family {
                // These hosts wait for a result after each of their lines.
                let id = prompt.prompt_id.unwrap_or_else(|| session.next_prompt_id());
                let end = TurnEnd::new(id, EndStatus::Done);
                self.emit.emit(Body::TurnEnd(Box::new(end))).await;
            }
        } else {
            let input = TurnInput { prompt, ..TurnInput::default() };
            session.end_unstarted(input, stop, &self.emit).await;
        }
        self.sessions.put_back(session);
    }
}
