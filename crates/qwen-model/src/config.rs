//! Configuration and construction of a model.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use ::http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, USER_AGENT};
use ::http::{HeaderMap, HeaderName, HeaderValue};
use qwen_events::{ErrorInfo, ErrorKind};

use crate::anthropic::{self, Anthropic};
use crate::continued::Continues;
use crate::demo::Demo;
use crate::exchange::{HttpBackend, Wire};
use crate::openai::{self, OpenAi};
use crate::oracle::Oracle;
use crate::rate_limit::LastLimit;
use crate::record::Recorder;
use crate::record::Replay;
use crate::request::Model;
use crate::retry::{Policy, Retrying};
use crate::script::Script;
use crate::secret::Secret;
use crate::text_calls::{ReadsTextCalls, TextToolCalls};
use qwen_http::{Client, ClientConfig, ProxyConfig};

/// The implementation of a model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Provider {
    /// A server with OpenAI's `/chat/completions`.
    OpenAi,
    /// A server with Anthropic's `/v1/messages`.
    Anthropic,
    /// The built-in demo model.
    Demo,
    /// A script, see `docs/script-model.md`.
    Script(PathBuf),
    /// Answers from a recording in this file.
    Replay(PathBuf),
    /// A built-in solver of known quality, such as `game24?q=0.3&p=0.7`.
    Oracle(String),
}

/// The separate time-outs of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timeouts {
    /// Until the connection is established.
    pub connect: Duration,
    /// From sending the request to the first text, thought, call or finish; keep-alives do not count.
    pub first_token: Duration,
    /// Between any two bytes after that.
    pub stall: Duration,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(10),
            first_token: Duration::from_secs(120),
            stall: Duration::from_secs(60),
        }
    }
}

/// The input of [`build`]. This crate reads no environment; the caller does.
#[derive(Debug, Clone)]
pub struct ModelConfig {
    pub provider: Provider,
    pub model: String,
    /// The server's URL, with or without the endpoint's path; none means the provider's default.
    pub base_url: Option<String>,
    /// None for servers without authentication.
    pub api_key: Option<Secret>,
    pub timeouts: Timeouts,
    /// Attempts after the first.
    pub max_retries: u32,
    /// The first delay between attempts; it doubles with every attempt.
    pub retry_base: Duration,
    /// The longest wait for the reset of a server's limit.
    pub max_wait: Duration,
    /// Models to fall back to when this one fails.
    pub fallback_models: Vec<String>,
    pub proxy: ProxyConfig,
    /// The file in which all calls are recorded.
    pub record: Option<PathBuf>,
    /// The time between reads of an answer that arrives in small pieces. Zero, the default, reads each piece
    /// at once; a reader that shows frames needs none of them earlier than its next frame.
    pub read_interval: Duration,
    /// True to trust every certificate.
    pub insecure: bool,
    /// Additional headers of every request.
    pub extra_headers: Vec<(String, Secret)>,
    /// When calls that the model prints as text are recognised.
    pub text_tool_calls: TextToolCalls,
}

impl ModelConfig {
    /// The defaults for a model of `provider`.
    pub fn new(provider: Provider, model: impl Into<String>) -> Self {
        Self {
            provider,
            model: model.into(),
            base_url: None,
            api_key: None,
            timeouts: Timeouts::default(),
            max_retries: 4,
            retry_base: Duration::from_millis(500),
            max_wait: Duration::from_secs(600),
            fallback_models: Vec::new(),
            proxy: ProxyConfig::default(),
            record: None,
            read_interval: Duration::ZERO,
            insecure: false,
            extra_headers: Vec::new(),
            text_tool_calls: TextToolCalls::Auto,
        }
    }
}

/// Creates the model that `config` describes. Nothing connects before the first call.
pub fn build(config: &ModelConfig) -> Result<Arc<dyn Model>, ErrorInfo> {
    let model: Arc<dyn Model> = match &config.provider {
        Provider::OpenAi => {
            let base = config.base_url.as_deref().unwrap_or(openai::DEFAULT_BASE_URL);
            let wire = OpenAi::at(base);
            let mut headers = HeaderMap::new();
            if let Some(key) = &config.api_key {
                headers.insert(AUTHORIZATION, header(&format!("Bearer {}", key.expose()), "the API key")?);
            }
            let model = served(config, wire, openai::endpoint(base), headers)?;
            Arc::new(Continues(Arc::new(model)))
        }
        Provider::Anthropic => {
            let base = config.base_url.as_deref().unwrap_or(anthropic::DEFAULT_BASE_URL);
            let mut headers = HeaderMap::new();
            headers.insert("anthropic-version", HeaderValue::from_static(anthropic::VERSION));
            if let Some(key) = &config.api_key {
                headers.insert("x-api-key", header(key.expose(), "the API key")?);
            }
            let model = served(config, Anthropic, anthropic::endpoint(base), headers)?;
            Arc::new(Continues(Arc::new(model)))
        }
        Provider::Demo => Arc::new(Demo),
        Provider::Oracle(spec) => Arc::new(Oracle::parse(spec)?),
        Provider::Replay(path) => Arc::new(Replay::open(path, name_or(&config.model, "replay"))?),
        Provider::Script(path) => {
            Arc::new(Retrying::new(Script::open(path)?, name_or(&config.model, "script"), policy(config)))
        }
    };
    let may_print_calls = match (config.text_tool_calls, &config.provider) {
        (TextToolCalls::Off, _) | (_, Provider::Demo | Provider::Oracle(_)) => false,
        (TextToolCalls::On, _) => true,
        // Anthropic's server always converts calls.
        (TextToolCalls::Auto, provider) => !matches!(provider, Provider::Anthropic),
    };
    let model = if may_print_calls {
        let always = config.text_tool_calls == TextToolCalls::On;
        Arc::new(ReadsTextCalls { model, always }) as Arc<dyn Model>
    } else {
        model
    };
    Ok(match &config.record {
        Some(path) => Arc::new(Recorder::open(model, path, secrets(config))?),
        None => model,
    })
}

fn served<W: Wire>(
    config: &ModelConfig,
    wire: W,
    url: String,
    mut headers: HeaderMap,
) -> Result<Retrying<HttpBackend<W>>, ErrorInfo> {
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(ACCEPT, HeaderValue::from_static("text/event-stream, application/json"));
    headers.insert(USER_AGENT, HeaderValue::from_static(concat!("qwen/", env!("CARGO_PKG_VERSION"))));
    for (name, value) in &config.extra_headers {
        let name = HeaderName::try_from(name.as_str()).map_err(|_| {
            settings("invalid_header", format!("`{}` is not a header's name", name.escape_debug()))
        })?;
        let value = header(value.expose(), &format!("the header `{name}`"))?;
        headers.insert(name, value);
    }
    if config.model.trim().is_empty() {
        return Err(settings("no_model", "no model is selected; name one with --model or in the settings"));
    }
    let client = Client::new(ClientConfig {
        connect_timeout: config.timeouts.connect,
        read_interval: config.read_interval,
        insecure: config.insecure,
        proxy: config.proxy.clone(),
        check_address: None,
    });
    let backend = HttpBackend {
        wire,
        client,
        url: url.into(),
        headers,
        timeouts: config.timeouts,
        limit: LastLimit::default(),
        secrets: secrets(config),
    };
    Ok(Retrying::new(backend, config.model.as_str().into(), policy(config)))
}

/// Texts that no error and no recording may show.
fn secrets(config: &ModelConfig) -> Vec<Secret> {
    let extra = config.extra_headers.iter().map(|(_, value)| value);
    config.api_key.iter().chain(extra).cloned().collect()
}

fn policy(config: &ModelConfig) -> Policy {
    Policy {
        max_retries: config.max_retries,
        base: config.retry_base,
        max_wait: config.max_wait,
        fallback_models: config.fallback_models.iter().map(|name| Arc::from(name.as_str())).collect(),
    }
}

fn header(text: &str, what: &str) -> Result<HeaderValue, ErrorInfo> {
    let mut value = HeaderValue::try_from(text.trim()).map_err(|_| {
        settings(
            "invalid_header",
            format!("{what} contains characters that cannot be sent, such as a line break"),
        )
    })?;
    value.set_sensitive(true);
    Ok(value)
}

fn name_or(name: &str, other: &str) -> Arc<str> {
    Arc::from(if name.is_empty() { other } else { name })
}

fn settings(code: &'static str, message: impl Into<Arc<str>>) -> ErrorInfo {
    ErrorInfo::new(ErrorKind::Settings, code, message)
}

/// Parses the value of `--model`: `demo`, `script:FILE`, `replay:FILE` and `oracle:KIND` are built in; none
/// means a model name for the configured provider. The caller handles other prefixes.
pub fn parse_model_spec(text: &str) -> Option<Provider> {
    match text.split_once(':') {
        None if text == "demo" => Some(Provider::Demo),
        Some(("script", file)) => Some(Provider::Script(file.into())),
        Some(("replay", file)) => Some(Provider::Replay(file.into())),
        Some(("oracle", spec)) => Some(Provider::Oracle(spec.to_owned())),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn built_in_models_are_told_from_names() {
        assert_eq!(parse_model_spec("demo"), Some(Provider::Demo));
        assert_eq!(parse_model_spec("script:a/b.json"), Some(Provider::Script("a/b.json".into())));
        assert_eq!(parse_model_spec("replay:c:d"), Some(Provider::Replay("c:d".into())));
        assert_eq!(parse_model_spec("oracle:sort?seed=1"), Some(Provider::Oracle("sort?seed=1".into())));
        for name in ["qwen3-coder", "qwen2.5-coder:7b", "demo:x", ""] {
            assert_eq!(parse_model_spec(name), None, "{name}");
        }
    }

    #[test]
    fn a_configuration_that_cannot_work_is_refused_without_showing_the_key() {
        let refused =
            |config: ModelConfig| build(&config).err().map(|error| (error.code, error.message.to_string()));
        let base = || ModelConfig::new(Provider::OpenAi, "m");
        let (code, message) =
            refused(ModelConfig { api_key: Some(Secret::new("ge\nheim")), ..base() }).unwrap();
        assert_eq!(code, "invalid_header");
        assert!(!message.contains("heim"), "{message}");
        let extra_headers = vec![("bad name".to_owned(), Secret::new("v"))];
        assert_eq!(refused(ModelConfig { extra_headers, ..base() }).unwrap().0, "invalid_header");
        assert_eq!(refused(ModelConfig::new(Provider::Anthropic, " ")).unwrap().0, "no_model");
        assert_eq!(refused(base()), None);
    }
}
