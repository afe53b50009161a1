//! Runs a search whose state the session log stores, and reads that state back.

use qwen_engine::agent::{Reply, SearchOutcome, StoredRun};
use qwen_engine::graph::{BuildError, Effects, Graph, RunContext, RunOutcome, State};
use qwen_events::{Body, ErrorInfo, ErrorKind, Journal, Json};
use serde::de::DeserializeOwned;

use crate::got::{self, GotState};
use crate::thinking::{Conclusion, SearchEnding};
use crate::tot::{self, TotState};

/// The state of a search.
pub(crate) trait JournaledState: State<Delta: DeserializeOwned> + DeserializeOwned {
    /// The format version of the states and changes in logs. Increment it with every change of the format.
    const VERSION: u32;
    /// The node where a run starts.
    const START: &'static str;
    /// The node where a run ends.
    const LAST: &'static str = "answer";

    /// How the run ended.
    fn into_ending(self) -> SearchEnding;

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

/// Runs a graph from its start, or from the stored state of an earlier process.
pub(crate) async fn run<S: JournaledState>(
    graph: Result<Graph<S>, BuildError>,
    fresh: S,
    stored_run: Option<StoredRun>,
    cx: &RunContext,
) -> SearchOutcome {
    let graph = match graph {
        Ok(graph) => graph,
        Err(error) => {
            let ran = RunOutcome::failed(&error);
            return SearchOutcome { ran, reply: Reply::default(), denials: Vec::new(), state: None };
        }
    };
    let (mut state, from, effects) = match begin(fresh, stored_run, &graph, cx) {
        Ok(beginning) => beginning,
        Err(error) => return SearchOutcome::failed(error),
    };
    let cx = &RunContext { effects, ..cx.clone() };
    let ran = graph.run_from(from, &mut state, cx).await;
    let shown = cx.emit.wants_state().then(|| state.to_json());
    let Conclusion { reply, message, finish, denials } = state.into_ending().conclusion.unwrap_or_default();
    SearchOutcome { ran, reply: Reply { text: reply, message, finish }, denials, state: shown }
}

/// The state and node to continue from, and the effects already performed there.
fn begin<S: JournaledState>(
    fresh: S,
    stored_run: Option<StoredRun>,
    graph: &Graph<S>,
    cx: &RunContext,
) -> Result<(S, &'static str, Effects), ErrorInfo> {
    let Some(stored_run) = stored_run else {
        if cx.emit.is_logged() {
            let base = Journal::Base { version: S::VERSION, next: S::START.into(), state: fresh.to_json() };
            cx.emit.record_only(Body::Journal(Box::new(base)));
        }
        return Ok((fresh, S::START, Effects::default()));
    };
    let state = RestoredState::<S>::read(&stored_run)?;
    let next = stored_run.next.as_deref().unwrap_or(S::LAST);
    let from = graph.name(next).ok_or_else(|| {
        unusable(format!(
            "the session's log continues with the node '{next}', which this agent does not have"
        ))
    })?;
    Ok((state.0, from, Effects::from_log(stored_run.effects)))
}

/// A state restored from a log.
pub(crate) struct RestoredState<S>(S);

impl<S: JournaledState> RestoredState<S> {
    /// Computes the state from `stored`.
    fn read(stored: &StoredRun) -> Result<Self, ErrorInfo> {
        let mut state = Self::begin(stored.version, &stored.state)?;
        for delta in &stored.deltas {
            state.apply(delta)?;
        }
        match state.0.inconsistency() {
            Some(inconsistency) => Err(unusable(format!("the kept state cannot be used: {inconsistency}"))),
            None => Ok(state),
        }
    }

    /// Computes the state from `stored`, in the form readers get.
    pub fn show(stored: &StoredRun) -> Result<Json, ErrorInfo> {
        Ok(Self::read(stored)?.0.to_json())
    }

    /// Computes the state from `stored`, as the start of a new run.
    pub fn rebase(stored: &StoredRun) -> Result<Journal, ErrorInfo> {
        let state = Self::show(stored)?;
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

fn unusable(message: String) -> ErrorInfo {
    ErrorInfo::new(ErrorKind::Input, "unusable_checkpoint", message)
}
