//! Prompts: sending, steering, queueing, withdrawing.

use std::borrow::Cow;

use qwen_events::{Command, ControlBody, Delivery, Media, Part, Prompt, PromptId};

use super::{Activity, Effect, Queued, Steer, Terminal};
use crate::markdown::Rendered;
use crate::text::{Color, Style, StyledLine, clean};
use crate::view::{ThoughtTree, summary};

/// A longer prompt, such as a paste, is printed folded.
const LONGEST_PROMPT: usize = 20;

/// The lines of a folded prompt that are printed from its beginning and from its end.
const PROMPT_HEAD: usize = 6;
const PROMPT_TAIL: usize = 2;

impl Terminal {
    /// Sends the composer's text: as a prompt, or into the running turn.
    pub(super) fn submit(&mut self) {
        let text = self.composer.editor.text();
        if text.trim().is_empty() {
            return;
        }
        let images = self.composer.editor.images();
        self.composer.editor.take();
        if let Some(vim) = &mut self.composer.vim {
            vim.reset();
        }
        self.close_completion();
        self.remember(&text);
        self.draft_touched();
        if self.phase.turn().is_some() {
            self.steer(text, images);
        } else if matches!(text.trim(), "/quit" | "/exit") {
            self.quit();
        } else {
            self.send(&text, images);
        }
    }

    /// Sends a prompt into the running turn. Commands too: the session runs those that need no conversation
    /// at once, and the others after the turn.
    fn steer(&mut self, text: String, images: Vec<Media>) {
        let prompt_id = self.next_prompt_id();
        let is_command = text.starts_with(['/', '!']);
        let prompt = Prompt {
            prompt_id: Some(prompt_id.clone()),
            parts: parts(&text, images),
            delivery: if is_command { Delivery::Queue } else { Delivery::Steer },
            ..Prompt::default()
        };
        self.work.steers.push(Steer { prompt_id, text });
        self.command(Command::Prompt(Box::new(prompt)));
    }

    /// Removes a steering message whose outcome is known.
    pub(super) fn remove_steer(&mut self, prompt_id: &PromptId) -> Option<String> {
        let at = self.work.steers.iter().position(|steer| steer.prompt_id == *prompt_id)?;
        Some(self.work.steers.remove(at).text)
    }

    /// A steering message arrived too late for the turn: its own turn begins.
    pub(super) fn begin_left_over(&mut self) -> bool {
        if self.work.steers.is_empty() {
            return false;
        }
        let Steer { prompt_id, text } = self.work.steers.remove(0);
        self.print_prompt(&text);
        self.begin_turn(Some(prompt_id));
        true
    }

    fn withdraw(&mut self, prompt_id: PromptId) {
        let prompt_id = Some(prompt_id);
        self.command(Command::Cancel {
            session_id: None,
            prompt_id,
            reason: "user".into(),
            request_id: None,
        });
    }

    /// Queues the composer's text behind the running turn.
    pub(super) fn enqueue(&mut self) {
        let text = self.composer.editor.text();
        if text.trim().is_empty() {
            return;
        }
        let images = self.composer.editor.images();
        self.composer.editor.take();
        self.close_completion();
        self.remember(&text);
        self.draft_touched();
        self.work.queue.push_back(Queued { text, images });
    }

    /// Moves the last waiting prompt back into the composer.
    pub(super) fn recall_prompt(&mut self) -> bool {
        if !self.composer.editor.is_empty() {
            return false;
        }
        match self.work.queue.pop_back() {
            Some(queued) => {
                self.composer.editor.set(&queued.text);
                self.draft_touched();
                true
            }
            // The session reports whether the withdrawal was in time.
            None => match self.work.steers.last() {
                Some(steer) => {
                    self.withdraw(steer.prompt_id.clone());
                    true
                }
                None => false,
            },
        }
    }

    /// Moves a withdrawn prompt back to the composer.
    pub(super) fn withdrawn(&mut self, prompt_id: &PromptId) {
        if let Some(text) = self.remove_steer(prompt_id)
            && self.composer.editor.is_empty()
        {
            self.composer.editor.set(&text);
            self.draft_touched();
        }
    }

    /// Sends a prompt now.
    pub(super) fn send(&mut self, text: &str, images: Vec<Media>) {
        if !self.options.plain {
            self.print_prompt(text);
        }
        self.send_parts(parts(text, images));
    }

    /// Sends a prompt now, without a copy of it in the output.
    pub(super) fn send_unprinted(&mut self, text: &str) {
        self.send_parts(parts(text, Vec::new()));
    }

    fn send_parts(&mut self, parts: Vec<Part>) {
        if let [Part::Text(text)] = parts.as_slice()
            && replaces_conversation(text)
        {
            // Unknown until the next model call.
            self.status.tokens = 0;
        }
        let prompt_id = self.next_prompt_id();
        let prompt = Prompt { prompt_id: Some(prompt_id.clone()), parts, ..Prompt::default() };
        self.begin_turn(Some(prompt_id));
        self.command(Command::Prompt(Box::new(prompt)));
    }

    /// Sends the next queued prompt.
    pub(super) fn send_next(&mut self) {
        if self.phase.turn().is_none()
            && let Some(queued) = self.work.queue.pop_front()
        {
            self.send(&queued.text, queued.images);
        }
    }

    pub(super) fn begin_turn(&mut self, prompt_id: Option<PromptId>) {
        let (started, since) = (self.now, self.now);
        self.output.last_answer.clear();
        self.work.thoughts = ThoughtTree::default();
        self.phase.begin_turn(super::Turn {
            prompt_id,
            started,
            activity: Activity::Model,
            since,
            has_started: false,
            ended: None,
            has_todos: false,
        });
    }

    pub(super) fn next_prompt_id(&mut self) -> PromptId {
        self.work.prompts_sent += 1;
        PromptId::new(format!("{}-{}", self.options.seed, self.work.prompts_sent))
    }

    pub(super) fn print_prompt(&mut self, text: &str) {
        let text = clean(text);
        let all: Vec<&str> = text.lines().collect();
        let hidden = if all.len() > LONGEST_PROMPT { all.len() - PROMPT_HEAD - PROMPT_TAIL } else { 0 };
        let folded = format!("({hidden} more lines{})", self.shows_all());
        let (head, tail) =
            if hidden > 0 { (PROMPT_HEAD, all.len() - PROMPT_TAIL) } else { (all.len(), all.len()) };
        let note = (hidden > 0).then_some(folded.as_str());
        let mut lines = all[..head].iter().copied().chain(note).chain(all[tail..].iter().copied());
        let style = Style::BOLD;
        let first =
            StyledLine::styled("> ", Style::color(Color::Cyan)).with(lines.next().unwrap_or_default(), style);
        let rest = lines.map(|line| Rendered::logical(StyledLine::styled(line, style)));
        self.print_block(std::iter::once(Rendered::logical(first)).chain(rest).collect());
    }

    pub(super) fn command(&mut self, command: Command) {
        self.effects.push(Effect::Command(command));
    }

    /// Sends the session a control request that it answers with events.
    pub(super) fn control(&mut self, body: ControlBody) {
        self.work.prompts_sent += 1;
        let request_id = format!("{}-c{}", self.options.seed, self.work.prompts_sent).into();
        self.command(Command::Control { request_id, nested: false, body: Box::new(body) });
    }

    pub(super) fn remember(&mut self, text: &str) {
        if self.composer.history.add(text) {
            self.effects.push(Effect::Remember(text.to_owned()));
        }
    }

    /// What the turn is doing, for the report of an interrupt.
    fn current_activity(&self) -> String {
        let model = || format!("the request to {}", self.options.model);
        if let Some((_, hook)) = self.work.hooks.first() {
            return format!("the hook {hook}");
        }
        if self.questions.len() > 0 {
            return "the question".to_owned();
        }
        if !self.work.running.is_empty() {
            let calls: Vec<String> = self.work.running.iter().map(|running| summary(&running.call)).collect();
            return calls.join(", ");
        }
        match self.phase.turn() {
            Some(turn) if !turn.has_started => {
                "the start of the turn, with its hooks and MCP servers".to_owned()
            }
            Some(turn) => match &turn.activity {
                Activity::Writing(tool) => format!("the call of {tool}"),
                Activity::Retry(_) => format!("the retry of {}", model()),
                Activity::Model
                | Activity::Thinking
                | Activity::Answer
                | Activity::Tools
                | Activity::Ending => model(),
            },
            None => model(),
        }
    }

    /// Ends the running turn.
    pub(super) fn interrupt(&mut self) {
        let ended = self.current_activity();
        let Some(turn) = self.phase.turn_mut() else { return };
        turn.ended.get_or_insert(ended);
        turn.activity = Activity::Ending;
        turn.since = self.now;
        let prompt_id = turn.prompt_id.clone();
        for steer in self.work.steers.iter().map(|steer| steer.prompt_id.clone()).collect::<Vec<_>>() {
            self.withdraw(steer);
        }
        // Queued prompts return to the composer instead of starting at once.
        if self.composer.editor.is_empty() && !self.work.queue.is_empty() {
            let texts: Vec<String> = self.work.queue.drain(..).map(|queued| queued.text).collect();
            self.composer.editor.set(&texts.join("\n"));
        }
        self.command(Command::Cancel {
            session_id: None,
            prompt_id,
            reason: "user".into(),
            request_id: None,
        });
    }
}

/// True for a command that replaces the conversation by an earlier or another one.
fn replaces_conversation(text: &str) -> bool {
    let mut parts = text.split_whitespace();
    match (parts.next(), parts.next()) {
        (Some("/undo" | "/redo" | "/clear"), _) | (Some("/chat"), Some("resume")) => true,
        // Otherwise they only open a list.
        (Some("/resume"), session) => session.is_some(),
        (Some("/rewind"), Some(_)) => parts.next().is_some_and(|scope| scope != "files"),
        _ => false,
    }
}

/// The parts of a prompt: its text, then its pictures.
fn parts(text: &str, images: Vec<Media>) -> Vec<Part> {
    let text = Part::Text(sent(text).into());
    std::iter::once(text).chain(images.into_iter().map(Part::Media)).collect()
}

/// What a typed text is for the session: a line that starts with `!` is a shell command.
fn sent(text: &str) -> Cow<'_, str> {
    match text.trim_start().strip_prefix('!') {
        Some(command) if !command.trim().is_empty() => Cow::Owned(format!("/shell {}", command.trim())),
        _ => Cow::Borrowed(text),
    }
}
