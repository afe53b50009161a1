//! What all hooks of an event say together.

use std::sync::Arc;

use qwen_events::Json;

use super::answer::Answer;

/// A word on a call's permission, from the weakest to the strongest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Permission {
    /// Nobody needs to be asked.
    Allow,
    /// Someone must be asked.
    Ask,
    /// It is decided about when the session goes on; the turn ends.
    Defer,
    /// It does not run.
    Deny,
}

/// What all hooks of an event say together.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Ruling {
    /// The turn must end; the words say why.
    pub stop: Option<Arc<str>>,
    /// The strictest word on the call, and why.
    pub permission: Option<(Permission, Arc<str>)>,
    /// What they watch must not happen, or must not be the end; and why.
    pub block: Option<Arc<str>>,
    /// Other arguments for the call.
    pub updated_input: Option<Json>,
    /// Another text for the model than the tool's own.
    pub updated_output: Option<Arc<str>>,
    /// More for the model to know.
    pub context: Vec<Arc<str>>,
}

impl Ruling {
    /// Adds what one hook says. In the order in which the hooks are configured, so that the last change wins.
    pub(super) fn add(&mut self, answer: Answer) {
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

    /// A hook that must work did not.
    pub(super) fn fail(&mut self, why: &str) {
        self.add(Answer {
            block: true,
            permission: Some(Permission::Deny),
            reason: Some(why.into()),
            ..Answer::default()
        });
    }

    /// What the hooks add for the model, in one text.
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
                ruling.add(Answer { permission: Some(word), reason, ..Answer::default() });
            }
            assert_eq!(ruling.permission, Some((Deny, "Deny".into())), "{words:?}");
        }
        assert!(Allow < Ask && Ask < Defer && Defer < Deny);
    }
}
