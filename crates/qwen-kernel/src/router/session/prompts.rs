//! The prompts of a session: those that wait, and the turn that runs.

use std::collections::VecDeque;
use std::time::Duration;

use crate::front::OpenParts;
use crate::router::TurnSpan;

/// A prompt that has no terminal record yet.
#[derive(Debug)]
pub(in crate::router) struct Pending {
    /// The prompt's number in the session.
    pub number: u64,
    /// The id that the client assigned.
    pub prompt_id: Option<String>,
    /// The line, until the turn ends: it is sent again if the worker dies before the turn started.
    pub line: Vec<u8>,
    /// True once it was written to the session's current worker.
    pub sent: bool,
    /// The number of its line among those that the worker was sent.
    pub input: Option<u64>,
    /// True once the worker has reported that it has read it.
    pub seen: bool,
    /// `resend: true`
    pub joins: bool,
    /// `retry: "safe"`
    pub retry_safe: bool,
    /// True if it joins a running turn.
    pub steers: bool,
    /// True once a tool started in its turn.
    pub had_effects: bool,
    /// True if it was also sent to an earlier worker.
    pub resent: bool,
    /// The time of arrival.
    pub at: Duration,
    pub span: Option<Box<dyn TurnSpan>>,
}

/// A line that waits for the session's worker.
#[derive(Debug)]
pub(in crate::router) enum Waiting {
    /// The prompt with this number.
    Prompt(u64),
    /// A heartbeat request, which is answered in any case.
    Heartbeat(Vec<u8>),
    Line(Vec<u8>),
}

/// The prompts without a terminal record, the lines that wait, and the running turn.
#[derive(Debug, Default)]
pub(in crate::router) struct Prompts {
    pub pending: VecDeque<Pending>,
    pub backlog: VecDeque<Waiting>,
    /// The running turn, by the id in its lines.
    pub turn: Option<String>,
    /// What the client has seen begin and not end in it.
    pub open_parts: OpenParts,
    /// The number of turns that have ended.
    pub ended: u64,
    /// The number of prompts so far.
    pub count: u64,
}

impl Prompts {
    /// True if a turn runs, or a prompt was sent to the worker.
    pub fn is_busy(&self) -> bool {
        self.turn.is_some() || self.pending.iter().any(|prompt| prompt.sent)
    }

    /// True if no turn runs and nothing waits.
    pub fn is_empty(&self) -> bool {
        self.turn.is_none() && self.pending.is_empty() && self.backlog.is_empty()
    }

    /// The position in `pending` of the turn with this id.
    pub fn find(&self, prompt_id: Option<&str>) -> Option<usize> {
        let named = prompt_id
            .and_then(|id| self.pending.iter().position(|prompt| prompt.prompt_id.as_deref() == Some(id)));
        let unnamed = || self.pending.iter().position(|prompt| prompt.sent && prompt.prompt_id.is_none());
        // Wires without turn ids run prompts in order.
        let first = || (prompt_id.is_none_or(str::is_empty) && !self.pending.is_empty()).then_some(0);
        named.or_else(unnamed).or_else(first)
    }

    /// The prompt of the turn with this id.
    pub fn find_mut(&mut self, prompt_id: Option<&str>) -> Option<&mut Pending> {
        let at = self.find(prompt_id)?;
        self.pending.get_mut(at)
    }

    /// The position of the prompt that the worker was at: the running turn's, or else the first that was sent.
    pub fn find_running(&self) -> Option<usize> {
        let named = self.turn.as_deref().and_then(|turn| self.find(Some(turn)));
        let at = named.or_else(|| self.pending.iter().position(|prompt| prompt.sent))?;
        self.pending.get(at).is_some_and(|prompt| prompt.sent).then_some(at)
    }

    /// Removes the prompt that the worker was at.
    pub fn take_running(&mut self) -> Option<Pending> {
        let at = self.find_running()?;
        self.pending.remove(at)
    }

    /// Adds a prompt that waits for the worker.
    pub fn push(&mut self, prompt: Pending) {
        self.backlog.push_back(Waiting::Prompt(prompt.number));
        self.pending.push_back(prompt);
    }

    /// Removes a prompt that no worker has read: the one with this id, or the first.
    pub fn withdraw(&mut self, wanted: Option<&str>) -> Option<Pending> {
        let at = self.pending.iter().position(|prompt| {
            !prompt.sent && wanted.is_none_or(|wanted| prompt.prompt_id.as_deref() == Some(wanted))
        })?;
        let prompt = self.pending.remove(at)?;
        self.forget_waiting(prompt.number);
        Some(prompt)
    }

    /// Removes a prompt from the lines that wait for a worker.
    pub fn forget_waiting(&mut self, number: u64) {
        self.backlog.retain(|line| !matches!(line, Waiting::Prompt(waiting) if *waiting == number));
    }

    /// Notes the start of a turn, unless one runs. Returns true if the turn was not known to run.
    pub fn start_turn(&mut self, prompt_id: &str) -> bool {
        if let Some(prompt) = self.find_mut(Some(prompt_id)) {
            prompt.seen = true;
        }
        let starts = self.turn.is_none() && self.is_busy();
        if starts {
            self.turn = Some(prompt_id.to_owned());
        }
        starts
    }

    /// Moves the prompts that were sent to a dead worker but never started to the front of the lines that wait.
    /// With `continues`, the next worker continues the turn of the first one.
    pub fn requeue(&mut self, continues: bool) {
        let mut again: Vec<u64> = Vec::new();
        for (place, prompt) in self.pending.iter_mut().enumerate() {
            let runs_on = continues && place == 0;
            if prompt.sent && !runs_on {
                prompt.sent = false;
                prompt.seen = false;
                prompt.resent = true;
                again.push(prompt.number);
            } else if !prompt.sent && place == 0 && prompt.resent {
                again.push(prompt.number);
            }
        }
        let waits = |number: &u64| {
            let same = |line: &Waiting| matches!(line, Waiting::Prompt(waiting) if waiting == number);
            self.backlog.iter().any(same)
        };
        again.retain(|number| !waits(number));
        for number in again.into_iter().rev() {
            self.backlog.push_front(Waiting::Prompt(number));
        }
    }
}
