//! How a search ends: the part that the states of `tot` and `got` have in common.

use std::sync::Arc;

use qwen_events::{Denial, Finish, Json, Message};
use serde::{Deserialize, Serialize};

use qwen_engine::Stop;

/// The reply of a search, and what joins the conversation with it. The log stores only the reply.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct Conclusion {
    pub reply: Arc<str>,
    #[serde(skip)]
    pub message: Option<Message>,
    #[serde(skip)]
    pub finish: Option<Finish>,
    #[serde(skip)]
    pub denials: Vec<Denial>,
}

/// The end of a search in its state. Logs contain the fields between those of the state.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct SearchEnding {
    /// Why the search ended without a solution.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shortfall: Option<String>,
    #[serde(flatten)]
    pub conclusion: Option<Conclusion>,
    /// The limit that ended the search.
    #[serde(skip)]
    pub limit: Option<Stop>,
}

/// The state of a search for readers and for the log.
pub(crate) fn state_to_json(state: &impl Serialize) -> Json {
    Json::trusted(serde_json::to_string(state).unwrap_or_else(|_| "{}".to_owned()))
}

/// A change of the state for the log.
pub(crate) fn delta_to_json(delta: &impl Serialize) -> Option<Json> {
    serde_json::to_string(delta).ok().map(Json::trusted)
}
