//! Results of commands that ask for more than a printed text.

use qwen_events::{Command, CommandResult, CommandResultBody, Delivery, Part, Prompt, PromptId, SessionId};
use serde_json::Value;

use super::{Effect, Terminal};
use crate::input::TerminalInput;
use crate::markdown::Rendered;
use crate::picker::{Picker, PickerStep};
use crate::text::StyledLine;
use crate::view;

impl Terminal {
    /// Shows the result of a command. Returns false if a search of the open list asked for it.
    pub(super) fn show_result(&mut self, result: &CommandResult) -> bool {
        let list = Picker::from_result(result);
        if result.prompt_id.as_str().starts_with(&self.search_prefix()) {
            // The answer to a search that was followed by another one, or by a choice, comes too late.
            if let Some(picker) = &mut self.picker
                && picker.asked.as_ref() == Some(&result.prompt_id)
                && let Some(found) = list
            {
                picker.update(found);
            }
            return false;
        }
        match (list, view::text_to_copy(result)) {
            (Some(list), _) => self.open_list(list),
            (None, Some(text)) => self.effects.push(Effect::Copy(text)),
            (None, None) => {
                if !self.report(result) {
                    self.print_block(view::command_result(result, self.marks));
                }
            }
        }
        true
    }

    /// How the ids of prompts begin that search for the entries of a list.
    fn search_prefix(&self) -> String {
        format!("{}-s", self.options.seed)
    }

    fn open_list(&mut self, list: Picker) {
        // A list must not take the keys of a draft.
        if self.options.plain || !self.composer.editor.is_empty() || list.is_empty() {
            let mut lines = list.numbered();
            if !self.options.plain {
                lines.pop();
            }
            let lines = lines.into_iter().map(|line| Rendered::logical(StyledLine::plain(line)));
            self.print_block(lines.collect());
        }
        if self.composer.editor.is_empty() && !list.is_empty() {
            self.picker = Some(list);
        }
    }

    /// Handles a dialog that reports what a command changed; false if the result is none.
    fn report(&mut self, result: &CommandResult) -> bool {
        let CommandResultBody::Dialog { data, .. } = &result.body else { return false };
        let Ok(data) = serde_json::from_str::<Value>(data.as_str()) else { return false };
        let field = |name: &str| data.get(name).and_then(Value::as_str);
        let Some(text) = field("text") else { return false };
        self.note(text);
        if let Some(prompt) = field("prompt") {
            if self.composer.editor.is_empty() {
                self.composer.editor.set(prompt);
                self.draft_touched();
            } else {
                self.remember(prompt);
            }
        }
        if let Some(session) = field("session_id").and_then(|id| SessionId::parse(id).ok()) {
            self.work.todos.clear();
            self.status.session = Some(session.clone());
            self.effects.push(Effect::ShowRecentTurns(session));
        }
        true
    }

    /// Offers an input to the open list; false if there is none.
    pub(super) fn input_to_list(&mut self, input: &TerminalInput) -> bool {
        let Some(picker) = &mut self.picker else { return false };
        let choice = picker.input(input, &self.options.keymap);
        self.choose(choice);
        true
    }

    /// Offers a line to the open list; false if it closes the list and is a prompt.
    pub(super) fn line_to_list(&mut self, text: &str) -> bool {
        let Some(picker) = &self.picker else { return false };
        let choice = picker.line(text);
        let is_taken = choice != PickerStep::Close || text.trim().parse::<usize>().is_ok();
        self.choose(choice);
        is_taken
    }

    fn choose(&mut self, choice: PickerStep) {
        match choice {
            PickerStep::Stay => {}
            PickerStep::Close => self.picker = None,
            PickerStep::Run(command) => {
                self.picker = None;
                self.send_unprinted(&command);
            }
            PickerStep::Search(command) => {
                self.work.prompts_sent += 1;
                let prompt_id = PromptId::new(format!("{}{}", self.search_prefix(), self.work.prompts_sent));
                if let Some(picker) = &mut self.picker {
                    picker.asked = Some(prompt_id.clone());
                }
                let prompt = Prompt {
                    prompt_id: Some(prompt_id),
                    parts: vec![Part::Text(command.into())],
                    delivery: Delivery::Queue,
                    ..Prompt::default()
                };
                self.command(Command::Prompt(Box::new(prompt)));
            }
        }
    }
}
