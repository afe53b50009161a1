//! Session settings that can be read and changed while a turn runs.

use std::sync::{Arc, Mutex, PoisonError};

use qwen_events::{Reasoning, Thoughts};

use crate::{AnswerSchema, InFlightCalls, SteeringQueue};

/// Settings of a session that take effect at the next model call, even in the middle of a turn.
#[derive(Default)]
pub struct SessionOverrides {
    model: Mutex<Option<Arc<str>>>,
    effort: Mutex<Option<Arc<str>>>,
    reasoning: Mutex<Option<Reasoning>>,
    thoughts: Mutex<Option<Thoughts>>,
    answer_schema: Mutex<Option<Arc<AnswerSchema>>>,
    policy_description: Mutex<Option<Arc<str>>>,
    aliases: Mutex<Vec<(Arc<str>, Arc<str>)>>,
    in_flight: InFlightCalls,
    steering: SteeringQueue,
}

impl SessionOverrides {
    /// The maximum length of the host's description of its policy, in characters.
    pub const MAX_POLICY: usize = 2000;

    /// The tool calls of the running turn.
    pub fn in_flight(&self) -> &InFlightCalls {
        &self.in_flight
    }

    /// Prompts that wait to join the running turn.
    pub fn steering(&self) -> &SteeringQueue {
        &self.steering
    }

    /// The model that overrides the configured one.
    pub fn model(&self) -> Option<Arc<str>> {
        self.model.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Overrides the model; `None` restores the configured one.
    pub fn set_model(&self, model: Option<Arc<str>>) {
        *self.model.lock().unwrap_or_else(PoisonError::into_inner) = model;
    }

    /// The reasoning effort, if overridden.
    pub fn effort(&self) -> Option<Arc<str>> {
        self.effort.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Sets the reasoning effort; `None` leaves it to the provider.
    pub fn set_effort(&self, effort: Option<Arc<str>>) {
        *self.effort.lock().unwrap_or_else(PoisonError::into_inner) = effort;
    }

    /// The host's description of its own policy, for the model.
    pub fn policy_description(&self) -> Option<Arc<str>> {
        self.policy_description.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Sets the host's description of its own policy, of which the model reads at most
    /// [`MAX_POLICY`](Self::MAX_POLICY) characters.
    pub fn set_policy_description(&self, text: Option<&str>) {
        let text = text.map(|text| text.chars().take(Self::MAX_POLICY).collect::<String>().into());
        *self.policy_description.lock().unwrap_or_else(PoisonError::into_inner) = text;
    }

    /// Redirects tool calls: pairs of a name and the tool that is called instead.
    pub fn set_aliases(&self, aliases: Vec<(Arc<str>, Arc<str>)>) {
        *self.aliases.lock().unwrap_or_else(PoisonError::into_inner) = aliases;
    }

    /// The tool to call instead of `tool`. Aliases are not followed transitively.
    pub fn alias(&self, tool: &str) -> Option<Arc<str>> {
        let aliases = self.aliases.lock().unwrap_or_else(PoisonError::into_inner);
        let means = |name: &str| crate::TOOLS.is_same(name, tool);
        aliases.iter().find(|(name, _)| means(name)).map(|(_, target)| target.clone())
    }

    /// Whether and how much the model reasons before it answers.
    pub fn reasoning(&self) -> Option<Reasoning> {
        *self.reasoning.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sets the reasoning mode; `None` leaves it to the provider.
    pub fn set_reasoning(&self, reasoning: Option<Reasoning>) {
        *self.reasoning.lock().unwrap_or_else(PoisonError::into_inner) = reasoning;
    }

    /// Which part of the model's reasoning is shown.
    pub fn thoughts(&self) -> Option<Thoughts> {
        *self.thoughts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sets which part of the model's reasoning is shown; `None` leaves it to the provider.
    pub fn set_thoughts(&self, thoughts: Option<Thoughts>) {
        *self.thoughts.lock().unwrap_or_else(PoisonError::into_inner) = thoughts;
    }

    /// The schema that answers must match, from the next turn on.
    pub fn answer_schema(&self) -> Option<Arc<AnswerSchema>> {
        self.answer_schema.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Requires answers that match this schema; `None` means plain text.
    pub fn set_answer_schema(&self, form: Option<Arc<AnswerSchema>>) {
        *self.answer_schema.lock().unwrap_or_else(PoisonError::into_inner) = form;
    }
}
