//! The page at `/`: files as they are committed, part of the binary. They depend on nothing, so they need no
//! token; the page sends the token with its requests.

use hyper::header::{self, HeaderValue};
use hyper::{Method, StatusCode};

use crate::respond::{HttpReply, complete_reply};

/// Only our own files and requests to this server; no inline code, no frames.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; \
                      base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'";

/// The path, the type and the content of each file.
const FILES: [(&str, &str, &str); 9] = [
    ("/", "text/html; charset=utf-8", include_str!("index.html")),
    ("/page/page.css", "text/css; charset=utf-8", include_str!("page.css")),
    ("/page/page.js", "text/javascript; charset=utf-8", include_str!("page.js")),
    ("/page/client.js", "text/javascript; charset=utf-8", include_str!("client.js")),
    ("/page/transcript.js", "text/javascript; charset=utf-8", include_str!("transcript.js")),
    ("/page/markdown.js", "text/javascript; charset=utf-8", include_str!("markdown.js")),
    ("/page/thoughts.js", "text/javascript; charset=utf-8", include_str!("thoughts.js")),
    ("/page/approvals.js", "text/javascript; charset=utf-8", include_str!("approvals.js")),
    ("/page/replay.js", "text/javascript; charset=utf-8", include_str!("replay.js")),
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

/// The scripts of a recording, so that each comes after those that it uses.
const RECORDING: [&str; 5] = [
    include_str!("markdown.js"),
    include_str!("thoughts.js"),
    include_str!("transcript.js"),
    include_str!("replay.js"),
    include_str!("recording.js"),
];

/// A session as one HTML file that loads nothing: the page's view of it, with a slider. `lines` is a JSON array
/// of what the session's stream had, and `digest` returns the SHA-256 of a text in Base64.
pub fn recording(title: &str, lines: &str, digest: impl Fn(&str) -> String) -> String {
    let style = include_str!("page.css");
    // The modules become one script: imports go, and what they export is defined in it.
    let script: String = RECORDING
        .iter()
        .flat_map(|module| module.lines())
        .filter(|line| !line.starts_with("import "))
        .map(|line| format!("{}\n", line.strip_prefix("export ").unwrap_or(line)))
        .collect();
    let title = title.replace('&', "&amp;").replace('<', "&lt;");
    // No text of the session can end the element that it is in.
    let lines = lines.replace('<', "\\u003c");
    let policy = format!(
        "default-src 'none'; script-src 'sha256-{}'; style-src 'sha256-{}'; base-uri 'none'; form-action 'none'",
        digest(&script),
        digest(style)
    );
    format!(
        r#"<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>{style}</style>
</head>
<body class="alone">
<main>
<header><h1>{title}</h1></header>
<div id="content">
<section id="transcript" role="log" aria-live="off" aria-label="Transcript" tabindex="0"></section>
<aside id="panels" aria-label="Details" tabindex="0"><section id="plan" hidden></section><section id="agents" hidden></section><section id="thoughts" hidden></section><section id="usage" hidden></section></aside>
</div>
<div id="recording" role="group" aria-label="Replay"></div>
</main>
<script type="application/json" id="lines">{lines}</script>
<script type="module">{script}</script>
</body>
</html>
"#
    )
}
