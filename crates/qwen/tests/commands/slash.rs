//! Slash commands, references and hints.

use mock_model::{MockModel, Reply, gate, sse};
use serde_json::{Value, json};

use crate::harness::{ask, qwen, say, until_end, worker, write};

fn result(run: &mut mock_model::process::Run) -> Value {
    let lines = run.json_until(|line| line["type"] == "result/command");
    lines.last().unwrap().clone()
}

#[test]
fn a_declared_command_is_answered_as_the_spec_prints_it() {
    let mock = MockModel::with([]);
    let mut run = worker(&mock).start();
    run.write_line(json!({
        "session_id": "session-123", "prompt_id": "session-123########8",
        "input": {"origin": "user", "parts": [{"type": "text", "text": ""}],
            "command": {"kind": "slash", "path": ["chat", "list"], "args": ""}}}));
    let answer = result(&mut run);
    assert_eq!(answer["session_id"], "session-123");
    assert_eq!(answer["prompt_id"], "session-123########8");
    assert_eq!(answer["command"], json!({"kind": "slash", "path": ["chat", "list"], "args": ""}));
    assert_eq!(answer["result"]["type"], "message");
    assert_eq!(answer["result"]["level"], "info");
    let content = answer["result"]["content"].as_str().unwrap();
    assert!(content.starts_with("The current session has 0 history records."), "{content}");
    run.close_stdin();
    let ended = run.wait();
    assert!(!ended.stdout.contains(r#""turn":"#), "a command has no terminal record: {}", ended.stdout);
    assert!(mock.requests().is_empty());
}

#[test]
fn typed_commands_run_and_what_is_no_command_goes_to_the_model() {
    let mock = MockModel::with([Reply::text("A path.")]);
    let mut run = worker(&mock).start();
    for (text, kind, level, piece) in [
        ("/help", "slash", "info", "compress"),
        ("?", "help", "info", "compress"),
        ("/nope", "slash", "error", "no command '/nope'"),
        ("/model other", "slash", "info", "other"),
        ("/approval-mode plan", "slash", "info", "plan"),
        ("/approval-mode wild", "slash", "error", "wild"),
        ("/tools", "slash", "info", "read_file"),
        ("/stats", "slash", "info", "Model: other"),
    ] {
        say(&mut run, text);
        let answer = result(&mut run);
        assert_eq!(answer["command"]["kind"], kind, "{text}");
        assert_eq!(answer["result"]["level"], level, "{text}: {answer}");
        assert!(answer["result"]["content"].as_str().unwrap().contains(piece), "{text}: {answer}");
    }
    assert!(mock.requests().is_empty());
    say(&mut run, "/usr/bin/x is broken");
    until_end(&mut run);
    assert_eq!(mock.requests()[0].last_user_text(), "/usr/bin/x is broken");
    assert_eq!(mock.requests()[0].body["model"], "other");
}

#[test]
fn clear_forgets_and_undo_takes_back_one_turn() {
    let mock = MockModel::with(["one", "two", "three", "four"].map(Reply::text));
    let mut run = worker(&mock).start();
    for (text, is_command) in [
        ("first", false),
        ("second", false),
        ("/undo", true),
        ("third", false),
        ("/clear", true),
        ("fourth", false),
    ] {
        say(&mut run, text);
        if is_command {
            result(&mut run);
        } else {
            until_end(&mut run);
        }
    }
    let told: Vec<String> =
        mock.requests().iter().map(|request| request.body["messages"].to_string()).collect();
    assert!(told[2].contains("first") && !told[2].contains("second"), "{}", told[2]);
    assert!(
        told[3].contains("fourth") && !told[3].contains("first") && !told[3].contains("third"),
        "{}",
        told[3]
    );
}

#[test]
fn an_exported_file_contains_no_secret() {
    let mock = MockModel::with([Reply::text("The password is geheim-<4f9a1c7e>.")]);
    let program = worker(&mock).env("DB_PASSWORD", "geheim-<4f9a1c7e>");
    let mut run = program.start();
    say(&mut run, "Is it geheim-<4f9a1c7e>?");
    until_end(&mut run);
    for name in ["talk.md", "talk.html", "talk.jsonl"] {
        say(&mut run, &format!("/export {name}"));
        result(&mut run);
        let text = std::fs::read_to_string(program.cwd_path().join(name)).unwrap();
        assert!(text.contains("The password is g***.") && !text.contains("eheim"), "{text}");
    }
}

#[test]
fn a_command_of_the_users_own_is_a_prompt() {
    let mock = MockModel::with([Reply::text("Fixed.")]);
    let program = worker(&mock);
    let place = program.qwen_home_path().join("commands");
    std::fs::create_dir_all(&place).unwrap();
    std::fs::write(place.join("mend.md"), "---\ndescription: Mends\n---\nPlease mend $ARGUMENTS.").unwrap();
    let mut run = program.start();
    let listed = ask(&mut run, &json!({"subtype": "supported_commands"}))["response"]["commands"].to_string();
    assert!(listed.contains("mend") && listed.contains("Mends"), "{listed}");
    say(&mut run, "/mend the fence");
    let answer = result(&mut run);
    assert_eq!(answer["result"], json!({"type": "submit_prompt", "content": "Please mend the fence."}));
    until_end(&mut run);
    assert_eq!(mock.requests()[0].last_user_text(), "Please mend the fence.");
}

#[test]
fn hints_and_live_commands_are_answered_while_a_turn_runs() {
    let reply =
        Reply::new([sse::text("one"), gate("half"), sse::text("two"), sse::finish("stop"), sse::done()]);
    let mock = MockModel::with([reply]);
    let mut run = worker(&mock).start();
    say(&mut run, "work");
    mock.reached("half");
    run.write_line(json!({"type": "command_hint_request", "prompt_id": "p", "trigger": "slash", "text": "/c", "cursor": 2}));
    let hint = run.json_until(|line| line["type"] == "result/command_hint").pop().unwrap();
    let labels: Vec<&str> =
        hint["suggestions"].as_array().unwrap().iter().map(|s| s["label"].as_str().unwrap()).collect();
    assert_eq!(labels, ["chat", "clear", "compress", "copy"]);
    assert_eq!(
        (hint["status"].as_str(), hint["metadata"]["is_perfect_match"].as_bool()),
        (Some("ok"), Some(false))
    );
    assert_eq!(hint["suggestions"][0]["description"], "Manage conversation history.");
    say(&mut run, "/help");
    assert_eq!(result(&mut run)["result"]["type"], "message");
    say(&mut run, "/clear");
    mock.open("half");
    until_end(&mut run);
    assert_eq!(result(&mut run)["command"]["path"], json!(["clear"]));
}

#[test]
fn references_reach_the_model_and_stay_inside() {
    let mock = MockModel::with([Reply::text("Read."), Reply::text("Read."), Reply::text("Read.")]);
    let program = worker(&mock);
    std::fs::write(program.cwd_path().join("notes.txt"), "remember the milk").unwrap();
    let mut run = program.start();
    say(&mut run, "@notes.txt what is this?");
    let answer = result(&mut run);
    assert_eq!(answer["command"], json!({"kind": "at", "path": ["notes.txt"], "args": "what is this?"}));
    assert_eq!(answer["result"]["type"], "submit_prompt");
    until_end(&mut run);
    assert!(mock.requests()[0].body.to_string().contains("remember the milk"));
    for text in ["@nothing.txt here", "@/etc/hostname please"] {
        say(&mut run, text);
        until_end(&mut run);
        let request = mock.requests().pop().unwrap();
        assert_eq!(request.last_user_text(), text);
    }
}

#[test]
fn compress_replaces_the_conversation_by_a_summary() {
    let mock = MockModel::with([Reply::text("one"), Reply::text("SUMMARY"), Reply::text("three")]);
    let mut run = worker(&mock).start();
    say(&mut run, "a long story");
    until_end(&mut run);
    say(&mut run, "/compress keep names");
    let lines = run.json_until(|line| line["type"] == "result/command");
    assert!(lines.iter().any(|line| line["event"] == "ChatCompressed"), "{lines:?}");
    let asked = mock.requests()[1].last_user_text();
    assert!(asked.contains("a long story") && asked.contains("keep names"), "{asked}");
    say(&mut run, "go on");
    until_end(&mut run);
    let told = mock.requests()[2].body["messages"].to_string();
    assert!(told.contains("SUMMARY") && !told.contains("a long story"), "{told}");
}

#[test]
fn memory_files_are_told_to_the_model() {
    let mock = MockModel::with([Reply::text("Yes.")]);
    let program = qwen().with_model(&mock).args(["-p", "hi", "--model", "mock"]);
    std::fs::write(program.cwd_path().join("QWEN.md"), "use tabs here").unwrap();
    assert_eq!(program.run().code, Some(0));
    assert!(mock.requests()[0].messages()[0].to_string().contains("use tabs here"));
}

#[test]
fn a_one_shot_prompt_may_be_a_command_and_needs_no_model_then() {
    let ended = qwen().args(["-p", "/help"]).run();
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(ended.stdout.contains("compress"), "{ended:?}");
    let ended = qwen().args(["-p", "/nope"]).run();
    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert!(ended.stdout.contains("no command"), "{ended:?}");
}

#[test]
fn files_of_a_prompt_keep_to_kinds_sizes_ignore_files_and_rules() {
    let cases: &[(&str, &[&str], &[&str])] = &[
        ("see @picture.png", &["image_url", "data:image/png;base64,iVBORw0KGgo="], &[]),
        ("see @src", &["a.rs"], &["fn a"]),
        ("see @src/*.rs and @\"two words.txt\"", &["fn a", "quoted"], &[]),
        ("see @long", &["cut after 262144 of 300000 bytes"], &[]),
        ("see @program", &["program is not text"], &["ELF"]),
        ("see @made.log", &["is left out, because ignore files name it"], &["log words"]),
        ("see @keys/secret", &[], &["the secret"]),
        ("see @../outside and @/etc/hostname", &[], &["---"]),
        ("see @key.txt", &["The key is"], &["sk-ant-api03"]),
    ];
    for (prompt, with, without) in cases {
        let mock = MockModel::with([Reply::text("I see.")]);
        let deny = r#"{"permissions":{"deny":["Read(/keys/**)"]}}"#;
        let program = qwen().with_model(&mock).args(["-p", prompt, "--model", "mock", "--settings", deny]);
        for (name, bytes) in [
            ("picture.png", b"\x89PNG\r\n\x1a\n".to_vec()),
            ("src/a.rs", b"fn a".to_vec()),
            ("two words.txt", b"quoted".to_vec()),
            ("long", vec![b'x'; 300_000]),
            ("program", b"\x7fELF\0".to_vec()),
            ("made.log", b"log words".to_vec()),
            (".gitignore", b"*.log".to_vec()),
            ("keys/secret", b"the secret".to_vec()),
            ("key.txt", b"The key is sk-ant-REDACTED".to_vec()),
        ] {
            write(program.cwd_path().join(name), bytes);
        }
        let ended = program.run();
        assert_eq!(ended.code, Some(0), "{prompt}: {ended:?}");
        let told = mock.requests()[0].messages().last().unwrap()["content"].to_string();
        let shown: String = told.chars().take(600).collect();
        assert!(with.iter().all(|piece| told.contains(piece)), "{prompt}: {shown}");
        assert!(without.iter().all(|piece| !told.contains(piece)), "{prompt}: {shown}");
    }
}

#[test]
fn what_a_host_would_show_as_a_dialog_is_text_where_nobody_can() {
    for (command, shown) in [("/settings", "approval_mode: default"), ("/permissions", "deny Bash(rm *)")] {
        let rules = r#"{"permissions":{"deny":["Bash(rm *)"]}}"#;
        let ended = qwen().args(["-p", command, "--settings", rules, "--model", "demo"]).run();
        assert_eq!(ended.code, Some(0), "{ended:?}");
        assert!(ended.stdout.contains(shown), "{command}: {}", ended.stdout);
    }
}

#[test]
fn a_command_of_the_user_s_own_lies_in_directories_and_takes_arguments() {
    let mock = MockModel::with([Reply::text("Fixed.")]);
    let program = qwen().with_model(&mock).args(["--model", "mock"]);
    let file = program.cwd_path().join(".qwen/commands/git/pr/fix.md");
    crate::harness::write(&file, "---\ndescription: Mends\n---\nMend {{args}} now");
    let ask = |more: &[&str]| program.clone().args(["-p", "/git:pr:fix issue 7"]).args(more).run();
    let untrusted = ask(&[]);
    assert_eq!(untrusted.code, Some(1), "{untrusted:?}");
    assert!(untrusted.stdout.contains("no command"), "{}", untrusted.stdout);
    let ended = ask(&["--trust-workspace"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert_eq!(mock.requests().len(), 1);
    assert_eq!(mock.requests()[0].last_user_text(), "Mend issue 7 now");
}

#[test]
fn a_declared_path_names_a_command_in_directories() {
    let mock = MockModel::with(["Fixed.", "Fixed again."].map(Reply::text));
    let flags = ["--model", "mock", "--dialect", "qwen", "--input-format", "stream-json"];
    let program = qwen().with_model(&mock).args(flags);
    crate::harness::write(program.qwen_home_path().join("commands/git/fix.md"), "Mend {{args}} now");
    let mut run = program.start();
    for (path, said) in
        [(&["git", "fix"][..], "Mend issue 7 now"), (&["git", "fix", "the"], "Mend the issue 7 now")]
    {
        let command = serde_json::json!({"kind": "slash", "path": path, "args": "issue 7"});
        run.write_line(serde_json::json!({"session_id": "s", "input": {"parts": [], "command": command}}));
        let told = run.json_until(|line| line["type"] == "result/command").pop().unwrap();
        assert_eq!(told["result"], serde_json::json!({"type": "submit_prompt", "content": said}));
        run.json_until(|line| line["metadata"]["turn"].is_object());
    }
    assert_eq!(mock.requests()[0].last_user_text(), "Mend issue 7 now");
    assert_eq!(run.finish().code, Some(0));
}
