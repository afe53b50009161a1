//! Files that the hub writes where commands can write too: a planted link, file or socket leads nowhere.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::symlink;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;

use crate::harness::*;

/// Plants something, given the workspace and the home of the user.
type Plant = (&'static str, fn(&Path, &Path));

#[test]
fn records_follow_no_link_that_a_command_could_have_made() {
    let plants: &[Plant] = &[
        ("a link in the place of a record", |workspace, home| {
            std::fs::create_dir(workspace.join("records")).unwrap();
            symlink(home.join("profile"), workspace.join("records/a.in.jsonl")).unwrap();
        }),
        ("a link to a file that does not exist", |workspace, home| {
            std::fs::create_dir(workspace.join("records")).unwrap();
            symlink(home.join("new"), workspace.join("records/a.out.jsonl")).unwrap();
        }),
        ("a link in the place of the order", |workspace, home| {
            std::fs::create_dir(workspace.join("records")).unwrap();
            symlink(home.join("profile"), workspace.join("records/a.order")).unwrap();
        }),
        ("a link in the place of the directory", |workspace, home| {
            symlink(home, workspace.join("records")).unwrap();
        }),
        ("a second name of a file", |workspace, home| {
            std::fs::create_dir(workspace.join("records")).unwrap();
            std::fs::hard_link(home.join("profile"), workspace.join("records/a.in.jsonl")).unwrap();
        }),
    ];
    for (name, plant) in plants {
        let program = bare();
        let (workspace, home) = (program.cwd_path().to_owned(), program.home_path().to_owned());
        std::fs::write(home.join("profile"), "mine").unwrap();
        plant(&workspace, &home);
        let mut run = program.clone().args(["--record-dir", "records", "--", "--model", "demo"]).start();
        run.write_line(prompt("a", "x"));
        let ended = run.finish();
        assert_eq!(std::fs::read_to_string(home.join("profile")).unwrap(), "mine", "{name}: {ended:?}");
        assert!(!home.join("new").exists() && !home.join("a.in.jsonl").exists(), "{name}: {ended:?}");
        assert!(ended.stderr.contains("a command could have made it"), "{name}: {ended:?}");
    }
}

#[test]
fn only_a_socket_without_a_listener_is_replaced_by_that_of_the_metrics() {
    let refused = |path: &Path| {
        let ended = bare().args(["--metrics", &format!("unix:{}", path.display())]).run();
        assert_ne!(ended.code, Some(0), "{ended:?}");
        ended.stdout
    };
    let place = bare();
    let home = place.home_path();
    std::fs::write(home.join("file"), "mine").unwrap();
    symlink(home.join("file"), home.join("link")).unwrap();
    let live = UnixListener::bind(home.join("live")).unwrap();
    symlink(home.join("live"), home.join("link-to-live")).unwrap();
    std::fs::create_dir(home.join("directory")).unwrap();
    for name in ["file", "link", "live", "link-to-live", "directory"] {
        let said = refused(&home.join(name));
        assert!(said.contains("--metrics"), "{name}: {said}");
        assert!(home.join(name).symlink_metadata().is_ok(), "{name} is gone");
    }
    assert_eq!(std::fs::read_to_string(home.join("file")).unwrap(), "mine");
    assert!(UnixStream::connect(home.join("live")).is_ok());
    // A hub that was killed leaves its socket.
    drop(live);
    let address = format!("unix:{}", home.join("live").display());
    let mut run = hub_with(&["--metrics", &address], &says("Hi.")).start();
    run.write_line(prompt("a", "x"));
    run.json_until(is_end);
    assert!(UnixStream::connect(home.join("live")).is_ok());
    run.finish();
}

#[test]
fn the_metrics_port_answers_only_requests_for_this_machine() {
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let mut run = hub_with(&["--metrics", &format!("127.0.0.1:{port}")], &says("Hi.")).start();
    run.write_line(prompt("a", "x"));
    run.json_until(is_end);
    let ask = |head: &str| {
        let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
        stream.write_all(format!("GET /metrics HTTP/1.1\r\n{head}\r\n").as_bytes()).unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        text
    };
    for host in
        ["localhost", "127.0.0.1", &format!("LocalHost:{port}"), &format!("127.0.0.1:{port}"), "[::1]:80"]
    {
        let said = ask(&format!("Host: {host}\r\n"));
        assert!(said.starts_with("HTTP/1.1 200"), "{host}: {said}");
    }
    for head in [
        "Host: evil.example\r\n",
        "Host: localhost.evil.example\r\n",
        "Host: 127.0.0.1.evil.example\r\n",
        "Host: localhost@evil.example\r\n",
        "Host: 192.0.2.1\r\n",
        "Host: localhost\r\nHost: evil.example\r\n",
        "Host:\r\n",
        "X: localhost\r\n",
    ] {
        let said = ask(head);
        assert!(said.starts_with("HTTP/1.1 421") && !said.contains("qwen_"), "{head}: {said}");
    }
    let shown = bare().args(["--status", "--metrics", &format!("127.0.0.1:{port}")]).run();
    assert_eq!(shown.code, Some(0), "{shown:?}");
    run.finish();
}
