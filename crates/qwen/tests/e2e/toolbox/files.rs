//! Files: read, written, edited, found and searched.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use mock_model::{MockModel, Reply};
use serde_json::json;

use super::Shop;
use crate::harness::asked;
use crate::wire::QWEN;

#[test]
fn a_file_is_read_whole_in_part_or_kindly_refused() {
    let shop = Shop::new();
    shop.put("a.txt", "one\ntwo\nthree\n");
    shop.put("empty", "");
    shop.put("long-line", "x".repeat(200_000));
    shop.put("many", "line\n".repeat(5_000));
    shop.put("program", b"\x7fELF\0\0\0");
    shop.put("latin", b"gr\xfc\xdfe");
    shop.put("large", vec![b'x'; 21 << 20]);
    shop.put("picture.png", b"\x89PNG\r\n\x1a\n");
    fs::create_dir(shop.path("folder")).unwrap();
    let read = |name: &str| ("read_file", json!({"file_path": name}));
    let told = shop.calls(&[
        read("a.txt"),
        ("read_file", json!({"file_path": "a.txt", "offset": 2, "limit": 1})),
        read(shop.path("a.txt").to_str().unwrap()),
        read("empty"),
        read("long-line"),
        read("many"),
        read("program"),
        read("latin"),
        read("large"),
        read("nothing"),
        read("folder"),
        ("read_file", json!({"file_path": "a.txt", "offset": 99})),
        read("picture.png"),
    ]);
    assert_eq!(told[0].well().text, "[lines 1 to 3 of 3]\n1\tone\n2\ttwo\n3\tthree\n");
    told[1].well().says(&["lines 2 to 2 of 3", "continue with offset 3", "2\ttwo\n"]);
    assert_eq!(told[2].text, told[0].text);
    told[3].well().says(&["empty"]);
    told[4].well().says(&["was cut"]);
    assert!(told[4].text.len() < 70_000);
    told[5].well().says(&["lines 1 to 2000 of 5000", "offset 2001"]);
    told[6].wrong().says(&["program", "binary"]);
    told[7].well().says(&["not UTF-8"]);
    told[8].wrong().says(&["22020096 bytes"]);
    told[9].wrong().says(&["nothing"]);
    told[10].wrong().says(&["folder"]);
    told[11].wrong().says(&["offset", "3 lines"]);
    told[12].well().says(&["image/png"]);
    let sent = shop.mock.requests().pop().unwrap().body.to_string();
    assert!(sent.contains("data:image/png;base64,iVBORw0KGgo="), "the image is no part of the request");
}

#[test]
fn a_file_is_written_in_one_step_and_keeps_its_mode_and_line_ends() {
    let shop = Shop::new();
    shop.put("run.sh", "#!/bin/sh\r\necho old\r\n");
    fs::set_permissions(shop.path("run.sh"), fs::Permissions::from_mode(0o750)).unwrap();
    fs::hard_link(shop.path("run.sh"), shop.path("other-name")).unwrap();
    fs::create_dir(shop.path("folder")).unwrap();
    let write = |name: &str, content: &str| ("write_file", json!({"file_path": name, "content": content}));
    let told = shop.calls(&[
        write("deep/er/new.txt", "a\nb\n"),
        write("run.sh", "#!/bin/sh\necho new\n"),
        ("read_file", json!({"file_path": "run.sh"})),
        write("run.sh", "#!/bin/sh\necho new\n"),
        write("folder", "x"),
        write("run.sh/x", "x"),
    ]);
    told[0].well().says(&["+2 -0"]);
    told[1].wrong().says(&["you have not read it"]);
    told[3].well().says(&["+1 -1"]);
    told[4].wrong().says(&["folder"]);
    told[5].wrong();
    assert_eq!(shop.read("deep/er/new.txt"), "a\nb\n");
    assert_eq!(shop.read("run.sh"), "#!/bin/sh\r\necho new\r\n");
    assert_eq!(shop.read("other-name"), "#!/bin/sh\r\necho old\r\n");
    assert_eq!(fs::metadata(shop.path("run.sh")).unwrap().permissions().mode() & 0o777, 0o750);
    let names: Vec<_> =
        fs::read_dir(shop.program.cwd_path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names.len(), 4, "something was left behind: {names:?}");
}

#[test]
fn a_file_that_changed_on_disk_is_not_overwritten_until_it_is_read_again() {
    let shop = Shop::new();
    shop.put("a.txt", "one\n");
    let read = || ("read_file", json!({"file_path": "a.txt"}));
    let change = || ("run_shell_command", json!({"command": "echo theirs >> a.txt"}));
    let told = shop.calls(&[
        read(),
        change(),
        ("write_file", json!({"file_path": "a.txt", "content": "mine\n"})),
        ("edit", json!({"file_path": "a.txt", "old_string": "one", "new_string": "two"})),
        read(),
        ("edit", json!({"file_path": "a.txt", "old_string": "one", "new_string": "two"})),
        ("write_file", json!({"file_path": "a.txt", "content": "mine\n"})),
    ]);
    told[2].wrong().says(&["has changed since you last saw it", "`echo theirs >> a.txt` changed it"]);
    // An edit names the text that it replaces, so it is applied, and the result shows what had changed.
    told[3].well().says(&["1\ttwo", "`echo theirs >> a.txt` changed it", "+theirs"]);
    told[5].wrong();
    told[6].well();
    assert_eq!(shop.read("a.txt"), "mine\n");
}

#[test]
fn an_edit_is_exact_and_unique_and_its_diff_is_shown_with_line_counts() {
    let shop = Shop::new();
    shop.put("a.rs", "fn one() {\n    1\n}\nfn two() {\n    1\n}\n");
    let edit = |old: &str, new: &str| json!({"file_path": "a.rs", "old_string": old, "new_string": new});
    let all = json!({"file_path": "a.rs", "old_string": "    1", "new_string": "    2\n    + 2", "replace_all": true});
    let told = shop.calls(&[
        ("edit", edit("fn one()", "fn first()")),
        ("edit", edit("    1", "    2")),
        ("edit", edit("fn two() {\n  1\n}", "x")),
        ("edit", edit("fn one()", "fn one()")),
        ("edit", json!({"file_path": "none.rs", "old_string": "x", "new_string": "y"})),
        ("edit", edit("", "x")),
        ("replace", all),
        ("edit", json!({"file_path": "made.rs", "old_string": "", "new_string": "new\n"})),
    ]);
    told[0].well().says(&["+1 -1"]);
    told[1].wrong().says(&["2 times", "line 2", "line 5", "replace_all"]);
    told[2].wrong().says(&["nearest text is at line 4", "white space"]);
    told[3].wrong().says(&["same"]);
    told[4].wrong().says(&["none.rs", "does not exist"]);
    told[5].wrong().says(&["exists"]);
    told[6].well().says(&["2 occurrences", "+4 -2"]);
    told[7].well();
    assert_eq!(shop.read("a.rs"), "fn first() {\n    2\n    + 2\n}\nfn two() {\n    2\n    + 2\n}\n");
    assert_eq!(shop.read("made.rs"), "new\n");
    let shown = told[6].display.to_string();
    assert!(
        shown.contains("@@")
            && shown.contains("ai_added_lines\":4")
            && shown.contains("ai_removed_lines\":2"),
        "{shown}"
    );
}

#[test]
fn directories_are_listed_and_files_and_lines_are_found() {
    let shop = Shop::new();
    for (name, text) in [
        ("src/a.rs", "fn needle() {}\n"),
        ("src/b.ts", "Needle\n"),
        ("skip.log", "needle\n"),
        ("build/out", "needle\n"),
        ("secret.me", "needle\n"),
        (".gitignore", "*.log\nbuild/\n"),
        (".qwenignore", "secret.me\n"),
        (".git/config", "needle\n"),
        ("bin", "needle\0"),
    ] {
        shop.put(name, text);
    }
    let told = shop.calls(&[
        ("list_directory", json!({"path": "."})),
        ("list_directory", json!({"path": ".", "ignore": ["*.log", "src"]})),
        ("list_directory", json!({"path": "nowhere"})),
        ("list_directory", json!({"path": "skip.log"})),
        ("glob", json!({"pattern": "**/*.{rs,ts,log}"})),
        ("glob", json!({"pattern": "*.rs", "path": "src"})),
        ("glob", json!({"pattern": "*.zig"})),
        ("grep_search", json!({"pattern": "needle"})),
        ("grep_search", json!({"pattern": "Needle"})),
        ("grep_search", json!({"pattern": "needle", "glob": "*.ts"})),
        ("grep_search", json!({"pattern": "needle", "path": "src/a.rs"})),
        ("grep_search", json!({"pattern": "needle", "limit": 1})),
        ("grep_search", json!({"pattern": "("})),
        ("search_file_content", json!({"pattern": "fn \\w+"})),
        ("grep_search", json!({"pattern": "root", "path": "/proc/self"})),
    ]);
    told[0].well().says(&["src/\n", "skip.log (7 bytes)"]);
    assert!(!told[1].well().text.contains("skip.log") && !told[1].text.contains("src/"));
    told[2].wrong().says(&["nowhere"]);
    told[3].wrong().says(&["skip.log"]);
    told[4].well().says(&["2 files", "src/a.rs", "src/b.ts"]);
    told[5].well().says(&["src/a.rs"]);
    told[6].well().says(&["No file"]);
    told[7].well().says(&["2 matches in 2 files", "src/a.rs\n1: fn needle() {}", "src/b.ts\n1: Needle"]);
    told[8].well().says(&["1 match", "src/b.ts"]);
    told[9].well().says(&["1 match", "src/b.ts"]);
    told[10].well().says(&["1 match", "src/a.rs"]);
    told[11].well().says(&["The first 1 matches"]);
    told[12].wrong().says(&["`pattern`", "regular expression"]);
    told[13].well().says(&["fn needle"]);
    told[14].wrong();
}

#[test]
fn a_search_shows_nothing_of_a_file_that_may_not_be_read() {
    let mock = MockModel::with([
        Reply::call("c1", "grep_search", r#"{"pattern":"needle"}"#),
        Reply::call("c2", "grep_search", r#"{"pattern":"needle","path":"keys/secret"}"#),
        Reply::text("Done."),
    ]);
    let program =
        asked(&mock, QWEN).args(["--yolo", "--settings", r#"{"permissions":{"deny":["Read(/keys/**)"]}}"#]);
    for (name, text) in [("keys/secret", "needle in keys"), ("open", "needle in the open")] {
        fs::create_dir_all(program.cwd_path().join(name).parent().unwrap()).unwrap();
        fs::write(program.cwd_path().join(name), text).unwrap();
    }
    let ended = program.run();
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let told = mock.requests()[2].body["messages"].to_string();
    assert!(told.contains("needle in the open") && !told.contains("needle in keys"), "{told}");
}
