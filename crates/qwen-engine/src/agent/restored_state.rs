//! Agent states that are read back from a log.

use qwen_events::{ErrorInfo, ErrorKind, Journal, Json};
use serde::de::DeserializeOwned;

use super::AgentResult;
use crate::got::{self, GotState};
use crate::graph::State;
use crate::log::StoredRun;
use crate::thinking::{Conclusion, SearchEnding};
use crate::tot::{self, TotState};

/// The state of a `tot` or `got` agent.
pub(crate) trait JournaledState: State<Delta: DeserializeOwned> + DeserializeOwned {
    /// The format version of the states and changes in logs. Increment it with every change of the format.
    const VERSION: u32;
    /// The node where a run starts.
    const START: &'static str;
    /// The node where a run ends.
    const LAST: &'static str = "answer";

    /// How the run ended.
    fn into_ending(self) -> SearchEnding;

    /// What the run adds to the conversation.
    fn into_result(self) -> AgentResult {
        let Conclusion { reply, message, finish, denials } =
            self.into_ending().conclusion.unwrap_or_default();
        AgentResult { message, reply, finish, denials }
    }

    /// Describes what is wrong with a state from an untrusted source: every reference must be valid.
    fn inconsistency(&self) -> Option<String>;
}

impl JournaledState for TotState {
    const VERSION: u32 = 1;
    const START: &'static str = tot::START;

    fn into_ending(self) -> SearchEnding {
        self.ending
    }

    fn inconsistency(&self) -> Option<String> {
        TotState::inconsistency(self)
    }
}

impl JournaledState for GotState {
    const VERSION: u32 = 1;
    const START: &'static str = got::START;

    fn into_ending(self) -> SearchEnding {
        self.ending
    }

    fn inconsistency(&self) -> Option<String> {
        GotState::inconsistency(self)
    }
}

/// A state restored from a log.
pub(crate) struct RestoredState<S>(pub S);

impl<S: JournaledState> RestoredState<S> {
    /// Computes the state from `stored`.
    pub fn of(stored: &StoredRun) -> Result<Self, ErrorInfo> {
        let mut state = Self::begin(stored.version, &stored.state)?;
        for delta in &stored.deltas {
            state.apply(delta)?;
        }
        match state.0.inconsistency() {
            Some(inconsistency) => Err(unusable(format!("the kept state cannot be used: {inconsistency}"))),
            None => Ok(state),
        }
    }

    /// The state computed from `stored`, as the start of a new run.
    fn base(stored: &StoredRun) -> Result<Journal, ErrorInfo> {
        let state = Self::of(stored)?.0.to_json();
        let next = stored.next.clone().unwrap_or_else(|| S::LAST.into());
        Ok(Journal::Base { version: S::VERSION, next, state })
    }

    fn begin(version: u32, state: &Json) -> Result<Self, ErrorInfo> {
        if version != S::VERSION {
            return Err(unusable(format!(
                "the unfinished run was kept in form {version}, and this program reads form {}; \
                 finish it with the version that began it, or give a new prompt",
                S::VERSION
            )));
        }
        let state = serde_json::from_str(state.as_str());
        state.map(Self).map_err(|error| unusable(format!("the kept state cannot be read: {error}")))
    }

    fn apply(&mut self, delta: &Json) -> Result<(), ErrorInfo> {
        let delta = serde_json::from_str(delta.as_str());
        let delta = delta.map_err(|error| unusable(format!("a kept step cannot be read: {error}")))?;
        self.0.apply(delta);
        Ok(())
    }
}

/// The state computed from `stored`, in the form readers get.
pub(crate) fn shown(agent: &str, stored: &StoredRun) -> Result<Option<Json>, ErrorInfo> {
    Ok(match agent {
        "tot" => Some(RestoredState::<TotState>::of(stored)?.0.to_json()),
        "got" | super::ADAPTIVE => Some(RestoredState::<GotState>::of(stored)?.0.to_json()),
        _ => None,
    })
}

/// The state computed from `stored`, as the start of a new run of `agent`.
pub(crate) fn rebased(agent: &str, stored: &StoredRun) -> Result<Journal, ErrorInfo> {
    match agent {
        "tot" => RestoredState::<TotState>::base(stored),
        "got" | super::ADAPTIVE => RestoredState::<GotState>::base(stored),
        _ => Err(super::unknown_agent(agent)),
    }
}

fn unusable(message: String) -> ErrorInfo {
    ErrorInfo::new(ErrorKind::Input, "unusable_checkpoint", message)
}
