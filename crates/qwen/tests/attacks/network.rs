//! Addresses that lead back inside: this machine, its neighbours and the cloud's own services, however they
//! are spelt.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::json;

use crate::harness::{Scene, TREASURE};

fn fetch(url: &str) -> (&'static str, serde_json::Value) {
    ("web_fetch", json!({ "url": url, "prompt": "What does it say?" }))
}

/// Somebody who must not be called.
struct Ear(Vec<TcpListener>);

impl Ear {
    fn new() -> (Self, u16) {
        let four = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = four.local_addr().unwrap().port();
        // Where there is no IPv6, nobody can be called by it.
        let ears: Vec<_> =
            [Some(four), TcpListener::bind(("::1", port)).ok()].into_iter().flatten().collect();
        for ear in &ears {
            ear.set_nonblocking(true).unwrap();
        }
        (Self(ears), port)
    }

    fn was_called(&self) -> bool {
        self.0.iter().any(|ear| ear.accept().is_ok())
    }
}

#[test]
fn no_spelling_of_this_machine_is_fetched() {
    #[rustfmt::skip]
    let hosts = [
        "127.0.0.1", "localhost", "LOCALHOST", "localhost.", "a.localhost", "127.1", "127.0.1", "2130706433", "0x7f000001", "0x7f.1",
        "0177.0.0.1", "017700000001", "0x7f.0x0.0x0.0x1", "127.0.0.1.", "127.255.255.254", "[::1]", "[0:0:0:0:0:0:0:1]",
        "[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "[0:0:0:0:0:ffff:127.0.0.1]", "[::127.0.0.1]", "[64:ff9b::7f00:1]", "[2002:7f00:1::]",
        "0.0.0.0", "0", "[::]", "user@127.0.0.1", "example.com@127.0.0.1", "user:pass@localhost", "127.0.0.1%00.example.com",
        "127.0.0.1\u{0}.example.com", "①②⑦.⓪.⓪.①", "127。0。0。1", "local\u{ad}host", "ⓛocalhost", "127.0.0.1\t", " 127.0.0.1", "[::1%lo]",
        "[fe80::1%25lo]", "ip6-localhost", "127.000.000.001",
    ];
    let (ear, port) = Ear::new();
    let scene = Scene::new().args(["--yolo", "--sandbox=false"]);
    let urls: Vec<String> = hosts.iter().map(|host| format!("http://{host}:{port}/")).collect();
    let calls: Vec<_> = urls.iter().map(|url| fetch(url)).collect();
    let played = scene.play(&calls);
    assert!(!ear.was_called(), "one of them got through: {:#?}", played.asked.last());
    for (at, url) in urls.iter().enumerate() {
        let result = played.result(&format!("c{}", at + 1));
        assert!(!result.contains("was not received within"), "{url} was tried: {result}");
    }
}

#[test]
fn no_proxy_is_asked_for_this_machine() {
    let (ear, port) = Ear::new();
    let proxy = format!("http://127.0.0.1:{port}");
    // The model itself is reached directly.
    let rows = [vec![("HTTP_PROXY", proxy.as_str())], vec![("ALL_PROXY", &proxy), ("NO_PROXY", "127.0.0.1")]];
    for variables in rows {
        let mut scene = Scene::new().args(["--yolo", "--sandbox=false"]);
        for (name, value) in &variables {
            scene = scene.env(name, value);
        }
        let hosts =
            ["localhost", "a.localhost", "LOCALHOST.", "[::1]", "127.0.0.2", "10.0.0.1", "169.254.169.254"];
        let urls: Vec<String> = hosts.iter().map(|host| format!("http://{host}:9/")).collect();
        let calls: Vec<_> = urls.iter().map(|url| fetch(url)).collect();
        let played = scene.play(&calls);
        assert!(!ear.was_called(), "{variables:?}: one of them was asked for: {:#?}", played.asked.last());
        for (at, url) in urls.iter().enumerate() {
            let result = played.result(&format!("c{}", at + 1));
            assert!(result.contains("not part of the public net"), "{variables:?} {url}: {result}");
        }
    }
}

#[test]
fn no_other_scheme_is_fetched() {
    let (ear, port) = Ear::new();
    let scene = Scene::new().args(["--yolo", "--sandbox=false"]);
    let file = scene.out("treasure").display().to_string();
    #[rustfmt::skip]
    let urls = [
        format!("file://{file}"), format!("FILE://{file}"), format!("file:{file}"), file.clone(), format!("http:{file}"),
        format!("gopher://127.0.0.1:{port}/_x"), format!("ftp://127.0.0.1:{port}/"), format!("ws://127.0.0.1:{port}/"),
        format!("HTTP://127.0.0.1:{port}/"), format!("HtTp://127.0.0.1:{port}/"), format!("http:\\\\127.0.0.1:{port}\\"),
        format!("http:/127.0.0.1:{port}/"), format!("http:127.0.0.1:{port}/"), format!("//127.0.0.1:{port}/"), format!("127.0.0.1:{port}"),
        format!("http://127.0.0.1:{port}#@example.com/"), format!("http://127.0.0.1:{port}?@example.com/"), format!("\thttp://127.0.0.1:{port}/"),
        format!("http://127.0.0.1:{port}/\r\nHost: x"), format!("view-source:http://127.0.0.1:{port}/"), format!("jar:http://127.0.0.1:{port}/!/"),
        format!("data:text/plain,{file}"), "http://".into(), "http://:80/".into(), "http://[/".into(), "http://127.0.0.1:99999/".into(),
    ];
    let calls: Vec<_> = urls.iter().map(|url| fetch(url)).collect();
    let played = scene.play(&calls);
    assert!(!ear.was_called(), "one of them got through: {:#?}", played.asked.last());
    assert!(!played.leaks(TREASURE));
}

#[test]
fn addresses_of_the_cloud_and_of_neighbours_are_refused_by_their_number() {
    let scene = Scene::new().args(["--yolo", "--sandbox=false"]);
    #[rustfmt::skip]
    let hosts = [
        "169.254.169.254", "100.100.100.200", "[::ffff:169.254.169.254]", "[::ffff:a9fe:a9fe]", "2852039166", "0xa9fea9fe", "169.254.43518",
        "0251.0376.0251.0376", "[fd00:ec2::254]", "[fe80::1]", "10.0.0.1", "172.16.0.1", "192.168.1.1", "100.64.0.1", "192.0.0.1", "198.18.0.1",
        "224.0.0.1", "255.255.255.255", "[fc00::1]", "[ff02::1]", "[64:ff9b::a9fe:a9fe]", "[::ffff:100.100.100.200]", "[2002:a9fe:a9fe::]",
    ];
    let urls: Vec<String> = hosts.iter().map(|host| format!("http://{host}/latest/meta-data/")).collect();
    let calls: Vec<_> = urls.iter().map(|url| fetch(url)).collect();
    let played = scene.play(&calls);
    for (at, url) in urls.iter().enumerate() {
        let result = played.result(&format!("c{}", at + 1));
        let refused = result.contains("allowPrivateHosts") || result.contains("odd spelling");
        assert!(refused, "{url} was not refused by its address: {result}");
    }
}

#[test]
fn a_redirect_leads_nowhere_that_the_first_address_could_not() {
    let (ear, port) = Ear::new();
    let door = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = door.local_addr().unwrap();
    #[rustfmt::skip]
    let ways = [
        format!("http://127.0.0.1:{port}/"), format!("http://localhost:{port}/"), format!("http://[::1]:{port}/"),
        format!("http://[::ffff:127.0.0.1]:{port}/"), format!("http://2130706433:{port}/"), format!("//127.0.0.1:{port}/"),
        format!("http://{address}@127.0.0.1:{port}/"), "http://169.254.169.254/".into(), "http://100.100.100.200/".into(),
        "http://[::ffff:169.254.169.254]/".into(), "file:///etc/passwd".into(), "FILE:///etc/passwd".into(), format!("gopher://127.0.0.1:{port}/_x"),
    ];
    let scene = Scene::new().args(["--yolo", "--sandbox=false"]);
    let listed = json!({ "tools": { "webFetch": { "allowPrivateHosts": [address.to_string()] } } });
    let scene = scene.user_settings(&listed);
    let mut calls: Vec<_> = (0..ways.len()).map(|at| fetch(&format!("http://{address}/{at}"))).collect();
    calls.push(fetch(&format!("http://{address}/page")));
    let stop = AtomicBool::new(false);
    let played = std::thread::scope(|scope| {
        scope.spawn(|| {
            for stream in door.incoming() {
                if stop.load(Ordering::Relaxed) {
                    return;
                }
                let mut stream = stream.unwrap();
                let mut head = Vec::new();
                let mut byte = [0];
                while !head.ends_with(b"\r\n\r\n") && stream.read(&mut byte).is_ok_and(|n| n == 1) {
                    head.push(byte[0]);
                }
                let head = String::from_utf8_lossy(&head).into_owned();
                let path = head.split(' ').nth(1).unwrap_or("/").trim_start_matches('/').to_owned();
                let answer = match path.parse::<usize>().ok().and_then(|at| ways.get(at)) {
                    Some(way) => format!("HTTP/1.1 302 Found\r\nLocation: {way}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"),
                    None => "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 4\r\nConnection: close\r\n\r\ntwin".into(),
                };
                let _ = stream.write_all(answer.as_bytes());
            }
        });
        let played = scene.play(&calls);
        stop.store(true, Ordering::Relaxed);
        drop(std::net::TcpStream::connect(address));
        played
    });
    assert!(!ear.was_called(), "a redirect got through");
    assert!(!played.leaks("root:"), "a file was read");
    let page = played.result(&format!("c{}", calls.len()));
    assert!(page.contains("twin"), "a page of a listed host is fetched: {page}");
}

#[test]
fn addresses_in_a_command_line_are_not_dialled() {
    let (ear, port) = Ear::new();
    let scene = Scene::new().args([
        "--sandbox=false",
        "--allowed-tools",
        "Bash(echo *)",
        "--allowed-tools",
        "Bash(cat *)",
    ]);
    #[rustfmt::skip]
    let commands = [
        format!("echo x > /dev/tcp/127.0.0.1/{port}"), format!("cat < /dev/tcp/127.0.0.1/{port}"), format!("exec 3<>/dev/tcp/localhost/{port}"),
        format!("echo x > /dev/tcp/127.0.0.1/$(echo {port})"), format!("p={port}; cat </dev/tcp/127.0.0.1/$p"), format!("echo x >&/dev/tcp/127.0.0.1/{port}"),
        format!("echo x > /dev//tcp/127.0.0.1/{port}"), format!("{{ echo x; }} 3<>/dev/tcp/127.0.0.1/{port} >&3"),
    ];
    let calls: Vec<_> =
        commands.iter().map(|command| ("run_shell_command", json!({ "command": command }))).collect();
    let played = scene.play(&calls);
    assert!(!ear.was_called());
    for (at, command) in commands.iter().enumerate() {
        assert!(played.lists(&format!("c{}", at + 1)), "{command}");
    }
}
