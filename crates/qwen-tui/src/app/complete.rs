//! Completion: shows the hint provider's suggestions for the current input.

use qwen_events::{Command, HintRequest, HintResult, HintTrigger, PromptId, Suggestion};

use super::Terminal;
use crate::input::KeyAction;

/// Suggestions for the word before the caret.
#[derive(Debug, Default)]
pub struct Completion {
    /// Counts requests, so that the answer to an outdated one is not shown.
    asked: u64,
    suggestions: Vec<Suggestion>,
    selected: usize,
    /// The number of bytes before the caret that a suggestion replaces.
    replaces: usize,
    trigger: Option<HintTrigger>,
    /// True if suggestions are requested with the next actions, once for all keys that arrived together.
    is_due: bool,
}

impl Completion {
    /// True if the list is open.
    pub fn is_shown(&self) -> bool {
        !self.suggestions.is_empty()
    }

    /// The suggestions and the index of the selected one.
    pub fn list(&self) -> (&[Suggestion], usize) {
        (&self.suggestions, self.selected)
    }

    fn close(&mut self) {
        self.is_due = false;
        self.asked += 1;
        self.suggestions.clear();
        self.selected = 0;
        self.trigger = None;
    }
}

/// The completable text before the caret: the trigger and how many bytes a suggestion replaces.
fn word_before(text: &str) -> Option<(HintTrigger, usize)> {
    if text.starts_with('/') && !text.contains('\n') {
        let word = text.rsplit([' ', '/']).next().unwrap_or_default();
        return Some((HintTrigger::Slash, word.len()));
    }
    let at = text.rfind('@')?;
    let starts_word = text[..at].chars().next_back().is_none_or(char::is_whitespace);
    let word = &text[at + 1..];
    (starts_word && !word.contains(char::is_whitespace)).then_some((HintTrigger::At, word.len()))
}

impl Terminal {
    /// Requests suggestions at the caret with the next actions, or closes the list.
    pub(super) fn ask_for_hints(&mut self) {
        let Some((trigger, replaces)) = word_before(self.composer.editor.before_caret()) else {
            self.composer.completion.close();
            return;
        };
        self.composer.completion.asked += 1;
        self.composer.completion.replaces = replaces;
        self.composer.completion.trigger = Some(trigger);
        self.composer.completion.is_due = true;
    }

    /// Sends the request for suggestions that is due.
    pub(super) fn request_hints(&mut self) {
        let Some(trigger) = self.composer.completion.trigger.filter(|_| self.composer.completion.is_due)
        else {
            return;
        };
        self.composer.completion.is_due = false;
        let text = self.composer.editor.before_caret().into();
        let prompt_id =
            Some(PromptId::new(format!("{}-h{}", self.options.seed, self.composer.completion.asked)));
        let request = HintRequest { session_id: None, prompt_id, trigger, text, cursor: None, cwd: None };
        self.command(Command::HintCancel { session_id: None, prompt_id: None });
        self.command(Command::Hint(Box::new(request)));
    }

    pub(super) fn hints(&mut self, result: &HintResult) {
        let wanted = format!("{}-h{}", self.options.seed, self.composer.completion.asked);
        if result.prompt_id.as_str() != wanted || self.composer.completion.trigger != Some(result.trigger) {
            return;
        }
        self.composer.completion.suggestions.clone_from(&result.suggestions);
        self.composer.completion.selected = 0;
        if result.is_perfect_match && result.suggestions.len() == 1 {
            self.composer.completion.suggestions.clear();
        }
    }

    /// Offers an action to the list; false if the list does not handle it.
    pub(super) fn act_on_completion(&mut self, action: KeyAction) -> bool {
        let count = self.composer.completion.suggestions.len();
        match action {
            KeyAction::Up => {
                self.composer.completion.selected = (self.composer.completion.selected + count - 1) % count;
            }
            KeyAction::Down => {
                self.composer.completion.selected = (self.composer.completion.selected + 1) % count;
            }
            KeyAction::Complete => self.accept(),
            KeyAction::Interrupt => self.composer.completion.close(),
            KeyAction::Submit => {
                // Enter sends a fully typed command; otherwise it inserts the suggestion first.
                let selected = &self.composer.completion.suggestions[self.composer.completion.selected];
                let typed = self.composer.editor.before_caret();
                let is_whole = typed.ends_with(&*selected.value);
                if is_whole || self.composer.completion.replaces == 0 {
                    self.composer.completion.close();
                    return false;
                }
                self.accept();
            }
            _ => return false,
        }
        true
    }

    fn accept(&mut self) {
        let Some(suggestion) = self.composer.completion.suggestions.get(self.composer.completion.selected)
        else {
            return;
        };
        let mut value = suggestion.value.to_string();
        if !value.ends_with('/') {
            value.push(' ');
        }
        let replaces = self.composer.completion.replaces;
        self.composer.editor.replace_before(replaces, &value);
        self.draft_touched();
        self.composer.completion.close();
        if value.ends_with('/') {
            self.ask_for_hints();
        }
    }

    pub(super) fn close_completion(&mut self) {
        self.composer.completion.close();
    }
}
