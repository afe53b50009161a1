//! The state of the terminal and its parts.

mod complete;
mod dialogs;
mod draw;
mod events;
mod footer;
mod keys;
mod plain;
mod print;
mod prompts;
mod recent_turns;
mod state;

pub use footer::FooterItem;
pub use keys::edit;
pub use recent_turns::RecentTurns;

use qwen_events::{Command, Media, PromptId, SessionId};

use self::state::{Activity, Composer, Output, Phase, Queued, Running, Search, Status, Steer, Turn, Work};
use crate::Millis;
use crate::editor::Editor;
use crate::input::Keymap;
use crate::overlay::TranscriptView;
use crate::picker::Picker;
use crate::question::Questions;
use crate::screen::LiveRegion;
use crate::view::Marks;

/// The interval within which a second Ctrl+C or Esc counts as a repetition.
const TWICE: Millis = 1500;

/// How long the draft may differ from the copy on disk.
const DRAFT_DELAY: Millis = 300;

/// The terminal's properties and the initial state.
#[derive(Debug, Clone)]
pub struct Options {
    pub columns: usize,
    pub rows: usize,
    /// True if colours may be used.
    pub colors: bool,
    /// True if the terminal shows Unicode.
    pub unicode: bool,
    /// True if lines are only appended and nothing is repainted (screen readers, `TERM=dumb`).
    pub plain: bool,
    /// True to wrap prose at words; otherwise the terminal wraps it.
    pub wrap_prose: bool,
    /// The number of printed lines of a command's output.
    pub output_lines: usize,
    pub keymap: Keymap,
    /// Checks a permission rule that the user edits; an error says what is wrong with it.
    pub check_rule: fn(&str) -> Result<(), String>,
    /// True for vim's keys in the composer.
    pub vim: bool,
    /// The facts in the footer, in order.
    pub footer: Vec<FooterItem>,
    /// Earlier prompts, the oldest first.
    pub history: Vec<String>,
    /// The unsent text when the last process ended.
    pub draft: String,
    /// The prefix of prompt ids; must differ between processes.
    pub seed: String,
    pub model: String,
    pub mode: String,
    /// The context window in tokens; 0 if unknown.
    pub window: u64,
    pub workspace: WorkspaceName,
    /// Lines to print first.
    pub greeting: Vec<GreetingLine>,
    /// What the folder's own configuration would enable, if the user has not decided about it.
    pub untrusted: Vec<String>,
}

/// A line to print at the start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GreetingLine {
    /// Prose, which is wrapped at words.
    Prose(String),
    /// Contains a command to copy, so it stays one line.
    Command(String),
}

impl From<String> for GreetingLine {
    fn from(text: String) -> Self {
        Self::Prose(text)
    }
}

/// What the footer calls the workspace.
#[derive(Debug, Clone, Default)]
pub struct WorkspaceName {
    /// The last component of the working directory.
    pub directory: String,
    /// The branch that is checked out; empty outside a repository.
    pub branch: String,
}

/// An action for the binary.
#[derive(Debug, Clone, PartialEq)]
pub enum Effect {
    /// Sends this to the session.
    Command(Command),
    /// Ends the session and the program.
    Quit,
    /// Suspends the process, for Ctrl+Z.
    Suspend,
    /// Opens this text in the user's editor; the result goes to [`Terminal::edited`].
    Edit(String),
    /// Copies this to the clipboard.
    Copy(String),
    /// Adds this prompt to the history.
    Remember(String),
    /// Saves this draft to disk; an empty one removes it.
    SaveDraft(String),
    /// Writes this rule to the user's settings.
    SaveRule(String),
    /// Rings the bell and sends a desktop notification.
    Notify(String),
    /// Reads the log of this session, or of the one that was started, and passes it to
    /// [`Terminal::show_transcript`].
    Transcript(Option<SessionId>),
    /// Reads the log of the session that the conversation continues in, and passes it to
    /// [`Terminal::show_recent_turns`].
    ShowRecentTurns(SessionId),
    /// Reads a picture from the clipboard and passes it to [`Terminal::paste_image`].
    PasteImage,
    /// Reads the pasted path as a picture and, if it is one, passes it to [`Terminal::replace_by_image`]. The
    /// text is the path as terminals insert it for a file that is dropped on them.
    ReadImage(String),
    /// Trusts the folder, or records that the user does not.
    Trust(bool),
}

/// The terminal interface as a state machine.
#[derive(Debug)]
pub struct Terminal {
    options: Options,
    marks: Marks,
    phase: Phase,
    region: LiveRegion,
    output: Output,
    composer: Composer,
    work: Work,
    status: Status,
    questions: Questions,
    picker: Option<Picker>,
    overlay: Option<TranscriptView>,
    /// The bytes that closed the overlay, still to be written.
    left_overlay: String,
    effects: Vec<Effect>,
    now: Millis,
}

impl Terminal {
    /// A terminal with its greeting and an empty composer.
    pub fn new(options: Options, now: Millis) -> Self {
        let mut editor = Editor::default();
        if !options.draft.is_empty() {
            editor.set(&options.draft);
        }
        let mut terminal = Self {
            marks: if options.unicode { Marks::UNICODE } else { Marks::ASCII },
            phase: Phase::Idle,
            region: LiveRegion::new(options.columns, options.colors),
            output: Output::default(),
            composer: Composer::new(editor, &options),
            work: Work::new(),
            status: Status::default(),
            questions: Questions::new(options.check_rule),
            picker: None,
            overlay: None,
            left_overlay: String::new(),
            effects: Vec::new(),
            now,
            options,
        };
        for line in std::mem::take(&mut terminal.options.greeting) {
            match line {
                GreetingLine::Prose(text) => terminal.print_paragraph(text),
                GreetingLine::Command(text) => terminal.print_line(&crate::text::StyledLine::plain(text)),
            }
        }
        terminal.ask_for_trust();
        terminal
    }

    /// Applies a new terminal size.
    pub fn resize(&mut self, columns: usize, rows: usize) {
        self.options.columns = columns.max(1);
        self.options.rows = rows.max(1);
        self.region.resize(columns);
        if let Some(overlay) = &mut self.overlay {
            overlay.resize(columns, rows);
        }
    }

    /// Shows the whole transcript, from the events of the session log. The turns `rewound` are no longer a
    /// part of the conversation.
    pub fn show_transcript(&mut self, events: &[qwen_events::Event], rewound: &[PromptId]) {
        let size = (self.options.columns, self.options.rows);
        self.overlay = Some(TranscriptView::new(events, rewound, self.marks, size));
    }

    /// True while the alternate screen is shown.
    pub fn is_overlaid(&self) -> bool {
        self.overlay.is_some()
    }

    pub(super) fn close_overlay(&mut self) {
        if let Some(overlay) = self.overlay.take() {
            self.left_overlay.push_str(overlay.leave());
        }
    }

    /// Removes and returns the pending actions for the binary.
    pub fn effects(&mut self) -> Vec<Effect> {
        self.request_hints();
        std::mem::take(&mut self.effects)
    }

    /// The number of bytes to be printed.
    pub fn backlog(&self) -> usize {
        self.output.finished.len()
    }

    /// Handles expired timers. Returns when to call this again if nothing else happens; none means never.
    pub fn tick(&mut self, now: Millis) -> Option<Millis> {
        self.now = now;
        let outcome = self.questions.settle(now);
        self.apply_answer(outcome);
        let mut next = self.questions.open_when_idle(now, self.composer.last_key, self.is_composing());
        let mut at = |moment: Millis| next = Some(next.map_or(moment, |other: Millis| other.min(moment)));
        if let Some(moment) = self.questions.deadline().filter(|moment| *moment > now) {
            at(moment);
        }
        if let Some(turn) = self.phase.turn().filter(|_| !self.options.plain) {
            // Once per second, at full seconds.
            let elapsed = now.saturating_sub(turn.since);
            at(turn.since + (elapsed / 1000 + 1) * 1000);
        }
        if let Some((_, until)) = &self.status.notice {
            if *until <= now {
                self.status.notice = None;
            } else {
                at(*until);
            }
        }
        if let Some(changed) = self.composer.draft_changed {
            if changed + DRAFT_DELAY <= now {
                self.save_draft();
            } else {
                at(changed + DRAFT_DELAY);
            }
        }
        next
    }

    /// True while the keys of the user belong to something else than an open question.
    pub(super) fn is_composing(&self) -> bool {
        !self.composer.editor.is_empty()
            || self.overlay.is_some()
            || self.picker.is_some()
            || self.composer.search.is_some()
            || self.composer.after_ctrl_x
            || self.options.plain
    }

    /// True while a question is open, so that it matters when a key was pressed.
    pub fn is_asking(&self) -> bool {
        self.questions.is_open()
    }

    /// True if the next frame shows a question that is not on the screen yet. Input that is already there was
    /// not meant for it and must be handled before that frame.
    pub fn awaits_frame(&self) -> bool {
        self.overlay.is_none() && self.questions.awaits_frame()
    }

    /// Records that the bytes of the last frame were written. Questions count as visible from here on.
    pub fn frame_written(&mut self, now: Millis) {
        self.questions.frame_written(now);
    }

    /// The bytes that update the terminal. [`Terminal::frame_written`] must follow when they are written.
    pub fn frame(&mut self) -> String {
        let mut out = std::mem::take(&mut self.left_overlay);
        if let Some(overlay) = &mut self.overlay {
            self.questions.hide();
            out.push_str(&overlay.frame(self.options.colors));
            return out;
        }
        let finished = std::mem::take(&mut self.output.finished);
        if self.options.plain {
            // The kernel adds the carriage returns.
            out.push_str(&finished.replace("\r\n", "\n"));
            return out;
        }
        let picture = self.picture();
        out.push_str(&self.region.paint(&finished, picture));
        out
    }

    /// The bytes that remove the live region, before another program writes to the terminal or at the end.
    pub fn clear(&mut self) -> String {
        self.close_overlay();
        self.questions.hide();
        let left = std::mem::take(&mut self.left_overlay);
        let erased = if self.options.plain { String::new() } else { self.region.erase() };
        let mut finished = std::mem::take(&mut self.output.finished);
        if self.options.plain {
            finished = finished.replace("\r\n", "\n");
        }
        format!("{left}{erased}{finished}")
    }

    /// Repaints after another program used the terminal; the cursor is on an empty line.
    pub fn repaint(&mut self) {
        self.region.forget();
    }

    /// Handles the text from the user's editor.
    pub fn edited(&mut self, text: &str) {
        self.composer.editor.set(text.trim_end_matches('\n'));
        self.draft_touched();
    }

    /// Inserts a picture from the clipboard.
    pub fn paste_image(&mut self, image: Media) {
        self.composer.editor.paste_image(image);
        self.draft_touched();
    }

    /// Replaces a pasted path by the picture in that file, unless the text has changed since.
    pub fn replace_by_image(&mut self, pasted: &str, image: Media) {
        if self.composer.editor.before_caret().ends_with(pasted) {
            self.composer.editor.replace_before(pasted.len(), "");
            self.paste_image(image);
        }
    }

    /// Asks whether the folder's own configuration shall take effect.
    fn ask_for_trust(&mut self) {
        let found = std::mem::take(&mut self.options.untrusted);
        if found.is_empty() {
            return;
        }
        let reason = "This folder has its own configuration. It is not used unless you trust the folder.";
        self.questions.add_own("Trust this folder?", reason, &found);
        if self.options.plain {
            return self.print_question();
        }
        self.print_paragraph(reason.to_owned());
        for line in found {
            self.print_line(&crate::text::StyledLine::plain(line));
        }
    }

    /// Shows a temporary line about an action of the binary.
    pub fn notify(&mut self, text: &str) {
        self.status.notice = Some((crate::text::clean_line(text), self.now + 4000));
    }

    /// True if a turn has begun in this process, or another session is shown.
    pub fn has_session(&self) -> bool {
        self.status.session.is_some()
    }

    /// Ends the session because the program starts again.
    pub fn restart(&mut self) {
        self.end_program();
    }

    /// Returns the text that is not sent yet.
    pub fn draft(&self) -> String {
        self.composer.editor.text()
    }

    /// Prints a warning of the program.
    pub fn warn(&mut self, text: &str) {
        self.note(text.trim_end());
    }

    /// Ends the session and saves the draft.
    pub fn finish(&mut self) {
        self.save_draft();
    }

    fn draft_touched(&mut self) {
        self.composer.draft_changed.get_or_insert(self.now);
    }

    fn save_draft(&mut self) {
        self.composer.draft_changed = None;
        let text = self.composer.editor.text();
        if text != self.composer.draft_saved {
            self.effects.push(Effect::SaveDraft(text.clone()));
            self.composer.draft_saved = text;
        }
    }
}
