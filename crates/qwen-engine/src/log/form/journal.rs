//! What a run must remember.

use std::sync::Arc;

use qwen_events::{Journal, ModelUsage};
use serde::{Deserialize, Serialize};

use super::turn::UsageForm;
use super::{Raw, is_default};

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(in crate::log) enum JournalForm {
    Base {
        version: u32,
        next: Arc<str>,
        state: Raw,
    },
    Effect {
        key: Arc<str>,
        value: Raw,
    },
    Step {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        next: Option<Arc<str>>,
        delta: Raw,
    },
}

impl From<&Journal> for JournalForm {
    fn from(journal: &Journal) -> Self {
        match journal {
            Journal::Base { version, next, state } => {
                Self::Base { version: *version, next: next.clone(), state: Raw(state.clone()) }
            }
            Journal::Effect { key, value } => Self::Effect { key: key.clone(), value: Raw(value.clone()) },
            Journal::Step { next, delta } => Self::Step { next: next.clone(), delta: Raw(delta.clone()) },
        }
    }
}

impl From<JournalForm> for Journal {
    fn from(form: JournalForm) -> Self {
        match form {
            JournalForm::Base { version, next, state } => Self::Base { version, next, state: state.0 },
            JournalForm::Effect { key, value } => Self::Effect { key, value: value.0 },
            JournalForm::Step { next, delta } => Self::Step { next, delta: delta.0 },
        }
    }
}

/// One model call of a thought.
#[derive(Debug, Serialize, Deserialize)]
pub(in crate::log) struct ThoughtUsageForm {
    model: Arc<str>,
    #[serde(default, skip_serializing_if = "is_default")]
    cost_usd: f64,
    usage: UsageForm,
}

impl From<&ModelUsage> for ThoughtUsageForm {
    fn from(spent: &ModelUsage) -> Self {
        Self { model: spent.model.clone(), cost_usd: spent.cost_usd, usage: (&spent.usage).into() }
    }
}

impl From<ThoughtUsageForm> for ModelUsage {
    fn from(form: ThoughtUsageForm) -> Self {
        Self { model: form.model, calls: 1, usage: form.usage.into(), cost_usd: form.cost_usd }
    }
}
