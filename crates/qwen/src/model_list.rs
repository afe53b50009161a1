//! Lists the models of a server through its `/models` endpoint.

use std::time::Duration;

use http::{HeaderName, HeaderValue};
use qwen_events::{ErrorInfo, ErrorKind};
use qwen_http::{Client, ClientConfig, HttpRequest};
use qwen_model::{ModelConfig, Provider};
use serde_json::Value;

/// How long a list that was asked for may take.
pub const TIMEOUT: Duration = Duration::from_secs(10);

/// The most bytes that are read of the response.
const MAX_ANSWER: usize = 4 * 1024 * 1024;

/// The address of the list; none if the model is not on a server.
pub fn address(config: &ModelConfig) -> Option<String> {
    let base = match (&config.provider, &config.base_url) {
        (Provider::OpenAi, Some(base)) => base.clone(),
        (Provider::OpenAi, None) => "https://api.openai.com/v1".to_owned(),
        (Provider::Anthropic, Some(base)) => {
            format!("{}/v1", base.trim_end_matches('/').trim_end_matches("/v1"))
        }
        (Provider::Anthropic, None) => "https://api.anthropic.com/v1".to_owned(),
        (Provider::Demo | Provider::Script(_) | Provider::Replay(_) | Provider::Oracle(_), _) => return None,
    };
    let base = base.trim_end_matches('/').trim_end_matches("/chat/completions").to_owned();
    Some(format!("{base}/models"))
}

/// The error for a server whose list is empty.
pub fn none_offered(config: &ModelConfig) -> ErrorInfo {
    let server = address(config).map(|url| format!(" (GET {})", qwen_http::without_secrets(&url)));
    let message = format!(
        "the server offers no models{}; load one there (with Ollama: ollama pull NAME), or name one with --model NAME",
        server.unwrap_or_default()
    );
    ErrorInfo::new(ErrorKind::Input, "no_model_offered", message).with_param("model")
}

/// Requests the list from the server, which may take as long as `timeout`.
pub async fn fetch(config: &ModelConfig, timeout: Duration) -> Result<Vec<String>, ErrorInfo> {
    let Some(url) = address(config) else { return Ok(vec![config.model.clone()]) };
    let shown = qwen_http::without_secrets(&url);
    let failed = |why: String| {
        let message = format!("the models of the server cannot be listed: GET {shown}: {why}");
        ErrorInfo::new(ErrorKind::Input, "no_model_list", message)
    };
    let client = Client::new(ClientConfig {
        connect_timeout: config.timeouts.connect.min(timeout),
        insecure: config.insecure,
        proxy: config.proxy.clone(),
        ..ClientConfig::default()
    });
    let mut request = HttpRequest::get(url);
    let key = config.api_key.as_ref().map(|key| key.expose().to_owned()).unwrap_or_default();
    let mut headers: Vec<(String, String)> =
        config.extra_headers.iter().map(|(name, value)| (name.clone(), value.expose().to_owned())).collect();
    match config.provider {
        Provider::Anthropic => {
            headers.push(("x-api-key".to_owned(), key));
            headers.push(("anthropic-version".to_owned(), "2023-06-01".to_owned()));
        }
        _ if key.is_empty() => {}
        _ => headers.push(("authorization".to_owned(), format!("Bearer {key}"))),
    }
    for (name, value) in headers {
        if let (Ok(name), Ok(mut value)) = (HeaderName::try_from(name), HeaderValue::try_from(value)) {
            value.set_sensitive(true);
            request.headers.insert(name, value);
        }
    }
    let answered = async {
        let mut response = client.send(request).await.map_err(|error| failed(error.to_string()))?;
        let mut answer = Vec::new();
        while let Some(bytes) = response.body.data().await {
            answer.extend_from_slice(&bytes.map_err(|error| failed(error.to_string()))?);
            if answer.len() > MAX_ANSWER {
                return Err(failed("the answer is too long".to_owned()));
            }
        }
        if !response.status.is_success() {
            return Err(failed(format!("the server answered {}", response.status)));
        }
        serde_json::from_slice::<Value>(&answer).map_err(|_| failed("the answer is not JSON".to_owned()))
    };
    let answer = tokio::time::timeout(timeout, answered)
        .await
        .map_err(|_| failed(format!("no answer within {} s", timeout.as_secs())))??;
    // Ollama writes null for an empty list.
    if answer["object"] == "list" && answer["data"].is_null() {
        return Ok(Vec::new());
    }
    let models = answer["data"].as_array().or_else(|| answer["models"].as_array());
    let models = models.ok_or_else(|| failed("the answer lists no models".to_owned()))?;
    let name = |model: &Value| model["id"].as_str().or_else(|| model["name"].as_str()).map(str::to_owned);
    Ok(models.iter().filter_map(name).collect())
}
