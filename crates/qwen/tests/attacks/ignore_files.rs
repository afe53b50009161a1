//! Files that libraries read on our behalf, and files of the repository that we read ourselves: pipes,
//! devices and endless ones.

use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

use serde_json::json;

use crate::harness::{Scene, write};

fn searches() -> [(&'static str, serde_json::Value); 2] {
    [("grep_search", json!({"pattern": "alpha"})), ("glob", json!({"pattern": "**/fi*"}))]
}

/// Puts something in the place of a file that never ends, or is far too large.
fn endless(kind: &str, path: &Path) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    let _ = std::fs::remove_file(path);
    match kind {
        "pipe" => assert!(Command::new("mkfifo").arg(path).status().unwrap().success()),
        "device" => symlink("/dev/zero", path).unwrap(),
        _ => std::fs::File::create(path).unwrap().set_len(4 << 30).unwrap(),
    }
}

#[test]
fn an_ignore_file_that_never_ends_does_not_hold_up_a_search() {
    for name in [".gitignore", ".ignore", ".qwenignore", ".git/info/exclude"] {
        for kind in ["pipe", "device", "huge"] {
            for directory in ["", "sub"] {
                let scene = Scene::in_repository();
                let path = scene.here().join(directory).join(name);
                endless(kind, &path);
                let played = scene.play(&searches());
                for id in ["c1", "c2"] {
                    assert!(
                        played.result(id).contains("file"),
                        "{kind} {directory}/{name}: {}",
                        played.result(id)
                    );
                }
            }
        }
    }
}

#[test]
fn a_file_of_the_repository_that_never_ends_does_not_hold_up_a_turn() {
    for name in [".git/HEAD", ".git/config", ".git/index", ".git/commondir", "QWEN.md", ".env", ".gitmodules"]
    {
        for kind in ["pipe", "device", "huge"] {
            let scene = Scene::in_repository();
            endless(kind, &scene.here().join(name));
            let played = scene.play(&searches());
            assert!(played.result("c1").contains("file"), "{kind} {name}: {}", played.result("c1"));
        }
    }
}

#[test]
fn ordinary_ignore_files_count() {
    for name in [".gitignore", ".ignore", ".qwenignore", ".git/info/exclude"] {
        let scene = Scene::in_repository();
        write(scene.here().join("ignored/file"), "alpha\n");
        write(scene.here().join(name), "ignored/\n");
        let played = scene.play(&searches());
        for id in ["c1", "c2"] {
            let result = played.result(id);
            assert!(result.contains("file") && !result.contains("ignored"), "{name}: {result}");
        }
    }
}
