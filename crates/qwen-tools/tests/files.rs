//! The file tools on real files.

mod fixture;

use std::os::unix::fs::symlink;

use fixture::Fixture;
use qwen_events::{Confirmation, Display, MediaSource, TodoStatus};
use serde_json::json;

#[tokio::test]
async fn a_text_is_read_with_its_line_numbers() {
    let fixture = Fixture::new();
    fixture.write("a.txt", "one\r\ntwo\n");
    assert_eq!(
        fixture.call("read_file", json!({"file_path": "a.txt"})).await.text,
        "[lines 1 to 2 of 2; some lines end with CRLF]\n1\tone\n2\ttwo\n"
    );
    let absolute = fixture.path().join("a.txt");
    let outcome = fixture.call("read_file", json!({"file_path": absolute, "offset": 2, "limit": 1})).await;
    assert_eq!(outcome.text, "[lines 2 to 2 of 2; some lines end with CRLF]\n2\ttwo\n");
}

#[tokio::test]
async fn images_are_given_as_images_and_other_binaries_kindly_refused() {
    let fixture = Fixture::new();
    fixture.write("a.bin", b"\x89PNG\r\n\x1a\nxyz");
    let outcome = fixture.call("read_file", json!({"file_path": "a.bin"})).await;
    assert_eq!(&*outcome.media[0].mime_type, "image/png");
    assert_eq!(outcome.media[0].source, MediaSource::Base64("iVBORw0KGgp4eXo=".into()));
    for (content, word) in [(&b"%PDF-1.4"[..], "PDF"), (b"\x7fELF\0\0", "binary")] {
        fixture.write("b", content);
        let outcome = fixture.call("read_file", json!({"file_path": "b"})).await;
        assert_eq!(outcome.error_code, Some("binary_file"));
        assert!(outcome.text.contains(word), "{}", outcome.text);
    }
    fixture.write("c", b"caf\xe9\n");
    let outcome = fixture.call("read_file", json!({"file_path": "c"})).await;
    assert_eq!(
        outcome.text,
        "[lines 1 to 1 of 1; bytes that are not UTF-8 are shown as \u{fffd}]\n1\tcaf\u{fffd}\n"
    );
}

#[tokio::test]
async fn a_file_that_is_too_large_is_refused_with_its_size() {
    let fixture = Fixture::new();
    fixture.write("big", "");
    std::fs::File::options()
        .write(true)
        .open(fixture.path().join("big"))
        .unwrap()
        .set_len(20 * 1024 * 1024 + 1)
        .unwrap();
    let outcome = fixture.call("read_file", json!({"file_path": "big"})).await;
    assert_eq!(outcome.error_code, Some("file_too_large"));
    assert!(outcome.text.contains("20971521 bytes"), "{}", outcome.text);
}

#[tokio::test]
async fn every_file_tool_stays_in_the_workspace() {
    let fixture = Fixture::new();
    let outside = tempfile::tempdir().unwrap();
    std::fs::write(outside.path().join("secret"), "secret needle").unwrap();
    symlink(outside.path(), fixture.path().join("out")).unwrap();
    symlink(outside.path().join("secret"), fixture.path().join("secret")).unwrap();
    let secret = outside.path().join("secret");
    for path in [secret.to_str().unwrap(), "out/secret", "secret"] {
        for (tool, arguments) in [
            ("read_file", json!({"file_path": path})),
            ("write_file", json!({"file_path": path, "content": "x"})),
            ("edit", json!({"file_path": path, "old_string": "secret", "new_string": "x"})),
            ("grep_search", json!({"pattern": "needle", "path": path})),
        ] {
            let outcome = fixture.call(tool, arguments).await;
            assert_eq!(outcome.error_code, Some("path_outside_workspace"), "{tool} {path}: {}", outcome.text);
        }
    }
    for tool in ["list_directory", "glob", "grep_search"] {
        let outcome = fixture.call(tool, json!({"path": "out", "pattern": "a"})).await;
        assert_eq!(outcome.error_code, Some("path_outside_workspace"), "{tool}: {}", outcome.text);
    }
    assert_eq!(
        fixture.call("grep_search", json!({"pattern": "needle"})).await.text,
        "No line matches needle."
    );
    assert_eq!(fixture.call("glob", json!({"pattern": "**/*"})).await.text, "No file matches **/*.");
    assert_eq!(std::fs::read_to_string(&secret).unwrap(), "secret needle");
}

#[tokio::test]
async fn a_file_is_made_and_its_diff_shown() {
    let fixture = Fixture::new();
    let arguments = json!({"file_path": "new/a.txt", "content": "one\ntwo\n"});
    let asked = fixture.confirmation("write_file", &arguments);
    assert!(!fixture.path().join("new").exists());
    let outcome = fixture.call("write_file", arguments).await;
    assert_eq!(outcome.text, "Created new/a.txt (+2 -0 lines).");
    assert_eq!(fixture.read("new/a.txt"), "one\ntwo\n");
    let Some(Display::FileDiff(diff)) = outcome.display else { panic!("no diff") };
    assert_eq!(&*diff.file_name, "new/a.txt");
    assert_eq!(&*diff.file_path, fixture.path().join("new/a.txt").to_str().unwrap());
    assert_eq!(&*diff.diff, "--- /dev/null\n+++ b/new/a.txt\n@@ -0,0 +1,2 @@\n+one\n+two\n");
    assert_eq!((diff.original.clone(), &*diff.modified), (None, "one\ntwo\n"));
    assert_eq!(asked, Some(Confirmation::Edit(diff)));
}

#[tokio::test]
async fn a_file_that_changed_since_it_was_read_is_not_overwritten() {
    let fixture = Fixture::new();
    let write = json!({"file_path": "a", "content": "ours"});
    let edit = json!({"file_path": "a", "old_string": "e", "new_string": "x", "replace_all": true});
    fixture.write("a", "before");
    fixture.call("read_file", json!({"file_path": "a"})).await;
    fixture.write("a", "the theirs");
    for (tool, arguments) in [("write_file", &write), ("edit", &edit)] {
        let outcome = fixture.call(tool, arguments.clone()).await;
        assert_eq!(outcome.error_code, Some("file_changed"), "{tool}: {}", outcome.text);
    }
    assert_eq!(fixture.read("a"), "the theirs");
    fixture.call("read_file", json!({"file_path": "a"})).await;
    assert_eq!(
        fixture.call("edit", edit.clone()).await.text,
        "Edited a: 2 occurrences (+1 -1 lines). It reads now:\n1\tthx thxirs"
    );
    // Our own change is not somebody else's, and a file written anew with the same content has not changed.
    fixture.write("a", "thx thxirs");
    assert_eq!(fixture.call("write_file", write.clone()).await.error_code, None);
    // A file that the model has not read is not overwritten, unless it is empty.
    fixture.write("never read", "x");
    let unseen = json!({"file_path": "never read", "content": "ours"});
    assert_eq!(fixture.call("write_file", unseen.clone()).await.error_code, Some("file_not_read"));
    let edit = json!({"file_path": "never read", "old_string": "x", "new_string": "y"});
    assert_eq!(fixture.call("edit", edit).await.error_code, None);
    assert_eq!(fixture.call("write_file", unseen).await.error_code, Some("file_not_read"));
    assert_eq!(fixture.read("never read"), "y");
    fixture.write("empty", "");
    let empty = json!({"file_path": "empty", "content": "ours"});
    assert_eq!(fixture.call("write_file", empty).await.error_code, None);
}

#[tokio::test]
async fn an_edit_of_a_changed_file_is_applied_and_reports_the_change_and_its_author() {
    let fixture = Fixture::new();
    fixture.write("a", "one\ntwo\nthree\n");
    fixture.call("read_file", json!({"file_path": "a"})).await;
    fixture.shell("sed -i s/one/1/ a").await;
    let edit = json!({"file_path": "a", "old_string": "two", "new_string": "2"});
    let outcome = fixture.call("edit", edit).await;
    assert_eq!(
        outcome.text,
        "Edited a (+1 -1 lines). It reads now:\n1\t1\n2\t2\n3\tthree\nThe file had changed since you last saw it: your own \
         command `sed -i s/one/1/ a` changed it. This was its change:\n@@ -1,3 +1,3 @@\n-one\n+1\n two\n three"
    );
    // A change by others before the command ran is not the command's.
    fixture.write("a", "1\n2\nthree\nfour\n");
    fixture.shell("true").await;
    let outcome =
        fixture.call("edit", json!({"file_path": "a", "old_string": "three", "new_string": "3"})).await;
    assert!(outcome.text.contains("something else than your commands changed it."), "{}", outcome.text);
    assert!(outcome.text.ends_with("@@ -1,3 +1,4 @@\n 1\n 2\n three\n+four"), "{}", outcome.text);
    assert_eq!(fixture.read("a"), "1\n2\n3\nfour\n");
}

#[tokio::test]
async fn a_large_edit_shows_at_most_forty_lines_of_the_result() {
    let fixture = Fixture::new();
    let before: String = (1..=200).map(|n| format!("line {n}\n")).collect();
    fixture.write("a", &before);
    let new: String = (1..=60).map(|n| format!("new {n}\n")).collect();
    let edit = json!({"file_path": "a", "old_string": "line 100\n", "new_string": new});
    let outcome = fixture.call("edit", edit).await;
    let (head, region) = outcome.text.split_once('\n').unwrap();
    assert_eq!(head, "Edited a (+60 -1 lines). It reads now:");
    assert!(region.starts_with("97\tline 97\n98\tline 98\n99\tline 99\n100\tnew 1\n"), "{region}");
    assert!(region.ends_with("136\tnew 37\n… 26 more changed lines and lines around them"), "{region}");
    assert_eq!(region.lines().count(), 41);
}

#[tokio::test]
async fn an_edit_replaces_a_unique_piece_and_an_empty_one_makes_a_file() {
    let fixture = Fixture::new();
    let edit = |old: &str, new: &str| json!({"file_path": "a", "old_string": old, "new_string": new});
    assert_eq!(fixture.call("edit", edit("x", "y")).await.error_code, Some("file_not_found"));
    assert_eq!(fixture.call("edit", edit("", "one\ntwo\n")).await.text, "Created a (+2 -0 lines).");
    assert_eq!(fixture.call("edit", edit("", "x")).await.error_code, Some("invalid_arguments"));
    assert_eq!(fixture.call("edit", edit("one", "one")).await.error_code, Some("invalid_arguments"));
    assert_eq!(fixture.call("edit", edit("tow", "2")).await.error_code, Some("edit_no_match"));
    assert_eq!(fixture.call("edit", edit("o", "0")).await.error_code, Some("edit_ambiguous"));
    assert_eq!(fixture.call("edit", edit("two", "2")).await.error_code, None);
    assert_eq!(fixture.read("a"), "one\n2\n");
    fixture.write("b", b"caf\xe9 x");
    let lossy = json!({"file_path": "b", "old_string": "x", "new_string": "y"});
    assert_eq!(fixture.call("edit", lossy).await.error_code, Some("binary_file"));
}

#[tokio::test]
async fn line_ends_and_byte_order_mark_are_kept() {
    let fixture = Fixture::new();
    fixture.write("a", "\u{feff}one\r\ntwo\r\n");
    fixture.call("edit", json!({"file_path": "a", "old_string": "one\ntwo", "new_string": "1\n2"})).await;
    assert_eq!(fixture.read("a"), "\u{feff}1\r\n2\r\n");
    fixture.call("read_file", json!({"file_path": "a"})).await;
    fixture.call("write_file", json!({"file_path": "a", "content": "x\ny\n"})).await;
    assert_eq!(fixture.read("a"), "\u{feff}x\r\ny\r\n");
}

#[tokio::test]
async fn a_directory_is_listed_with_kinds_and_sizes() {
    let fixture = Fixture::new();
    fixture.write("b.txt", "12345");
    fixture.write("sub/x", "");
    fixture.write("noise.log", "");
    symlink("b.txt", fixture.path().join("link")).unwrap();
    let outcome = fixture.call("list_directory", json!({"path": ".", "ignore": ["*.log"]})).await;
    assert_eq!(outcome.text, ".:\nsub/\nb.txt (5 bytes)\nlink -> b.txt\n");
    fixture.write("empty/x", "");
    std::fs::remove_file(fixture.path().join("empty/x")).unwrap();
    assert_eq!(fixture.call("list_directory", json!({"path": "empty"})).await.text, "empty is empty.");
    assert_eq!(
        fixture.call("list_directory", json!({"path": "b.txt"})).await.error_code,
        Some("not_a_directory")
    );
    assert_eq!(
        fixture.call("list_directory", json!({"path": "none"})).await.error_code,
        Some("file_not_found")
    );
}

/// A tree with ignored, hidden and binary files.
fn tree() -> Fixture {
    let fixture = Fixture::new();
    fixture.write("src/a.rs", "fn Needle() {}\nlet needle = 1;\n");
    fixture.write("src/deep/b.rs", "no match\n");
    fixture.write("src/c.ts", "needle\r\n");
    fixture.write(".github/ci.yml", "needle: 1\n");
    fixture.write(".gitignore", "target/\n*.tmp\n");
    fixture.write(".qwenignore", "private\n");
    fixture.write("target/x.rs", "needle\n");
    fixture.write("private/x.rs", "needle\n");
    fixture.write("y.tmp", "needle\n");
    fixture.write(".git/x.rs", "needle\n");
    fixture.write("bin.rs", b"needle\0\n");
    fixture
}

#[tokio::test]
async fn files_are_found_by_pattern_newest_first_without_the_ignored() {
    let fixture = tree();
    let old = std::time::SystemTime::UNIX_EPOCH;
    std::fs::File::open(fixture.path().join("bin.rs")).unwrap().set_modified(old).unwrap();
    let later = old + std::time::Duration::from_secs(9);
    std::fs::File::open(fixture.path().join("src/deep/b.rs")).unwrap().set_modified(later).unwrap();
    let glob = async |arguments| fixture.call("glob", arguments).await.text;
    assert_eq!(
        glob(json!({"pattern": "**/*.rs"})).await,
        "3 files, newest first:\nsrc/a.rs\nsrc/deep/b.rs\nbin.rs\n"
    );
    assert_eq!(glob(json!({"pattern": "*.rs"})).await, "1 file:\nbin.rs\n");
    assert_eq!(glob(json!({"pattern": "*.{ts,js}", "path": "src"})).await, "1 file:\nsrc/c.ts\n");
    assert_eq!(glob(json!({"pattern": "**/*.yml"})).await, "1 file:\n.github/ci.yml\n");
    let absolute = format!("{}/src/*.ts", fixture.path().display());
    assert_eq!(glob(json!({"pattern": absolute})).await, "1 file:\nsrc/c.ts\n");
    assert_eq!(fixture.call("glob", json!({"pattern": "[a"})).await.error_code, Some("invalid_arguments"));
}

#[tokio::test]
async fn lines_are_found_by_file_with_their_numbers() {
    let fixture = tree();
    let grep = async |arguments| fixture.call("grep_search", arguments).await.text;
    assert_eq!(
        grep(json!({"pattern": "needle"})).await,
        "4 matches in 3 files:\n.github/ci.yml\n1: needle: 1\nsrc/a.rs\n1: fn Needle() {}\n2: let needle = 1;\nsrc/c.ts\n1: needle\n"
    );
    assert_eq!(grep(json!({"pattern": "Needle"})).await, "1 match:\nsrc/a.rs\n1: fn Needle() {}\n");
    assert_eq!(grep(json!({"pattern": "^needle$"})).await, "1 match:\nsrc/c.ts\n1: needle\n");
    assert_eq!(
        grep(json!({"pattern": "needle", "glob": "*.{ts,js}"})).await,
        "1 match:\nsrc/c.ts\n1: needle\n"
    );
    assert_eq!(
        grep(json!({"pattern": "needle", "glob": "*.py"})).await,
        "Nothing was searched: no file in . matches the glob *.py."
    );
    assert_eq!(
        grep(json!({"pattern": "^needle$", "glob": "*.py, *.ts"})).await,
        "1 match:\nsrc/c.ts\n1: needle\n"
    );
    assert_eq!(grep(json!({"pattern": "nothing", "glob": "*.ts"})).await, "No line matches nothing.");
    assert_eq!(
        grep(json!({"pattern": "needle", "path": "src/c.ts"})).await,
        "1 match:\nsrc/c.ts\n1: needle\n"
    );
    assert!(
        grep(json!({"pattern": "needle", "limit": 1}))
            .await
            .starts_with("The first 1 matches (there are more")
    );
    assert_eq!(
        fixture.call("grep_search", json!({"pattern": "("})).await.error_code,
        Some("invalid_arguments")
    );
}

#[tokio::test]
async fn the_first_matches_by_name_are_reported_with_any_number_of_threads() {
    let fixture = Fixture::new();
    for n in 0..300 {
        fixture.write(&format!("d{:02}/f{n:03}", n % 30), "hit\nmiss\nhit\n");
    }
    let mut files: Vec<String> = (0..300).map(|n| format!("d{:02}/f{n:03}", n % 30)).collect();
    files.sort();
    let expected = |count: usize| {
        let lines = files.iter().flat_map(|file| [(file, 1), (file, 3)]).take(count);
        lines
            .map(|(file, line)| if line == 1 { format!("{file}\n1: hit\n") } else { "3: hit\n".to_owned() })
            .collect::<String>()
    };
    for limit in [1, 2, 77, 599] {
        let text = fixture.call("grep_search", json!({"pattern": "hit", "limit": limit})).await.text;
        let (head, body) = text.split_once('\n').unwrap();
        assert!(head.starts_with(&format!("The first {limit} matches (there are more")), "{head}");
        assert_eq!(body, expected(limit), "{limit}");
    }
    let text = fixture.call("grep_search", json!({"pattern": "hit", "limit": 600})).await.text;
    assert_eq!(text, format!("600 matches in 300 files:\n{}", expected(600)));
}

#[tokio::test]
async fn a_search_that_was_cancelled_says_so() {
    let fixture = tree();
    fixture.cx.cancel.cancel();
    for tool in ["glob", "grep_search"] {
        assert!(fixture.call(tool, json!({"pattern": "a"})).await.cancelled, "{tool}");
    }
}

#[tokio::test]
async fn a_list_of_things_to_do_is_shown() {
    let fixture = Fixture::new();
    let todos = json!([{"id": "a", "content": "one", "status": "completed"}, {"content": "two", "status": "in_progress"}]);
    let outcome = fixture.call("todo_write", json!({"todos": todos})).await;
    assert_eq!(outcome.text, "The list has 2 entries: 1 completed, 1 in progress, 0 pending.");
    let Some(Display::TodoList(todos)) = outcome.display else { panic!("no list") };
    assert_eq!((&*todos[0].id, &*todos[1].id, todos[1].status), ("a", "2", TodoStatus::InProgress));
}

#[tokio::test]
async fn wrong_arguments_are_refused_by_the_name_of_their_field() {
    let fixture = Fixture::new();
    fixture.write("a", "x\n");
    for (tool, arguments, field) in [
        ("read_file", json!({}), "file_path"),
        ("read_file", json!({"file_path": 1}), "file_path"),
        ("read_file", json!({"file_path": "a\u{0}b"}), "file_path"),
        ("read_file", json!({"file_path": "a", "offset": -1}), "offset"),
        ("read_file", json!({"file_path": "a", "offset": 2}), "offset"),
        ("read_file", json!({"file_path": "a", "limit": 0}), "limit"),
        ("write_file", json!({"file_path": "a"}), "content"),
        ("write_file", json!({"file_path": "", "content": ""}), "file_path"),
        ("edit", json!({"file_path": "a", "old_string": "x"}), "new_string"),
        ("edit", json!({"file_path": "a", "new_string": "x"}), "old_string"),
        (
            "edit",
            json!({"file_path": "a", "old_string": "x", "new_string": "y", "replace_all": 1}),
            "replace_all",
        ),
        ("list_directory", json!({}), "path"),
        ("list_directory", json!({"path": ".", "ignore": "x"}), "ignore"),
        ("list_directory", json!({"path": ".", "ignore": ["["]}), "ignore"),
        ("glob", json!({"path": "."}), "pattern"),
        ("grep_search", json!({"pattern": ""}), "pattern"),
        ("grep_search", json!({"pattern": "x", "limit": 0}), "limit"),
        ("grep_search", json!({"pattern": "x", "glob": "["}), "glob"),
        ("run_shell_command", json!({}), "command"),
        ("run_shell_command", json!({"command": " "}), "command"),
        ("run_shell_command", json!({"command": "echo \u{0}"}), "command"),
        ("run_shell_command", json!({"command": ["ls"]}), "command"),
        ("run_shell_command", json!({"command": "ls", "timeout": 0}), "timeout"),
        ("run_shell_command", json!({"command": "ls", "timeout": 600_001}), "timeout"),
        ("run_shell_command", json!({"command": "ls", "is_background": "maybe"}), "is_background"),
        ("run_shell_command", json!({"command": "ls", "description": 1}), "description"),
        ("run_shell_command", json!({"command": "ls", "directory": "/etc"}), "directory"),
        ("run_shell_command", json!({"command": "ls", "directory": "none"}), "directory"),
        ("shell_task", json!({"action": "kill"}), "task_id"),
        ("shell_task", json!({"task_id": "shell-1"}), "action"),
        ("shell_task", json!({"task_id": "shell-1", "action": "look"}), "action"),
        ("todo_write", json!({}), "todos"),
        ("todo_write", json!({"todos": [1]}), "todos[0]"),
        ("todo_write", json!({"todos": [{"status": "pending"}]}), "todos[0].content"),
        ("todo_write", json!({"todos": [{"content": "x", "status": "done"}]}), "todos[0].status"),
        ("todo_write", json!({"todos": [{"content": "x", "status": "pending", "id": []}]}), "todos[0].id"),
    ] {
        let outcome = fixture.call(tool, arguments.clone()).await;
        assert_eq!(outcome.error_code, Some("invalid_arguments"), "{tool} {arguments}: {}", outcome.text);
        assert!(outcome.text.contains(&format!("`{field}`")), "{tool} {arguments}: {}", outcome.text);
    }
}

/// Records what it is called with.
#[derive(Default)]
struct Listener(std::sync::Mutex<Vec<(String, Option<Vec<u8>>, u32)>>);

impl qwen_tools::BeforeWrite for Listener {
    fn before_write(&self, path: &std::path::Path, before: Option<qwen_tools::Before<'_>>) {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let (content, mode) = before.map_or((None, 0), |before| (Some(before.content.to_vec()), before.mode));
        let mut changes = self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        changes.push((name, content, mode));
    }

    fn after_write(&self, _path: &std::path::Path, _content: &[u8]) {}
}

#[tokio::test]
async fn a_listener_receives_the_content_of_a_file_before_it_changes() {
    use std::os::unix::fs::PermissionsExt;
    let listener = std::sync::Arc::new(Listener::default());
    let fixture = Fixture::with(|resources| resources.before_write.set(listener.clone()));
    fixture.write("old.txt", b"\xef\xbb\xbfone\r\ntwo\r\n");
    std::fs::set_permissions(fixture.path().join("old.txt"), PermissionsExt::from_mode(0o640)).unwrap();
    fixture.call("edit", json!({"file_path": "old.txt", "old_string": "one", "new_string": "1"})).await;
    fixture.call("edit", json!({"file_path": "old.txt", "old_string": "missing", "new_string": "1"})).await;
    fixture.call("write_file", json!({"file_path": "new.txt", "content": "x"})).await;
    let changes = listener.0.lock().unwrap();
    let old = b"\xef\xbb\xbfone\r\ntwo\r\n".to_vec();
    assert_eq!(*changes, [("old.txt".to_owned(), Some(old), 0o640), ("new.txt".to_owned(), None, 0)]);
}
