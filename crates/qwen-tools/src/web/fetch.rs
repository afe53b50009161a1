//! Fetches one page with GET. Redirects are followed manually, so that each hop is checked.

use std::sync::Arc;

use encoding_rs::{Encoding, UTF_8};
use http::header::{ACCEPT, ACCEPT_ENCODING, CONTENT_ENCODING, CONTENT_TYPE, LOCATION, USER_AGENT};
use http::{HeaderMap, HeaderValue, StatusCode};
use qwen_http::{Client, ClientConfig, Error, HttpRequest, Response, Url, check_public};

use super::WebAccess;
use crate::output::content;
use crate::refusal::Refusal;

/// How many redirects are followed.
const REDIRECTS: usize = 5;
/// How many bytes of a page are searched for a `<meta>` encoding.
const META_WITHIN: usize = 2_048;
/// Most characters of a header value that are quoted in messages.
const REPEATED: usize = 200;

pub(crate) struct Page {
    /// The URL after redirects.
    pub url: Url,
    pub status: StatusCode,
    pub kind: Kind,
    pub text: String,
    pub bytes: usize,
    /// True if the body exceeded the byte limit.
    pub cut: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Html,
    /// Text that is returned unchanged.
    Plain,
}

pub(crate) async fn fetch(access: &WebAccess, url: Url) -> Result<Page, Refusal> {
    tokio::time::timeout(access.timeout, follow(access, url)).await.unwrap_or_else(|_| {
        let seconds = access.timeout.as_secs_f64();
        Err(Refusal::new("tool_timeout", format!("The page was not received within {seconds} s.")))
    })
}

async fn follow(access: &WebAccess, mut url: Url) -> Result<Page, Refusal> {
    for _ in 0..=REDIRECTS {
        let response = get(access, &url).await?;
        let Some(location) = redirect(&response) else { return read(access, url, response).await };
        let next = url.join(&location).map_err(|problem| {
            let shown = repeated(&location);
            Refusal::new(
                "invalid_url",
                format!("{url} redirects to `{shown}`, which is not followed: {problem}."),
            )
        })?;
        let elsewhere = next.host() != url.host();
        if elsewhere && access.may_follow.as_ref().is_some_and(|may_follow| !may_follow(&next.to_string())) {
            return Err(Refusal::new(
                "redirected_elsewhere",
                format!(
                    "{url} redirects to another host: {next}. Call web_fetch with that address if it is wanted."
                ),
            ));
        }
        url = next;
    }
    Err(Refusal::new(
        "too_many_redirects",
        format!("More than {REDIRECTS} redirects were met, the last one to {url}."),
    ))
}

async fn get(access: &WebAccess, url: &Url) -> Result<Response, Refusal> {
    // One client per hop: the addresses it may connect to depend on the requested host.
    let client = Client::new(ClientConfig {
        proxy: access.proxy.clone(),
        insecure: access.insecure,
        check_address: if access.allows_private_host(url) { None } else { Some(Arc::new(check_public)) },
        ..ClientConfig::default()
    });
    let mut request = HttpRequest::get(url.to_string());
    request.headers.insert(USER_AGENT, HeaderValue::from_static(concat!("qwen/", env!("CARGO_PKG_VERSION"))));
    request.headers.insert(
        ACCEPT,
        HeaderValue::from_static(
            "text/markdown, text/html;q=0.9, application/json;q=0.9, text/*;q=0.8, */*;q=0.1",
        ),
    );
    request.headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
    client.send(request).await.map_err(|error| match error {
        Error::AddressRefused { address, reason } => Refusal::new(
            "address_refused",
            format!(
                "{url} leads to {address}, which is not visited: {reason}. The user can allow it by adding \
                 \"{}\" to the setting tools.webFetch.allowPrivateHosts.",
                url.host_port()
            ),
        ),
        error => Refusal::new("fetch_failed", format!("{url} was not fetched: {error}.")),
    })
}

/// The redirect target of a response.
fn redirect(response: &Response) -> Option<String> {
    let sends = matches!(response.status.as_u16(), 301 | 302 | 303 | 307 | 308);
    let location = response.headers.get(LOCATION).filter(|_| sends)?;
    Some(String::from_utf8_lossy(location.as_bytes()).into_owned())
}

async fn read(access: &WebAccess, url: Url, mut response: Response) -> Result<Page, Refusal> {
    let declared = content_type(&response.headers);
    let kind = match declared.as_deref() {
        None => None,
        Some(declared) => Some(kind_of(declared).ok_or_else(|| not_text(&url, declared))?),
    };
    if let Some(encoding) = response.headers.get(CONTENT_ENCODING).filter(|encoding| *encoding != "identity")
    {
        let shown = repeated(&String::from_utf8_lossy(encoding.as_bytes()));
        return Err(Refusal::new(
            "unsupported_content_type",
            format!("{url} is compressed (`{shown}`) although that was not asked for, and cannot be read."),
        ));
    }
    let (bytes, cut) = body(access, &url, &mut response).await?;
    let kind = match kind {
        Some(kind) => kind,
        None if content::kind(&bytes) != content::Kind::Text => return Err(not_text(&url, "unknown")),
        None if looks_like_html(&bytes) => Kind::Html,
        None => Kind::Plain,
    };
    let text = decoded(&bytes, charset(&response.headers), kind);
    Ok(Page { url, status: response.status, kind, text, bytes: bytes.len(), cut })
}

async fn body(access: &WebAccess, url: &Url, response: &mut Response) -> Result<(Vec<u8>, bool), Refusal> {
    let mut bytes = Vec::new();
    while let Some(piece) = response.body.data().await {
        let piece =
            piece.map_err(|error| Refusal::new("fetch_failed", format!("{url} broke off: {error}.")))?;
        let room = access.max_bytes - bytes.len();
        bytes.extend(piece.iter().take(room));
        if piece.len() > room {
            return Ok((bytes, true));
        }
    }
    Ok((bytes, false))
}

fn not_text(url: &Url, declared: &str) -> Refusal {
    Refusal::new(
        "unsupported_content_type",
        format!(
            "{url} is of the type `{}`; only text, HTML, JSON, XML and Markdown are read.",
            repeated(declared)
        ),
    )
}

/// The type that a server declares, without its parameters.
fn content_type(headers: &HeaderMap) -> Option<String> {
    let value = String::from_utf8_lossy(headers.get(CONTENT_TYPE)?.as_bytes()).to_ascii_lowercase();
    Some(value.split(';').next().unwrap_or_default().trim().to_owned())
        .filter(|declared| !declared.is_empty())
}

fn kind_of(declared: &str) -> Option<Kind> {
    match declared {
        "text/html" | "application/xhtml+xml" => Some(Kind::Html),
        "application/json"
        | "application/xml"
        | "application/javascript"
        | "application/x-ndjson"
        | "application/yaml"
        | "application/x-yaml"
        | "application/toml" => Some(Kind::Plain),
        _ if declared.starts_with("text/") => Some(Kind::Plain),
        _ if declared.ends_with("+json") || declared.ends_with("+xml") => {
            // SVG is an image although it is XML.
            (!declared.starts_with("image/")).then_some(Kind::Plain)
        }
        _ => None,
    }
}

fn looks_like_html(bytes: &[u8]) -> bool {
    let start = String::from_utf8_lossy(&bytes[..bytes.len().min(META_WITHIN)]).to_ascii_lowercase();
    let start = start.trim_start();
    start.starts_with("<!doctype html") || start.starts_with("<html") || start.contains("<body")
}

/// The encoding that a server declares.
fn charset(headers: &HeaderMap) -> Option<&'static Encoding> {
    let value = headers.get(CONTENT_TYPE)?.to_str().ok()?.to_ascii_lowercase();
    label_after(&value, "charset=")
}

fn label_after(text: &str, key: &str) -> Option<&'static Encoding> {
    let rest = text.split(key).nth(1)?.trim_start_matches(['"', '\'', ' ']);
    let end = rest
        .find(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | ':')))
        .unwrap_or(rest.len());
    Encoding::for_label(&rest.as_bytes()[..end])
}

fn decoded(bytes: &[u8], declared: Option<&'static Encoding>, kind: Kind) -> String {
    let encoding = declared
        .or_else(|| {
            let start = String::from_utf8_lossy(&bytes[..bytes.len().min(META_WITHIN)]).to_ascii_lowercase();
            (kind == Kind::Html).then(|| label_after(&start, "charset=")).flatten()
        })
        .unwrap_or(UTF_8);
    encoding.decode(bytes).0.into_owned()
}

fn repeated(text: &str) -> String {
    text.chars().take(REPEATED).flat_map(char::escape_default).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_kinds_that_can_be_read_are_let_through() {
        for (declared, kind) in [
            ("text/html", Some(Kind::Html)),
            ("application/xhtml+xml", Some(Kind::Html)),
            ("text/markdown", Some(Kind::Plain)),
            ("application/json", Some(Kind::Plain)),
            ("application/ld+json", Some(Kind::Plain)),
            ("application/rss+xml", Some(Kind::Plain)),
            ("image/svg+xml", None),
            ("image/png", None),
            ("application/pdf", None),
            ("application/octet-stream", None),
            ("", None),
        ] {
            assert_eq!(kind_of(declared), kind, "{declared}");
        }
    }

    #[test]
    fn pages_are_read_in_the_encoding_that_they_name() {
        let headers = |value: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(CONTENT_TYPE, HeaderValue::from_str(value).unwrap());
            headers
        };
        let read = |bytes: &[u8], value: &str| decoded(bytes, charset(&headers(value)), Kind::Html);
        assert_eq!(read("grüße".as_bytes(), "text/html"), "grüße");
        assert_eq!(read(b"gr\xfc\xdfe \x80", "text/html; charset=ISO-8859-1"), "grüße €");
        assert_eq!(read(b"\xc4\xe3\xba\xc3", "text/html;charset=\"gbk\""), "你好");
        assert_eq!(read(b"<meta charset=gb2312>\xc4\xe3", "text/html"), "<meta charset=gb2312>你");
        assert_eq!(read(b"\xff", "text/html; charset=no-such"), "\u{fffd}");
    }
}
