//! The gate: every request passes it before anything else looks at it.
//!
//! Rationale: loopback is no boundary. A page in the user's browser can send requests to 127.0.0.1, under a
//! name that it makes resolve to it (DNS rebinding), and other users of the machine can connect. So the name,
//! the origin and a token are checked for every request, in this order, and none of the errors reveals
//! whether something exists.

use hyper::header::{self, HeaderMap};
use hyper::http::request::Parts;
use hyper::{Method, StatusCode};

use crate::options::Listen;
use crate::respond::Refusal;
use crate::token::{Access, Tokens};

/// The WebSocket subprotocol that carries a token.
const SUBPROTOCOL: &str = "qwen.token.";

/// Decides which requests are served.
#[derive(Debug)]
pub struct Gate {
    /// The values of `Host` that are ours.
    hosts: Vec<String>,
    /// The origins of our own page.
    own: Vec<String>,
    /// Origins that the user listed.
    listed: Vec<String>,
    /// True if an address with this port is ours, whichever it is: the server listens on all of them.
    any_address: Option<u16>,
    tokens: Tokens,
}

/// A request that may be served.
#[derive(Debug)]
pub struct AdmittedRequest {
    /// None on routes that need no token.
    pub access: Option<Access>,
    /// A listed origin, which may read the response.
    pub origin: Option<String>,
}

impl Gate {
    /// A gate for a server that listens on `listen`, the real address.
    pub fn new(listen: &Listen, has_tls: bool, listed: &[String], tokens: Tokens) -> Self {
        let mut hosts: Vec<String> = Vec::new();
        let mut any_address = None;
        match listen {
            Listen::Unix(_) => hosts.push("localhost".to_owned()),
            Listen::Tcp(address) => {
                let port = address.port();
                if address.ip().is_unspecified() {
                    any_address = Some(port);
                }
                if address.ip().is_loopback() || address.ip().is_unspecified() {
                    let names = ["127.0.0.1", "localhost", "[::1]"];
                    hosts.extend(names.iter().map(|name| format!("{name}:{port}")));
                }
                let own = address.to_string();
                if !hosts.contains(&own) {
                    hosts.push(own);
                }
            }
        }
        let scheme = if has_tls { "https" } else { "http" };
        let own = hosts.iter().map(|host| format!("{scheme}://{host}")).collect();
        // A proxy passes on the name under which it is reached.
        let proxied = listed.iter().filter_map(|origin| origin.split_once("://"));
        hosts.extend(proxied.map(|(_, host)| host.to_ascii_lowercase()));
        Self { hosts, own, listed: listed.to_vec(), any_address, tokens }
    }

    /// Checks name, origin, token and content type of a request, in this order.
    pub fn admit(&self, head: &Parts, is_public: bool) -> Result<AdmittedRequest, Refusal> {
        Self::check_shape(head)?;
        self.check_host(head)?;
        // A link elsewhere may open the page, which shows nothing without the token.
        let mode = head.headers.get("sec-fetch-mode");
        let opens_page = is_public && mode.is_some_and(|mode| mode.as_bytes() == b"navigate");
        let origin = self.check_origin(&head.headers, opens_page)?;
        if head.method == Method::OPTIONS && origin.is_some() {
            return Ok(AdmittedRequest { access: None, origin });
        }
        let access = presented(&head.headers).and_then(|token| self.tokens.access(token.as_bytes()));
        if access.is_none() && !is_public {
            let message = "The token is missing or wrong. Send it as 'Authorization: Bearer TOKEN'.";
            return Err(Refusal::new(StatusCode::UNAUTHORIZED, "unauthorized", message));
        }
        check_content_type(head)?;
        Ok(AdmittedRequest { access, origin })
    }

    /// Refuses requests that another program could read in a different way.
    fn check_shape(head: &Parts) -> Result<(), Refusal> {
        let headers = &head.headers;
        if headers.contains_key(header::TRANSFER_ENCODING) {
            let message = "Transfer-Encoding is not accepted. Send the body with a Content-Length.";
            return Err(Refusal::bad_request("transfer_encoding", message));
        }
        if headers.get_all(header::CONTENT_LENGTH).iter().count() > 1 {
            return Err(Refusal::bad_request("content_length", "There is more than one Content-Length."));
        }
        if head.uri.authority().is_some() || !head.uri.path().starts_with('/') {
            return Err(Refusal::bad_request("request_target", "The request target must be a path."));
        }
        Ok(())
    }

    fn check_host(&self, head: &Parts) -> Result<(), Refusal> {
        let mut hosts = head.headers.get_all(header::HOST).iter();
        let (Some(host), None) = (hosts.next(), hosts.next()) else {
            return Err(Refusal::bad_request("host", "The request must have one Host header."));
        };
        let host = host.to_str().unwrap_or_default().to_ascii_lowercase();
        let is_address = self.any_address.is_some_and(|port| {
            host.parse::<std::net::SocketAddr>().is_ok_and(|address| {
                address.port() == port && address.to_string() == host && !address.ip().is_unspecified()
            })
        });
        if is_address || self.hosts.contains(&host) {
            return Ok(());
        }
        Err(Refusal::new(StatusCode::FORBIDDEN, "host", "Invalid Host header."))
    }

    /// Returns the origin if it is listed.
    fn check_origin(&self, headers: &HeaderMap, opens_page: bool) -> Result<Option<String>, Refusal> {
        let denied = || Refusal::new(StatusCode::FORBIDDEN, "origin", "This origin is not allowed.");
        let mut origins = headers.get_all(header::ORIGIN).iter();
        let origin = match (origins.next(), origins.next()) {
            (None, _) => None,
            (Some(origin), None) => Some(origin.to_str().map_err(|_| denied())?),
            (Some(_), Some(_)) => return Err(denied()),
        };
        let listed = origin.filter(|origin| self.listed.iter().any(|listed| listed == origin));
        if let Some(origin) = listed {
            return Ok(Some(origin.to_owned()));
        }
        if origin.is_some_and(|origin| !self.own.iter().any(|own| own == origin)) {
            return Err(denied());
        }
        for site in headers.get_all("sec-fetch-site") {
            if !opens_page && !matches!(site.as_bytes(), b"same-origin" | b"none") {
                return Err(denied());
            }
        }
        Ok(None)
    }
}

/// The token that a request carries: in the `Authorization` header or as a WebSocket subprotocol, nowhere else.
fn presented(headers: &HeaderMap) -> Option<&str> {
    let mut bearers = headers.get_all(header::AUTHORIZATION).iter();
    if let Some(bearer) = bearers.next() {
        let (scheme, token) = bearer.to_str().ok()?.split_once(' ')?;
        return (bearers.next().is_none() && scheme.eq_ignore_ascii_case("bearer")).then_some(token);
    }
    let offered = headers.get(header::SEC_WEBSOCKET_PROTOCOL)?.to_str().ok()?;
    offered.split(',').find_map(|protocol| protocol.trim().strip_prefix(SUBPROTOCOL))
}

/// A body must be declared as JSON: pages elsewhere cannot send that type without asking first.
fn check_content_type(head: &Parts) -> Result<(), Refusal> {
    let length = head.headers.get(header::CONTENT_LENGTH);
    let has_body = length.is_some_and(|length| length.as_bytes() != b"0");
    let mut types = head.headers.get_all(header::CONTENT_TYPE).iter();
    let (first, second) = (types.next(), types.next());
    let declared = first.map(|kind| kind.to_str().unwrap_or("?"));
    let essence = declared.map(|kind| kind.split(';').next().unwrap_or_default().trim().to_ascii_lowercase());
    let is_json = essence.as_deref() == Some("application/json") && second.is_none();
    if is_json || !has_body && declared.is_none() {
        return Ok(());
    }
    if !has_body && matches!(head.method, Method::GET | Method::HEAD | Method::DELETE) {
        return Ok(());
    }
    let message = "The body must be JSON, with 'Content-Type: application/json'.";
    Err(Refusal::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "content_type", message))
}
