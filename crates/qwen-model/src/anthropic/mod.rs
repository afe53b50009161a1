//! The wire of Anthropic's `/v1/messages`.

mod body;
mod decoder;
mod event;
mod thinking;

use std::sync::Arc;

use crate::exchange::Wire;
use crate::request::Request;

pub(crate) const DEFAULT_BASE_URL: &str = "https://api.anthropic.com";

/// The implemented version of the wire.
pub(crate) const VERSION: &str = "2023-06-01";

/// The prefix for the data of a thinking block that the provider encrypted. Such a block has no text and
/// must be sent back unchanged; the conversation carries it as a signature.
const REDACTED: &str = "redacted_thinking:";

pub(crate) struct Anthropic;

impl Wire for Anthropic {
    type Decoder = decoder::Decoder;

    fn body(&self, request: &Request, model: &str) -> Vec<u8> {
        body::write(request, model)
    }

    fn decoder(&self, model: &Arc<str>, prompt_tokens: u64) -> decoder::Decoder {
        decoder::Decoder::new(Arc::clone(model), prompt_tokens)
    }
}

/// The URL of the endpoint below `base_url`, which may already include it or its version.
pub(crate) fn endpoint(base_url: &str) -> String {
    let base = base_url.trim().trim_end_matches('/');
    if base.ends_with("/v1/messages") {
        base.to_owned()
    } else if base.ends_with("/v1") {
        format!("{base}/messages")
    } else {
        format!("{base}/v1/messages")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_endpoint_is_found_below_every_spelling_of_the_base() {
        for base in ["http://h", "http://h/", "http://h/v1", "http://h/v1/", "http://h/v1/messages"] {
            assert_eq!(endpoint(base), "http://h/v1/messages");
        }
        assert_eq!(endpoint("http://h/anthropic"), "http://h/anthropic/v1/messages");
    }
}
