//! Names and arguments: those that programs bind to, and what becomes of others.

use mock_model::{MockModel, Reply};
use serde_json::{Value, json};

use super::Shop;
use crate::harness::qwen;

#[test]
fn every_bad_argument_is_one_tool_error_and_the_turn_goes_on() {
    let shop = Shop::new();
    shop.put("a.txt", "one\n");
    let wrong: &[(&str, Value, &str)] = &[
        ("read_file", json!({}), "`file_path` is missing"),
        ("read_file", json!({"file_path": ["a.txt"]}), "`file_path` must be a string"),
        (
            "read_file",
            json!({"file_path": "a.txt", "lines": 3}),
            "no argument `lines`; the arguments are `file_path`, `limit`, `offset`",
        ),
        ("read_file", json!({"file_path": "x".repeat(100_000)}), ""),
        ("read_file", json!({"file_path": "a.txt", "offset": 1e30}), "`offset`"),
        ("write_file", json!({"file_path": "b.txt"}), "`content` is missing"),
        ("write_file", json!({"file_path": "b.txt", "content": 7}), "`content` must be a string"),
        (
            "edit",
            json!({"file_path": "a.txt", "old_string": "one", "new_string": "two", "replaceAll": true}),
            "no argument `replaceAll`",
        ),
        ("glob", json!({"pattern": null}), "`pattern` is missing"),
        ("grep_search", json!({"pattern": "a".repeat(2_000_000)}), "`pattern`"),
        ("list_directory", json!({"path": ".", "ignore": "x"}), "`ignore`"),
        ("run_shell_command", json!({"cmd": "touch made"}), "no argument `cmd`"),
        ("run_shell_command", json!({"command": "touch made", "timeout": "soon"}), "`timeout`"),
        ("todo_write", json!({"todos": "all"}), "`todos` must be a list"),
        ("web_fetch", json!({"url": "ftp://example.org/", "prompt": "p"}), "`url`"),
        ("web_fetch", json!({"prompt": "p"}), "`url` is missing"),
        ("save_memory", json!({"fact": " "}), "`fact`"),
        ("save_memory", json!({"fact": "f", "scope": "world"}), "`scope`"),
        ("exit_plan_mode", json!({}), "`plan` is missing"),
        ("agent", json!({"description": "d"}), "`prompt` is missing"),
        (
            "agent",
            json!({"description": "d", "prompt": "p", "subagent_type": "nobody"}),
            "no sub-agent 'nobody'",
        ),
        ("no_such_tool", json!({}), "no tool called 'no_such_tool'"),
    ];
    let calls: Vec<(&str, Value)> =
        wrong.iter().map(|(name, arguments, _)| (*name, arguments.clone())).collect();
    for (told, (name, _, piece)) in shop.calls(&calls).iter().zip(wrong) {
        assert!(
            told.is_error && told.text.contains(piece),
            "{name}, {piece}: {}",
            told.text.chars().take(300).collect::<String>()
        );
        assert!(told.text.len() < 10_000, "{name}: {} bytes of complaint", told.text.len());
    }
    assert!(!shop.path("made").exists() && !shop.path("b.txt").exists());
    assert_eq!(shop.read("a.txt"), "one\n");
}

#[test]
fn the_tools_have_the_names_and_arguments_that_programs_bind_to() {
    let mock = MockModel::with([Reply::text("Hi.")]);
    // Questions and leaving plan mode are offered where someone can answer.
    let flags = ["--input-format", "stream-json", "--output-format", "stream-json", "--dialect", "qwen"];
    let host = qwen().with_model(&mock).args(flags).args(["--model", "mock", "--approval-mode", "plan"]);
    // A host that closes its end answers no questions, so it stays until the end of the turn.
    let mut run = host.start();
    run.write_line(r#"{"messages":[{"role":"user","content":"Hello"}]}"#);
    run.json_until(|line| line["metadata"]["turn"].is_object());
    run.close_stdin();
    run.wait();
    let body = &mock.requests()[0].body;
    let properties = |name: &str| -> (Vec<String>, Vec<String>) {
        let tools = body["tools"].as_array().unwrap();
        let tool =
            tools.iter().find(|tool| tool["function"]["name"] == name).unwrap_or_else(|| panic!("{name}"));
        let parameters = &tool["function"]["parameters"];
        let mut all: Vec<String> = parameters["properties"].as_object().unwrap().keys().cloned().collect();
        all.sort();
        let required = parameters["required"].as_array().unwrap();
        (all, required.iter().map(|field| field.as_str().unwrap().to_owned()).collect())
    };
    for (name, all, required) in [
        ("read_file", &["file_path", "limit", "offset"][..], &["file_path"][..]),
        ("write_file", &["content", "file_path"], &["file_path", "content"]),
        (
            "edit",
            &["file_path", "new_string", "old_string", "replace_all"],
            &["file_path", "old_string", "new_string"],
        ),
        ("glob", &["path", "pattern"], &["pattern"]),
        ("grep_search", &["glob", "limit", "path", "pattern"], &["pattern"]),
        ("list_directory", &["ignore", "path"], &["path"]),
        (
            "run_shell_command",
            &["command", "description", "directory", "is_background", "timeout"],
            &["command"],
        ),
        ("todo_write", &["todos"], &["todos"]),
        ("web_fetch", &["format", "prompt", "url"], &["url", "prompt"]),
        ("ask_user_question", &["questions"], &["questions"]),
        ("exit_plan_mode", &["plan"], &["plan"]),
        (
            "agent",
            &["description", "isolation", "prompt", "run_in_background", "subagent_type"],
            &["description", "prompt"],
        ),
    ] {
        let (found, needed) = properties(name);
        assert_eq!(
            (found, needed),
            (
                all.iter().map(|s| (*s).to_owned()).collect(),
                required.iter().map(|s| (*s).to_owned()).collect()
            ),
            "{name}"
        );
    }
}
