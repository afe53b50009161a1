//! One turn of a worker, while input goes on being read.

use std::sync::Arc;

use qwen_engine::commands::with_local_files;
use qwen_engine::{AnswerSchema, Cancel, Stop, TurnInput};
use qwen_events::{Body, Part, PromptOrigin, TurnEnd};
use tokio::sync::mpsc;

use super::Incoming;
use super::commands::After;
use super::host_tools::unattended;
use super::serve::{Flow, Queued, Running, Worker};
use crate::session::main_agent;
use crate::session::setup::place_for_prompt;
use crate::session::slash::{Attached, attach};

impl Worker {
    /// Runs one turn while input goes on being read.
    pub(super) async fn turn(&mut self, queued: Queued, incoming: &mut mpsc::Receiver<Incoming>) -> Flow {
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
        let answer_schema =
            match prompt.options.json_schema.take().map(|schema| AnswerSchema::parse(schema.as_str())) {
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
        let Attached { parts: mut attachments, resources } =
            if queued.goes_on || prompt.origin != PromptOrigin::User || prompt.verbatim {
                Attached::default()
            } else {
                prompt.parts = with_local_files(std::mem::take(&mut prompt.parts));
                attach(&prompt.parts, &self.parts, &session, &prompt_id, &self.emit).await
            };
        if !queued.goes_on && session.history().is_empty() {
            attachments.extend(place_for_prompt(&self.config, &self.parts));
        }
        let input = TurnInput {
            prompt_id: Some(prompt_id.clone()),
            message_uuid: prompt.uuid,
            parts: prompt.parts,
            attachments,
            resources,
            model: prompt.options.model,
            sampling: self.config.sampling_with(prompt.options.sampling),
            tools: main_agent::tools(&self.config, prompt.options.tool_overrides),
            host_tools: prompt.options.host_tools,
            answer_schema,
            trace: prompt.trace,
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
        let overrides = self.parts.overrides.clone();
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
                    if overrides.in_flight().is_paused() {
                        seal();
                    }
                    cancel.stop(stop);
                }
                // Nobody is left to answer for the host's tools; whoever takes up the session may.
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
}
