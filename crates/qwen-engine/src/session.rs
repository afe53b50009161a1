//! A session: a conversation and the turns in it.

mod compact;
mod resume;
mod rewind;
mod watched;

pub use rewind::Rewound;

use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use qwen_events::{
    Body, Checkpoint, EndStatus, Finish, HistoryChange, Json, McpServer, Message, Part, PromptId, Role,
    Sampling, SessionEvent, SessionId, TurnEnd, TurnStart,
};
use qwen_model::Model;
use qwen_tools::mcp::{ServerStatus, Servers};
use qwen_tools::{Registry, Workbench};

use crate::agent::{self, Finished, Work};
use crate::budget::Sums;
use crate::compaction::{self, Window};
use crate::emitter::now;
use crate::graph::{Cx, Effects, NodeCounter, Ran, State};
use crate::hooks::HookSet;
use crate::log::{FileKeeper, Kept, Log, OpenCalls, Recorder, Unfinished, checkpoint_id};
use crate::react::{self, Kit, ReactState};
use crate::subagent::{self, AgentDefinition, AgentTool, Family};
use crate::{Asker, Budget, Cancel, Dials, Emitter, Host, Limits, Permissions, Stop, ThinkingOptions};

/// How long a turn waits for MCP servers to come up; who is later joins the next turn.
const MCP_PATIENCE: Duration = Duration::from_secs(10);

/// What a session works with.
#[derive(Clone)]
pub struct SessionSetup {
    /// The session's name.
    pub id: SessionId,
    /// The agent: `react`, `tot` or `got`.
    pub agent: Arc<str>,
    /// How those think that think in trees and graphs.
    pub thinking: ThinkingOptions,
    /// The model.
    pub model: Arc<dyn Model>,
    /// The tools.
    pub tools: Arc<Registry>,
    /// Who judges calls.
    pub permissions: Arc<Permissions>,
    /// Who answers questions.
    pub host: Arc<dyn Host>,
    /// Who the agent is and how it works.
    pub system: Arc<str>,
    /// What can be turned while a turn runs.
    pub dials: Arc<Dials>,
    /// The limits of turns and session.
    pub limits: Limits,
    /// Where the tools work.
    pub place: Place,
    /// Where the credentials come from, for readers.
    pub key_source: Arc<str>,
    /// The sub-agents on offer.
    pub agents: Arc<[AgentDefinition]>,
    /// How deep agents may start agents.
    pub agent_levels: u32,
    /// The slash commands on offer, for readers.
    pub slash_commands: Vec<Arc<str>>,
    /// The MCP servers.
    pub mcp: Arc<Servers>,
    /// Who wants to hear about the work, and may object.
    pub hooks: Arc<HookSet>,
    /// How large the model's window is, and how full it may get.
    pub window: Window,
}

/// Where the tools work, and what their calls share.
#[derive(Clone)]
pub struct Place {
    /// The working directory.
    pub cwd: PathBuf,
    /// Directories that file tools may touch besides it.
    pub extra_roots: Arc<[PathBuf]>,
    /// What the calls of the session share.
    pub bench: Arc<Workbench>,
}

/// What a turn starts from.
#[derive(Default)]
pub struct TurnInput {
    /// The turn's name; minted when absent.
    pub prompt_id: Option<PromptId>,
    /// The client's own id of the message.
    pub message_uuid: Option<Arc<str>>,
    /// What the user says.
    pub parts: Vec<Part>,
    /// Another model name, for this turn.
    pub model: Option<Arc<str>>,
    /// How the model samples, for this turn.
    pub sampling: Sampling,
    /// What goes to the model along with it: files and images that the words refer to.
    pub attachments: Vec<Part>,
    /// Only these tools may be used, for this turn.
    pub tools: Option<Vec<Arc<str>>>,
}

/// A conversation and the turns in it.
pub struct Session {
    setup: SessionSetup,
    history: Vec<Message>,
    turns: u64,
    model_calls: u64,
    runs: NodeCounter,
    /// The names of the turns so far.
    prompts: HashSet<PromptId>,
    log: Option<Log>,
    /// Keeps files before the agent changes them.
    files: Option<Arc<FileKeeper>>,
    /// What an earlier process left open.
    unfinished: Option<Unfinished>,
    open_calls: OpenCalls,
    /// Whether the hooks were told that the session began.
    greeted: bool,
    /// How full the window was at the last call.
    context_tokens: u64,
}

/// A turn that is about to run.
struct Turn {
    start: TurnStart,
    tools: Arc<Registry>,
    model: Option<Arc<str>>,
    sampling: Sampling,
    budget: Budget,
    state: ReactState,
    /// Where the graph begins, or how it ended where nothing is left to do.
    from: Result<&'static str, Option<Stop>>,
    /// Steps that an earlier process took in it.
    steps: u64,
    /// What its agent had in mind then.
    kept: Option<Kept>,
}

impl Session {
    /// A session without a past.
    pub fn new(setup: SessionSetup) -> Self {
        Self {
            setup,
            history: Vec::new(),
            turns: 0,
            model_calls: 0,
            runs: NodeCounter::default(),
            prompts: HashSet::new(),
            log: None,
            files: None,
            unfinished: None,
            open_calls: OpenCalls::default(),
            greeted: false,
            context_tokens: 0,
        }
    }

    /// Keeps what happens in the session from here on.
    pub fn with_log(mut self, recorder: Recorder) -> Self {
        let log = Log::new(recorder, self.setup.place.bench.redactor.clone());
        if let (Some(store), id) = log.place() {
            let keeper = Arc::new(FileKeeper::new(&log, store.files(&id)));
            self.setup.place.bench.before_write.set(keeper.clone());
            self.files = Some(keeper);
        }
        self.log = Some(log);
        self
    }

    /// What the session works with.
    pub fn setup(&self) -> &SessionSetup {
        &self.setup
    }

    /// The stream, for what is said in this session outside its turns: so that its log hears it too.
    pub fn emitter(&self, emit: &Emitter) -> Emitter {
        emit.logged(self.log.as_ref())
    }

    /// The conversation so far.
    pub fn history(&self) -> &[Message] {
        &self.history
    }

    /// Whether a turn of this name was begun.
    pub fn has_prompt(&self, prompt_id: &PromptId) -> bool {
        self.prompts.contains(prompt_id)
    }

    /// Gives the agent another system prompt from here on.
    pub fn instruct(&mut self, system: Arc<str>) {
        self.setup.system = system;
    }

    /// Adds to the conversation without running anything.
    pub fn remember(&mut self, messages: impl IntoIterator<Item = Message>) {
        let messages: Vec<Message> = messages.into_iter().collect();
        if messages.is_empty() {
            return;
        }
        self.end_unfinished();
        for message in &messages {
            self.open_calls.continue_with(message, &mut self.history);
        }
        self.note(HistoryChange::Added(messages));
    }

    /// Replaces the conversation, by a summary of it or by nothing.
    pub fn replace_history(&mut self, messages: Vec<Message>) {
        self.end_unfinished();
        self.open_calls = OpenCalls::default();
        self.history.clone_from(&messages);
        self.note(HistoryChange::Replaced(messages));
    }

    fn note(&self, change: HistoryChange) {
        if let Some(log) = &self.log {
            log.note(Body::History(Box::new(change)));
        }
    }

    /// The name that the next turn gets when the client chooses none.
    pub fn next_prompt_id(&self) -> PromptId {
        PromptId::of_turn(&self.setup.id, self.turns + 1)
    }

    /// Reports a prompt that was withdrawn before its turn came, so that it too has its end.
    pub async fn withdrawn(&mut self, input: TurnInput, emit: &Emitter) {
        let cancel = Cancel::default();
        cancel.stop(Stop::cancelled());
        self.turn(input, emit, &cancel).await;
    }

    /// Runs one turn to its end, which is always reported, and returns how it ended. A turn that an earlier process
    /// left unfinished is closed as interrupted first.
    pub async fn turn(&mut self, input: TurnInput, emit: &Emitter, cancel: &Cancel) -> TurnEnd {
        self.close_interrupted();
        let prompt_id = input.prompt_id.clone().unwrap_or_else(|| self.next_prompt_id());
        self.turns += 1;
        let tools = self.tools(&input, cancel).await;
        let mut start = self.turn_start(&prompt_id, &input, &tools);
        let heard = self.hear(&start, emit, cancel).await;
        start.parts.extend(input.attachments);
        if let Some(context) = heard.context {
            start.parts.push(Part::Text(context.into()));
        }
        let mut messages = std::mem::take(&mut self.history);
        messages.push(Message { role: Role::User, parts: start.parts.clone() });
        let state = ReactState { messages: messages.into(), ..ReactState::default() };
        let budget = Budget::new(self.setup.limits.clone(), self.model_calls);
        let turn = Turn {
            start,
            tools,
            model: input.model,
            sampling: input.sampling,
            budget,
            state,
            from: heard.objection.clone().map_or(Ok(react::START), |stop| Err(Some(stop))),
            steps: 0,
            kept: None,
        };
        let end = self.run(turn, emit, cancel).await;
        if heard.objection.is_some() {
            // What was blocked was never said.
            self.history.pop();
            self.note(HistoryChange::Replaced(self.history.clone()));
        }
        end
    }

    /// The tools of a turn: the built-in ones, those of the MCP servers that are there by now, and of them all those
    /// that the request wants.
    async fn tools(&self, input: &TurnInput, cancel: &Cancel) -> Arc<Registry> {
        let mut tools = self.setup.tools.clone();
        if !self.setup.mcp.is_empty() {
            tokio::select! {
                () = self.setup.mcp.connect_all(MCP_PATIENCE) => {}
                _ = cancel.stopped() => {}
            }
            let mut all = Registry::clone(&tools);
            for tool in self.setup.mcp.tools() {
                all.add(tool);
            }
            tools = Arc::new(all);
        }
        match &input.tools {
            Some(names) => Arc::new(tools.restricted(names.iter().map(|name| &**name))),
            None => tools,
        }
    }

    async fn run(&mut self, turn: Turn, emit: &Emitter, cancel: &Cancel) -> TurnEnd {
        let Turn { start, tools, model, sampling, budget, mut state, from, steps, kept } = turn;
        let agent = start.agent.clone();
        let emit = &self.emitter(emit);
        let prompt_id = start.prompt_id.clone();
        self.prompts.insert(prompt_id.clone());
        if let Some(files) = &self.files {
            files.turn_starts();
        }
        let budget = Arc::new(budget);
        let offers_agents = start.tools.iter().any(|name| &**name == subagent::TOOL);
        emit.emit(Body::TurnStart(Box::new(start))).await;
        if from == Ok(react::START) {
            self.make_room(Arc::make_mut(&mut state.messages), &prompt_id, &budget, emit, cancel).await;
        }
        let kit = Kit {
            model: self.setup.model.clone(),
            model_name: model,
            dials: self.setup.dials.clone(),
            tools,
            permissions: self.setup.permissions.clone(),
            host: self.setup.host.clone(),
            mcp: self.setup.mcp.clone(),
            asker: Asker { session_id: self.setup.id.clone(), prompt_id: prompt_id.clone(), parent: None },
            system: self.setup.system.clone(),
            sampling,
            place: self.setup.place.clone(),
            hooks: self.setup.hooks.clone(),
        };
        let family = Family {
            definitions: self.setup.agents.clone(),
            emit: emit.clone(),
            budget: budget.clone(),
            cancel: cancel.clone(),
            levels: if offers_agents { self.setup.agent_levels } else { 0 },
        };
        let kit = AgentTool::offered_in(kit, family);
        let cx = Cx {
            emit: emit.clone(),
            cancel: cancel.clone(),
            budget: budget.clone(),
            runs: self.runs.clone(),
            effects: Effects::default(),
            nested: false,
        };
        let Finished { mut ran, conversation: mut state, state: shown } = match from {
            Ok(from) => {
                let options = &self.setup.thinking;
                let work = Work { agent: &agent, options, kit: &kit, conversation: state, from, kept };
                // The agents' futures are large, and a turn is long: one box is nothing.
                within(self.setup.limits.wall_time, cancel, Box::pin(agent::run(work, &cx))).await
            }
            Err(stop) => {
                let shown = emit.wants_state().then(|| state.to_json());
                Finished { ran: Ran { stop, last: None, steps: 0 }, conversation: state, state: shown }
            }
        };
        ran.steps += steps;
        if let Some(shown) = shown {
            emit.emit(Body::Checkpoint(Box::new(self.checkpoint(&ran, shown)))).await;
        }
        self.history = Arc::unwrap_or_clone(std::mem::take(&mut state.messages));
        let sums = budget.sums();
        self.model_calls += sums.model_calls;
        self.context_tokens = match sums.last_call_tokens {
            0 => compaction::estimate(&self.history),
            counted => counted,
        };
        let mut end = turn_end(prompt_id, ran.stop, state, sums);
        end.control_errors = self.setup.host.take_errors();
        if let Some(notice) = notice(end.status) {
            emit.emit(Body::Session(Box::new(notice))).await;
        }
        emit.emit(Body::TurnEnd(Box::new(end.clone()))).await;
        end
    }

    /// The state at the end of a run, as readers see it.
    fn checkpoint(&self, ran: &Ran, state: Json) -> Checkpoint {
        Checkpoint {
            id: checkpoint_id(&self.setup.id, self.turns, ran.steps),
            timestamp: now(),
            step: ran.steps,
            state,
            thread_id: self.setup.id.clone(),
            namespace: "".into(),
        }
    }

    /// The tools of a turn, the one that starts sub-agents included where it is offered.
    fn tool_names(&self, input: &TurnInput, tools: &Registry) -> Vec<Arc<str>> {
        let mut names: Vec<Arc<str>> = tools.specs().iter().map(|spec| spec.name.clone()).collect();
        let wanted =
            input.tools.as_ref().is_none_or(|wanted| wanted.iter().any(|name| &**name == subagent::TOOL));
        if wanted && self.setup.agent_levels > 0 && !self.setup.agents.is_empty() {
            names.push(subagent::TOOL.into());
        }
        names
    }

    fn turn_start(&self, prompt_id: &PromptId, input: &TurnInput, tools: &Registry) -> TurnStart {
        let setup = &self.setup;
        let message: String = input
            .parts
            .iter()
            .filter_map(|part| match part {
                Part::Text(text) => Some(&**text),
                _ => None,
            })
            .collect();
        TurnStart {
            session_id: setup.id.clone(),
            prompt_id: prompt_id.clone(),
            turn: self.turns,
            run_id: format!("run-{}", self.turns).into(),
            agent: setup.agent.clone(),
            message: message.into(),
            parts: input.parts.clone(),
            message_uuid: Some(input.message_uuid.clone().unwrap_or_else(minted_uuid)),
            model: (input.model.clone().or_else(|| setup.dials.model()))
                .unwrap_or_else(|| setup.model.name().into()),
            cwd: setup.place.cwd.to_string_lossy().into(),
            permission_mode: setup.permissions.mode().into(),
            tools: self.tool_names(input, tools),
            mcp_servers: mcp_servers(&setup.mcp),
            slash_commands: setup.slash_commands.clone(),
            agents: setup.agents.iter().map(|agent| agent.name.clone()).collect(),
            skills: Vec::new(),
            key_source: setup.key_source.clone(),
        }
    }
}

/// A name for a message whose client gave it none, so that one can come back to it.
fn minted_uuid() -> Arc<str> {
    SessionId::from_random(fastrand::u128(..)).as_str().into()
}

/// The MCP servers, as readers see them.
fn mcp_servers(servers: &Servers) -> Vec<McpServer> {
    let seen = |server: ServerStatus| McpServer { name: server.name, status: server.status.name().into() };
    servers.status().into_iter().map(seen).collect()
}

/// Runs `work`, cancelling it when its time is up. The work still ends by itself, in good order.
async fn within<T>(limit: Option<Duration>, cancel: &Cancel, work: impl Future<Output = T>) -> T {
    let Some(limit) = limit else { return work.await };
    tokio::pin!(work);
    tokio::select! {
        done = &mut work => done,
        () = tokio::time::sleep(limit) => {
            cancel.stop(Budget::out_of_time(limit));
            work.await
        }
    }
}

fn notice(status: EndStatus) -> Option<SessionEvent> {
    match status {
        EndStatus::Done => Some(SessionEvent::Finished),
        EndStatus::Cancelled | EndStatus::Interrupted => Some(SessionEvent::Cancelled),
        _ => None,
    }
}

fn turn_end(prompt_id: PromptId, stop: Option<Stop>, state: ReactState, sums: Sums) -> TurnEnd {
    let millis = |d: Duration| u64::try_from(d.as_millis()).unwrap_or(u64::MAX);
    let (status, error) = stop.map_or((EndStatus::Done, None), |stop| (stop.status, stop.error));
    TurnEnd {
        prompt_id,
        status,
        error,
        reply: state.reply,
        finish: match state.finish {
            Some(finish) if finish != Finish::ToolCalls => finish,
            _ => Finish::Stop,
        },
        usage: sums.usage,
        cost_usd: sums.by_model.iter().map(|m| m.cost_usd).sum(),
        usage_by_model: sums.by_model,
        duration_ms: millis(sums.duration),
        api_duration_ms: millis(sums.waiting_for_model),
        model_calls: sums.model_calls,
        tool_calls: sums.tool_calls,
        denials: state.denials,
        control_errors: Vec::new(),
        structured: None,
    }
}
