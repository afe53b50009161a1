//! States that are read back from a log.

use qwen_events::{ErrorInfo, ErrorKind, Journal, Json};
use serde::de::DeserializeOwned;

use super::AgentResult;
use crate::got::{self, GotState};
use crate::graph::State;
use crate::log::StoredRun;
use crate::tot::{self, TotState};

/// The state of an agent that thinks in a tree or graph.
pub(crate) trait JournaledState: State<Delta: DeserializeOwned> + DeserializeOwned {
    /// The form of the states and changes that logs keep. Whoever changes the form changes this number.
    const VERSION: u32;
    /// Where a run begins.
    const START: &'static str;
    /// Where a run ends.
    const LAST: &'static str;

    /// What it leaves behind in the conversation.
    fn into_result(self) -> AgentResult;

    /// What is wrong with a state that was read from somewhere: whatever it names must be there.
    fn inconsistency(&self) -> Option<String>;
}

impl JournaledState for TotState {
    const VERSION: u32 = 1;
    const START: &'static str = tot::START;
    const LAST: &'static str = "answer";

    fn into_result(self) -> AgentResult {
        AgentResult { message: self.message, reply: self.reply, finish: self.finish, denials: self.denials }
    }

    fn inconsistency(&self) -> Option<String> {
        TotState::inconsistency(self)
    }
}

impl JournaledState for GotState {
    const VERSION: u32 = 1;
    const START: &'static str = got::START;
    const LAST: &'static str = "answer";

    fn into_result(self) -> AgentResult {
        AgentResult { message: self.message, reply: self.reply, finish: self.finish, denials: self.denials }
    }

    fn inconsistency(&self) -> Option<String> {
        GotState::inconsistency(self)
    }
}

/// A state as a log remembers it.
pub(crate) struct RestoredState<S>(pub S);

impl<S: JournaledState> RestoredState<S> {
    /// The state that `kept` comes to.
    pub fn of(kept: &StoredRun) -> Result<Self, ErrorInfo> {
        let mut state = Self::begin(kept.version, &kept.state)?;
        for delta in &kept.deltas {
            state.apply(delta)?;
        }
        match state.0.inconsistency() {
            Some(inconsistency) => Err(unusable(format!("the kept state cannot be used: {inconsistency}"))),
            None => Ok(state),
        }
    }

    /// The state that `kept` comes to, as the beginning of a run.
    fn base(kept: &StoredRun) -> Result<Journal, ErrorInfo> {
        let state = Self::of(kept)?.0.to_json();
        let next = kept.next.clone().unwrap_or_else(|| S::LAST.into());
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

/// The state that `kept` comes to, as readers see it.
pub(crate) fn shown(agent: &str, kept: &StoredRun) -> Result<Option<Json>, ErrorInfo> {
    Ok(match agent {
        "tot" => Some(RestoredState::<TotState>::of(kept)?.0.to_json()),
        "got" | super::ADAPTIVE => Some(RestoredState::<GotState>::of(kept)?.0.to_json()),
        _ => None,
    })
}

/// The state that `kept` comes to, as the beginning of a run of `agent`.
pub(crate) fn rebased(agent: &str, kept: &StoredRun) -> Result<Journal, ErrorInfo> {
    match agent {
        "tot" => RestoredState::<TotState>::base(kept),
        "got" | super::ADAPTIVE => RestoredState::<GotState>::base(kept),
        _ => Err(super::unknown_agent(agent)),
    }
}

fn unusable(message: String) -> ErrorInfo {
    ErrorInfo::new(ErrorKind::Input, "unusable_checkpoint", message)
}
