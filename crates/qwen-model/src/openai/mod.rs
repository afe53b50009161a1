//! The wire of OpenAI's `/chat/completions`, for OpenAI and compatible servers.

mod body;
mod calls;
mod chunk;
mod decoder;
pub(crate) mod message_fields;
mod surrogates;

use std::sync::Arc;

use crate::exchange::Wire;
use crate::request::Request;

pub(crate) const DEFAULT_BASE_URL: &str = "https://api.openai.com/v1";

pub(crate) struct OpenAi {
    /// True for OpenAI's own server, whose newer models require `max_completion_tokens`.
    pub genuine: bool,
    /// True if the server rejects a tool result without the thinking that led to the call.
    pub requires_reasoning: bool,
}

/// Hosts of servers that require `reasoning_content` back with the calls of the running turn.
const REQUIRES_REASONING: [&str; 4] =
    ["api.deepseek.com", "api.moonshot.cn", "api.moonshot.ai", "api.minimax.io"];

impl OpenAi {
    /// The variant of the wire for the server at `base_url`.
    pub fn at(base_url: &str) -> Self {
        Self {
            genuine: base_url.contains("://api.openai.com"),
            requires_reasoning: REQUIRES_REASONING.iter().any(|host| base_url.contains(host)),
        }
    }
}

impl Wire for OpenAi {
    type Decoder = decoder::Decoder;

    fn body(&self, request: &Request, model: &str) -> Vec<u8> {
        body::write(request, model, self)
    }

    fn decoder(&self, model: &Arc<str>, prompt_tokens: u64) -> decoder::Decoder {
        decoder::Decoder::new(Arc::clone(model), prompt_tokens)
    }
}

/// A request's body that any server of this wire accepts; recordings use its digest.
pub(crate) fn body(request: &Request, model: &str) -> Vec<u8> {
    body::write(request, model, &OpenAi { genuine: false, requires_reasoning: false })
}

/// The URL of the endpoint below `base_url`, which may already include it.
pub(crate) fn endpoint(base_url: &str) -> String {
    let base = base_url.trim().trim_end_matches('/');
    if base.ends_with("/chat/completions") { base.to_owned() } else { format!("{base}/chat/completions") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_endpoint_is_found_below_every_spelling_of_the_base() {
        for base in ["http://h/v1", "http://h/v1/", " http://h/v1// ", "http://h/v1/chat/completions/"] {
            assert_eq!(endpoint(base), "http://h/v1/chat/completions");
        }
    }
}
