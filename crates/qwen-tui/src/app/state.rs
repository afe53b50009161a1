//! The parts of the terminal's state, by responsibility.

use std::collections::VecDeque;
use std::sync::Arc;

use qwen_events::{CallId, Media, PromptId, SessionId, Todo, ToolCall};

use super::Options;
use super::complete::Completion;
use crate::Millis;
use crate::editor::{Editor, History, Vim};
use crate::markdown::Stream;
use crate::view::ThoughtTree;

/// What the program is doing.
#[derive(Debug)]
pub(super) enum Phase {
    Idle,
    /// A turn runs, or its prompt was sent.
    Running(Turn),
    /// The program ends; the turn that still runs is interrupted.
    Quitting(Option<Turn>),
}

impl Phase {
    pub(super) fn turn(&self) -> Option<&Turn> {
        match self {
            Self::Idle => None,
            Self::Running(turn) => Some(turn),
            Self::Quitting(turn) => turn.as_ref(),
        }
    }

    pub(super) fn turn_mut(&mut self) -> Option<&mut Turn> {
        match self {
            Self::Idle => None,
            Self::Running(turn) => Some(turn),
            Self::Quitting(turn) => turn.as_mut(),
        }
    }

    pub(super) fn begin_turn(&mut self, turn: Turn) {
        *self = if self.is_quitting() { Self::Quitting(Some(turn)) } else { Self::Running(turn) };
    }

    pub(super) fn end_turn(&mut self) {
        *self = if self.is_quitting() { Self::Quitting(None) } else { Self::Idle };
    }

    pub(super) fn quit(&mut self) {
        *self = match std::mem::replace(self, Self::Idle) {
            Self::Idle => Self::Quitting(None),
            Self::Running(turn) => Self::Quitting(Some(turn)),
            Self::Quitting(turn) => Self::Quitting(turn),
        };
    }

    pub(super) fn is_quitting(&self) -> bool {
        matches!(self, Self::Quitting(_))
    }
}

/// Output on its way to the scrollback.
#[derive(Debug, Default)]
pub(super) struct Output {
    /// Encoded lines to be printed above the region.
    pub(super) finished: String,
    /// True once something was printed, so an empty line separates the next block.
    pub(super) printed: bool,
    pub(super) answer: Stream,
    pub(super) in_code: bool,
    /// The source of the last answer, for copying and reprinting.
    pub(super) last_answer: String,
}

/// The text that the user writes, and the keys that are not yet complete.
#[derive(Debug)]
pub(super) struct Composer {
    pub(super) editor: Editor,
    pub(super) history: History,
    pub(super) search: Option<Search>,
    pub(super) completion: Completion,
    pub(super) vim: Option<Vim>,
    /// True if the last key was Ctrl+X, which begins a sequence of two keys.
    pub(super) after_ctrl_x: bool,
    pub(super) last_key: Option<Millis>,
    pub(super) last_cancel: Option<Millis>,
    pub(super) last_escape: Option<Millis>,
    pub(super) draft_saved: String,
    pub(super) draft_changed: Option<Millis>,
}

impl Composer {
    pub(super) fn new(editor: Editor, options: &Options) -> Self {
        Self {
            editor,
            history: History::new(options.history.clone()),
            search: None,
            completion: Completion::default(),
            vim: options.vim.then(Vim::default),
            after_ctrl_x: false,
            last_key: None,
            last_cancel: None,
            last_escape: None,
            draft_saved: options.draft.clone(),
            draft_changed: None,
        }
    }
}

/// Calls, tasks and prompts that are under way or waiting.
#[derive(Debug)]
pub(super) struct Work {
    pub(super) running: Vec<Running>,
    /// Hooks that are running: id and name.
    pub(super) hooks: Vec<(Arc<str>, String)>,
    pub(super) thought: String,
    pub(super) thoughts: ThoughtTree,
    pub(super) todos: Vec<Todo>,
    pub(super) tasks: Vec<(Arc<str>, String)>,
    pub(super) show_tasks: bool,
    pub(super) queue: VecDeque<Queued>,
    pub(super) steers: Vec<Steer>,
    pub(super) prompts_sent: u64,
    /// Calls that the user declined; the reason is already in the transcript.
    pub(super) declined: Vec<CallId>,
}

impl Work {
    pub(super) fn new() -> Self {
        Self {
            running: Vec::new(),
            hooks: Vec::new(),
            thought: String::new(),
            thoughts: ThoughtTree::default(),
            todos: Vec::new(),
            tasks: Vec::new(),
            show_tasks: true,
            queue: VecDeque::new(),
            steers: Vec::new(),
            prompts_sent: 0,
            declined: Vec::new(),
        }
    }
}

/// Facts that the footer and notices show.
#[derive(Debug, Default)]
pub(super) struct Status {
    pub(super) session: Option<SessionId>,
    pub(super) tokens: u64,
    pub(super) cost: f64,
    /// None until the terminal reports its focus.
    pub(super) focused: Option<bool>,
    /// A temporary line, and when it disappears.
    pub(super) notice: Option<(String, Millis)>,
    /// When the user last asked for the mode without questions.
    pub(super) asked_for_yolo: Option<Millis>,
}

/// A running call.
#[derive(Debug)]
pub(super) struct Running {
    pub(super) call: Arc<ToolCall>,
    pub(super) since: Millis,
    /// The last lines of its output.
    pub(super) tail: VecDeque<String>,
    /// The incomplete last line of output.
    pub(super) partial: String,
    /// The current activity, if the call runs a sub-agent.
    pub(super) inside: Option<String>,
}

/// What the turn waits for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Activity {
    Model,
    Thinking,
    Answer,
    Tools,
    /// The model is writing the arguments of a call to this tool.
    Writing(String),
    Retry(String),
    Ending,
}

#[derive(Debug)]
pub(super) struct Turn {
    pub(super) prompt_id: Option<PromptId>,
    pub(super) started: Millis,
    pub(super) activity: Activity,
    pub(super) since: Millis,
    /// True once the session has started it; until then it may still refuse the prompt.
    pub(super) has_started: bool,
    /// What an interrupt ended.
    pub(super) ended: Option<String>,
    /// True if the todo list was shown in the live region only.
    pub(super) has_todos: bool,
}

/// A queued prompt.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Queued {
    pub(super) text: String,
    pub(super) images: Vec<Media>,
}

/// A message that joins the running turn.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Steer {
    pub(super) prompt_id: PromptId,
    pub(super) text: String,
}

/// The state of a history search.
#[derive(Debug, Default)]
pub(super) struct Search {
    pub(super) text: String,
    pub(super) skip: usize,
}
