//! A trusted folder's hooks and servers: they run, but reach no private address and get no variable of the
//! user's that is not theirs, unless the user's own settings allow it.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

use crate::harness::{Scene, has_sandbox, write};

/// A listener on this machine that remembers what it was sent.
struct Listener {
    address: String,
    heard: Arc<Mutex<String>>,
}

impl Listener {
    fn new() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let heard = Arc::new(Mutex::new(String::new()));
        let noted = heard.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = stream.unwrap();
                let mut head = vec![0; 65536];
                let got = stream.read(&mut head).unwrap_or_default();
                noted.lock().unwrap().push_str(&String::from_utf8_lossy(&head[..got]));
                let _ =
                    stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}");
            }
        });
        Self { address, heard }
    }

    fn heard(&self) -> String {
        self.heard.lock().unwrap().clone()
    }
}

/// A trusted folder with these settings of its own.
fn trusted(settings: &Value) -> Scene {
    let scene = Scene::new().args(["--trust-workspace", "--sandbox=false"]);
    write(scene.here().join(".qwen/settings.json"), settings.to_string());
    scene.env("MY_TOKEN", "t-4711-of-the-user").env("MY_NAME", "n-4711-of-the-user")
}

fn hook(hook: &Value) -> Value {
    json!({ "hooks": { "UserPromptSubmit": [{ "hooks": [hook] }] } })
}

#[test]
fn hooks_of_a_trusted_folder_call_no_private_address_unless_the_user_allows_it() {
    let listener = Listener::new();
    let settings = hook(&json!({ "type": "http", "url": format!("http://{}/", listener.address) }));
    let played = trusted(&settings).play(&[]);
    assert_eq!(listener.heard(), "");
    assert!(played.ended.stderr.contains("tools.webFetch.allowPrivateHosts"), "{}", played.ended.stderr);
    // The user's own hooks do, and so do those of a folder whose address the user lists.
    Scene::new().user_settings(&settings).play(&[]);
    assert!(listener.heard().starts_with("POST / "), "{}", listener.heard());
    let (listener, listed) = (Listener::new(), Listener::new());
    let settings = hook(&json!({ "type": "http", "url": format!("http://{}/", listed.address) }));
    let allowed = json!({ "tools": { "webFetch": { "allowPrivateHosts": [listed.address] } } });
    trusted(&settings).user_settings(&allowed).play(&[]);
    assert!(listed.heard().starts_with("POST / ") && listener.heard().is_empty());
}

#[test]
fn servers_of_a_trusted_folder_are_not_reached_at_private_addresses_unless_the_user_allows_it() {
    let listener = Listener::new();
    let settings = json!({ "mcpServers": { "s": { "url": format!("http://{}/mcp", listener.address) } } });
    let played = trusted(&settings).play(&[]);
    assert_eq!(listener.heard(), "");
    assert!(played.ended.stderr.contains("tools.webFetch.allowPrivateHosts"), "{}", played.ended.stderr);
    let allowed = json!({ "tools": { "webFetch": { "allowPrivateHosts": [listener.address] } } });
    trusted(&settings).user_settings(&allowed).play(&[]);
    assert!(listener.heard().starts_with("POST /mcp "), "{}", listener.heard());
}

#[test]
fn the_configuration_of_a_trusted_folder_names_no_variable_of_the_user_unless_the_user_allows_it() {
    let listener = Listener::new();
    let server = json!({ "url": format!("http://{}/mcp", listener.address),
                         "headers": { "X-Name": "${MY_NAME}", "X-Home": "${HOME}" } });
    let settings = json!({ "mcpServers": { "s": server } });
    let hosts = json!({ "webFetch": { "allowPrivateHosts": [listener.address] } });
    let played = trusted(&settings).user_settings(&json!({ "tools": hosts })).play(&[]);
    assert_eq!(listener.heard(), "");
    assert!(played.ended.stderr.contains("security.workspaceVariables"), "{}", played.ended.stderr);
    assert!(!played.leaks("n-4711-of-the-user"));
    let allowed = json!({ "tools": hosts, "security": { "workspaceVariables": ["MY_NAME"] } });
    trusted(&settings).user_settings(&allowed).play(&[]);
    assert!(listener.heard().contains("n-4711-of-the-user"), "{}", listener.heard());
}

#[test]
fn programs_of_a_trusted_folder_get_no_secret_of_the_users_environment_unless_the_user_allows_it() {
    let settings = |scene: &Scene, name: &str| {
        let line = format!("env > {}/{name}", scene.here().display());
        let mut settings = hook(&json!({ "type": "command", "command": format!("{line}-hook") }));
        settings["mcpServers"] =
            json!({ "s": { "command": "sh", "args": ["-c", format!("{line}-server")] } });
        settings.to_string()
    };
    let run = |of_workspace: bool, allowed: &[&str]| {
        let scene = trusted(&json!({}));
        let own = json!({ "security": { "workspaceVariables": allowed } });
        if of_workspace {
            write(scene.here().join(".qwen/settings.json"), settings(&scene, "got"));
            write(scene.program.qwen_home_path().join("settings.json"), own.to_string());
        } else {
            write(scene.program.qwen_home_path().join("settings.json"), settings(&scene, "got"));
        }
        scene.play(&[]);
        ["got-hook", "got-server"].map(|name| fs::read_to_string(scene.here().join(name)).unwrap())
    };
    for got in run(true, &[]) {
        assert!(!got.contains("MY_TOKEN") && got.contains("MY_NAME=") && got.contains("PATH="), "{got}");
    }
    for got in run(true, &["MY_TOKEN"]).into_iter().chain(run(false, &[])) {
        assert!(got.contains("MY_TOKEN=t-4711"), "{got}");
    }
}

#[test]
fn command_hooks_of_a_trusted_folder_run_in_the_sandbox_of_commands() {
    if !has_sandbox() {
        return;
    }
    let listener = Listener::new();
    let port = listener.address.rsplit(':').next().unwrap().to_owned();
    // It waits for the answer, so that the listener has heard it when the hook ends.
    let call = format!("bash -c 'exec 3<>/dev/tcp/127.0.0.1/{port} && echo hello >&3 && head -c 1 <&3'");
    let run = |sandbox: &[&str]| {
        let scene = Scene::new().args(["--trust-workspace"]).args(sandbox.iter().copied());
        let line = format!(
            "echo in > made; echo out > {}/made; {call} > /dev/null; exit 0",
            scene.outside.path().display()
        );
        let settings = hook(&json!({ "type": "command", "command": line }));
        write(scene.here().join(".qwen/settings.json"), settings.to_string());
        scene.play(&[]);
        (scene.here().join("made").exists(), scene.out("made").exists())
    };
    assert_eq!(run(&[]), (true, false), "it writes in the workspace only");
    assert_eq!(listener.heard(), "", "it reaches nobody");
    assert_eq!(run(&["--sandbox=false"]), (true, true), "the user allows it");
    assert!(listener.heard().contains("hello"), "{}", listener.heard());
}
