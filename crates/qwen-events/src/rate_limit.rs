//! How far the model's server lets us go.

use std::sync::Arc;

/// What the model's server says about its limits.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct RateLimit {
    /// Whether we may go on.
    pub status: RateLimitStatus,
    /// When the limit is lifted, in seconds since the Unix epoch.
    pub resets_at: Option<u64>,
    /// Which limit, in the server's word, such as `five_hour`.
    pub kind: Option<Arc<str>>,
    /// How much of it is used up, from 0 to 1.
    pub utilization: Option<f64>,
    /// Whether we may go on beyond the limit, where that can be paid for.
    pub overage: Option<RateLimitStatus>,
    /// When that limit is lifted.
    pub overage_resets_at: Option<u64>,
    /// Why going beyond the limit is not possible, in the server's word.
    pub overage_disabled_reason: Option<Arc<str>>,
}

/// Whether we may go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum RateLimitStatus {
    /// Yes.
    #[default]
    Allowed,
    /// Yes, but not for long.
    AllowedWarning,
    /// No.
    Rejected,
}

impl RateLimitStatus {
    /// The word that servers and wires use.
    pub fn name(self) -> &'static str {
        match self {
            Self::Allowed => "allowed",
            Self::AllowedWarning => "allowed_warning",
            Self::Rejected => "rejected",
        }
    }

    /// What a server's word means.
    pub fn parse(word: &str) -> Option<Self> {
        [Self::Allowed, Self::AllowedWarning, Self::Rejected].into_iter().find(|status| status.name() == word)
    }
}
