//! A session: a conversation and the turns in it.

mod compact;
mod ending;
mod resent;
mod resources;
mod resume;
mod rewind;
mod travel;
mod watched;

pub use rewind::Rewound;

use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use qwen_events::{
    Body, Checkpoint, Denial, EndStatus, HistoryChange, Json, McpServer, Message, Part, PromptId, Role,
    Sampling, SessionId, ToolSpec, TurnEnd, TurnStart,
};
use qwen_model::Model;
use qwen_tools::mcp::{ServerStatus, Servers};
use qwen_tools::{Registry, Workbench};

pub(crate) use self::ending::within;
use self::ending::{notice, turn_end};
use crate::agent::{self, Finished, Work};
use crate::commands::at::ResourceName;
use crate::compaction::{self, Window};
use crate::emitter::now;
use crate::graph::{Cx, Effects, NodeCounter, Ran, State};
use crate::hooks::HookSet;
use crate::log::{FileKeeper, Kept, Log, OpenCalls, Recorder, Unfinished, checkpoint_id};
use crate::react::{self, Kit, ReactState, with_host_tools};
use crate::structured::{self, Wanted};
use crate::subagent::{self, AgentDefinition, AgentTool, Family};
use crate::{
    AnswerForm, Asker, Budget, Cancel, Dials, Emitter, Host, Limits, Permissions, Stop, ThinkingOptions,
};

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
    /// The skills on offer, for readers.
    pub skills: Vec<Arc<str>>,
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
    /// Resources of MCP servers that the words refer to; they are read when the turn begins.
    pub resources: Vec<ResourceName>,
    /// Only these tools may be used, for this turn.
    pub tools: Option<Vec<Arc<str>>>,
    /// Tools that the host runs, for this turn.
    pub host_tools: Vec<ToolSpec>,
    /// The form of the answer, for this turn; without it that of the session.
    pub answer_form: Option<Arc<AnswerForm>>,
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
    /// The turns that can be taken back, in their order, and where each begins in the conversation, if that is known.
    order: Vec<(PromptId, Option<usize>)>,
    log: Option<Log>,
    /// Keeps files before the agent changes them.
    files: Option<Arc<FileKeeper>>,
    /// What an earlier process left open.
    unfinished: Option<Unfinished>,
    /// That turn is not the last one, but one that was gone back to.
    returned: Option<travel::Returned>,
    open_calls: OpenCalls,
    /// Whether the hooks were told that the session began.
    greeted: bool,
    /// How full the window was at the last call.
    context_tokens: u64,
    /// Nobody counted that.
    context_estimated: bool,
    /// What the turns of this process cost.
    cost_usd: f64,
    /// The log tells prompts that were never said, and does not know so yet.
    unsaid: bool,
}

/// A turn that is about to run.
struct Turn {
    start: TurnStart,
    answer_form: Option<Arc<AnswerForm>>,
    tools: Arc<Registry>,
    model: Option<Arc<str>>,
    sampling: Sampling,
    budget: Budget,
    state: ReactState,
    /// Where the graph begins, or how it ended where nothing is left to do.
    from: Result<&'static str, Option<Stop>>,
    /// Steps that an earlier process took in it.
    steps: u64,
    /// Its last message has calls that are still to be made, and is told again.
    retold: Option<Retold>,
    /// What its agent had in mind then.
    kept: Option<Kept>,
    /// It goes on under the name of a turn that had ended.
    continuation: bool,
}

/// Who is told a message again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Retold {
    /// Those who read now; the log knows it.
    Live,
    /// The log too: it is part of a new turn.
    Kept,
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
            order: Vec::new(),
            log: None,
            files: None,
            unfinished: None,
            returned: None,
            open_calls: OpenCalls::default(),
            greeted: false,
            context_tokens: 0,
            context_estimated: true,
            cost_usd: 0.0,
            unsaid: false,
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

    /// Leaves the log as it is now when it is called: a later process goes on from there, whatever this one still says.
    pub fn sealer(&self) -> impl Fn() + Send + use<> {
        let log = self.log.clone();
        move || {
            if let Some(log) = &log {
                log.seal();
            }
        }
    }

    /// The conversation so far.
    pub fn history(&self) -> &[Message] {
        &self.history
    }

    /// How full the window is: the tokens of the last call, or an estimate and `true` where nobody counted.
    pub fn context_tokens(&self) -> (u64, bool) {
        match self.context_tokens {
            0 => (compaction::estimate(&self.history), true),
            tokens => (tokens, self.context_estimated),
        }
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
        self.tell_unsaid();
        for message in &messages {
            self.open_calls.continue_with(message, &mut self.history);
        }
        self.note(HistoryChange::Added(messages));
    }

    /// Replaces the conversation, by a summary of it or by nothing.
    pub fn replace_history(&mut self, messages: Vec<Message>) {
        self.end_unfinished();
        self.forget_places();
        self.open_calls = OpenCalls::default();
        self.history.clone_from(&messages);
        self.unsaid = false;
        self.note(HistoryChange::Replaced(messages));
    }

    /// The conversation was replaced: turns no longer begin where they did.
    fn forget_places(&mut self) {
        self.order.iter_mut().for_each(|(_, at)| *at = None);
    }

    fn note(&self, change: HistoryChange) {
        if let Some(log) = &self.log {
            log.note(Body::History(Box::new(change)));
        }
    }

    /// The name that the next turn gets when the client chooses none; one that a client chose already is passed over.
    pub fn next_prompt_id(&self) -> PromptId {
        let names = (self.turns + 1..).map(|turn| PromptId::of_turn(&self.setup.id, turn));
        let mut free = names.skip_while(|name| self.prompts.contains(name));
        free.next().unwrap_or_else(|| PromptId::of_turn(&self.setup.id, self.turns))
    }

    /// Reports a prompt whose turn never came, because of `stop`: it too has its end. The model never hears of it.
    pub async fn withdrawn(&mut self, input: TurnInput, stop: Stop, emit: &Emitter) {
        let cancel = Cancel::default();
        cancel.stop(stop);
        self.turn(input, emit, &cancel).await;
        if self.history.last().is_some_and(|message| message.role == Role::User) {
            self.history.pop();
            self.unsaid = true;
        }
    }

    /// Tells the log about prompts that were never said: once for all of them, since it is told the whole conversation.
    fn tell_unsaid(&mut self) {
        if std::mem::take(&mut self.unsaid) {
            self.note(HistoryChange::Replaced(self.history.clone()));
        }
    }

    /// Runs one turn to its end, which is always reported, and returns how it ended. A turn that an earlier process
    /// left unfinished is closed as interrupted first.
    pub async fn turn(&mut self, input: TurnInput, emit: &Emitter, cancel: &Cancel) -> TurnEnd {
        self.close_interrupted();
        if !cancel.is_stopped() {
            self.tell_unsaid();
        }
        let prompt_id = input.prompt_id.clone().unwrap_or_else(|| self.next_prompt_id());
        let continuation = self.prompts.contains(&prompt_id);
        self.turns += 1;
        let tools = self.tools(&input, cancel).await;
        let mut start = self.turn_start(&prompt_id, &input, &tools);
        let heard = self.hear(&start, emit, cancel).await;
        start.parts.extend(input.attachments);
        if heard.objection.is_none() {
            start.parts.extend(self.read_resources(&input.resources, emit, cancel).await);
        }
        self.hide_secrets(&mut start.parts[input.parts.len()..]);
        if let Some(context) = heard.context {
            start.parts.push(Part::Text(context.into()));
        }
        let mut messages = std::mem::take(&mut self.history);
        messages.push(Message { role: Role::User, parts: start.parts.clone() });
        let state = ReactState { messages: messages.into(), ..ReactState::default() };
        let budget = Budget::new(self.setup.limits.clone(), self.model_calls).after_cost(self.cost_usd);
        let answer_form = input.answer_form.or_else(|| self.setup.dials.answer_form());
        let turn = Turn {
            start,
            answer_form,
            tools,
            model: input.model,
            sampling: input.sampling,
            budget,
            state,
            from: heard.objection.clone().map_or(Ok(react::START), |stop| Err(Some(stop))),
            steps: 0,
            retold: None,
            kept: None,
            continuation,
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
        let tools = match &input.tools {
            Some(names) => Arc::new(tools.restricted(names.iter().map(|name| &**name))),
            None => tools,
        };
        with_host_tools(tools, &input.host_tools)
    }

    async fn run(&mut self, turn: Turn, emit: &Emitter, cancel: &Cancel) -> TurnEnd {
        let Turn { start, answer_form, tools, model, sampling, budget, mut state, .. } = turn;
        let Turn { from, steps, retold, kept, continuation, .. } = turn;
        let agent = start.agent.clone();
        let live = emit;
        let emit = &self.emitter(emit);
        let prompt_id = start.prompt_id.clone();
        self.prompts.insert(prompt_id.clone());
        if self.order.last().is_none_or(|(last, _)| *last != prompt_id) {
            let fresh = from == Ok(react::START) && kept.is_none();
            let at = state.messages.len().checked_sub(1).filter(|_| fresh);
            self.order.push((prompt_id.clone(), at));
        }
        if let Some(files) = &self.files {
            files.turn_starts();
        }
        let budget = Arc::new(budget);
        self.setup.dials.bustle().begin();
        let host_tools: Vec<Arc<str>> = start.host_tools.iter().map(|spec| spec.name.clone()).collect();
        let offers_agents = start.tools.iter().any(|name| &**name == subagent::TOOL);
        emit.emit(Body::TurnStart(Box::new(start))).await;
        match retold {
            Some(Retold::Live) => self.retell(&state, live).await,
            Some(Retold::Kept) => self.retell(&state, emit).await,
            None => {}
        }
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
            asker: Asker {
                session_id: self.setup.id.clone(),
                prompt_id: prompt_id.clone(),
                parent: None,
                agent: Arc::default(),
            },
            system: self.setup.system.clone(),
            sampling,
            place: self.setup.place.clone(),
            hooks: self.setup.hooks.clone(),
            structured: None,
            window: self.setup.window,
            host_tools: host_tools.into(),
        };
        let denials: Arc<Mutex<Vec<Denial>>> = Arc::default();
        let family = Family {
            denials: denials.clone(),
            definitions: self.setup.agents.clone(),
            emit: emit.clone(),
            budget: budget.clone(),
            cancel: cancel.clone(),
            levels: if offers_agents { self.setup.agent_levels } else { 0 },
        };
        let mut kit = AgentTool::offered_in(kit, family);
        let wanted = answer_form.map(|form| Arc::new(Wanted::new(form, &state.messages)));
        if let Some(wanted) = wanted.clone() {
            // Sub-agents answer to their agent, in words: they never see this.
            kit = Arc::new(match &*agent {
                "react" => wanted.offered_in(&kit),
                _ => Kit { structured: Some(wanted), ..Kit::clone(&kit) },
            });
        }
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
                within(&budget, cancel, Box::pin(agent::run(work, &cx))).await
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
        state.settle();
        self.history = Arc::unwrap_or_clone(std::mem::take(&mut state.messages));
        state.denials.append(&mut denials.lock().unwrap_or_else(PoisonError::into_inner));
        let sums = budget.sums();
        self.model_calls += sums.model_calls;
        (self.context_tokens, self.context_estimated) = match sums.context {
            (0, _) => (compaction::estimate(&self.history), true),
            counted => counted,
        };
        if state.made_room.is_some() {
            self.forget_places();
        }
        let deferred = ran.stop.as_ref().is_some_and(Stop::is_deferred);
        let mut end = turn_end(prompt_id, ran.stop, state, sums);
        self.cost_usd += end.cost_usd;
        end.control_errors = self.setup.host.take_errors();
        end.continuation = continuation;
        if end.status == EndStatus::Done {
            end.structured = wanted.and_then(|wanted| wanted.answer());
        }
        self.setup.dials.bustle().forget();
        if let Some(notice) = notice(end.status) {
            emit.emit(Body::Session(Box::new(notice))).await;
        }
        // For the log a turn that waits for answers is not over.
        let emit = if deferred { live } else { emit };
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
        let structured = input.answer_form.is_some() || self.setup.dials.answer_form().is_some();
        if structured && &*self.setup.agent == "react" {
            names.push(structured::TOOL.into());
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
            host_tools: input.host_tools.clone(),
            json_schema: input.answer_form.as_ref().map(|form| Json::trusted(form.text())),
            mcp_servers: mcp_servers(&setup.mcp),
            slash_commands: setup.slash_commands.clone(),
            agents: setup.agents.iter().map(|agent| agent.name.clone()).collect(),
            skills: setup.skills.clone(),
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
