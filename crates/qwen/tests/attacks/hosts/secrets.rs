//! Credentials that the proxy adds outside the sandbox.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use super::{Net, OPEN};

const SECRET: &str = "sesame-4f81c09b77d2";

/// A session whose requests to the open host get a credential.
fn net() -> Option<Net> {
    let net = Net::with(&["Network(docs.example.test)", "Network(evil.example.test)"], |settings| {
        settings["credentials"] =
            json!([{ "host": OPEN, "header": "Authorization: Bearer", "from_env": "DOCS_LOGIN" }]);
    })?;
    let Net { scene, plain, tls } = net;
    Some(Net { scene: scene.env("DOCS_LOGIN", SECRET), plain, tls })
}

/// The files below a directory that contain a text.
fn files_with(directory: &Path, text: &str) -> Vec<std::path::PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        let path = entry.path();
        match entry.file_type() {
            Ok(kind) if kind.is_dir() => found.extend(files_with(&path, text)),
            Ok(kind) if kind.is_file() => {
                let bytes = fs::read(&path).unwrap_or_default();
                let is_it = bytes.windows(text.len()).any(|window| window == text.as_bytes());
                found.extend(is_it.then_some(path));
            }
            _ => {}
        }
    }
    found
}

#[test]
fn the_server_gets_the_credential_and_the_sandbox_never_sees_it() {
    let Some(net) = net() else { return };
    let played = net.play(&[
        "curl -sS https://OPEN:TLS/echo",
        "curl -sS https://OPEN:TLS/chunks",
        "curl -sS -H 'Authorization: mine' -H 'Accept-Encoding: gzip' https://OPEN:TLS/echo",
        "env; cat /proc/self/environ; cat /proc/*/environ; cat /proc/*/cmdline; set",
        "grep -rls sesame-4f81 /tmp /run /etc /dev/shm $HOME $TMPDIR . | grep -v '^/etc/ssl' | xargs -r cat",
        "cat /proc/$PPID/environ /proc/1/environ /proc/*/task/*/environ /proc/1/mem; grep -a sesame \"$SSL_CERT_FILE\"",
        "curl -sS http://OPEN:PLAIN/echo",
        "curl -sS http://CLOSED:PLAIN/echo; curl -sSk https://CLOSED:TLS/echo",
        "curl -sS -v --trace-ascii - https://OPEN:TLS/echo",
    ]);
    let seen = net.tls.seen();
    let with_secret =
        seen.iter().filter(|head| head.contains(&format!("Authorization: Bearer {SECRET}\r\n")));
    assert_eq!(with_secret.count(), 4, "{seen:#?}");
    assert!(seen.iter().all(|head| !head.contains("mine")), "{seen:#?}");
    // Not in plain text, and not to other hosts.
    assert!(net.plain.seen().iter().all(|head| !head.contains(SECRET)), "{:#?}", net.plain.seen());
    for id in ["c1", "c2", "c3"] {
        let result = played.result(id);
        assert!(result.contains("Authorization: Bearer ******"), "{id}: {result}");
    }
    assert!(!played.leaks(SECRET), "the value came out");
    for place in [net.scene.here(), net.scene.program.home_path(), &std::env::temp_dir()] {
        let found = files_with(place, SECRET);
        let own = |path: &std::path::PathBuf| path.starts_with(net.scene.outside.path());
        assert!(found.iter().all(own), "{found:?}");
    }
    let logged = net.logged();
    assert!(
        logged.iter().any(|entry| entry["method"] == "GET" && entry["outcome"] == "allowed"),
        "{logged:#?}"
    );
}

#[test]
fn a_credential_whose_variable_is_missing_is_a_refusal_that_names_it() {
    let Some(net) = Net::with(&["Network(docs.example.test)"], |settings| {
        settings["tools"]["network"]["credentials"] =
            json!([{ "host": OPEN, "header": "X-Key", "fromEnv": "NO_SUCH_VARIABLE" }]);
    }) else {
        return;
    };
    let played = net.play(&["curl -sS https://OPEN:TLS/"]);
    assert!(played.result("c1").contains("NO_SUCH_VARIABLE"), "{}", played.result("c1"));
    assert_eq!(net.hits(), 0);
}

#[test]
fn a_repository_cannot_name_credentials_or_addresses() {
    for key in ["credentials", "tools"] {
        let Some(net) = Net::new(&["Network(docs.example.test)"]) else { return };
        let credentials = json!([{ "host": OPEN, "header": "X-Key", "from_env": "DOCS_LOGIN" }]);
        let own: Value = match key {
            "credentials" => json!({ "credentials": credentials }),
            _ => {
                json!({ "tools": { "network": { "credentials": credentials, "resolve": { "evil.test": ["127.0.0.1"] } } } })
            }
        };
        crate::harness::write(net.scene.here().join(".qwen/settings.json"), own.to_string());
        let net = Net { scene: net.scene.env("DOCS_LOGIN", SECRET).args(["--trust-workspace"]), ..net };
        let played = net.play(&["curl -sS --cacert {bundle} https://OPEN:TLS/echo"]);
        assert!(!net.tls.seen().concat().contains(SECRET), "{:?}", net.tls.seen());
        assert!(played.ended.stderr.contains("is ignored"), "{}", played.ended.stderr);
    }
}

#[test]
fn a_credential_that_cannot_be_used_ends_the_start() {
    for (credential, named) in [
        (json!({ "host": "https://a.example/", "header": "X-Key", "from_env": "A" }), "https://a.example/"),
        (json!({ "host": "a.example", "header": "X Key", "from_env": "A" }), "X Key"),
        (json!({ "host": "a.example", "header": "", "from_env": "A" }), "header"),
        (json!({ "host": "a.example", "header": "X-Key" }), "fromEnv"),
        (json!({ "host": "a.example", "header": "X-Key\r\nHost", "from_env": "A" }), "X-Key"),
    ] {
        let scene = crate::harness::Scene::new().user_settings(&json!({ "credentials": [credential] }));
        let ended = scene.program.clone().args(["-p", "go"]).run();
        assert_eq!(ended.code, Some(52), "{named}: {ended:?}");
        assert!(ended.stderr.contains(named), "{named}: {ended:?}");
    }
}
