//! `rate_limit_event`: how far the model's server lets us go.

use std::borrow::Cow;

use qwen_events::RateLimit;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::stream::Stream;
use super::wire::Message;
use crate::line::push_line;

/// The line.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RateLimitLine<'a> {
    /// What the server says.
    pub rate_limit_info: RateLimitInfo<'a>,
    /// Names this line.
    pub uuid: Cow<'a, str>,
    /// The session.
    pub session_id: Cow<'a, str>,
}

/// What the model's server says about its limits.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RateLimitInfo<'a> {
    /// `allowed`, `allowed_warning` or `rejected`.
    pub status: Cow<'a, str>,
    /// When the limit is lifted, in seconds since the Unix epoch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resets_at: Option<u64>,
    /// Which limit, such as `five_hour`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate_limit_type: Option<Cow<'a, str>>,
    /// How much of it is used up, from 0 to 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub utilization: Option<f64>,
    /// Whether one may go on beyond the limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub overage_status: Option<Cow<'a, str>>,
    /// When that limit is lifted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub overage_resets_at: Option<u64>,
    /// Why one may not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub overage_disabled_reason: Option<Cow<'a, str>>,
}

/// Writes the line.
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
