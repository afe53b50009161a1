//! Rate limits of the model's server.

use std::sync::Arc;

/// The rate limits as the model's server reports them.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct RateLimit {
    pub status: RateLimitStatus,
    /// When the limit resets, in seconds since the Unix epoch.
    pub resets_at: Option<u64>,
    /// The server's name of the limit, such as `five_hour`.
    pub kind: Option<Arc<str>>,
    /// The used fraction of the limit, from 0 to 1.
    pub utilization: Option<f64>,
    /// The status of paid use beyond the limit.
    pub overage: Option<RateLimitStatus>,
    /// When that limit resets, in seconds since the Unix epoch.
    pub overage_resets_at: Option<u64>,
    /// The server's reason why use beyond the limit is disabled.
    pub overage_disabled_reason: Option<Arc<str>>,
}

/// Whether further calls are allowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum RateLimitStatus {
    #[default]
    Allowed,
    /// Allowed, but the limit is close.
    AllowedWarning,
    Rejected,
}

impl RateLimitStatus {
    /// The name on servers and wires.
    pub fn name(self) -> &'static str {
        match self {
            Self::Allowed => "allowed",
            Self::AllowedWarning => "allowed_warning",
            Self::Rejected => "rejected",
        }
    }

    /// Parses a server's status.
    pub fn parse(word: &str) -> Option<Self> {
        [Self::Allowed, Self::AllowedWarning, Self::Rejected].into_iter().find(|status| status.name() == word)
    }
}
