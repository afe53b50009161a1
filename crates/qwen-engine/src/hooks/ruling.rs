//! The combined answer of all hooks of an event.

use std::sync::Arc;

use qwen_events::Json;

use super::answer::HookAnswer;
use super::event::HookEvent;

/// A verdict on a call's permission, from the weakest to the strictest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Permission {
    /// No question is needed.
    Allow,
    /// The user must be asked.
    Ask,
    /// The turn ends, and the decision is made when the session continues.
    Defer,
    /// The call does not run.
    Deny,
}

/// The combined answer of all hooks of an event.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Ruling {
    /// The turn must end, for this reason.
    pub stop: Option<Arc<str>>,
    /// The strictest verdict on the call, and its reason.
    pub permission: Option<(Permission, Arc<str>)>,
    /// Why the observed action must not happen, or why the agent must not stop yet.
    pub block: Option<Arc<str>>,
    /// Replaces the call's arguments.
    pub updated_input: Option<Json>,
    /// Replaces the tool's text for the model.
    pub updated_output: Option<Arc<str>>,
    /// Additional context for the model.
    pub context: Vec<Arc<str>>,
}

impl Ruling {
    /// Merges the answer of one hook. Called in configuration order, so that the last change wins.
    pub(super) fn add(&mut self, answer: HookAnswer) {
        let reason = answer.reason.unwrap_or_default();
        if let Some(word) = answer.permission
            && self.permission.as_ref().is_none_or(|(known, _)| *known < word)
        {
            self.permission = Some((word, reason.clone()));
        }
        if answer.block {
            self.block.get_or_insert(reason);
        }
        if let Some(why) = answer.stop {
            self.stop.get_or_insert(why);
        }
        self.updated_input = answer.updated_input.or_else(|| self.updated_input.take());
        self.updated_output = answer.updated_output.or_else(|| self.updated_output.take());
        self.context.extend(answer.context.filter(|text| !text.is_empty()));
    }

    /// Records the failure of a hook that is configured to block on failure.
    pub(super) fn fail(&mut self, why: &str) {
        self.add(HookAnswer {
            block: true,
            permission: Some(Permission::Deny),
            reason: Some(why.into()),
            ..HookAnswer::default()
        });
    }

    /// The additional context for the model, labelled as that of hooks of `event`.
    pub(crate) fn labelled_context(&self, event: HookEvent) -> Option<String> {
        let text = self.context_text()?;
        Some(format!("<system-reminder>\nA {} hook adds:\n{text}\n</system-reminder>", event.name()))
    }

    /// The additional context for the model, as one text.
    pub(crate) fn context_text(&self) -> Option<String> {
        (!self.context.is_empty()).then(|| self.context.join("\n"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_strictest_word_wins_whatever_the_order() {
        use Permission::{Allow, Ask, Defer, Deny};
        for words in [[Allow, Ask, Defer, Deny], [Deny, Defer, Ask, Allow], [Ask, Deny, Allow, Defer]] {
            let mut ruling = Ruling::default();
            for word in words {
                let reason = Some(format!("{word:?}").into());
                ruling.add(HookAnswer { permission: Some(word), reason, ..HookAnswer::default() });
            }
            assert_eq!(ruling.permission, Some((Deny, "Deny".into())), "{words:?}");
        }
        assert!(Allow < Ask && Ask < Defer && Defer < Deny);
    }
}
