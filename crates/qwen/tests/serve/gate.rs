//! The gate: attacks that must reveal and execute nothing.

use std::io::{BufReader, Write};

use mock_model::process::Signal;
use mock_model::{MockModel, Reply};
use serde_json::json;

use crate::harness::*;

/// Everything that needs a token, with a method and a body that would have an effect.
fn routes(session: &str) -> Vec<(&'static str, String, &'static str)> {
    let of = |rest: &str| format!("/api/sessions/{session}{rest}");
    vec![
        ("GET", "/api/capabilities".to_owned(), ""),
        ("GET", "/api/sessions".to_owned(), ""),
        ("POST", "/api/sessions".to_owned(), "{}"),
        ("GET", of(""), ""),
        ("PATCH", of(""), r#"{"title":"stolen"}"#),
        ("DELETE", of(""), ""),
        ("POST", of("/fork"), "{}"),
        ("POST", of("/prompts"), r#"{"prompt":"x"}"#),
        ("POST", of("/steer"), r#"{"prompt":"x"}"#),
        ("DELETE", of("/prompts/p"), ""),
        ("POST", of("/cancel"), "{}"),
        ("GET", of("/events"), ""),
        ("GET", of("/snapshot"), ""),
        ("GET", "/api/events".to_owned(), ""),
        ("GET", "/api/approvals".to_owned(), ""),
        ("POST", "/api/approvals/x".to_owned(), r#"{"decision":"allow"}"#),
        ("GET", "/api/openapi.json".to_owned(), ""),
        ("GET", "/v1/models".to_owned(), ""),
        ("POST", "/v1/chat/completions".to_owned(), "{}"),
        ("POST", "/v1/responses".to_owned(), "{}"),
        ("POST", "/ag-ui".to_owned(), "{}"),
        ("POST", "/mcp".to_owned(), "{}"),
        ("GET", "/unknown".to_owned(), ""),
    ]
}

/// A server with one session that has a secret title.
fn guarded(mock: &MockModel) -> (Server, String) {
    let server = serve(mock);
    let id = server.session();
    server.turn(&id, "a secret title");
    (server, id)
}

/// Nothing happened, and nothing was revealed.
#[track_caller]
fn unharmed(mock: &MockModel, server: &Server, session: &str) {
    assert_eq!(mock.requests().len(), 1);
    let shown = server.get(&format!("/api/sessions/{session}")).json();
    assert_eq!(shown["title"], "a secret title");
    assert_eq!(server.get("/api/sessions").json()["sessions"].as_array().unwrap().len(), 1);
}

#[test]
fn every_route_needs_the_whole_token_in_a_header() {
    let mock = MockModel::with([Reply::text("Hi.")]);
    let (server, id) = guarded(&mock);
    let host = server.host();
    let prefix = &TOKEN[..TOKEN.len() - 1];
    let cookie = format!("token={TOKEN}");
    let bearers = [
        vec![],
        vec![("Authorization", "Bearer wrong".to_owned())],
        vec![("Authorization", "Bearer ".to_owned())],
        vec![("Authorization", format!("Bearer {prefix}"))],
        vec![("Authorization", format!("Bearer {TOKEN}{TOKEN}"))],
        vec![("Authorization", format!("Basic {TOKEN}"))],
        vec![("Authorization", TOKEN.to_owned())],
        vec![("Authorization", format!("Bearer {TOKEN}")), ("Authorization", "Bearer x".to_owned())],
        vec![("Cookie", cookie)],
        vec![("X-Token", TOKEN.to_owned())],
        vec![("Sec-WebSocket-Protocol", format!("qwen.token.{prefix}"))],
    ];
    for (method, path, body) in routes(&id) {
        for bearer in &bearers {
            let mut headers = vec![("Host", host.as_str()), ("Content-Type", "application/json")];
            headers.extend(bearer.iter().map(|(name, value)| (*name, value.as_str())));
            let answer = server.with_headers(method, &path, &headers, body);
            assert_eq!(
                (answer.status, answer.code().as_str()),
                (401, "unauthorized"),
                "{method} {path} {bearer:?}"
            );
        }
        let headers = [("Host", host.as_str()), ("Content-Type", "application/json")];
        let answer = server.with_headers(
            method,
            &format!("{path}?token={TOKEN}&access_token={TOKEN}"),
            &headers,
            body,
        );
        assert_eq!(answer.status, 401, "{method} {path}");
    }
    unharmed(&mock, &server, &id);
}

#[test]
fn a_host_that_is_not_ours_is_refused_even_with_the_token() {
    let mock = MockModel::with([Reply::text("Hi.")]);
    let (server, id) = guarded(&mock);
    let port = server.port;
    let bearer = format!("Bearer {TOKEN}");
    let hosts = [
        "evil.example".to_owned(),
        format!("evil.example:{port}"),
        format!("localhost.:{port}"),
        format!("127.0.0.1.nip.io:{port}"),
        "127.0.0.1".to_owned(),
        "localhost".to_owned(),
        format!("127.0.0.1:{}", port ^ 1),
        format!("127.1:{port}"),
        format!("0.0.0.0:{port}"),
        format!("2130706433:{port}"),
        format!("[::ffff:127.0.0.1]:{port}"),
        format!("[::]:{port}"),
        format!("user@127.0.0.1:{port}"),
        format!("127.0.0.1:{port}/"),
        format!("127.0.0.1:{port}, evil.example"),
        String::new(),
    ];
    for (method, path, body) in routes(&id) {
        for host in &hosts {
            let headers = [
                ("Host", host.as_str()),
                ("Authorization", bearer.as_str()),
                ("Content-Type", "application/json"),
            ];
            let answer = server.with_headers(method, &path, &headers, body);
            assert!(matches!(answer.status, 400 | 403), "{method} {path} {host:?} {answer:?}");
            assert!(!answer.body.contains("secret"), "{answer:?}");
        }
    }
    let ours = [
        format!("127.0.0.1:{port}"),
        format!("localhost:{port}"),
        format!("LOCALHOST:{port}"),
        format!("[::1]:{port}"),
    ];
    for host in ours {
        let answer =
            server.with_headers("GET", "/api/sessions", &[("Host", &host), ("Authorization", &bearer)], "");
        assert_eq!(answer.status, 200, "{host}");
    }
    unharmed(&mock, &server, &id);
}

#[test]
fn a_foreign_page_is_refused_on_every_route() {
    let mock = MockModel::with([Reply::text("Hi.")]);
    let (server, id) = guarded(&mock);
    let host = server.host();
    let port = server.port;
    let bearer = format!("Bearer {TOKEN}");
    let foreign: Vec<Vec<(&str, String)>> = vec![
        vec![("Origin", "https://evil.example".to_owned())],
        vec![("Origin", "null".to_owned())],
        vec![("Origin", format!("https://127.0.0.1:{port}"))],
        vec![("Origin", format!("http://127.0.0.1:{}", port ^ 1))],
        vec![("Origin", format!("http://127.0.0.1:{port}.evil.example"))],
        vec![("Origin", format!("http://{host}")), ("Origin", "https://evil.example".to_owned())],
        vec![("Sec-Fetch-Site", "cross-site".to_owned())],
        vec![("Sec-Fetch-Site", "same-site".to_owned())],
        vec![("Sec-Fetch-Site", "same-origin".to_owned()), ("Sec-Fetch-Site", "cross-site".to_owned())],
    ];
    for (method, path, body) in routes(&id) {
        for site in &foreign {
            let mut headers = vec![
                ("Host", host.as_str()),
                ("Authorization", bearer.as_str()),
                ("Content-Type", "application/json"),
            ];
            headers.extend(site.iter().map(|(name, value)| (*name, value.as_str())));
            let answer = server.with_headers(method, &path, &headers, body);
            assert_eq!((answer.status, answer.code().as_str()), (403, "origin"), "{method} {path} {site:?}");
            assert!(answer.header("access-control-allow-origin").is_none());
            headers.extend([
                ("Connection", "Upgrade"),
                ("Upgrade", "websocket"),
                ("Sec-WebSocket-Version", "13"),
                ("Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ=="),
            ]);
            assert_eq!(server.with_headers("GET", "/api/ws", &headers, "").status, 403, "{site:?}");
        }
    }
    let own = format!("http://{host}");
    let headers = [
        ("Host", host.as_str()),
        ("Authorization", bearer.as_str()),
        ("Origin", own.as_str()),
        ("Sec-Fetch-Site", "same-origin"),
    ];
    assert_eq!(server.with_headers("GET", "/api/sessions", &headers, "").status, 200);
    unharmed(&mock, &server, &id);
}

#[test]
fn what_a_page_can_post_without_asking_is_refused() {
    let mock = MockModel::with([Reply::text("Hi.")]);
    let (server, id) = guarded(&mock);
    let host = server.host();
    let bearer = format!("Bearer {TOKEN}");
    let kinds = [
        "text/plain",
        "application/x-www-form-urlencoded",
        "multipart/form-data; boundary=x",
        "text/plain; application/json",
        "application/jsonx",
        "",
    ];
    for (method, path, body) in routes(&id).iter().filter(|(_, _, body)| !body.is_empty()) {
        for kind in kinds {
            let mut headers = vec![("Host", host.as_str()), ("Authorization", bearer.as_str())];
            if !kind.is_empty() {
                headers.push(("Content-Type", kind));
            }
            let answer = server.with_headers(method, path, &headers, body);
            assert_eq!(
                (answer.status, answer.code().as_str()),
                (415, "content_type"),
                "{method} {path} {kind}"
            );
        }
    }
    unharmed(&mock, &server, &id);
}

#[test]
fn requests_that_two_programs_could_read_differently_are_refused() {
    let mock = MockModel::with([Reply::text("Hi.")]);
    let (server, id) = guarded(&mock);
    let host = server.host();
    let head = format!(
        "Host: {host}\r\nAuthorization: Bearer {TOKEN}\r\nContent-Type: application/json\r\nConnection: close\r\n"
    );
    let smuggled = format!("GET /api/sessions HTTP/1.1\r\nHost: {host}\r\n\r\n");
    let shapes = [
        format!(
            "POST /api/sessions HTTP/1.1\r\n{head}Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n{smuggled}"
        ),
        format!(
            "POST /api/sessions HTTP/1.1\r\n{head}Transfer-Encoding: chunked\r\nContent-Length: 2\r\n\r\n0\r\n\r\n{smuggled}"
        ),
        format!("POST /api/sessions HTTP/1.1\r\n{head}Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n"),
        format!("POST /api/sessions HTTP/1.1\r\n{head}Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n"),
        format!("POST /api/sessions HTTP/1.1\r\n{head}Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n"),
        format!("POST /api/sessions HTTP/1.1\r\n{head}Content-Length: 2\r\nContent-Length: 3\r\n\r\n{{}}"),
        format!("POST /api/sessions HTTP/1.1\r\n{head}Content-Length: -1\r\n\r\n"),
        format!("POST /api/sessions HTTP/1.1\r\n{head}Content-Length: 0x2\r\n\r\n{{}}"),
        format!("POST /api/sessions HTTP/1.1\r\n{head}X: y\r\n Content-Length: 2\r\n\r\n{{}}"),
        format!("GET http://{host}/api/sessions HTTP/1.1\r\n{head}\r\n"),
        format!("GET http://evil.example/api/sessions HTTP/1.1\r\n{head}\r\n"),
        format!("GET * HTTP/1.1\r\n{head}\r\n"),
        format!("CONNECT {host} HTTP/1.1\r\n{head}\r\n"),
        format!("GET /api/sessions HTTP/1.1\r\n{head}Host: {host}\r\n\r\n"),
        format!("GET /api/sessions HTTP/1.1\r\n{head}Host: evil.example\r\n\r\n"),
        format!("GET /api/sessions HTTP/1.1\r\nAuthorization: Bearer {TOKEN}\r\nConnection: close\r\n\r\n"),
        format!("GET /api/sessions HTTP/1.0\r\nAuthorization: Bearer {TOKEN}\r\n\r\n"),
        format!("GET /api/sessions HTTP/3.7\r\n{head}\r\n"),
        format!("GET /api/sessions\0 HTTP/1.1\r\n{head}\r\n"),
        "\x16\x03\x01\x02\0\x01\0\x01\u{fc}\x03\x03".to_owned(),
        "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_owned(),
    ];
    for shape in shapes {
        let mut stream = server.connect();
        stream.write_all(shape.as_bytes()).unwrap();
        // A server that waits for the rest of a request must not wait for ever.
        stream.shutdown(std::net::Shutdown::Write).unwrap();
        let answer = read_answer(&mut BufReader::new(stream));
        assert!(matches!(answer.status, 0 | 400 | 403 | 405), "{shape:?} {answer:?}");
        assert!(
            !answer.body.contains("secret") && !answer.body.contains("HTTP/1.1 200"),
            "{shape:?} {answer:?}"
        );
    }
    unharmed(&mock, &server, &id);
}

#[test]
fn the_token_for_watching_reads_and_does_nothing_else() {
    let mock = MockModel::with([Reply::text("Hi.")]);
    let program = program(&mock);
    let mut server = start(&program);
    let id = server.session();
    server.turn(&id, "a secret title");
    let watch = std::fs::read_to_string(program.qwen_home_path().join("serve/watch-token")).unwrap();
    let full = std::mem::replace(&mut server.token, watch.trim().to_owned());
    for (method, path, body) in routes(&id) {
        let reads = method == "GET" && path.starts_with("/api/");
        if reads && path.ends_with("/events") {
            server.stream(&path, Some("0"));
            continue;
        }
        let answer = server.send(method, &path, body);
        if reads {
            assert!(matches!(answer.status, 200 | 404), "{method} {path} {answer:?}");
        } else {
            assert_eq!((answer.status, answer.code().as_str()), (403, "read_only"), "{method} {path}");
        }
    }
    server.token = full;
    unharmed(&mock, &server, &id);
}

#[test]
fn health_needs_no_token_and_reveals_nothing() {
    let mock = MockModel::start();
    let server = serve(&mock);
    let answer = server.with_headers("GET", "/health", &[("Host", &server.host())], "");
    assert_eq!((answer.status, answer.json()), (200, json!({"status": "ok"})));
    assert_eq!(server.with_headers("GET", "/health", &[("Host", "evil.example")], "").status, 403);
}

#[test]
fn responses_cannot_be_framed_cached_or_sniffed() {
    let mock = MockModel::start();
    let server = serve(&mock);
    for path in ["/health", "/api/sessions", "/nothing"] {
        let answer = server.get(path);
        assert_eq!(answer.header("x-frame-options"), Some("DENY"), "{path}");
        assert!(
            answer.header("content-security-policy").unwrap().contains("frame-ancestors 'none'"),
            "{path}"
        );
        assert_eq!(answer.header("x-content-type-options"), Some("nosniff"));
        assert_eq!(answer.header("cache-control"), Some("no-store"));
    }
}

#[test]
fn a_listed_origin_may_use_the_server_from_its_pages() {
    let mock = MockModel::start();
    let server = start(&program(&mock).args(["--allow-origin", "https://app.example.com"]));
    let host = server.host();
    let bearer = format!("Bearer {TOKEN}");
    let page =
        [("Host", host.as_str()), ("Origin", "https://app.example.com"), ("Sec-Fetch-Site", "cross-site")];
    let preflight = server.with_headers("OPTIONS", "/api/sessions", &page, "");
    assert_eq!(preflight.status, 204);
    assert_eq!(preflight.header("access-control-allow-origin"), Some("https://app.example.com"));
    assert_eq!(server.with_headers("GET", "/api/sessions", &page, "").status, 401);
    let mut with_token = page.to_vec();
    with_token.push(("Authorization", &bearer));
    let answer = server.with_headers("GET", "/api/sessions", &with_token, "");
    assert_eq!(
        (answer.status, answer.header("access-control-allow-origin")),
        (200, Some("https://app.example.com"))
    );
    // The name under which a proxy passes requests on.
    let proxied = [("Host", "app.example.com"), ("Authorization", bearer.as_str())];
    assert_eq!(server.with_headers("GET", "/api/sessions", &proxied, "").status, 200);
}

#[test]
fn the_routes_of_other_protocols_pass_the_same_gate() {
    let mock = MockModel::with([Reply::text("Hi.")]);
    let program = program(&mock);
    let server = start(&program);
    let id = server.session();
    server.turn(&id, "a secret title");
    let watch = std::fs::read_to_string(program.qwen_home_path().join("serve/watch-token")).unwrap();
    let (host, bearer) = (server.host(), format!("Bearer {TOKEN}"));
    let watcher = format!("Bearer {}", watch.trim());
    let of = |rest: &str| format!("/session/{id}{rest}");
    let routes = [
        ("GET", "/capabilities".to_owned(), ""),
        ("POST", "/session".to_owned(), "{}"),
        ("POST", of("/load"), "{}"),
        ("POST", of("/resume"), "{}"),
        ("POST", of("/prompt"), r#"{"prompt":[{"type":"text","text":"x"}]}"#),
        ("POST", of("/cancel"), "{}"),
        ("GET", of("/events"), ""),
        ("GET", of("/status"), ""),
        ("DELETE", of(""), ""),
        ("PATCH", of("/metadata"), r#"{"displayName":"stolen"}"#),
        ("POST", of("/permission/x"), "{}"),
        ("POST", "/permission/x".to_owned(), "{}"),
        ("GET", "/workspace/%2Ftmp/sessions".to_owned(), ""),
        ("POST", "/mcp".to_owned(), r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#),
        ("DELETE", "/mcp".to_owned(), ""),
    ];
    let json = ("Content-Type", "application/json");
    for (method, path, body) in &routes {
        let query = format!("{path}?token={TOKEN}");
        let attempts: [(&str, Vec<(&str, &str)>, u16); 6] = [
            (path, vec![("Host", &host), json], 401),
            (&query, vec![("Host", &host), json], 401),
            (path, vec![("Host", &host), ("Cookie", &bearer), json], 401),
            (path, vec![("Host", &host), ("Authorization", &watcher), json], 403),
            (path, vec![("Host", "evil.example"), ("Authorization", &bearer), json], 403),
            (path, vec![("Host", &host), ("Authorization", &bearer), ("Origin", "null"), json], 403),
        ];
        for (path, headers, status) in attempts {
            let answer = server.with_headers(method, path, &headers, body);
            assert_eq!(answer.status, status, "{method} {path} {headers:?} {answer:?}");
            assert!(!answer.body.contains("secret"), "{answer:?}");
        }
    }
    unharmed(&mock, &server, &id);
}

#[test]
fn ids_that_are_paths_reach_no_file() {
    let mock = MockModel::with([Reply::text("Hi.")]);
    let (server, id) = guarded(&mock);
    let bearer = format!("Bearer {TOKEN}");
    let host = server.host();
    for hostile in [
        "..",
        "../..",
        "..%2f..%2ftoken",
        "%2e%2e%2ftoken",
        "%00",
        "x%00y",
        "/etc/passwd",
        "%2fetc%2fpasswd",
        ".",
        "-rf",
        "a%0d%0aX:y",
        "%5c..%5c",
        &"a".repeat(4000),
    ] {
        for (method, path) in [
            ("GET", format!("/api/sessions/{hostile}")),
            ("GET", format!("/api/sessions/{hostile}/snapshot")),
            ("DELETE", format!("/api/sessions/{hostile}")),
            ("DELETE", format!("/api/sessions/{id}/prompts/{hostile}")),
            ("GET", format!("/v1/responses/{hostile}")),
            ("DELETE", format!("/v1/responses/{hostile}")),
            ("GET", format!("/session/{hostile}/status")),
            ("GET", format!("/page/{hostile}")),
            ("GET", format!("/page/../{hostile}")),
            ("GET", format!("/workspace/{hostile}/sessions")),
        ] {
            let answer =
                server.with_headers(method, &path, &[("Host", &host), ("Authorization", &bearer)], "");
            assert!(matches!(answer.status, 400 | 404 | 405), "{method} {path} {answer:?}");
            assert!(!answer.body.contains("root:") && !answer.body.contains(TOKEN), "{answer:?}");
        }
    }
    for id in ["../token", "a/b", "\0", "", " "] {
        let body = json!({"sessionId": id}).to_string();
        assert_eq!(server.send("POST", "/session", &body).status, 400, "{id:?}");
    }
    unharmed(&mock, &server, &id);
}

#[test]
fn a_workspace_through_a_link_out_of_the_workspaces_is_refused() {
    let mock = MockModel::start();
    let program = program(&mock);
    let place = program.home_path().join("inside");
    std::fs::create_dir(&place).unwrap();
    std::os::unix::fs::symlink("/etc", place.join("out")).unwrap();
    std::fs::create_dir(place.join("sub")).unwrap();
    std::os::unix::fs::symlink(place.join("sub"), place.join("in")).unwrap();
    let server = start(&program.args(["--workspace", &place.display().to_string()]));
    let workspace = |rest: &str| place.join(rest).display().to_string();
    for (path, is_allowed) in [
        (workspace("sub"), true),
        (workspace("in"), true),
        (workspace("out"), false),
        (workspace("sub/../.."), false),
        (workspace("missing"), false),
        ("/etc".to_owned(), false),
        ("sub".to_owned(), false),
        (String::new(), false),
        (format!("{}\0", workspace("sub")), false),
    ] {
        let ours = server.post("/api/sessions", json!({"workspace": path}));
        assert_eq!(ours.status, if is_allowed { 201 } else { 403 }, "{path:?} {ours:?}");
        let theirs = server.post("/session", json!({"cwd": path, "sessionScope": "thread"}));
        assert_eq!(theirs.status, if is_allowed { 200 } else { 400 }, "{path:?} {theirs:?}");
    }
}

#[test]
fn sessions_of_other_workspaces_are_gone_and_a_directory_that_became_a_link_is_refused() {
    let mock = MockModel::with([Reply::text("One.")]);
    let program = program(&mock);
    let (first, second) = (program.home_path().join("first"), program.home_path().join("second"));
    for place in [&first, &second] {
        std::fs::create_dir_all(place.join("sub")).unwrap();
    }
    let serving =
        |place: &std::path::Path| start(&program.clone().args(["--workspace", &place.display().to_string()]));
    let server = serving(&first);
    let created = server.post("/api/sessions", json!({"workspace": first.join("sub").display().to_string()}));
    let id = created.json()["id"].as_str().unwrap().to_owned();
    server.turn(&id, "go");
    server.run.signal(Signal::TERM);
    server.run.wait();
    let other = serving(&second);
    assert_eq!(other.get("/api/sessions").json(), json!({"sessions": []}));
    assert_eq!(other.get(&format!("/api/sessions/{id}/snapshot")).status, 404);
    other.run.signal(Signal::TERM);
    other.run.wait();
    let server = serving(&first);
    assert_eq!(server.get(&format!("/api/sessions/{id}")).status, 200);
    std::fs::remove_dir(first.join("sub")).unwrap();
    std::os::unix::fs::symlink("/etc", first.join("sub")).unwrap();
    let refused = server.post(&format!("/api/sessions/{id}/prompts"), json!({"prompt": "go"}));
    assert_eq!((refused.status, refused.code().as_str()), (403, "workspace_not_allowed"));
}

#[test]
fn slow_heads_and_bodies_are_ended() {
    let mock = MockModel::start();
    let server = serve(&mock);
    let head = format!(
        "POST /api/sessions HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {TOKEN}\r\n",
        server.host()
    );
    let body = format!("{head}Content-Type: application/json\r\nContent-Length: 100\r\n\r\n{{");
    // Both wait for the same ten seconds.
    let mut streams: Vec<_> = [head.as_str(), body.as_str(), ""]
        .into_iter()
        .map(|sent| {
            let mut stream = server.connect();
            stream.write_all(sent.as_bytes()).unwrap();
            BufReader::new(stream)
        })
        .collect();
    for stream in &mut streams {
        let answer = read_answer(stream);
        assert!(matches!(answer.status, 0 | 400 | 408), "{answer:?}");
    }
    assert_eq!(server.get("/api/sessions").json()["sessions"], json!([]));
}
