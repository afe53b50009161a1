//! The index, compared with what git itself reads and writes.

#![expect(clippy::unwrap_used, reason = "what the tests share may fail as they do")]

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use qwen_git::index::{self, FileStamp, Index, TrackedKind};

fn git(directory: &Path, arguments: &[&str]) -> String {
    let output = Command::new("git")
        .current_dir(directory)
        .args(["-c", "user.name=t", "-c", "user.email=t@example.org"])
        .args(arguments)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .output()
        .unwrap();
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

fn repository(version: &str) -> tempfile::TempDir {
    let place = tempfile::tempdir().unwrap();
    git(place.path(), &["init", "-q"]);
    for name in ["a", "private/deep/long name ü.txt", "private/key", "private0", "z/last"] {
        let path = place.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, name).unwrap();
    }
    std::os::unix::fs::symlink("a", place.path().join("link")).unwrap();
    std::fs::set_permissions(place.path().join("z/last"), std::fs::Permissions::from_mode(0o755)).unwrap();
    git(place.path(), &["add", "-A"]);
    git(place.path(), &["update-index", "--index-version", version]);
    git(place.path(), &["commit", "-qm", "one"]);
    place
}

fn read(place: &Path) -> Index {
    Index::read(&place.join(".git"), 20).unwrap().unwrap()
}

#[test]
fn every_version_of_an_index_is_read_as_git_reads_it() {
    for version in ["2", "3", "4"] {
        let place = repository(version);
        if version != "2" {
            git(place.path(), &["update-index", "--skip-worktree", "z/last"]);
        }
        let listed: String = read(place.path())
            .entries
            .iter()
            .map(|entry| {
                let hex: String = entry.object.iter().map(|byte| format!("{byte:02x}")).collect();
                let mode = match entry.kind() {
                    TrackedKind::File { executable: true } => "100755",
                    TrackedKind::File { executable: false } => "100644",
                    TrackedKind::Link => "120000",
                    TrackedKind::Submodule => "160000",
                    TrackedKind::Directory => "040000",
                };
                format!("{mode} {hex} {}\t{}\0", entry.stage(), entry.path.display())
            })
            .collect();
        assert_eq!(listed, git(place.path(), &["ls-files", "-sz"]), "version {version}");
    }
}

#[test]
fn a_stamp_makes_git_find_a_file_unchanged_and_changes_nothing_else() {
    for version in ["2", "4"] {
        let place = repository(version);
        let before = git(place.path(), &["ls-files", "-s"]);
        let stamp = FileStamp { modified: 1, size: 11 };
        index::restamp(&place.path().join(".git"), 20, &[(PathBuf::from("private/key"), stamp)]).unwrap();
        let index = read(place.path());
        let entry = index.entries.iter().find(|entry| entry.path == Path::new("private/key")).unwrap();
        assert_eq!(entry.stamp(), stamp);
        assert!(!index.is_racy(entry));
        assert_eq!(git(place.path(), &["ls-files", "-s"]), before);
        assert_eq!(
            git(place.path(), &["status", "--porcelain"]),
            "",
            "git heals the stamp by reading the file"
        );
        git(place.path(), &["fsck", "--strict"]);
    }
}

#[test]
fn removed_and_changed_entries_are_put_back_among_later_changes() {
    for version in ["2", "4"] {
        let place = repository(version);
        let is_meant = |path: &Path| path.starts_with("private");
        let tracked: Vec<_> =
            read(place.path()).entries.into_iter().filter(|entry| is_meant(&entry.path)).collect();
        git(place.path(), &["rm", "-qr", "--cached", "private"]);
        std::fs::write(place.path().join("new"), "new").unwrap();
        git(place.path(), &["add", "new"]);
        let id = git(place.path(), &["hash-object", "-w", "a"]);
        let info = format!("100644,{},private", id.trim());
        git(place.path(), &["update-index", "--add", "--cacheinfo", &info]);
        index::restore(&place.path().join(".git"), 20, &tracked, &is_meant).unwrap();
        assert_eq!(git(place.path(), &["status", "--porcelain"]), "A  new\n");
        let now = read(place.path());
        assert!(
            tracked
                .iter()
                .all(|old| now.entries.iter().any(|entry| entry.path == old.path && entry.tracks_same(old)))
        );
    }
}

#[test]
fn a_change_in_the_second_of_the_index_stays_visible() {
    let place = repository("2");
    let stamp = FileStamp { modified: 1, size: 11 };
    // As long as the index, and written in the same second.
    std::fs::write(place.path().join("a"), "b").unwrap();
    let time = std::fs::metadata(place.path().join(".git/index")).unwrap().modified().unwrap();
    std::fs::File::options().write(true).open(place.path().join("a")).unwrap().set_modified(time).unwrap();
    index::restamp(&place.path().join(".git"), 20, &[(PathBuf::from("private/key"), stamp)]).unwrap();
    assert_eq!(git(place.path(), &["status", "--porcelain"]), " M a\n");
}

#[test]
fn a_split_or_damaged_index_is_refused() {
    let place = repository("2");
    git(place.path(), &["update-index", "--split-index"]);
    assert!(Index::read(&place.path().join(".git"), 20).is_err());
    for text in [&b""[..], b"DIRC", b"DIRC\0\0\0\x09\0\0\0\x01", b"DIRC\0\0\0\x02\xff\xff\xff\xff"] {
        std::fs::write(place.path().join(".git/index"), text).unwrap();
        assert!(Index::read(&place.path().join(".git"), 20).is_err());
    }
}
