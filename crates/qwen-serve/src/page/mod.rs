//! The page at `/`: files as they are committed, part of the binary. They depend on nothing, so they need no
//! token; the page sends the token with its requests.

use hyper::header::{self, HeaderValue};
use hyper::{Method, StatusCode};

use crate::respond::{HttpReply, complete_reply};

/// Only our own files and requests to this server; no inline code, no frames.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; \
                      base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'";

/// The path, the type and the content of each file.
const FILES: [(&str, &str, &str); 5] = [
    ("/", "text/html; charset=utf-8", include_str!("index.html")),
    ("/page/page.css", "text/css; charset=utf-8", include_str!("page.css")),
    ("/page/page.js", "text/javascript; charset=utf-8", include_str!("page.js")),
    ("/page/client.js", "text/javascript; charset=utf-8", include_str!("client.js")),
    ("/page/transcript.js", "text/javascript; charset=utf-8", include_str!("transcript.js")),
];

/// True for the page's files.
pub fn is_file(method: &Method, path: &str) -> bool {
    matches!(*method, Method::GET | Method::HEAD) && FILES.iter().any(|(name, ..)| *name == path)
}

/// A file of the page.
pub fn file(path: &str) -> Option<HttpReply> {
    let (_, kind, text) = FILES.iter().find(|(name, ..)| *name == path)?;
    let mut reply = complete_reply(StatusCode::OK, kind, *text);
    reply.headers_mut().insert(header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY));
    Some(reply)
}
