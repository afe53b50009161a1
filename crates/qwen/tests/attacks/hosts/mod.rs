//! The network of commands: hosts that `Network` rules open, and everything else.

mod questions;
mod secrets;
mod ways;
mod web;

use qwen_proxy::Authority;
use serde_json::{Value, json};

use self::web::Web;
use crate::harness::{Played, Scene, has_sandbox};

/// The host that rules open in these tests.
const OPEN: &str = "docs.example.test";
/// A host that no rule opens, on the same server.
const CLOSED: &str = "evil.example.test";

/// A session whose commands may reach some hosts, and servers that both kinds of hosts lead to.
struct Net {
    scene: Scene,
    plain: Web,
    tls: Web,
}

impl Net {
    /// `None` where there is no sandbox.
    fn new(rules: &[&str]) -> Option<Self> {
        Self::with(rules, |_| {})
    }

    /// The same with further settings.
    fn with(rules: &[&str], change: impl FnOnce(&mut Value)) -> Option<Self> {
        if !has_sandbox() {
            return None;
        }
        let authority = Authority::new().unwrap();
        let (plain, tls) = (Web::start(), Web::start_tls(&authority, OPEN));
        let scene = Scene::new().args(["--yolo"]);
        // What the system trusts, for qwen itself.
        let bundle = scene.out("system.pem");
        std::fs::write(&bundle, authority.pem()).unwrap();
        let listed: Vec<String> = [OPEN, CLOSED, "127.0.0.1"]
            .iter()
            .flat_map(|host| [&plain, &tls].map(|web| format!("{host}:{}", web.port())))
            .collect();
        let mut settings = json!({
            "permissions": { "allow": rules },
            "tools": {
                "webFetch": { "allowPrivateHosts": listed },
                "network": { "resolve": { OPEN: ["127.0.0.1"], CLOSED: ["127.0.0.1"] } },
            },
        });
        change(&mut settings);
        let scene = scene.user_settings(&settings).env("SSL_CERT_FILE", bundle.to_str().unwrap());
        Some(Self { scene, plain, tls })
    }

    /// Fills in the ports of the two servers.
    fn command(&self, text: &str) -> (&'static str, Value) {
        let text = text
            .replace("PLAIN", &self.plain.port().to_string())
            .replace("TLS", &self.tls.port().to_string())
            .replace("OPEN", OPEN)
            .replace("CLOSED", CLOSED)
            .replace("{bundle}", self.scene.out("system.pem").to_str().unwrap());
        ("run_shell_command", json!({ "command": text }))
    }

    /// Runs commands in one turn.
    fn play(&self, commands: &[&str]) -> Played {
        let calls: Vec<_> = commands.iter().map(|command| self.command(command)).collect();
        self.scene.play(&calls)
    }

    /// How often a server was reached.
    fn hits(&self) -> usize {
        self.plain.seen().len() + self.tls.seen().len()
    }

    /// The connections in the session's log.
    fn logged(&self) -> Vec<Value> {
        let sessions = self.scene.program.qwen_home_path().join("sessions");
        let logs = std::fs::read_dir(sessions).unwrap().map(|entry| entry.unwrap().path());
        let lines: Vec<String> = logs
            .filter(|path| path.extension().is_some_and(|extension| extension == "jsonl"))
            .flat_map(|path| {
                std::fs::read_to_string(path).unwrap().lines().map(str::to_owned).collect::<Vec<_>>()
            })
            .collect();
        let entries = lines.iter().map(|line| serde_json::from_str::<Value>(line).unwrap());
        entries.filter(|entry| entry["type"] == "connection").map(|entry| entry["data"].clone()).collect()
    }
}

#[test]
fn an_open_host_is_reached_in_every_way_a_proxy_offers_and_no_other() {
    let Some(net) = Net::new(&["Network(docs.example.test)"]) else { return };
    let ways = [
        "curl -sS http://HOST:PLAIN/",
        "curl -sS --proxytunnel http://HOST:PLAIN/",
        "curl -sS --socks5-hostname ${HTTP_PROXY#http://} http://HOST:PLAIN/",
        "curl -sS --cacert {bundle} https://HOST:TLS/",
        "curl -sS --cacert {bundle} --socks5-hostname ${HTTP_PROXY#http://} https://HOST:TLS/",
        "env -u http_proxy -u https_proxy -u HTTPS_PROXY curl -sS http://HOST:PLAIN/",
    ];
    let open: Vec<String> = ways.iter().map(|way| way.replace("HOST", "OPEN")).collect();
    let closed: Vec<String> = ways.iter().map(|way| way.replace("HOST", "CLOSED")).collect();
    let all: Vec<&str> = open.iter().chain(&closed).map(String::as_str).collect();
    let played = net.play(&all);
    for (number, way) in open.iter().enumerate() {
        let result = played.result(&format!("c{}", number + 1));
        assert!(result.contains("hello"), "{way}: {result}");
    }
    assert_eq!(net.hits(), ways.len(), "{:?}", net.plain.seen());
    for (number, way) in closed.iter().enumerate() {
        let result = played.result(&format!("c{}", open.len() + number + 1));
        let refused = format!("{CLOSED}:");
        assert!(!result.contains("hello") && result.contains(&refused), "{way}: {result}");
        assert!(
            result.contains("No rule opens") && result.contains("Network(evil.example.test)"),
            "{way}: {result}"
        );
    }
    let logged = net.logged();
    let count = |host: &str, outcome: &str| {
        let is_it = |entry: &&Value| {
            entry["outcome"] == outcome && entry["destination"].as_str().unwrap().starts_with(host)
        };
        logged.iter().filter(is_it).count()
    };
    assert_eq!((count(OPEN, "allowed"), count(CLOSED, "refused")), (6, 6), "{logged:#?}");
    let entry = logged.iter().find(|entry| entry["method"] == "GET").unwrap();
    assert_eq!((&entry["address"], &entry["count"]), (&json!("127.0.0.1"), &json!(1)), "{entry}");
    assert!(entry["received"].as_u64() > Some(6), "{entry}");
}

#[test]
fn without_a_rule_there_is_no_network_and_no_proxy() {
    for rules in [&[][..], &["WebFetch(domain:docs.example.test)"]] {
        let Some(net) = Net::new(rules) else { return };
        let played = net
            .play(&["env | grep -i proxy; curl -sS http://OPEN:PLAIN/", "curl -sS http://127.0.0.1:PLAIN/"]);
        assert_eq!(net.hits(), 0);
        let result = played.result("c1");
        assert!(!result.contains("PROXY") && result.contains("Network(HOST)"), "{result}");
        assert!(net.logged().is_empty());
    }
}

#[test]
fn deny_beats_allow_for_a_host_and_all_below_it() {
    let Some(net) = Net::with(&["Network(*)", "Network(docs.example.test)"], |settings| {
        settings["permissions"]["deny"] = json!(["Network(example.test)"]);
    }) else {
        return;
    };
    let played = net.play(&["curl -sS http://OPEN:PLAIN/", "curl -sS http://CLOSED:PLAIN/"]);
    for id in ["c1", "c2"] {
        let result = played.result(id);
        assert!(result.contains("The rule Network(example.test) denies it"), "{result}");
    }
    assert_eq!(net.hits(), 0);
}

#[test]
fn a_rule_about_a_method_covers_that_method_only_also_through_tls() {
    let Some(net) =
        Net::with(&["Network(docs.example.test GET)", "Network(evil.example.test)"], |settings| {
            settings["permissions"]["deny"] = json!(["Network(evil.example.test POST)"]);
        })
    else {
        return;
    };
    // Programs trust the session's certificate by the variables alone.
    let allowed =
        ["curl -sS http://OPEN:PLAIN/", "curl -sS https://OPEN:TLS/", "curl -sS http://CLOSED:PLAIN/"];
    let refused = [
        "curl -sS -X POST http://OPEN:PLAIN/",
        "curl -sS -X POST https://OPEN:TLS/",
        "curl -sS -X get http://OPEN:PLAIN/",
        "curl -sS -I https://OPEN:TLS/",
        "curl -sS -d x http://CLOSED:PLAIN/",
        "curl -sS --proxytunnel -X DELETE http://OPEN:PLAIN/",
        "curl -sS -X POST -H 'X-HTTP-Method-Override: GET' https://OPEN:TLS/",
        "exec 3<>/dev/tcp/127.0.0.1/${HTTP_PROXY##*:}; printf 'CONNECT OPEN:TLS HTTP/1.1\\r\\n\\r\\nSSH-2.0-x\\r\\n' >&3; timeout 20 cat <&3",
    ];
    let all: Vec<&str> = allowed.iter().chain(&refused).copied().collect();
    let played = net.play(&all);
    for (number, command) in allowed.iter().enumerate() {
        let result = played.result(&format!("c{}", number + 1));
        assert!(result.contains("hello"), "{command}: {result}");
    }
    for (number, command) in refused.iter().enumerate() {
        let result = played.result(&format!("c{}", allowed.len() + number + 1));
        assert!(!result.contains("hello"), "{command}: {result}");
    }
    assert_eq!(net.hits(), allowed.len(), "{:?} {:?}", net.plain.seen(), net.tls.seen());
}

#[test]
fn a_rule_that_cannot_be_understood_ends_the_start() {
    for rule in [
        "Network(https://a.example/)",
        "Network(a.example GTE)",
        "Network()",
        "Network(*a.example)",
        "Network(a:0)",
    ] {
        let scene = Scene::new().user_settings(&json!({ "permissions": { "allow": [rule] } }));
        let ended = scene.program.clone().args(["-p", "go"]).run();
        assert_eq!(ended.code, Some(52), "{rule}: {ended:?}");
        assert!(ended.stderr.contains(rule), "{rule}: {ended:?}");
    }
}
