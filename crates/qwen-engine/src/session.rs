//! A session: a conversation and the turns in it.

mod compact;
mod ending;
mod resources;
mod resume;
mod rewind;
mod sent_history;
mod session_hooks;
mod time_travel;
mod tool;
mod turn;

pub use rewind::RewindReport;

use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use qwen_events::{
    Body, Denial, HistoryChange, Message, Part, PromptId, Role, Sampling, SessionId, ToolSpec, TraceContext,
    TurnStart,
};
use qwen_mcp::Servers;
use qwen_model::Model;
use qwen_tools::{Registry, Workbench};

pub use self::ending::unstarted_turn_end;
pub(crate) use self::ending::within;
use crate::background_tasks::AbandonAgentsOnDrop;
use crate::commands::at::ResourceName;
use crate::compaction::{self, Window};
use crate::graph::NodeCounter;
use crate::hooks::HookSet;
use crate::log::{FileBackups, Log, OpenCalls, Recorder, StoredRun, Unfinished};
use crate::react::ReactState;
use crate::subagent::AgentDefinition;
use crate::{
    AnswerSchema, Budget, Cancel, Emitter, Host, Limits, Permissions, SessionOverrides, Stop, ThinkingOptions,
};

/// What a session works with.
#[derive(Clone)]
pub struct SessionContext {
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
    pub overrides: Arc<SessionOverrides>,
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
    pub answer_schema: Option<Arc<AnswerSchema>>,
    /// The host's place in a trace, under which the turn belongs.
    pub trace: Option<TraceContext>,
}

/// A conversation and the turns in it.
pub struct Session {
    setup: SessionContext,
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
    files: Option<Arc<FileBackups>>,
    /// What an earlier process left open.
    unfinished: Option<Unfinished>,
    /// That turn is not the last one, but one that was gone back to.
    returned: Option<time_travel::ReturnPoint>,
    open_calls: OpenCalls,
    /// Those calls were put off by a hook: the next turn decides about them first.
    postponed: bool,
    /// What was said meanwhile, which follows their results.
    held: Vec<Message>,
    /// Whether the hooks were told that the session began.
    greeted: bool,
    /// How full the window was at the last call.
    context_tokens: u64,
    /// Nobody counted that.
    context_estimated: bool,
    /// What the turns of this process cost.
    cost_usd: f64,
    /// What was refused to sub-agents and no end of a turn has told.
    denials: Arc<Mutex<Vec<Denial>>>,
    /// The budgets of earlier turns that sub-agents in the background still spend.
    open_budgets: Vec<Arc<Budget>>,
    _agents: AbandonAgentsOnDrop,
    /// The log tells prompts that were never said, and does not know so yet.
    unsaid: bool,
}

/// A turn that is about to run.
struct Turn {
    start: TurnStart,
    answer_schema: Option<Arc<AnswerSchema>>,
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
    retold: Option<ReplayTarget>,
    /// What its agent had in mind then.
    kept: Option<StoredRun>,
    /// It goes on under the name of a turn that had ended.
    continuation: bool,
}

/// Who is told a message again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ReplayTarget {
    /// Those who read now; the log knows it.
    Readers,
    /// The log too: it is part of a new turn.
    ReadersAndLog,
}

impl Session {
    /// A session without a past.
    pub fn new(setup: SessionContext) -> Self {
        let agents = AbandonAgentsOnDrop(setup.place.bench.clone());
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
            postponed: false,
            held: Vec::new(),
            greeted: false,
            context_tokens: 0,
            context_estimated: true,
            cost_usd: 0.0,
            denials: Arc::default(),
            open_budgets: Vec::new(),
            _agents: agents,
            unsaid: false,
        }
    }

    /// Keeps what happens in the session from here on.
    pub fn with_log(mut self, recorder: Recorder) -> Self {
        let log = Log::new(recorder, self.setup.place.bench.redactor.clone());
        if let (Some(store), id) = log.place() {
            let keeper = Arc::new(FileBackups::new(&log, store.files(&id)));
            self.setup.place.bench.before_write.set(keeper.clone());
            self.files = Some(keeper);
        }
        self.log = Some(log);
        self
    }

    /// What the session works with.
    pub fn setup(&self) -> &SessionContext {
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
        if !self.held.is_empty() {
            self.close_calls();
        }
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
        self.held.clear();
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
}
