//! Resolves the model, its address and its API key.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use qwen_events::{ErrorInfo, ErrorKind};
use qwen_http::ProxyConfig;
use qwen_model::{ModelConfig, Provider, Secret, TextToolCalls, parse_model_spec};

use super::layers::Layered;
use super::{Invocation, file};
use crate::cli::Run;
use crate::model_list;

/// A provider that environment variables can configure.
pub struct KnownProvider {
    /// The value of `--auth-type`.
    pub auth_type: &'static str,
    /// The prefix of its variables.
    prefix: &'static str,
    provider: Provider,
    /// Its address, if it differs from the default address of the wire.
    pub base_url: Option<&'static str>,
    /// Its default model. If the address may be any server, it applies only to servers that do not list their
    /// models.
    pub model: &'static str,
    /// True if its variables may name any server, so that no model can be assumed.
    pub is_generic: bool,
}

/// In search order.
pub(super) const PROVIDERS: [KnownProvider; 3] = [
    KnownProvider {
        auth_type: "openai",
        prefix: "OPENAI",
        provider: Provider::OpenAi,
        base_url: None,
        model: DEFAULT_MODEL,
        is_generic: true,
    },
    KnownProvider {
        auth_type: "dashscope",
        prefix: "DASHSCOPE",
        provider: Provider::OpenAi,
        base_url: Some("https://dashscope.aliyuncs.com/compatible-mode/v1"),
        model: DEFAULT_MODEL,
        is_generic: false,
    },
    KnownProvider {
        auth_type: "anthropic",
        prefix: "ANTHROPIC",
        provider: Provider::Anthropic,
        base_url: None,
        model: "claude-sonnet-4-5",
        is_generic: false,
    },
];

const DEFAULT_MODEL: &str = "qwen3-coder-plus";

impl KnownProvider {
    /// The name of one of its variables.
    pub fn variable(&self, what: &str) -> String {
        format!("{}_{what}", self.prefix)
    }

    /// True if the environment configures this provider.
    pub fn is_set(&self, invocation: &Invocation) -> bool {
        ["API_KEY", "BASE_URL"].iter().any(|what| invocation.var(&self.variable(what)).is_some())
    }
}

/// True if no model is configured and none can be assumed.
pub(super) fn needs_discovery(invocation: &Invocation, layered: &Layered, settings: &file::Model) -> bool {
    settings.name.is_none() && layered.provider(invocation).is_some_and(|known| known.is_generic)
}

/// Looks for a model where none is configured: a server that offers only one means that one. Returns the
/// error for a server that offers several or none, which only a turn that names no model itself meets. A
/// server without a list gets the provider's default.
pub(super) async fn discover(
    run: &Run,
    invocation: &Invocation,
    layered: &Layered,
    settings: &mut file::Model,
) -> Option<ErrorInfo> {
    if !needs_discovery(invocation, layered, settings) {
        return None;
    }
    let (config, _) = resolve(run, invocation, layered, settings).ok()?;
    // A failure is reported better by the call that needs the model.
    let mut names = model_list::fetch(&config, DISCOVERY).await.ok()?;
    match names.len() {
        0 => return Some(model_list::none_offered(&config)),
        1 => settings.name = names.pop(),
        _ => return Some(undecided(&config, &names)),
    }
    None
}

/// How long the server may take to list its models before a run.
const DISCOVERY: Duration = Duration::from_secs(5);

/// How many models an error lists.
const LISTED: usize = 20;

fn undecided(config: &ModelConfig, names: &[String]) -> ErrorInfo {
    let server = config.base_url.as_deref().map(qwen_http::without_secrets).unwrap_or_default();
    let server = if server.is_empty() { String::new() } else { format!(" {server}") };
    let listed: Vec<&str> = names.iter().take(LISTED).map(String::as_str).collect();
    let more = match names.len() - listed.len() {
        0 => String::new(),
        more => format!(" and {more} more (see qwen models)"),
    };
    let message = format!(
        "no model is configured, and the server{server} offers {}: {}{more}; choose one with --model NAME, OPENAI_MODEL or the setting \
         model.name",
        names.len(),
        listed.join(", ")
    );
    ErrorInfo::new(ErrorKind::Input, "no_model_chosen", message).with_param("model")
}

/// The model and the source of its key.
pub(super) fn resolve(
    run: &Run,
    invocation: &Invocation,
    layered: &Layered,
    settings: &file::Model,
) -> Result<(ModelConfig, Arc<str>), ErrorInfo> {
    let name = settings.name.as_deref();
    let (mut config, key_source) = match name.map(|name| (name, parse_model_spec(name))) {
        Some((name, Some(built_in))) => {
            (ModelConfig::new(built_in, name.split(':').next().unwrap_or(name)), "none".into())
        }
        _ => served(layered, invocation, settings)?,
    };
    let timeouts = &mut config.timeouts;
    timeouts.connect = settings.connect_timeout.unwrap_or(timeouts.connect);
    timeouts.first_token = settings.first_token_timeout.unwrap_or_else(|| match &config.base_url {
        Some(url) if is_local(url) => LOCAL_FIRST_TOKEN,
        _ => timeouts.first_token,
    });
    timeouts.stall = settings.stall_timeout.unwrap_or(timeouts.stall);
    config.max_retries = settings.max_retries.unwrap_or(config.max_retries);
    config.max_wait = settings.max_wait.unwrap_or(config.max_wait);
    config.text_tool_calls = match settings.text_tool_calls.as_deref() {
        Some("on") => TextToolCalls::On,
        Some("off") => TextToolCalls::Off,
        Some(_) | None => TextToolCalls::Auto,
    };
    config.fallback_models = settings.fallback_models.clone().unwrap_or_default();
    config.insecure = settings.insecure.unwrap_or_default();
    config.extra_headers =
        settings.headers.iter().map(|(name, value)| (name.clone(), Secret::new(value.as_str()))).collect();
    config.record.clone_from(&run.record);
    config.proxy = match &settings.proxy {
        Some(url) => ProxyConfig { all: Some(url.clone()), ..ProxyConfig::default() },
        None => proxy(invocation),
    };
    Ok((config, key_source))
}

/// A server on this machine may have to load the model and read a long prompt without a fast accelerator.
const LOCAL_FIRST_TOKEN: Duration = Duration::from_secs(600);

/// True if the address is on this machine or in a private network.
fn is_local(url: &str) -> bool {
    // An invalid address fails at the first request.
    let Ok(url) = qwen_http::Url::parse(url) else { return false };
    let host = url.host().trim_start_matches('[').trim_end_matches(']');
    match host.parse::<IpAddr>() {
        Ok(IpAddr::V4(address)) => {
            address.is_loopback()
                || address.is_private()
                || address.is_unspecified()
                || address.is_link_local()
        }
        Ok(IpAddr::V6(address)) => {
            address.is_loopback() || address.is_unique_local() || address.is_unicast_link_local()
        }
        Err(_) => {
            !host.contains('.')
                || host.ends_with(".local")
                || host.ends_with(".internal")
                || host.ends_with(".localhost")
        }
    }
}

/// The proxies that the environment names.
pub(super) fn proxy(invocation: &Invocation) -> ProxyConfig {
    ProxyConfig {
        // The upper-case variant can be set by a web request to a CGI script, so clients ignore it.
        http: first(invocation, &["http_proxy"]),
        https: first(invocation, &["https_proxy", "HTTPS_PROXY"]),
        all: first(invocation, &["all_proxy", "ALL_PROXY"]),
        no_proxy: first(invocation, &["no_proxy", "NO_PROXY"]),
    }
}

/// A model on a server: the one that flags or settings name, or the first that the environment configures.
fn served(
    layered: &Layered,
    invocation: &Invocation,
    settings: &file::Model,
) -> Result<(ModelConfig, Arc<str>), ErrorInfo> {
    let known = layered.provider(invocation).ok_or_else(|| not_configured(settings.name.as_deref()))?;
    let name = settings.name.clone().unwrap_or_else(|| known.model.to_owned());
    let mut config = ModelConfig::new(known.provider.clone(), name);
    config.base_url = settings.base_url.clone().or_else(|| known.base_url.map(str::to_owned));
    config.api_key = settings.api_key.as_deref().map(Secret::new);
    let key_source = match layered.root.at("model.apiKey") {
        None => {
            if let Some(variable) = &settings.api_key_env {
                let message = format!(
                    "there is no key for the model: the setting \"model.apiKeyEnv\" names the variable {variable}, which \
                     is not set"
                );
                return Err(ErrorInfo::new(ErrorKind::Auth, "no_key", message));
            }
            "none".into()
        }
        Some(node) => node.origin.source.name.as_ref().into(),
    };
    Ok((config, key_source))
}

fn not_configured(name: Option<&str>) -> ErrorInfo {
    let asked = name.map(|name| format!(" for '{name}'")).unwrap_or_default();
    let message = format!(
        "no model is configured{asked}: set OPENAI_API_KEY (and OPENAI_BASE_URL for a server other than OpenAI's), \
         DASHSCOPE_API_KEY or ANTHROPIC_API_KEY, and choose a model with --model NAME; \
         or try '--model demo', which needs neither key nor network"
    );
    ErrorInfo::new(ErrorKind::Auth, "no_model_configured", message)
}

fn first(invocation: &Invocation, names: &[&str]) -> Option<String> {
    names.iter().find_map(|name| invocation.var(name)).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::cli::Cli;

    fn resolved(flags: &str, vars: &[(&str, &str)]) -> Result<(ModelConfig, Arc<str>), ErrorInfo> {
        let cli = Cli::parse_from(std::iter::once("qwen").chain(flags.split_whitespace()));
        let mut invocation = Invocation::from_variables(vars);
        let layered = Layered::load(&cli.run, &mut invocation)?;
        resolve(&cli.run, &invocation, &layered, &layered.settings()?.model)
    }

    #[test]
    fn the_first_provider_that_is_set_answers() {
        let openai = ("OPENAI_API_KEY", "a");
        let dashscope = ("DASHSCOPE_API_KEY", "b");
        let anthropic = ("ANTHROPIC_API_KEY", "c");
        let cases: &[(&str, &[(&str, &str)], &str, &str)] = &[
            ("", &[openai, dashscope, anthropic], "OPENAI_API_KEY", "qwen3-coder-plus"),
            ("", &[dashscope, anthropic], "DASHSCOPE_API_KEY", "qwen3-coder-plus"),
            ("", &[anthropic], "ANTHROPIC_API_KEY", "claude-sonnet-4-5"),
            ("--auth-type anthropic", &[openai, anthropic], "ANTHROPIC_API_KEY", "claude-sonnet-4-5"),
            ("-m x", &[openai, ("QWEN_MODEL", "y"), ("OPENAI_MODEL", "z")], "OPENAI_API_KEY", "x"),
            ("", &[openai, ("QWEN_MODEL", "y"), ("OPENAI_MODEL", "z")], "OPENAI_API_KEY", "y"),
            ("", &[openai, ("OPENAI_MODEL", "z")], "OPENAI_API_KEY", "z"),
            ("", &[("OPENAI_BASE_URL", "http://127.0.0.1:1/v1")], "none", "qwen3-coder-plus"),
            ("-m demo", &[openai], "none", "demo"),
        ];
        for (flags, vars, source, model) in cases {
            let (config, key_source) = resolved(flags, vars).expect(flags);
            assert_eq!((&*key_source, config.model.as_str()), (*source, *model), "{flags} {vars:?}");
        }
    }

    #[test]
    fn servers_on_this_machine_or_in_a_private_network_may_load_a_model_first() {
        for (address, minutes) in [
            ("http://127.0.0.1:8080/v1", 10),
            ("http://localhost/v1", 10),
            ("http://[::1]:8080/v1", 10),
            ("http://192.168.1.5:11434/v1", 10),
            ("http://gpu-box:8000/v1", 10),
            ("http://gpu.local:8000/v1", 10),
            ("http://host.docker.internal:8000/v1", 10),
            ("https://127.example.com/v1", 2),
            ("https://localhost.example.com/v1", 2),
            ("https://api.openai.com/v1", 2),
        ] {
            let (config, _) = resolved("-m x", &[("OPENAI_BASE_URL", address)]).expect("a model");
            assert_eq!(config.timeouts.first_token, Duration::from_secs(minutes * 60), "{address}");
        }
    }

    #[test]
    fn without_a_model_the_error_says_what_to_set() {
        let error = resolved("", &[]).expect_err("an error");
        for word in ["OPENAI_API_KEY", "DASHSCOPE_API_KEY", "ANTHROPIC_API_KEY", "--model demo"] {
            assert!(error.message.contains(word), "{word}: {error}");
        }
    }

    #[test]
    fn a_key_is_never_part_of_what_is_printed() {
        let (config, _) = resolved("", &[("OPENAI_API_KEY", "sk-very-secret")]).expect("a model");
        assert!(!format!("{config:?}").contains("very-secret"));
    }
}
