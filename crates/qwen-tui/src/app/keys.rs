//! Handles the user's input.

use qwen_events::ControlBody;

use super::{Effect, Search, TWICE, Terminal};
use crate::Millis;
use crate::editor::Editor;
use crate::input::{Action, Input, Key, KeyCode};
use crate::overlay::Step;
use crate::question::Outcome;

/// The approval modes, in the order in which a key cycles through them.
const MODES: [&str; 4] = ["default", "auto-edit", "plan", "yolo"];

/// Applies an input to an editor.
pub fn edit(editor: &mut Editor, input: &Input, action: Option<Action>) {
    match (input, action) {
        (Input::Paste(text), _) => editor.paste(text),
        (Input::Key(key), None) => {
            if let KeyCode::Char(c) = key.code
                && !key.ctrl
                && !key.alt
            {
                editor.type_char(c);
            }
        }
        (_, Some(action)) => edit_by(editor, action),
        (Input::Focus(_), None) => {}
    }
}

fn edit_by(editor: &mut Editor, action: Action) {
    match action {
        Action::Newline => editor.type_char('\n'),
        Action::Left => editor.left(),
        Action::Right => editor.right(),
        Action::WordLeft => editor.word_left(),
        Action::WordRight => editor.word_right(),
        Action::LineStart => editor.to_line_start(),
        Action::LineEnd => editor.to_line_end(),
        Action::Backspace => editor.backspace(),
        Action::Delete => editor.delete(),
        Action::DeleteWordLeft => editor.kill_word_left(),
        Action::DeleteWordRight => editor.kill_word_right(),
        Action::KillToEnd => editor.kill_to_end(),
        Action::KillToStart => editor.kill_to_start(),
        Action::Yank => editor.yank(),
        Action::YankPop => editor.yank_pop(),
        Action::Undo => editor.undo(),
        Action::Up => {
            editor.up();
        }
        Action::Down => {
            editor.down();
        }
        Action::Submit
        | Action::Complete
        | Action::Interrupt
        | Action::Cancel
        | Action::Quit
        | Action::Suspend
        | Action::CycleMode
        | Action::Transcript
        | Action::Tasks
        | Action::Question
        | Action::ExternalEditor
        | Action::HistorySearch
        | Action::Repaint
        | Action::WrapProse
        | Action::PageUp
        | Action::PageDown => {}
    }
}

impl Terminal {
    /// Processes an input that arrived at `now`.
    pub fn input(&mut self, input: &Input, now: Millis) {
        self.now = now;
        if let Input::Focus(focused) = input {
            self.focused = Some(*focused);
            return;
        }
        if let Some(overlay) = &mut self.overlay {
            match overlay.input(input, &self.options.keymap) {
                Step::Stay => {}
                Step::Close => self.close_overlay(),
                Step::Copy(text) => self.effects.push(Effect::Copy(text)),
            }
            return;
        }
        match self.questions.input(input, &self.options.keymap, now) {
            Outcome::Taken => return,
            Outcome::Answered { command, save_rule, words } => {
                self.command(command);
                self.effects.extend(save_rule.map(Effect::SaveRule));
                self.note(&words);
                return;
            }
            Outcome::Passed => {}
        }
        self.last_key = Some(now);
        let action = match input {
            Input::Key(key) => self.options.keymap.action(*key),
            Input::Paste(_) | Input::Focus(_) => None,
        };
        if self.search.is_some() && self.searching(input, action) {
            return;
        }
        self.help = false;
        match (input, action) {
            (_, Some(action)) => self.act(action, input),
            (Input::Key(Key { code: KeyCode::Char('?'), ctrl: false, alt: false, .. }), None)
                if self.editor.is_empty() =>
            {
                self.help = true;
            }
            _ => self.write(input, None),
        }
    }

    /// Applies an input to the composer.
    fn write(&mut self, input: &Input, action: Option<Action>) {
        let before = self.editor.raw().len();
        edit(&mut self.editor, input, action);
        if self.editor.raw().len() != before {
            self.history.leave();
            self.draft_touched();
        }
        self.ask_for_hints();
    }

    fn act(&mut self, action: Action, input: &Input) {
        if self.completion.is_shown() && self.act_on_completion(action) {
            return;
        }
        match action {
            Action::Submit => {
                // A backslash before Enter starts a new line, for terminals that have no other key for it.
                if self.editor.before_caret().ends_with('\\') {
                    self.editor.backspace();
                    self.editor.type_char('\n');
                } else {
                    self.submit();
                }
            }
            Action::Complete => {
                if self.turn.is_some() && !self.editor.is_empty() {
                    self.enqueue();
                } else {
                    self.ask_for_hints();
                }
            }
            Action::Interrupt => self.escape(),
            Action::Cancel => self.cancel(),
            Action::Quit => {
                if self.editor.is_empty() {
                    self.quit();
                } else {
                    self.editor.delete();
                    self.draft_touched();
                }
            }
            Action::Suspend => self.effects.push(Effect::Suspend),
            Action::CycleMode => {
                let at = MODES.iter().position(|mode| *mode == self.options.mode);
                let next = MODES[at.map_or(0, |at| (at + 1) % MODES.len())];
                next.clone_into(&mut self.options.mode);
                self.control(ControlBody::SetPermissionMode(next.into()));
            }
            Action::Transcript => self.effects.push(Effect::Transcript(self.session.clone())),
            Action::Tasks => self.show_tasks = !self.show_tasks,
            Action::Question => self.questions.toggle(self.now),
            Action::ExternalEditor => self.effects.push(Effect::Edit(self.editor.text())),
            Action::HistorySearch => self.search = Some(Search::default()),
            Action::Repaint => self.print_last_answer(),
            Action::WrapProse => {
                self.options.wrap_prose = !self.options.wrap_prose;
                let who = if self.options.wrap_prose { "by words" } else { "by the terminal" };
                self.notify(&format!("Prose is wrapped {who} from here on."));
            }
            Action::Up => {
                if !self.take_back() && !self.editor.up() {
                    let current = self.editor.text();
                    if let Some(older) = self.history.older(&current) {
                        self.editor.set(&older);
                        self.draft_touched();
                    }
                }
            }
            Action::Down => {
                if !self.editor.down()
                    && let Some(newer) = self.history.newer()
                {
                    self.editor.set(&newer);
                    self.draft_touched();
                }
            }
            Action::Newline
            | Action::Left
            | Action::Right
            | Action::WordLeft
            | Action::WordRight
            | Action::LineStart
            | Action::LineEnd
            | Action::Backspace
            | Action::Delete
            | Action::DeleteWordLeft
            | Action::DeleteWordRight
            | Action::KillToEnd
            | Action::KillToStart
            | Action::Yank
            | Action::YankPop
            | Action::Undo => self.write(input, Some(action)),
            Action::PageUp | Action::PageDown => {}
        }
    }

    /// Esc: ends the turn, or closes the open list or panel.
    fn escape(&mut self) {
        if self.turn.is_some() {
            self.interrupt();
        } else if self.last_escape.is_some_and(|last| self.now < last + TWICE) && self.editor.is_empty() {
            self.last_escape = None;
            self.editor.set("/undo");
            self.draft_touched();
            self.notify("Enter takes the last turn back, with its changes of files.");
        } else {
            self.last_escape = Some(self.now);
        }
    }

    /// Ctrl+C: first moves the draft to the history, then ends the turn, then the program.
    fn cancel(&mut self) {
        let twice = self.last_cancel.replace(self.now).is_some_and(|last| self.now < last + TWICE);
        if !self.editor.is_empty() {
            let text = self.editor.take();
            self.remember(&text);
            self.draft_touched();
            self.notify("Cleared; Up brings it back.");
        } else if self.turn.is_some() && !twice {
            self.interrupt();
        } else if twice {
            self.quit();
        } else {
            self.notify("Press Ctrl+C again to quit.");
        }
    }

    pub(super) fn quit(&mut self) {
        self.quitting = true;
        self.finish();
        self.effects.push(Effect::Quit);
    }

    /// Reverse search: typed text is searched for, any other key ends the search with the match.
    fn searching(&mut self, input: &Input, action: Option<Action>) -> bool {
        let Some(search) = &mut self.search else { return false };
        match (input, action) {
            (_, Some(Action::HistorySearch)) => {
                if self.history.search(&search.text, search.skip + 1).is_some() {
                    search.skip += 1;
                }
                true
            }
            (_, Some(Action::Backspace)) => {
                search.text.pop();
                search.skip = 0;
                true
            }
            (_, Some(Action::Interrupt | Action::Cancel)) => {
                self.search = None;
                true
            }
            (Input::Key(Key { code: KeyCode::Char(c), ctrl: false, alt: false, .. }), None) => {
                search.text.push(*c);
                search.skip = 0;
                true
            }
            _ => {
                let found = self.history.search(&search.text, search.skip).map(str::to_owned);
                self.search = None;
                if let Some(found) = found {
                    self.editor.set(&found);
                    self.draft_touched();
                }
                // Enter only accepts the match; the next one sends it.
                action == Some(Action::Submit)
            }
        }
    }
}
