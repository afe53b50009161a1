//! Files that libraries read on our behalf: ignore files that are pipes, devices or endless.

use std::os::unix::fs::symlink;
use std::process::Command;

use serde_json::json;

use crate::stage::{Scene, write};

fn searches() -> [(&'static str, serde_json::Value); 2] {
    [("grep_search", json!({"pattern": "alpha"})), ("glob", json!({"pattern": "**/fi*"}))]
}

fn fifo(path: &std::path::Path) {
    assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
}

#[test]
fn an_ignore_file_that_never_ends_does_not_hold_up_a_search() {
    for name in [".gitignore", ".ignore", ".qwenignore", ".git/info/exclude"] {
        for kind in ["pipe", "device", "huge"] {
            for directory in ["", "sub"] {
                let scene = Scene::in_repository();
                let path = scene.here().join(directory).join(name);
                std::fs::create_dir_all(path.parent().unwrap()).unwrap();
                // git puts a file there itself.
                let _ = std::fs::remove_file(&path);
                match kind {
                    "pipe" => fifo(&path),
                    "device" => symlink("/dev/zero", &path).unwrap(),
                    _ => std::fs::File::create(&path).unwrap().set_len(4 << 30).unwrap(),
                }
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
