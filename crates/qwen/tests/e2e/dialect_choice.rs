//! Which wire is spoken: each caller gets the one that it expects, by DESIGN's order of precedence.

use std::fs;
use std::os::unix::fs::symlink;

use mock_model::process::{Ended, Program};
use mock_model::{MockModel, Reply};
use serde_json::Value;

use crate::harness::qwen;

/// How the first line of each wire begins.
fn spoken(ended: &Ended) -> String {
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let Ok(first) = serde_json::from_str::<Value>(ended.stdout.lines().next().unwrap_or("")) else {
        return "text".to_owned();
    };
    let line_count = ended.stdout.lines().count();
    let last: Value = serde_json::from_str(ended.stdout.lines().last().unwrap()).unwrap();
    if line_count == 1 {
        let events = &first["events"];
        return match (&first["object"], &first["type"], &events[0]) {
            (object, ..) if object == "chat.completion" => "qwen document",
            (_, kind, _) if kind == "result" => "claude document",
            (.., event) if event["type"] == "message_start" => "claude-lite document",
            (.., event) if event["type"] == "run_start" => "loom document",
            (.., event) if event["RunStart"].is_object() => "loom-export document",
            (.., event) if event["value"].is_string() => "core document",
            _ => panic!("{first}"),
        }
        .to_owned();
    }
    let word = match (&first["object"], &first["type"]) {
        (object, _) if object == "chat.completion" => "qwen",
        (object, _) if object == "chat.completion.chunk" => "qwen chunks",
        (_, kind) if kind == "system" => "claude",
        (_, kind) if kind == "message_start" => "claude-lite",
        (_, kind) if kind == "run_start" => "loom",
        _ if first["RunStart"].is_object() => "loom-export",
        _ if last["type"] == "finished" => "core",
        _ => panic!("{first}"),
    };
    word.to_owned()
}

fn run(program: Program, flags: &str, vars: &[(&str, &str)]) -> Ended {
    let mock = MockModel::with([Reply::text("Hi")]);
    let flags = flags.split(' ').filter(|flag| !flag.is_empty());
    let program = vars.iter().fold(program.with_model(&mock).args(flags), |p, (k, v)| p.env(k, v));
    program.run()
}

/// Flags, standard input, variables, and what is spoken.
type Case<'a> = (&'a str, &'a str, &'a [(&'a str, &'a str)], &'a str);

#[test]
fn the_order_of_precedence() {
    let structured = "--input-format stream-json --output-format stream-json";
    let line = "{\"messages\":[{\"role\":\"user\",\"content\":\"hi\"}]}\n";
    let sdk = [("CLAUDE_CODE_ENTRYPOINT", "sdk-py")];
    let core = [("QWEN_DIALECT", "core")];
    let cases: &[Case<'_>] = &[
        // Text is the default.
        ("-p x", "", &[], "text"),
        ("-p x --output-format text", "", &[], "text"),
        ("-p x -o text", "", &core, "text"),
        // The flag beats the variable, which beats the guess.
        ("-p x --dialect loom -o stream-json", "", &core, "loom"),
        ("-p x -o stream-json", "", &core, "core"),
        ("-p x -o stream-json --verbose", "", &core, "core"),
        ("-p x --dialect qwen -o stream-json --verbose", "", &sdk, "qwen"),
        ("-p x --json", "", &core, "core"),
        // Those who show themselves to be one of the SDKs.
        ("-p x -o stream-json --verbose", "", &[], "claude"),
        ("-p x -o stream-json --include-partial-messages", "", &[], "claude"),
        ("-p x -o stream-json --permission-prompt-tool stdio", "", &[], "claude"),
        ("-p x -o stream-json --permission-prompt-tool=stdio", "", &[], "claude"),
        ("-p x -o stream-json --channel=SDK", "", &[], "claude"),
        ("-p x -o stream-json --channel SDK", "", &[], "claude"),
        ("-p x -o stream-json --channel=other", "", &[], "claude-lite"),
        ("-p x -o stream-json", "", &sdk, "claude"),
        ("-p x -o stream-json", "", &[("CLAUDE_CODE_ENTRYPOINT", "sdk-ts")], "claude"),
        ("-p x -o stream-json", "", &[("CLAUDE_CODE_ENTRYPOINT", "cli")], "claude-lite"),
        ("-p x -o json", "", &sdk, "claude document"),
        ("-p x --json --verbose", "", &[], "claude"),
        // A text prompt.
        ("-p x --output-format stream-json", "", &[], "claude-lite"),
        ("--output-format stream-json", "words from a pipe", &[], "claude-lite"),
        ("--input-format text --output-format stream-json -p x", "", &[], "claude-lite"),
        ("-p x --json", "", &[], "loom"),
        ("--json", "words from a pipe", &[], "loom"),
        ("-p x -o stream-chunk-json", "", &[], "qwen chunks"),
        ("-p x -o json", "", &[], "qwen document"),
        ("-p x -o json", "", &[("QWEN_DIALECT", "")], "qwen document"),
        // Lines in.
        (structured, line, &[], "qwen"),
        ("--input-format stream-json", line, &[], "qwen"),
        ("--input-format stream-json -o stream-chunk-json", line, &[], "qwen chunks"),
        ("--input-format stream-chunk-json", line, &[], "qwen chunks"),
        ("--input-format stream-json -o stream-json --verbose", line, &[], "claude"),
        ("--input-format stream-json -o stream-json --channel=SDK", line, &[], "claude"),
        (structured, line, &sdk, "claude"),
        (structured, line, &core, "core"),
        // Every dialect as a document.
        ("-p x -o json --dialect claude", "", &[], "claude document"),
        ("-p x -o json --dialect claude-lite", "", &[], "claude-lite document"),
        ("-p x -o json --dialect loom", "", &[], "loom document"),
        ("-p x -o json --dialect loom-export", "", &[], "loom-export document"),
        ("-p x -o json --dialect core", "", &[], "core document"),
    ];
    for (flags, stdin, vars, expected) in cases {
        let ended = run(qwen().stdin(stdin), flags, vars);
        assert_eq!(spoken(&ended), *expected, "{flags} {vars:?}: {ended:?}");
    }
}

#[test]
fn the_setting_comes_after_flag_and_variable_and_before_the_guess() {
    let program = || {
        let program = qwen();
        fs::create_dir_all(program.qwen_home_path()).unwrap();
        fs::write(program.qwen_home_path().join("settings.json"), r#"{"output":{"dialect":"loom"}}"#)
            .unwrap();
        program
    };
    let cases: &[(&str, &[(&str, &str)], &str)] = &[
        ("-p x -o stream-json", &[], "loom"),
        ("-p x -o stream-json --verbose", &[], "loom"),
        ("-p x -o json", &[], "loom document"),
        ("-p x -o stream-json", &[("QWEN_DIALECT", "core")], "core"),
        ("-p x -o stream-json --dialect qwen", &[("QWEN_DIALECT", "core")], "qwen"),
    ];
    for (flags, vars, expected) in cases {
        let ended = run(program(), flags, vars);
        assert_eq!(spoken(&ended), *expected, "{flags} {vars:?}: {ended:?}");
    }
}

#[test]
fn the_name_that_we_are_started_under() {
    let place = tempfile::tempdir().unwrap();
    for (name, expected) in [("claude", "claude"), ("qwen-code", "claude-lite")] {
        let path = place.path().join(name);
        symlink(env!("CARGO_BIN_EXE_qwen"), &path).unwrap();
        let ended = run(Program::new(&path), "-p x -o stream-json", &[]);
        assert_eq!(spoken(&ended), expected, "{name}");
    }
}

#[test]
fn stream_modes_narrow_what_loom_writes() {
    let kinds = |modes: &str| -> Vec<String> {
        let ended = run(qwen(), &format!("-p x --json --stream-mode {modes}"), &[]);
        assert_eq!(ended.code, Some(0), "{modes}: {ended:?}");
        let mut kinds: Vec<String> = ended
            .json_lines()
            .iter()
            .map(|line| line["type"].as_str().unwrap_or("reply").to_owned())
            .collect();
        kinds.dedup();
        kinds
    };
    assert_eq!(kinds("values"), ["values", "reply"]);
    assert_eq!(kinds("updates"), ["updates", "reply"]);
    assert_eq!(kinds("values,updates"), ["values", "updates", "reply"]);
    assert_eq!(kinds("messages"), ["message_chunk", "usage", "reply"]);
    assert_eq!(kinds("tasks"), ["run_start", "node_enter", "node_exit", "reply"]);
    assert_eq!(kinds("checkpoints"), ["checkpoint", "reply"]);
    let ended =
        run(qwen(), "-p x --dialect loom-export -o stream-json --stream-mode messages,checkpoints", &[]);
    let lines = ended.json_lines();
    let mut keys: Vec<&str> =
        lines.iter().filter_map(|line| line.as_object()?.keys().next()).map(String::as_str).collect();
    keys.dedup();
    assert_eq!(keys, ["Messages", "Usage", "Checkpoint", "reply"]);
    let ended = run(qwen(), "-p x --json --stream-mode everything", &[]);
    assert_eq!(ended.code, Some(2), "{ended:?}");
    assert!(ended.stderr.contains("everything") && ended.stderr.contains("values"), "{}", ended.stderr);
}

#[test]
fn a_dialect_that_is_none_is_an_error_that_lists_them() {
    for (flags, vars) in [
        ("-p x --dialect klingon -o stream-json", &[][..]),
        ("-p x -o stream-json", &[("QWEN_DIALECT", "klingon")]),
    ] {
        let ended = run(qwen(), flags, vars);
        assert_eq!(ended.code, Some(2), "{ended:?}");
        for word in ["klingon", "claude-lite", "loom-export", "core"] {
            assert!(ended.stderr.contains(word) && ended.stdout.contains(word), "{word}: {ended:?}");
        }
        assert!(ended.json_lines()[0]["error"].is_object(), "{ended:?}");
    }
}
