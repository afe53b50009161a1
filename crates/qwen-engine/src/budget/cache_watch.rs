//! Watches whether the provider's prompt cache serves the part of requests that is the same in a session.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use qwen_events::{ToolSpec, Usage};
use qwen_model::Request;

/// Smaller prompts are not cached by some providers.
const CACHEABLE: u64 = 2048;

/// How long providers keep a prompt at least.
const LIFETIME: Duration = Duration::from_secs(300);

/// The calls of a session's main agent, as far as its prompt cache is concerned.
#[derive(Debug, Default)]
pub struct CacheWatch(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    /// True once the provider reported that it caches prompts.
    is_cached: bool,
    last: Option<Prefix>,
    misses: u32,
    /// What differed at the first miss.
    cause: Option<&'static str>,
    is_reported: bool,
}

/// What a provider caches first, and when it was sent.
#[derive(Debug, Clone)]
struct Prefix {
    model: Arc<str>,
    system: Arc<str>,
    tools: Arc<[ToolSpec]>,
    at: Instant,
}

impl CacheWatch {
    /// Records a call. Returns a notice with the likely cause once, when the cache missed twice in a row.
    pub(crate) fn record(&self, request: &Request, model: &Arc<str>, usage: &Usage) -> Option<String> {
        if usage.estimated || usage.prompt_tokens < CACHEABLE {
            return None;
        }
        let sent = Prefix {
            model: model.clone(),
            system: request.system.clone(),
            tools: request.tools.clone(),
            at: Instant::now(),
        };
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let before = state.last.replace(sent.clone());
        let was_cached = state.is_cached;
        state.is_cached |= usage.cached_tokens > 0 || usage.cache_write_tokens > 0;
        let (Some(before), true) = (before, was_cached && usage.cached_tokens == 0) else {
            state.misses = 0;
            state.cause = None;
            return None;
        };
        state.misses += 1;
        state.cause = sent.difference(&before).or(state.cause);
        if state.misses < 2 || state.is_reported {
            return None;
        }
        state.is_reported = true;
        let cause = state.cause.unwrap_or(
            "model, tools and system prompt were the same, so the server may not share its cache between requests",
        );
        let tokens = usage.prompt_tokens;
        Some(format!(
            "The prompt cache was missed twice in a row ({tokens} tokens were read again): {cause}."
        ))
    }
}

impl Prefix {
    /// What keeps this request from using the cache that `before` filled.
    fn difference(&self, before: &Self) -> Option<&'static str> {
        let names = |tools: &[ToolSpec]| tools.iter().map(|tool| tool.name.clone()).collect::<Vec<_>>();
        if self.model != before.model {
            Some("the model changed")
        } else if self.system != before.system {
            Some("the system prompt changed")
        } else if names(&self.tools) != names(&before.tools) {
            Some("the tools changed")
        } else if self.at.duration_since(before.at) > LIFETIME {
            Some("more than five minutes passed between the requests")
        } else {
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(system: &str) -> Request {
        Request {
            system: system.into(),
            situation: "".into(),
            messages: Arc::default(),
            tools: Arc::default(),
            sampling: qwen_events::Sampling::default(),
            model: None,
            response_schema: None,
            caller: None,
            trace: None,
        }
    }

    fn usage(cached_tokens: u64) -> Usage {
        Usage { prompt_tokens: 4000, cached_tokens, ..Usage::default() }
    }

    #[test]
    fn two_misses_in_a_row_are_reported_once_with_their_cause() {
        let watch = CacheWatch::default();
        let record = |system: &str, cached| watch.record(&request(system), &"m".into(), &usage(cached));
        // The first call fills the cache.
        assert_eq!(
            [record("a", 0), record("a", 3000), record("a", 0), record("a", 3000)],
            [const { None }; 4]
        );
        assert_eq!(record("b", 0), None);
        assert!(record("b", 0).unwrap().ends_with("the system prompt changed."));
        assert_eq!([record("b", 0), record("b", 0)], [None, None]);
    }

    #[test]
    fn a_server_that_reports_no_cache_and_small_prompts_are_no_misses() {
        let watch = CacheWatch::default();
        for _ in 0..4 {
            assert_eq!(watch.record(&request("a"), &"m".into(), &usage(0)), None);
        }
        assert_eq!(watch.record(&request("a"), &"m".into(), &usage(3000)), None);
        for _ in 0..4 {
            let small = Usage { prompt_tokens: 100, ..Usage::default() };
            assert_eq!(watch.record(&request("a"), &"m".into(), &small), None);
        }
    }

    #[test]
    fn misses_without_a_difference_point_to_the_server() {
        let watch = CacheWatch::default();
        let written = Usage { prompt_tokens: 4000, cache_write_tokens: 4000, ..Usage::default() };
        let record = || watch.record(&request("a"), &"m".into(), &written);
        assert_eq!([record(), record()], [None, None]);
        assert!(record().unwrap().contains("the server may not share its cache"));
    }
}
