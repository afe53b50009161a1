//! What can be turned, and read, while a turn runs.

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
    aliases: Mutex<Vec<(Arc<str>, Arc<str>)>>,
    in_flight: InFlightCalls,
    steering: SteeringQueue,
}

impl SessionOverrides {
    /// What the tools of the turn are doing.
    pub fn in_flight(&self) -> &InFlightCalls {
        &self.in_flight
    }

    /// The prompts that wait to join the running turn.
    pub fn steering(&self) -> &SteeringQueue {
        &self.steering
    }

    /// The model that was chosen over the configured one.
    pub fn model(&self) -> Option<Arc<str>> {
        self.model.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Chooses a model; none goes back to the configured one.
    pub fn set_model(&self, model: Option<Arc<str>>) {
        *self.model.lock().unwrap_or_else(PoisonError::into_inner) = model;
    }

    /// How hard the model thinks.
    pub fn effort(&self) -> Option<Arc<str>> {
        self.effort.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Chooses how hard the model thinks; none leaves it to the provider.
    pub fn set_effort(&self, effort: Option<Arc<str>>) {
        *self.effort.lock().unwrap_or_else(PoisonError::into_inner) = effort;
    }

    /// Sends calls of some tools to others: names, and the tools that are called instead.
    pub fn set_aliases(&self, aliases: Vec<(Arc<str>, Arc<str>)>) {
        *self.aliases.lock().unwrap_or_else(PoisonError::into_inner) = aliases;
    }

    /// The tool that is called instead of this one. It is what it is: no alias is followed further.
    pub fn alias(&self, tool: &str) -> Option<Arc<str>> {
        let aliases = self.aliases.lock().unwrap_or_else(PoisonError::into_inner);
        let means = |name: &str| crate::TOOLS.is_same(name, tool);
        aliases.iter().find(|(name, _)| means(name)).map(|(_, target)| target.clone())
    }

    /// Whether the model thinks before it answers, and how much.
    pub fn reasoning(&self) -> Option<Reasoning> {
        *self.reasoning.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Chooses whether the model thinks; none leaves it to the provider.
    pub fn set_reasoning(&self, reasoning: Option<Reasoning>) {
        *self.reasoning.lock().unwrap_or_else(PoisonError::into_inner) = reasoning;
    }

    /// What is shown of the model's thinking.
    pub fn thoughts(&self) -> Option<Thoughts> {
        *self.thoughts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Chooses what is shown of the model's thinking; none leaves it to the provider.
    pub fn set_thoughts(&self, thoughts: Option<Thoughts>) {
        *self.thoughts.lock().unwrap_or_else(PoisonError::into_inner) = thoughts;
    }

    /// The form that answers must have, from the next turn on.
    pub fn answer_schema(&self) -> Option<Arc<AnswerSchema>> {
        self.answer_schema.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Wants answers of this form; none wants words.
    pub fn set_answer_schema(&self, form: Option<Arc<AnswerSchema>>) {
        *self.answer_schema.lock().unwrap_or_else(PoisonError::into_inner) = form;
    }
}
