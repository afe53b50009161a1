//! Handles the user's input.

use qwen_events::ControlBody;

use super::{Effect, Search, TWICE, Terminal};
use crate::Millis;
use crate::editor::Editor;
use crate::input::{Key, KeyAction, KeyCode, TerminalInput};
use crate::overlay::{OverlayStep, TranscriptView};
use crate::question::QuestionOutcome;

/// The approval modes, in the order in which a key cycles through them.
const MODES: [&str; 4] = ["default", "auto-edit", "plan", "yolo"];

/// The mode in which nothing is asked.
pub(super) const YOLO: &str = "yolo";

/// The longest path of a file, in bytes.
const MAX_PATH: usize = 4096;

/// Applies an input to an editor.
pub fn edit(editor: &mut Editor, input: &TerminalInput, action: Option<KeyAction>) {
    match (input, action) {
        (TerminalInput::Paste(text), _) => editor.paste(text),
        (TerminalInput::Key(key), None) => {
            if let KeyCode::Char(c) = key.code
                && !key.ctrl
                && !key.alt
            {
                editor.type_char(c);
            }
        }
        (_, Some(action)) => edit_by(editor, action),
        (TerminalInput::Focus(_), None) => {}
    }
}

fn edit_by(editor: &mut Editor, action: KeyAction) {
    match action {
        KeyAction::Newline => editor.type_char('\n'),
        KeyAction::Left | KeyAction::Background => editor.move_left(),
        KeyAction::Right => editor.move_right(),
        KeyAction::WordLeft => editor.word_left(),
        KeyAction::WordRight => editor.word_right(),
        KeyAction::LineStart => editor.to_line_start(),
        KeyAction::LineEnd => editor.to_line_end(),
        KeyAction::Backspace => editor.backspace(),
        KeyAction::Delete => editor.delete(),
        KeyAction::DeleteWordLeft => editor.kill_word_left(),
        KeyAction::DeleteWordRight => editor.kill_word_right(),
        KeyAction::KillToEnd => editor.kill_to_end(),
        KeyAction::KillToStart => editor.kill_to_start(),
        KeyAction::Yank => editor.yank(),
        KeyAction::YankPop => editor.yank_pop(),
        KeyAction::Undo => editor.undo(),
        KeyAction::Up => {
            editor.up();
        }
        KeyAction::Down => {
            editor.down();
        }
        KeyAction::Submit
        | KeyAction::Complete
        | KeyAction::Interrupt
        | KeyAction::Cancel
        | KeyAction::Quit
        | KeyAction::Suspend
        | KeyAction::CycleMode
        | KeyAction::Transcript
        | KeyAction::Tasks
        | KeyAction::Question
        | KeyAction::ExternalEditor
        | KeyAction::PasteImage
        | KeyAction::HistorySearch
        | KeyAction::Repaint
        | KeyAction::WrapProse
        | KeyAction::PageUp
        | KeyAction::PageDown => {}
    }
}

/// True if a pasted text may be the path of a picture.
fn is_image_path(text: &str) -> bool {
    if text.len() > MAX_PATH {
        return false;
    }
    let path = text.trim().trim_end_matches(['\'', '"']).to_ascii_lowercase();
    let has_extension = [".png", ".jpg", ".jpeg", ".gif", ".webp"].iter().any(|end| path.ends_with(end));
    has_extension && !text.trim().contains('\n')
}

impl Terminal {
    /// Processes an input that was pressed and read at `now`.
    pub fn input(&mut self, input: &TerminalInput, now: Millis) {
        self.input_since(input, now, now);
    }

    /// Processes an input that was pressed at `pressed` or later and read at `now`. The user could react only
    /// to what was visible at `pressed`.
    pub fn input_since(&mut self, input: &TerminalInput, pressed: Millis, now: Millis) {
        self.now = now;
        if let TerminalInput::Focus(focused) = input {
            self.status.focused = Some(*focused);
            return;
        }
        if let Some(overlay) = &mut self.overlay {
            match overlay.input(input, &self.options.keymap) {
                OverlayStep::Stay => {}
                OverlayStep::Close => self.close_overlay(),
                OverlayStep::Copy(text) => self.effects.push(Effect::Copy(text)),
            }
            return;
        }
        self.composer.last_key = Some(now);
        let outcome = self.questions.input(input, &self.options.keymap, pressed, now);
        if self.apply_answer(outcome) {
            return;
        }
        if self.input_to_list(input) {
            return;
        }
        let action = match input {
            TerminalInput::Key(key) => self.options.keymap.action(*key),
            TerminalInput::Paste(_) | TerminalInput::Focus(_) => None,
        };
        if self.composer.search.is_some() && self.searching(input, action) {
            return;
        }
        if self.is_chord(input, action) {
            return;
        }
        if self.input_to_vim(input, action) {
            return;
        }
        match (input, action) {
            (_, Some(action)) => self.act(action, input),
            (TerminalInput::Key(Key { code: KeyCode::Char('?'), ctrl: false, alt: false, .. }), None)
                if self.composer.editor.is_empty() =>
            {
                self.show_help();
            }
            _ => self.write(input, None),
        }
    }

    /// Handles Ctrl+X Ctrl+E, readline's key for the external editor, unless Ctrl+X is bound to an action.
    fn is_chord(&mut self, input: &TerminalInput, action: Option<KeyAction>) -> bool {
        let TerminalInput::Key(key) = input else { return false };
        let is_first = *key == Key::ctrl('x') && action.is_none();
        if std::mem::replace(&mut self.composer.after_ctrl_x, is_first) && *key == Key::ctrl('e') {
            self.act(KeyAction::ExternalEditor, input);
            return true;
        }
        is_first
    }

    /// Offers an input to vim's normal mode; false if it does not handle it.
    fn input_to_vim(&mut self, input: &TerminalInput, action: Option<KeyAction>) -> bool {
        let (Some(vim), TerminalInput::Key(key)) = (&mut self.composer.vim, input) else { return false };
        let is_taken = match action {
            // During a turn, and for an empty composer, Esc keeps its meaning.
            Some(KeyAction::Interrupt) => {
                self.phase.turn().is_none()
                    && !self.composer.editor.is_empty()
                    && vim.escape(&mut self.composer.editor)
            }
            Some(_) => false,
            None => vim.key(*key, &mut self.composer.editor),
        };
        if is_taken {
            self.draft_touched();
        }
        is_taken
    }

    /// Applies what the open question made of an input. Returns false if the input is for something else.
    pub(super) fn apply_answer(&mut self, outcome: QuestionOutcome) -> bool {
        match outcome {
            QuestionOutcome::Passed => return false,
            QuestionOutcome::Typed(text) => {
                text.chars().for_each(|c| self.composer.editor.type_char(c));
                self.draft_touched();
                return false;
            }
            QuestionOutcome::Taken => {}
            QuestionOutcome::Noticed(text) => self.notify(text),
            QuestionOutcome::Shown => {
                let lines = self.questions.first().map(|question| question.subject.clone());
                let (columns, rows) = (self.options.columns, self.options.rows);
                self.overlay = lines.map(|lines| TranscriptView::of_lines(&lines, columns, rows));
            }
            QuestionOutcome::Answered { command, save_rule, words, declined } => {
                self.command(command);
                self.work.declined.extend(declined);
                self.effects.extend(save_rule.map(Effect::SaveRule));
                self.note(&words);
                self.show_next_question();
            }
            QuestionOutcome::Decided { is_yes, words } => {
                self.decided(is_yes, &words);
                self.show_next_question();
            }
        }
        true
    }

    fn show_next_question(&mut self) {
        if self.options.plain {
            self.print_question();
        } else if !self.is_composing() {
            self.questions.open_next();
        }
    }

    /// Handles the answer to a question of the program itself.
    pub(super) fn decided(&mut self, is_yes: bool, words: &str) {
        self.note(words);
        self.effects.push(Effect::Trust(is_yes));
    }

    /// Applies an input to the composer.
    fn write(&mut self, input: &TerminalInput, action: Option<KeyAction>) {
        let before = self.composer.editor.raw().len();
        edit(&mut self.composer.editor, input, action);
        if self.composer.editor.raw().len() != before {
            self.composer.history.leave();
            self.draft_touched();
        }
        if let TerminalInput::Paste(text) = input
            && is_image_path(text)
            && self.composer.editor.before_caret().ends_with(text.as_str())
        {
            self.effects.push(Effect::ReadImage(text.clone()));
        }
        self.ask_for_hints();
    }

    fn act(&mut self, action: KeyAction, input: &TerminalInput) {
        if self.composer.completion.is_shown() && self.act_on_completion(action) {
            return;
        }
        match action {
            KeyAction::Submit => {
                // A backslash before Enter starts a new line, for terminals that have no other key for it.
                if self.composer.editor.before_caret().ends_with('\\') {
                    self.composer.editor.backspace();
                    self.composer.editor.type_char('\n');
                } else {
                    self.submit();
                }
            }
            KeyAction::Complete => {
                if self.phase.turn().is_some() && !self.composer.editor.is_empty() {
                    self.enqueue();
                } else {
                    self.ask_for_hints();
                }
            }
            KeyAction::Interrupt => self.escape(),
            KeyAction::Cancel => self.cancel(),
            KeyAction::Quit if self.composer.editor.is_empty() => self.quit(),
            KeyAction::Quit => {
                self.composer.editor.delete();
                self.draft_touched();
            }
            KeyAction::Suspend => self.effects.push(Effect::Suspend),
            KeyAction::CycleMode => {
                let at = MODES.iter().position(|mode| *mode == self.options.mode);
                let next = MODES[at.map_or(0, |at| (at + 1) % MODES.len())];
                self.enter_mode(next);
            }
            KeyAction::Transcript => self.effects.push(Effect::Transcript(self.status.session.clone())),
            KeyAction::Tasks => self.work.show_tasks = !self.work.show_tasks,
            KeyAction::Background if self.has_running_command() => {
                self.control(ControlBody::BackgroundTasks(None));
                self.notify("The command continues in the background.");
            }
            KeyAction::Question => self.questions.toggle(),
            KeyAction::ExternalEditor => self.effects.push(Effect::Edit(self.composer.editor.text())),
            KeyAction::PasteImage => self.effects.push(Effect::PasteImage),
            KeyAction::HistorySearch => self.composer.search = Some(Search::default()),
            KeyAction::Repaint => self.print_last_answer(),
            KeyAction::WrapProse => {
                self.options.wrap_prose = !self.options.wrap_prose;
                let who = if self.options.wrap_prose { "by words" } else { "by the terminal" };
                self.notify(&format!("Prose is wrapped {who} from here on."));
            }
            KeyAction::Up => self.move_up(),
            KeyAction::Down => self.move_down(),
            KeyAction::Newline
            | KeyAction::Background
            | KeyAction::Left
            | KeyAction::Right
            | KeyAction::WordLeft
            | KeyAction::WordRight
            | KeyAction::LineStart
            | KeyAction::LineEnd
            | KeyAction::Backspace
            | KeyAction::Delete
            | KeyAction::DeleteWordLeft
            | KeyAction::DeleteWordRight
            | KeyAction::KillToEnd
            | KeyAction::KillToStart
            | KeyAction::Yank
            | KeyAction::YankPop
            | KeyAction::Undo => self.write(input, Some(action)),
            KeyAction::PageUp | KeyAction::PageDown => {}
        }
    }

    /// Moves the caret up, or recalls an older prompt from the first line.
    fn move_up(&mut self) {
        if self.recall_prompt() || self.composer.editor.up() {
            return;
        }
        let current = self.composer.editor.text();
        if let Some(older) = self.composer.history.older(&current) {
            self.composer.editor.set(&older);
            self.draft_touched();
        }
    }

    /// Moves the caret down, or recalls a newer prompt from the last line.
    fn move_down(&mut self) {
        if !self.composer.editor.down()
            && let Some(newer) = self.composer.history.newer()
        {
            self.composer.editor.set(&newer);
            self.draft_touched();
        }
    }

    /// Changes the approval mode. The mode without questions needs the key twice.
    fn enter_mode(&mut self, mode: &'static str) {
        let is_confirmed =
            self.status.asked_for_yolo.take().is_some_and(|asked| self.now < asked + 2 * TWICE);
        if mode == YOLO && !is_confirmed {
            self.status.asked_for_yolo = Some(self.now);
            self.notify("Enter yolo mode? Nothing will be asked. Press the key again.");
            return;
        }
        if mode == YOLO {
            self.status.notice = None;
            self.note("Yolo mode: commands and changes run without a question.");
        }
        mode.clone_into(&mut self.options.mode);
        self.control(ControlBody::SetPermissionMode(mode.into()));
    }

    /// Esc: ends the turn, or closes the open list or panel.
    fn escape(&mut self) {
        if self.phase.turn().is_some() {
            self.interrupt();
        } else if self.composer.last_escape.is_some_and(|last| self.now < last + TWICE)
            && self.composer.editor.is_empty()
        {
            self.composer.last_escape = None;
            self.send_unprinted("/rewind");
        } else {
            self.composer.last_escape = Some(self.now);
        }
    }

    /// Ctrl+C: first moves the draft to the history, then ends the turn, then the program.
    fn cancel(&mut self) {
        let twice = self.composer.last_cancel.replace(self.now).is_some_and(|last| self.now < last + TWICE);
        if !self.composer.editor.is_empty() {
            let text = self.composer.editor.take();
            self.remember(&text);
            self.draft_touched();
            self.notify("Cleared; Up brings it back.");
            if self.phase.turn().is_some() {
                // The next one is for the turn.
                self.composer.last_cancel = None;
            }
        } else if self.phase.turn().is_some() && !twice {
            self.interrupt();
        } else if twice {
            self.quit();
        } else {
            self.notify("Press Ctrl+C again to quit.");
        }
    }

    pub(super) fn quit(&mut self) {
        if let Some(session) = self.status.session.clone().filter(|_| !self.phase.is_quitting()) {
            self.note(&format!("To continue this session: qwen --resume {session}"));
        }
        self.end_program();
    }

    /// Ends the program without a word.
    pub(super) fn end_program(&mut self) {
        self.phase.quit();
        self.finish();
        self.effects.push(Effect::Quit);
    }

    /// Reverse search: typed text is searched for, any other key ends the search with the match.
    fn searching(&mut self, input: &TerminalInput, action: Option<KeyAction>) -> bool {
        let Some(search) = &mut self.composer.search else { return false };
        match (input, action) {
            (_, Some(KeyAction::HistorySearch)) => {
                if self.composer.history.search(&search.text, search.skip + 1).is_some() {
                    search.skip += 1;
                }
                true
            }
            (_, Some(KeyAction::Backspace)) => {
                search.text.pop();
                search.skip = 0;
                true
            }
            (_, Some(KeyAction::Interrupt | KeyAction::Cancel)) => {
                self.composer.search = None;
                true
            }
            (TerminalInput::Key(Key { code: KeyCode::Char(c), ctrl: false, alt: false, .. }), None) => {
                search.text.push(*c);
                search.skip = 0;
                true
            }
            _ => {
                let found = self.composer.history.search(&search.text, search.skip).map(str::to_owned);
                self.composer.search = None;
                if let Some(found) = found {
                    let draft = self.composer.editor.text();
                    if !draft.trim().is_empty() {
                        self.remember(&draft);
                    }
                    self.composer.editor.set(&found);
                    self.draft_touched();
                }
                // Enter only accepts the match; the next one sends it.
                action == Some(KeyAction::Submit)
            }
        }
    }
}
