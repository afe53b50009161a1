//! The tools of Claude's vocabulary, and what hosts of that family read about their results.

use std::fs;

use mock_model::{MockModel, Reply};
use serde_json::{Value, json};

use super::{CLAUDE, claude_sdk, init};
use crate::harness::{Host, of, qwen};

/// Runs one call of Claude's vocabulary and returns its result.
#[track_caller]
fn result_of(name: &str, arguments: &Value) -> String {
    let mock = MockModel::with([Reply::call("c", name, &arguments.to_string()), Reply::text("Done.")]);
    let flags = ["--model", "mock", "-p", "Go", "--tool-names", "claude", "--yolo"];
    let program = qwen().with_model(&mock).args(flags);
    let file = |name: &str, text: &str| fs::write(program.cwd_path().join(name), text).unwrap();
    file("a.rs", "fn one() {}\n// Two\nfn three() {}\n");
    file("b.py", "def two():\n    pass\n");
    assert_eq!(program.run().code, Some(0));
    let requests = mock.requests();
    let messages = requests[1].messages();
    messages.iter().rfind(|message| message["role"] == "tool").unwrap()["content"]
        .as_str()
        .unwrap()
        .to_owned()
}

#[test]
fn grep_has_the_arguments_that_claudes_package_declares() {
    for (arguments, expected, absent) in [
        (json!({"pattern": "two"}), &["b.py"][..], &["def", "a.rs"][..]),
        (
            json!({"pattern": "two", "-i": true, "output_mode": "files_with_matches"}),
            &["a.rs", "b.py"],
            &["def"],
        ),
        (json!({"pattern": "two", "-i": true, "type": "rust"}), &["a.rs"], &["b.py"]),
        (json!({"pattern": "two", "-i": true, "glob": "*.py"}), &["b.py"], &["a.rs"]),
        (json!({"pattern": "fn", "output_mode": "count"}), &["a.rs:2"], &["b.py"]),
        (json!({"pattern": "Two", "output_mode": "content"}), &["a.rs", "2: // Two"], &["three"]),
        (
            json!({"pattern": "Two", "output_mode": "content", "-A": 1}),
            &["2: // Two", "3- fn three"],
            &["one"],
        ),
        (
            json!({"pattern": "Two", "output_mode": "content", "-B": 1}),
            &["1- fn one", "2: // Two"],
            &["three"],
        ),
        (json!({"pattern": "Two", "output_mode": "content", "-C": 1}), &["1- fn one", "3- fn three"], &[]),
        (json!({"pattern": "Two", "output_mode": "content", "-n": false}), &["// Two"], &["2:"]),
        (json!({"pattern": "t[a-z]+e", "output_mode": "content", "-o": true}), &["3: three"], &["fn"]),
        (json!({"pattern": "fn", "output_mode": "content", "head_limit": 1}), &["fn one"], &["fn three"]),
        (json!({"pattern": "fn", "output_mode": "content", "offset": 1}), &["fn three"], &["fn one"]),
        (
            json!({"pattern": "o|e", "head_limit": 1, "output_mode": "files_with_matches"}),
            &["a.rs"],
            &["b.py"],
        ),
        (json!({"pattern": "one.*three", "multiline": true, "head_limit": 0}), &["a.rs"], &["b.py"]),
        (json!({"pattern": "nothing here"}), &["no line matches"], &["a.rs"]),
        (json!({"pattern": "x", "type": "klingon"}), &["klingon"], &["a.rs"]),
    ] {
        let result = result_of("Grep", &arguments);
        assert!(expected.iter().all(|text| result.contains(text)), "{arguments}: {result}");
        assert!(!absent.iter().any(|text| result.contains(text)), "{arguments}: {result}");
    }
}

#[test]
fn further_arguments_of_claudes_tools_are_understood() {
    let read = result_of("Read", &json!({"file_path": "a.rs", "offset": 2, "limit": 1}));
    assert!(read.contains("Two") && !read.contains("one"), "{read}");
    let ran = result_of(
        "Bash",
        &json!({"command": "echo hi", "description": "d", "timeout": 9000,
                                        "run_in_background": false, "dangerouslyDisableSandbox": true}),
    );
    assert!(ran.contains("hi"), "{ran}");
    let started = result_of("Bash", &json!({"command": "sleep 0", "run_in_background": true}));
    assert!(started.contains("BashOutput") && !started.contains("shell_task"), "{started}");
    let edited = result_of(
        "Edit",
        &json!({"file_path": "a.rs", "old_string": "fn", "new_string": "pub fn",
                                           "replace_all": true}),
    );
    assert!(!edited.contains("there is no argument"), "{edited}");
    let unknown = result_of("Glob", &json!({"pattern": "*.rs", "nonsense": 1}));
    assert!(unknown.contains("Glob") && unknown.contains("nonsense"), "{unknown}");
}

#[test]
fn nothing_that_the_model_is_told_about_tools_uses_our_names_in_claudes_vocabulary() {
    let mock = MockModel::with([Reply::text("no"), Reply::call("c", "StructuredOutput", r#"{"n":1}"#)]);
    let schema = r#"{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}"#;
    let flags = ["-p", "Go", "--json-schema", schema, "--tool-names", "claude", "--dialect", CLAUDE];
    let ended = qwen().with_model(&mock).args(["--model", "mock"]).args(flags).run();
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let lines = ended.json_lines();
    assert_eq!(lines.last().unwrap()["structured_output"], json!({"n": 1}));
    let tools = init(&lines)["tools"].as_array().unwrap();
    assert!(tools.contains(&json!("StructuredOutput")) && tools.contains(&json!("Task")), "{tools:?}");
    for request in mock.requests() {
        let told = request.body.to_string();
        for name in [
            "structured_output",
            "run_shell_command",
            "shell_task",
            "is_background",
            "read_file",
            "write_file",
            "list_directory",
            "grep_search",
            "todo_write",
            "web_fetch",
            "exit_plan_mode",
            "ask_user_question",
        ] {
            let around = told.find(name).map(|at| &told[at.saturating_sub(80)..(at + 80).min(told.len())]);
            assert_eq!(around, None, "{name}");
        }
    }
}

#[test]
fn the_remedy_of_a_refusal_names_the_mode_as_the_host_does() {
    for (name, vocabulary, mode) in [
        ("Bash", "claude", "permission_mode=bypassPermissions"),
        ("run_shell_command", "qwen", "permission_mode=yolo"),
    ] {
        // Its syntax is not understood, so no rule can allow it.
        let call = Reply::call("c", name, r#"{"command":"cat <<EOF > big"}"#);
        let mock = MockModel::with([call, Reply::text("Done.")]);
        let flags = ["--model", "mock", "--dialect", CLAUDE, "--tool-names", vocabulary];
        let structured = ["--input-format", "stream-json", "--output-format", "stream-json", "--verbose"];
        let prompt = json!({"type": "user", "message": {"role": "user", "content": "Go"}});
        let program = qwen().with_model(&mock).args(flags).args(structured);
        program.stdin(format!("{prompt}\n")).run();
        let told = mock.wait_for_request(1).body.to_string();
        assert!(told.contains(mode), "{told}");
    }
}

#[test]
fn a_permission_request_for_an_edit_carries_the_change() {
    let edit = json!({"file_path": "a.txt", "old_string": "one", "new_string": "two"});
    let write = json!({"file_path": "new.txt", "content": "three"});
    let mock = MockModel::with([
        Reply::call("c1", "Edit", &edit.to_string()),
        Reply::call("c2", "Write", &write.to_string()),
        Reply::call("c3", "Bash", r#"{"command":"touch x"}"#),
        Reply::text("Done."),
    ]);
    let program = claude_sdk(&mock).args(["--permission-prompt-tool", "stdio"]);
    fs::write(program.cwd_path().join("a.txt"), "one\n").unwrap();
    let mut host = Host::of(&program, CLAUDE);
    let (changed, new) = (host.file("a.txt"), host.file("new.txt"));
    let lines = host.say("Go");
    let asked: Vec<&Value> = of(&lines, "control_request").into_iter().map(|line| &line["request"]).collect();
    let diff = |path: &std::path::Path, old: Value, new: &str| json!([{"type": "diff", "path": path.canonicalize().unwrap(), "oldText": old, "newText": new}]);
    assert_eq!((&asked[0]["tool_name"], &asked[0]["kind"]), (&json!("Edit"), &json!("edit")));
    assert_eq!(asked[0]["input"]["old_string"], edit["old_string"]);
    let path = std::path::Path::new(asked[0]["input"]["file_path"].as_str().unwrap());
    assert!(path.is_absolute(), "{path:?}");
    assert_eq!(path.canonicalize().unwrap(), changed.canonicalize().unwrap());
    assert_eq!(asked[0]["content"], diff(&changed, json!("one\n"), "two\n"));
    assert_eq!(asked[0]["locations"], json!([{"path": changed.canonicalize().unwrap()}]));
    assert_eq!(asked[1]["content"], diff(&new, Value::Null, "three"));
    assert_eq!((asked[2].get("kind"), asked[2].get("content")), (None, None));
    host.leave();
}

/// Runs calls of the model in a workspace with `a.txt`, each approved, and returns the lines of the turn and what is
/// in the file then.
#[track_caller]
fn calls(content: &str, calls: &[(&str, Value)]) -> (Vec<Value>, String) {
    let replies = calls.iter().map(|(name, input)| Reply::call(name, name, &input.to_string()));
    let mock = MockModel::with(replies.chain([Reply::text("Done.")]));
    let program = claude_sdk(&mock).args(["--permission-prompt-tool", "stdio"]);
    fs::write(program.cwd_path().join("a.txt"), content).unwrap();
    let mut host = Host::of(&program, CLAUDE);
    let lines = host.say("Go");
    let left = fs::read_to_string(host.file("a.txt")).unwrap();
    host.leave();
    (lines, left)
}

/// The text of the only result of a turn, and what stands beside it.
fn only_result(lines: &[Value]) -> (&str, &Value) {
    let users = of(lines, "user");
    assert_eq!(users.len(), 1, "{users:?}");
    (users[0]["message"]["content"][0]["content"].as_str().unwrap(), &users[0]["tool_use_result"])
}

#[test]
fn several_edits_of_one_file_follow_each_other_and_are_asked_about_once() {
    let edits = json!([
        {"old_string": "one", "new_string": "two two"},
        {"old_string": "two", "new_string": "three", "replace_all": true},
        {"old_string": "three three", "new_string": "four"},
    ]);
    let (lines, left) = calls("one\nend\n", &[("MultiEdit", json!({"file_path": "a.txt", "edits": edits}))]);
    assert_eq!(left, "four\nend\n");
    let asked = of(&lines, "control_request");
    assert_eq!(asked.len(), 1);
    let request = &asked[0]["request"];
    assert_eq!((&request["tool_name"], &request["input"]["edits"]), (&json!("MultiEdit"), &edits));
    assert_eq!(request["content"][0]["newText"], "four\nend\n");
    let (_, outcome) = only_result(&lines);
    assert_eq!(outcome["originalFile"], "one\nend\n");
    assert_eq!(outcome["structuredPatch"][0]["lines"], json!(["-one", "+four", " end"]));
}

#[test]
fn of_several_edits_none_is_made_if_one_cannot_be() {
    let edit = |old: &str, new: &str| json!({"old_string": old, "new_string": new});
    for (edits, cause) in [
        (json!([edit("one", "two"), edit("nowhere", "x")]), "edits[1]: old_string is not in a.txt"),
        (json!([edit("one", "two"), edit("one", "x")]), "edits[1]: old_string is not in a.txt"),
        (json!([edit("one", "two"), edit("l", "x")]), "edits[1]: old_string is in a.txt 2 times"),
        (json!([edit("one", "two"), edit("l1", "l1")]), "edits[1]: MultiEdit: `new_string` is the same"),
        (json!([edit("one", "two"), edit("", "x")]), "edits[1]: MultiEdit: `old_string` is empty"),
        (json!([edit("one", "two"), {"old_string": "l1"}]), "`edits[1].new_string` must be a string"),
        (json!([]), "`edits` is empty"),
        (json!("one"), "`edits` must be a list"),
    ] {
        let input = json!({"file_path": "a.txt", "edits": edits});
        let (lines, left) = calls("one l1 l2\n", &[("MultiEdit", input.clone())]);
        assert_eq!(left, "one l1 l2\n", "{input}");
        let (text, _) = only_result(&lines);
        assert!(text.contains(cause), "{input}: {text}");
    }
}

#[test]
fn several_edits_can_begin_with_a_new_file() {
    let edits =
        json!([{"old_string": "", "new_string": "one\n"}, {"old_string": "one", "new_string": "two"}]);
    let mock = MockModel::with([
        Reply::call("c", "MultiEdit", &json!({"file_path": "b.txt", "edits": edits}).to_string()),
        Reply::text("Done."),
    ]);
    let program = claude_sdk(&mock).args(["--permission-mode", "acceptEdits"]);
    let mut host = Host::of(&program, CLAUDE);
    host.say("Go");
    assert_eq!(fs::read_to_string(host.file("b.txt")).unwrap(), "two\n");
    host.leave();
}

#[test]
fn rules_about_edits_are_rules_about_several_edits() {
    let input = json!({"file_path": "a.txt", "edits": [{"old_string": "one", "new_string": "two"}]});
    for (flag, rule, left) in [
        ("--disallowedTools", "Edit(a.txt)", "one"),
        ("--disallowedTools", "Edit", "one"),
        ("--disallowedTools", "MultiEdit(/a.txt)", "one"),
        ("--disallowedTools", "Edit(b.txt)", "two"),
        ("--allowedTools", "MultiEdit", "two"),
        ("--allowedTools", "Edit(a.txt)", "two"),
        ("--allowedTools", "Edit(b.txt)", "one"),
    ] {
        let mock = MockModel::with([Reply::call("c", "MultiEdit", &input.to_string()), Reply::text("Done.")]);
        let mode = if flag == "--allowedTools" { "default" } else { "bypassPermissions" };
        let program = claude_sdk(&mock).args([flag, rule, "--permission-mode", mode]);
        fs::write(program.cwd_path().join("a.txt"), "one").unwrap();
        let mut host = Host::of(&program, CLAUDE);
        host.say("Go");
        assert_eq!(fs::read_to_string(host.file("a.txt")).unwrap(), left, "{flag} {rule}");
        host.leave();
    }
}

#[test]
fn results_have_the_fields_that_claudes_package_declares() {
    let (lines, left) = calls(
        "one\ntwo\nthree\n",
        &[
            ("Read", json!({"file_path": "a.txt", "offset": 2, "limit": 1})),
            ("Edit", json!({"file_path": "a.txt", "old_string": "two", "new_string": "2"})),
            ("Write", json!({"file_path": "b.txt", "content": "new\n"})),
            ("Bash", json!({"command": "echo out"})),
            ("TodoWrite", json!({"todos": [{"content": "c", "status": "pending", "activeForm": "f"}]})),
        ],
    );
    assert_eq!(left, "one\n2\nthree\n");
    let results: Vec<&Value> = of(&lines, "user").into_iter().map(|line| &line["tool_use_result"]).collect();
    let read =
        json!({"filePath": "a.txt", "content": "two\n", "numLines": 1, "startLine": 2, "totalLines": 3});
    assert_eq!((&results[0]["type"], &results[0]["file"]), (&json!("text"), &read));
    let hunk = json!({
        "oldStart": 1, "oldLines": 3, "newStart": 1, "newLines": 3, "lines": [" one", "-two", "+2", " three"],
    });
    for (field, value) in [
        ("oldString", json!("two")),
        ("newString", json!("2")),
        ("replaceAll", json!(false)),
        ("originalFile", json!("one\ntwo\nthree\n")),
        ("structuredPatch", json!([hunk])),
        ("userModified", json!(false)),
    ] {
        assert_eq!(results[1][field], value, "{field}");
    }
    assert!(results[1]["filePath"].as_str().unwrap().ends_with("/a.txt"), "{}", results[1]);
    for (field, value) in [
        ("type", json!("create")),
        ("content", json!("new\n")),
        ("originalFile", Value::Null),
        ("structuredPatch", json!([])),
    ] {
        assert_eq!(results[2].get(field), Some(&value), "{field}");
    }
    assert_eq!((&results[3]["stdout"], &results[3]["interrupted"]), (&json!("out"), &json!(false)));
    assert_eq!(results[4]["newTodos"][0]["content"], "c");
    assert!(results.iter().all(|result| result["status"] == "success" && result["duration_ms"].is_u64()));
}

#[test]
fn a_denial_lists_the_call_as_it_was_judged() {
    let mock = MockModel::with([
        Reply::call("c1", "Write", r#"{"file_path":"sub/../made","content":"x"}"#),
        Reply::call("c2", "run_shell_command", r#"{"command":"touch x"}"#),
        Reply::text("Done."),
    ]);
    let mut host = Host::of(&claude_sdk(&mock), CLAUDE);
    let lines = host.say("Go");
    let denials = &lines.last().unwrap()["permission_denials"];
    let path = std::path::Path::new(denials[0]["tool_input"]["file_path"].as_str().unwrap());
    assert!(path.is_absolute() && path.ends_with("made"), "{denials}");
    assert_eq!((&denials[1]["tool_name"], &denials[1]["tool_use_id"]), (&json!("Bash"), &json!("c2")));
    host.leave();
}
