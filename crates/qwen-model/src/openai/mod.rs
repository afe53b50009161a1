//! The wire of OpenAI's `/chat/completions`, as OpenAI and everyone who imitates it speaks it.

mod body;
mod calls;
mod chunk;
mod decoder;
mod surrogates;

use std::sync::Arc;

use crate::exchange::Wire;
use crate::request::Request;

/// Where OpenAI itself is.
pub(crate) const DEFAULT_BASE_URL: &str = "https://api.openai.com/v1";

/// The wire.
pub(crate) struct OpenAi {
    /// The server is OpenAI's own, whose newer models want `max_completion_tokens`.
    pub genuine: bool,
}

impl Wire for OpenAi {
    type Decoder = decoder::Decoder;

    fn body(&self, request: &Request, model: &str) -> Vec<u8> {
        body::write(request, model, self.genuine)
    }

    fn decoder(&self, model: &Arc<str>, prompt_tokens: u64) -> decoder::Decoder {
        decoder::Decoder::new(Arc::clone(model), prompt_tokens)
    }
}

/// A request's body as any server of this wire takes it; also what recordings take a digest of.
pub(crate) fn body(request: &Request, model: &str) -> Vec<u8> {
    body::write(request, model, false)
}

/// The address of the endpoint below `base_url`, which may name it already.
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
