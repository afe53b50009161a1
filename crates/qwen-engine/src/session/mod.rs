//! A session: a conversation and the turns in it.

pub mod overrides;

mod compact;
mod ending;
mod resources;
mod resume;
mod return_point;
mod rewind;
mod run;
mod sent_history;
mod session_hooks;
pub(crate) mod situation;
mod tool;
mod turn;
mod typed_command;

pub use rewind::{RedoReport, RewindPoint, RewindReport};

use std::collections::HashSet;
use std::sync::{Arc, Mutex};

use qwen_events::{Body, Denial, HistoryChange, Message, ModelUsage, Part, Prompt, PromptId, TurnStart};

pub use self::ending::unstarted_turn_end;
pub(crate) use self::ending::within;
use self::situation::Situation;
use crate::background_tasks::AbandonAgentsOnDrop;
use crate::commands::at::ResourceName;
use crate::compaction;
use crate::context::TurnContext;
use crate::graph::NodeCounter;
use crate::log::{FileBackups, Log, OpenCalls, Recorder, StoredRun, UnansweredCalls, Unfinished};
use crate::react::ReactState;
use crate::skill::{self, SkillTool};
use crate::{AnswerSchema, Budget, Emitter, SessionContext, Stop};

/// The input of a turn: a prompt, moved in as it was received, and what it refers to.
#[derive(Default)]
pub struct TurnInput {
    pub prompt: Prompt,
    /// Files and images that the prompt refers to; they are sent to the model with it.
    pub attachments: Vec<Part>,
    /// MCP resources that the prompt refers to; they are read when the turn begins.
    pub resources: Vec<ResourceName>,
    /// The answer schema of this turn; overrides the session's.
    pub answer_schema: Option<Arc<AnswerSchema>>,
    /// A command that the user typed: the turn runs it instead of calling the model.
    pub typed_command: Option<Arc<str>>,
    /// What is wrong with the request without keeping the turn from running; reported at its start.
    pub warnings: Vec<String>,
}

impl TurnInput {
    /// The input for a message of the user with `parts`.
    pub fn message(parts: Vec<Part>) -> Self {
        Self { prompt: Prompt { parts, ..Prompt::default() }, ..Self::default() }
    }
}

/// A conversation and its turns.
pub struct Session {
    context: Arc<SessionContext>,
    history: Vec<Message>,
    turns: u64,
    runs: NodeCounter,
    /// The ids of all turns so far.
    prompts: HashSet<PromptId>,
    /// The turns that can be undone, in order, each with its start index in the conversation if that is
    /// known.
    order: Vec<(PromptId, Option<usize>)>,
    /// What steps back removed since the last prompt, for a redo.
    removed_states: Vec<rewind::RemovedState>,
    log: Option<Log>,
    /// Backs up files before the agent changes them.
    files: Option<Arc<FileBackups>>,
    /// The turn that an earlier process left unfinished.
    unfinished: Option<Unfinished>,
    /// Set when `unfinished` is a turn the session went back to, not the last one.
    returned: Option<return_point::ReturnPoint>,
    unanswered: UnansweredCalls,
    /// What the model was told about its situation.
    situation: Arc<Situation>,
    /// True if the last turn was cancelled or interrupted.
    is_interrupted: bool,
    /// True once the session-start hooks have run.
    greeted: bool,
    window_fill: WindowFill,
    spending: Spending,
    /// Denials in sub-agents that no turn end has reported yet.
    denials: Arc<Mutex<Vec<Denial>>>,
    _agents: AbandonAgentsOnDrop,
    /// The log contains prompts that never reached the model, and no correction has been logged yet.
    has_unsent_prompts: bool,
}

/// How full the context window was at the last model call.
struct WindowFill {
    tokens: u64,
    /// True if `tokens` is an estimate rather than the server's count.
    is_estimated: bool,
    /// The estimated tokens of the system prompt and the tools, as far as `tokens` does not include them.
    fixed_part: u64,
}

/// What the turns of a session have spent.
#[derive(Default)]
struct Spending {
    model_calls: u64,
    /// The cost of the turns run by this process.
    cost_usd: f64,
    /// Budgets of earlier turns that background sub-agents still spend from.
    open_budgets: Vec<Arc<Budget>>,
    /// What earlier processes spent on this session, until readers got it.
    before: Vec<ModelUsage>,
}

/// A turn that is about to run.
struct Turn {
    start: TurnStart,
    context: TurnContext,
    answer_schema: Option<Arc<AnswerSchema>>,
    budget: Budget,
    state: ReactState,
    /// The graph's start node, or how the turn ended if nothing is left to run.
    from: Result<&'static str, Option<Stop>>,
    /// Steps that an earlier process already took in this turn.
    steps: u64,
    /// Set if the last message has calls still to be made: the message is emitted again.
    replay_target: Option<ReplayTarget>,
    /// The agent's stored state from that process.
    stored_run: Option<StoredRun>,
    /// The turn continues under the id of a turn that had already ended.
    continuation: bool,
    /// Reported at the start of the turn.
    warnings: Vec<String>,
}

/// The recipients of a message that is emitted again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ReplayTarget {
    /// Only current readers; the log already has the message.
    Readers,
    /// Readers and the log: the message is part of a new turn.
    ReadersAndLog,
}

impl Session {
    /// Creates a session with an empty history.
    pub fn new(context: SessionContext) -> Self {
        let agents = AbandonAgentsOnDrop(context.resources.clone());
        Self {
            context: Arc::new(context),
            history: Vec::new(),
            turns: 0,
            runs: NodeCounter::default(),
            prompts: HashSet::new(),
            order: Vec::new(),
            removed_states: Vec::new(),
            log: None,
            files: None,
            unfinished: None,
            returned: None,
            unanswered: UnansweredCalls::default(),
            situation: Arc::default(),
            is_interrupted: false,
            greeted: false,
            window_fill: WindowFill { tokens: 0, is_estimated: true, fixed_part: 0 },
            spending: Spending::default(),
            denials: Arc::default(),
            _agents: agents,
            has_unsent_prompts: false,
        }
    }

    /// Records the session to a log from here on.
    pub fn with_log(mut self, recorder: Recorder) -> Self {
        let log = Log::new(recorder, self.context.resources.redactor.clone());
        if self.context.process.host.commits() {
            log.set_host(self.context.process.host.clone());
        }
        if let (Some(store), id) = log.location() {
            let keeper = Arc::new(FileBackups::new(&log, store.files(&id)));
            self.context.resources.before_write.set(keeper.clone());
            self.files = Some(keeper);
        }
        self.context.process.network.set_log(&log);
        self.log = Some(log);
        self
    }

    pub fn context(&self) -> &SessionContext {
        &self.context
    }

    /// The event stream for events outside the session's turns. They go to the session's log too.
    pub fn emitter(&self, emit: &Emitter) -> Emitter {
        emit.logged(self.log.as_ref())
    }

    /// Returns a function that freezes the log: a later process continues from that point, regardless of what
    /// this process still emits.
    pub fn sealer(&self) -> impl Fn() + Send + use<> {
        let log = self.log.clone();
        move || {
            if let Some(log) = &log {
                log.seal();
            }
        }
    }

    pub fn history(&self) -> &[Message] {
        &self.history
    }

    /// The window's fill level in tokens, as counted at the last call. The flag is true if the value is an
    /// estimate.
    pub fn context_tokens(&self) -> (u64, bool) {
        match self.window_fill {
            WindowFill { tokens: 0, .. } => (compaction::estimate(&self.history), true),
            WindowFill { tokens, is_estimated, fixed_part } => {
                (tokens.saturating_add(fixed_part), is_estimated)
            }
        }
    }

    /// True if a turn with this id was started.
    pub fn has_prompt(&self, prompt_id: &PromptId) -> bool {
        self.prompts.contains(prompt_id)
    }

    /// Replaces the system prompt for later turns.
    pub fn instruct(&mut self, system: Arc<str>) {
        Arc::make_mut(&mut self.context).base_system_prompt = system;
    }

    /// Replaces the skills for later turns.
    pub fn set_skills(&mut self, skills: Option<Arc<SkillTool>>) {
        let context = Arc::make_mut(&mut self.context);
        context.skills = skills.as_ref().map(|skills| skills.names()).unwrap_or_default();
        let mut tools = context.base_tools.without([skill::TOOL]);
        if let Some(skills) = skills {
            tools.add(skills);
        }
        context.base_tools = Arc::new(tools);
    }

    /// Adds messages to the conversation without running a turn.
    pub fn remember(&mut self, messages: impl IntoIterator<Item = Message>) {
        let messages: Vec<Message> = messages.into_iter().collect();
        if messages.is_empty() {
            return;
        }
        self.end_unfinished();
        self.log_unsent_prompts();
        if !self.unanswered.held.is_empty() {
            self.close_calls();
        }
        for message in &messages {
            self.unanswered.calls.continue_with(message, &mut self.history);
        }
        self.note(HistoryChange::Added(messages));
    }

    /// Replaces the conversation, by a summary of it or by an empty one.
    pub fn replace_history(&mut self, messages: Vec<Message>) {
        self.end_unfinished();
        self.forget_turn_starts();
        self.unanswered.calls = OpenCalls::default();
        self.unanswered.held.clear();
        self.history.clone_from(&messages);
        self.situation.clear();
        self.has_unsent_prompts = false;
        self.estimate_fill(&messages);
        self.note(HistoryChange::Replaced(messages));
    }

    /// Forgets where turns begin, because the conversation was replaced.
    fn forget_turn_starts(&mut self) {
        self.order.iter_mut().for_each(|(_, at)| *at = None);
    }

    fn note(&self, change: HistoryChange) {
        if let Some(log) = &self.log {
            log.note(Body::History(Box::new(change)));
        }
    }

    /// The id of the next turn if the client chooses none. Ids that a client has already used are skipped.
    pub fn next_prompt_id(&self) -> PromptId {
        let names = (self.turns + 1..).map(|turn| PromptId::of_turn(&self.context.id, turn));
        let mut free = names.skip_while(|name| self.prompts.contains(name));
        free.next().unwrap_or_else(|| PromptId::of_turn(&self.context.id, self.turns))
    }

    /// Corrects the log after prompts that never reached the model. One entry covers all of them, because it
    /// holds the whole conversation.
    fn log_unsent_prompts(&mut self) {
        if std::mem::take(&mut self.has_unsent_prompts) {
            self.note(HistoryChange::Replaced(self.history.clone()));
        }
    }
}
