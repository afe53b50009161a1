//! A doc comment adds what a name cannot say.

use crate::facts::{Doc, FACTS};
use crate::remaining::check;

/// Sources whose doc comments are the help texts of flags and the descriptions of settings.
const HELP_TEXTS: &[&str] = &["crates/qwen/src/cli/", "crates/qwen/src/settings/file/typed.rs"];

/// The most words of a comment that is too short to add something.
const MAX_WORDS: usize = 3;

/// Comments that are still to be written or removed.
const REMAINING: &[&str] = &[
    "crates/qwen-kernel/src/action.rs::RouterAction",
    "crates/qwen-kernel/src/action.rs::RouterAction::Append::epoch",
    "crates/qwen-kernel/src/config/mod.rs::HubConfig::binary_path",
    "crates/qwen-kernel/src/config/mod.rs::HubConfig::tenant_isolation",
    "crates/qwen-kernel/src/config/mod.rs::HubConfig::worker_args",
    "crates/qwen-kernel/src/config/mod.rs::HubConfig::worker_pool",
    "crates/qwen-kernel/src/control_plane/policy.rs::Ruling::Ask",
    "crates/qwen-kernel/src/front/input.rs::ClientInput::after",
    "crates/qwen-kernel/src/front/input.rs::ClientInput::resend",
    "crates/qwen-kernel/src/front/input.rs::ClientInput::retry_safe",
    "crates/qwen-kernel/src/front/input.rs::InputKind::Cancel",
    "crates/qwen-kernel/src/front/input.rs::InputKind::Heartbeat",
    "crates/qwen-kernel/src/hub/mod.rs::Hub::kill_all",
    "crates/qwen-kernel/src/hub/mod.rs::HubParts::turn_ends",
    "crates/qwen-kernel/src/hub/mod.rs::HubParts::worker_stderr",
    "crates/qwen-kernel/src/ipc/messages.rs::CommitReason::End",
    "crates/qwen-kernel/src/ipc/messages.rs::CommitReason::Start",
    "crates/qwen-kernel/src/manager/mod.rs::AgentError::Timeout::what",
    "crates/qwen-kernel/src/manager/mod.rs::SessionTimeouts::close",
    "crates/qwen-kernel/src/metrics.rs::MetricData::Counter",
];

#[test]
fn no_public_item_has_a_doc_comment_of_three_words_or_fewer() {
    let is_short = |doc: &&Doc| {
        doc.text.split_whitespace().count() <= MAX_WORDS
            && !HELP_TEXTS.iter().any(|prefix| doc.place.starts_with(prefix))
    };
    let short: Vec<&str> = FACTS.docs.iter().filter(is_short).map(|doc| &*doc.place).collect();
    check(&short, &[REMAINING]);
}
