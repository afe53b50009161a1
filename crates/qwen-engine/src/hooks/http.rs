//! Hooks that call a URL.

use std::sync::Arc;

use http::{HeaderName, HeaderValue};
use qwen_http::{Client, Error, HttpRequest};

use super::HookEvent;
use super::answer::HookAnswer;
use super::capture::HookCapture;

/// The maximum size of an answer, in bytes.
const MAX_ANSWER: usize = 1024 * 1024;

/// Posts `input` to `url` and reads the answer.
pub(super) async fn run(
    client: &Client,
    event: HookEvent,
    url: &Arc<str>,
    headers: &[(Arc<str>, Arc<str>)],
    input: String,
    capture: &HookCapture,
) -> Result<HookAnswer, String> {
    let mut request = HttpRequest::post(url.clone(), input);
    request.headers.insert("content-type", HeaderValue::from_static("application/json"));
    for (name, value) in headers {
        let header =
            HeaderName::from_bytes(name.as_bytes()).map_err(|_| format!("'{name}' is not a header name"))?;
        let value = HeaderValue::from_str(value)
            .map_err(|_| format!("the value of the header '{name}' cannot be sent"))?;
        request.headers.insert(header, value);
    }
    let mut response = client.send(request).await.map_err(|error| match error {
        Error::AddressRefused { .. } => format!(
            "{error}; a workspace's hooks reach private addresses only if your own setting tools.webFetch.allowPrivateHosts \
             lists them"
        ),
        error => error.to_string(),
    })?;
    if !response.status.is_success() {
        return Err(format!("it answered with status {}", response.status.as_u16()));
    }
    let mut body = Vec::new();
    while let Some(piece) = response.body.data().await {
        body.extend_from_slice(&piece.map_err(|error| error.to_string())?);
        if body.len() > MAX_ANSWER {
            return Err("its answer is longer than 1 MiB".to_owned());
        }
    }
    let text = String::from_utf8(body).map_err(|_| "its answer is not UTF-8".to_owned())?;
    capture.answered(&text);
    HookAnswer::read(event, &text).map_err(|error| format!("its answer cannot be used: {error}"))
}
