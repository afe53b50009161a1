//! `rate_limit_event`: how far the model's server lets us go.

use std::borrow::Cow;

use qwen_events::RateLimit;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::stream::Stream;
use super::wire::Message;
use crate::line::push_line;

/// A line with the rate limit state.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RateLimitLine<'a> {
    /// The rate limit state.
    pub rate_limit_info: RateLimitInfo<'a>,
    /// A unique id of this line.
    pub uuid: Cow<'a, str>,
    /// The id of the session.
    pub session_id: Cow<'a, str>,
}

/// A rate limit reported by the model's server.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RateLimitInfo<'a> {
    /// `allowed`, `allowed_warning` or `rejected`.
    pub status: Cow<'a, str>,
    /// The time at which the limit resets, in seconds since the Unix epoch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resets_at: Option<u64>,
    /// The name of the limit, such as `five_hour`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate_limit_type: Option<Cow<'a, str>>,
    /// The used fraction of the limit, from 0 to 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub utilization: Option<f64>,
    /// Whether use beyond the limit is allowed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub overage_status: Option<Cow<'a, str>>,
    /// The time at which the overage limit resets, in seconds since the Unix epoch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub overage_resets_at: Option<u64>,
    /// The reason why use beyond the limit is refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub overage_disabled_reason: Option<Cow<'a, str>>,
}

pub(super) fn push(stream: &mut Stream, limit: &RateLimit, out: &mut Vec<u8>) {
    let uuid = stream.uuids.next();
    let rate_limit_info = RateLimitInfo {
        status: limit.status.name().into(),
        resets_at: limit.resets_at,
        rate_limit_type: limit.kind.as_deref().map(Cow::Borrowed),
        utilization: limit.utilization,
        overage_status: limit.overage.map(|status| status.name().into()),
        overage_resets_at: limit.overage_resets_at,
        overage_disabled_reason: limit.overage_disabled_reason.as_deref().map(Cow::Borrowed),
    };
    let session_id = stream.session_id.as_str().into();
    push_line(
        out,
        &Message::RateLimitEvent(RateLimitLine { rate_limit_info, uuid: uuid.as_str().into(), session_id }),
    );
}
