//! Which model answers, where it is and with whose key.

use std::sync::Arc;

use qwen_events::{ErrorInfo, ErrorKind};
use qwen_http::ProxyConfig;
use qwen_model::{ModelConfig, Provider, Secret, parse_model_spec};

use super::{World, bad_flag};
use crate::cli::Run;

/// A provider as the environment describes it.
struct Known {
    /// The word for `--auth-type`.
    auth_type: &'static str,
    /// The prefix of its variables.
    prefix: &'static str,
    provider: Provider,
    base_url: Option<&'static str>,
    model: &'static str,
}

/// In the order in which they are looked for.
const KNOWN: [Known; 3] = [
    Known {
        auth_type: "openai",
        prefix: "OPENAI",
        provider: Provider::OpenAi,
        base_url: None,
        model: DEFAULT_MODEL,
    },
    Known {
        auth_type: "dashscope",
        prefix: "DASHSCOPE",
        provider: Provider::OpenAi,
        base_url: Some("https://dashscope.aliyuncs.com/compatible-mode/v1"),
        model: DEFAULT_MODEL,
    },
    Known {
        auth_type: "anthropic",
        prefix: "ANTHROPIC",
        provider: Provider::Anthropic,
        base_url: None,
        model: "claude-sonnet-4-5",
    },
];

const DEFAULT_MODEL: &str = "qwen3-coder-plus";

/// The model, and where its key comes from.
pub(super) fn resolve(run: &Run, world: &World) -> Result<(ModelConfig, Arc<str>), ErrorInfo> {
    let wanted = run.model.as_deref().or_else(|| world.var("QWEN_MODEL"));
    let (mut config, key_source) = match wanted.map(|word| (word, parse_model_spec(word))) {
        Some((word, Some(built_in))) => {
            let name = word.split(':').next().unwrap_or(word);
            (ModelConfig::new(built_in, name), "none".into())
        }
        Some((name, None)) => served(run, world, Some(name.to_owned()))?,
        None => served(run, world, None)?,
    };
    config.fallback_models.clone_from(&run.fallback_model);
    config.record.clone_from(&run.record);
    config.proxy = match &run.proxy {
        Some(url) => ProxyConfig { all: Some(url.clone()), ..ProxyConfig::default() },
        None => ProxyConfig {
            // In capitals this one can be set by a web request to a CGI script, which is why nobody reads it so.
            http: first(world, &["http_proxy"]),
            https: first(world, &["https_proxy", "HTTPS_PROXY"]),
            all: first(world, &["all_proxy", "ALL_PROXY"]),
            no_proxy: first(world, &["no_proxy", "NO_PROXY"]),
        },
    };
    Ok((config, key_source))
}

/// A model behind a server: the one that `--auth-type` names, or the first that the environment knows.
fn served(run: &Run, world: &World, name: Option<String>) -> Result<(ModelConfig, Arc<str>), ErrorInfo> {
    let of = |known: &Known, what: &str| world.var(&format!("{}_{what}", known.prefix)).map(str::to_owned);
    let known = match run.auth_type.as_deref() {
        Some(word) => KNOWN.iter().find(|known| known.auth_type == word).ok_or_else(|| {
            bad_flag(format!("--auth-type '{word}': the types are openai, dashscope and anthropic"))
        })?,
        None if run.openai_api_key.is_some() || run.openai_base_url.is_some() => &KNOWN[0],
        None => KNOWN
            .iter()
            .find(|known| of(known, "API_KEY").is_some() || of(known, "BASE_URL").is_some())
            .ok_or_else(|| not_configured(name.as_deref()))?,
    };
    let mut config = ModelConfig::new(
        known.provider.clone(),
        name.or_else(|| of(known, "MODEL")).unwrap_or_else(|| known.model.to_owned()),
    );
    let from_flags = known.prefix == "OPENAI";
    config.base_url = (run.openai_base_url.clone().filter(|_| from_flags))
        .or_else(|| of(known, "BASE_URL"))
        .or_else(|| known.base_url.map(str::to_owned));
    let flag_key = run.openai_api_key.clone().filter(|_| from_flags);
    let key_source = match (&flag_key, of(known, "API_KEY")) {
        (Some(_), _) => "--openai-api-key".into(),
        (None, Some(_)) => format!("{}_API_KEY", known.prefix).into(),
        (None, None) => "none".into(),
    };
    config.api_key = flag_key.or_else(|| of(known, "API_KEY")).map(Secret::new);
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

fn first(world: &World, names: &[&str]) -> Option<String> {
    names.iter().find_map(|name| world.var(name)).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::cli::Cli;

    fn resolved(flags: &str, vars: &[(&str, &str)]) -> Result<(ModelConfig, Arc<str>), ErrorInfo> {
        let cli = Cli::parse_from(std::iter::once("qwen").chain(flags.split_whitespace()));
        resolve(&cli.run, &World::of(vars))
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
