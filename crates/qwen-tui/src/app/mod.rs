//! The state of the terminal and its parts.

mod complete;
mod draw;
mod events;
mod keys;
mod past;
mod plain;
mod print;
mod prompts;

pub use keys::edit;

use std::collections::VecDeque;
use std::sync::Arc;

use qwen_events::{Command, PromptId, SessionId, Todo, ToolCall};

use self::complete::Completion;
use crate::Millis;
use crate::editor::{Editor, History};
use crate::input::Keymap;
use crate::markdown::Stream;
use crate::overlay::Transcript;
use crate::question::Questions;
use crate::screen::LiveRegion;
use crate::view::Marks;

/// How long after the first one a second Ctrl+C or Esc counts as its repetition.
const TWICE: Millis = 1500;

/// How long the draft may differ from the copy on disk.
const DRAFT_DELAY: Millis = 300;

/// What the terminal is like and what it starts with.
#[derive(Debug, Clone)]
pub struct Options {
    /// The terminal's width.
    pub columns: usize,
    /// The terminal's height.
    pub rows: usize,
    /// Colours may be used.
    pub colors: bool,
    /// The terminal shows Unicode.
    pub unicode: bool,
    /// Lines are only appended and nothing is repainted (screen readers, `TERM=dumb`).
    pub plain: bool,
    /// Prose is wrapped by words; otherwise by the terminal.
    pub wrap_prose: bool,
    /// How many lines of a command's output are printed.
    pub output_lines: usize,
    /// The keys.
    pub keymap: Keymap,
    /// Earlier prompts, oldest first.
    pub history: Vec<String>,
    /// What was written and not sent when the last process ended.
    pub draft: String,
    /// Starts the names of prompts; must differ between processes.
    pub seed: String,
    /// The model's name.
    pub model: String,
    /// The approval mode.
    pub mode: String,
    /// The tokens that the model can read; 0 where unknown.
    pub window: u64,
    /// The directory, as people know it.
    pub directory: String,
    /// The branch that is checked out.
    pub branch: String,
    /// Lines to print first.
    pub greeting: Vec<String>,
}

/// What the binary must do.
#[derive(Debug, Clone, PartialEq)]
pub enum Effect {
    /// Pass this to the session.
    Command(Command),
    /// End the session.
    Quit,
    /// Suspend the process, as the shell expects of Ctrl+Z.
    Suspend,
    /// Let the user edit this text in their editor and pass the result to [`Terminal::edited`].
    Edit(String),
    /// Put this into the clipboard.
    Copy(String),
    /// Keep this prompt in the history.
    Remember(String),
    /// Keep this draft on disk; an empty one removes it.
    SaveDraft(String),
    /// Write this rule to the user's settings.
    SaveRule(String),
    /// Ring the bell, and notify the user by the desktop.
    Notify(String),
    /// Read the log of this session, or of the one that was started, and pass it to [`Terminal::show_transcript`].
    Transcript(Option<SessionId>),
}

/// A call that runs.
#[derive(Debug)]
struct Running {
    call: Arc<ToolCall>,
    since: Millis,
    /// The last lines of its output.
    tail: VecDeque<String>,
    /// The start of a line that is not whole yet.
    partial: String,
    /// What it is doing, where it is a sub-agent.
    inside: Option<String>,
}

/// What the turn waits for.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Activity {
    Model,
    Thinking,
    Answer,
    Tools,
    /// The arguments of a call to this tool are being written.
    Writing(String),
    Retry(String),
    Ending,
}

#[derive(Debug)]
struct Turn {
    prompt_id: Option<PromptId>,
    started: Millis,
    activity: Activity,
    since: Millis,
    /// The session has begun it; before, it may still refuse the prompt.
    has_started: bool,
}

/// A prompt that waits for its turn.
#[derive(Debug, PartialEq, Eq)]
struct Queued {
    text: String,
}

/// A message that joins the running turn.
#[derive(Debug, PartialEq, Eq)]
struct Steer {
    prompt_id: PromptId,
    text: String,
}

/// What is searched for in the history.
#[derive(Debug, Default)]
struct Search {
    text: String,
    skip: usize,
}

/// The terminal interface.
#[derive(Debug)]
pub struct Terminal {
    options: Options,
    marks: Marks,
    region: LiveRegion,
    /// Encoded lines that wait to be printed above the region.
    finished: String,
    /// Something was printed, so the next block is set apart by an empty line.
    printed: bool,
    answer: Stream,
    in_code: bool,
    /// The source of the last answer, for copying and printing again.
    last_answer: String,
    thought: String,
    turn: Option<Turn>,
    running: Vec<Running>,
    todos: Vec<Todo>,
    show_tasks: bool,
    tasks: Vec<(Arc<str>, String)>,
    queue: VecDeque<Queued>,
    steers: Vec<Steer>,
    questions: Questions,
    editor: Editor,
    history: History,
    search: Option<Search>,
    completion: Completion,
    help: bool,
    overlay: Option<Transcript>,
    /// The bytes that left the overlay, still to be written.
    left_overlay: String,
    prompts_sent: u64,
    session: Option<SessionId>,
    effects: Vec<Effect>,
    last_key: Option<Millis>,
    last_cancel: Option<Millis>,
    last_escape: Option<Millis>,
    draft_saved: String,
    draft_changed: Option<Millis>,
    focused: Option<bool>,
    tokens: u64,
    cost: f64,
    now: Millis,
    notice: Option<(String, Millis)>,
    quitting: bool,
}

impl Terminal {
    /// A terminal that shows its greeting and an empty composer.
    pub fn new(options: Options, now: Millis) -> Self {
        let mut editor = Editor::default();
        if !options.draft.is_empty() {
            editor.set(&options.draft);
        }
        let mut terminal = Self {
            marks: if options.unicode { Marks::UNICODE } else { Marks::ASCII },
            region: LiveRegion::new(options.columns, options.colors),
            finished: String::new(),
            printed: false,
            answer: Stream::default(),
            in_code: false,
            last_answer: String::new(),
            thought: String::new(),
            turn: None,
            running: Vec::new(),
            todos: Vec::new(),
            show_tasks: true,
            tasks: Vec::new(),
            queue: VecDeque::new(),
            steers: Vec::new(),
            questions: Questions::default(),
            editor,
            history: History::new(options.history.clone()),
            search: None,
            completion: Completion::default(),
            help: false,
            overlay: None,
            left_overlay: String::new(),
            prompts_sent: 0,
            session: None,
            effects: Vec::new(),
            last_key: None,
            last_cancel: None,
            last_escape: None,
            draft_saved: options.draft.clone(),
            draft_changed: None,
            focused: None,
            tokens: 0,
            cost: 0.0,
            now,
            notice: None,
            quitting: false,
            options,
        };
        for line in std::mem::take(&mut terminal.options.greeting) {
            terminal.print_line(&crate::text::Line::plain(line));
        }
        terminal
    }

    /// The terminal has another size.
    pub fn resize(&mut self, columns: usize, rows: usize) {
        self.options.columns = columns.max(1);
        self.options.rows = rows.max(1);
        self.region.resize(columns);
        if let Some(overlay) = &mut self.overlay {
            overlay.resize(columns, rows);
        }
    }

    /// Shows the whole transcript, from the events of the session log.
    pub fn show_transcript(&mut self, events: &[qwen_events::Event]) {
        self.overlay = Some(Transcript::new(events, self.options.columns, self.options.rows));
    }

    /// Whether the alternate screen is shown.
    pub fn is_overlaid(&self) -> bool {
        self.overlay.is_some()
    }

    pub(super) fn close_overlay(&mut self) {
        if let Some(overlay) = self.overlay.take() {
            self.left_overlay.push_str(overlay.leave());
        }
    }

    /// What the binary must do now.
    pub fn effects(&mut self) -> Vec<Effect> {
        std::mem::take(&mut self.effects)
    }

    /// How many bytes wait to be printed.
    pub fn backlog(&self) -> usize {
        self.finished.len()
    }

    /// Time passes. Returns when to call this again if nothing else happens; none means never.
    pub fn tick(&mut self, now: Millis) -> Option<Millis> {
        self.now = now;
        let is_busy = !self.editor.is_empty() || self.overlay.is_some() || self.options.plain;
        let mut next = self.questions.consider(now, self.last_key, is_busy);
        let mut at = |moment: Millis| next = Some(next.map_or(moment, |other: Millis| other.min(moment)));
        if let Some(turn) = self.turn.as_ref().filter(|_| !self.options.plain) {
            // Once a second, on the second.
            let elapsed = now.saturating_sub(turn.since);
            at(turn.since + (elapsed / 1000 + 1) * 1000);
        }
        if let Some((_, until)) = &self.notice {
            if *until <= now {
                self.notice = None;
            } else {
                at(*until);
            }
        }
        if let Some(changed) = self.draft_changed {
            if changed + DRAFT_DELAY <= now {
                self.save_draft();
            } else {
                at(changed + DRAFT_DELAY);
            }
        }
        next
    }

    /// The bytes that bring the terminal up to date.
    pub fn frame(&mut self) -> String {
        let mut out = std::mem::take(&mut self.left_overlay);
        if let Some(overlay) = &mut self.overlay {
            out.push_str(&overlay.frame(self.options.colors));
            return out;
        }
        let finished = std::mem::take(&mut self.finished);
        if self.options.plain {
            // The kernel adds the carriage returns.
            out.push_str(&finished.replace("\r\n", "\n"));
            return out;
        }
        let picture = self.picture();
        out.push_str(&self.region.paint(&finished, &picture));
        out
    }

    /// The bytes that remove the live region, before something else writes to the terminal or at the end.
    pub fn clear(&mut self) -> String {
        self.close_overlay();
        let left = std::mem::take(&mut self.left_overlay);
        let erased = if self.options.plain { String::new() } else { self.region.erase() };
        let mut finished = std::mem::take(&mut self.finished);
        if self.options.plain {
            finished = finished.replace("\r\n", "\n");
        }
        format!("{left}{erased}{finished}")
    }

    /// The terminal was used by something else and starts with an empty line now.
    pub fn repaint(&mut self) {
        self.region.forget();
    }

    /// The user's editor returned `text`.
    pub fn edited(&mut self, text: &str) {
        self.editor.set(text.trim_end_matches('\n'));
        self.draft_touched();
    }

    /// A line about something that the binary did, shown for a moment.
    pub fn notify(&mut self, text: &str) {
        self.notice = Some((crate::text::clean_line(text), self.now + 4000));
    }

    /// What is written and not sent.
    pub fn draft(&self) -> String {
        self.editor.text()
    }

    /// Prints a line that the program wrote for people.
    pub fn warn(&mut self, text: &str) {
        self.note(text.trim_end());
    }

    /// The session is over: what is left of the draft is kept.
    pub fn finish(&mut self) {
        self.save_draft();
    }

    fn draft_touched(&mut self) {
        self.draft_changed.get_or_insert(self.now);
    }

    fn save_draft(&mut self) {
        self.draft_changed = None;
        let text = self.editor.text();
        if text != self.draft_saved {
            self.effects.push(Effect::SaveDraft(text.clone()));
            self.draft_saved = text;
        }
    }
}
