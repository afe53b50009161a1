//! The hub's notice that another worker takes a turn up, after the worker of the turn died.

use std::borrow::Cow;

use serde::Deserialize;
use serde::de::IgnoredAny;

#[derive(Deserialize)]
struct RestartNotice<'a> {
    #[serde(borrow)]
    kind: Cow<'a, str>,
    forked_from: Option<IgnoredAny>,
}

fn read(value: &str) -> Option<RestartNotice<'_>> {
    serde_json::from_str::<RestartNotice<'_>>(value).ok().filter(|notice| notice.kind == "worker_restarted")
}

/// True if the turn begins anew in a worker.
pub(super) fn restarts_turn(value: &str) -> bool {
    read(value).is_some()
}

/// True if the turn continues in a fork of the session.
pub(super) fn moves_turn(value: &str) -> bool {
    read(value).is_some_and(|notice| notice.forked_from.is_some())
}
