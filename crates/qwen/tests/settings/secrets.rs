//! A secret that a tool prints is seen by nobody: not by programs, people, the model or the disk.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use mock_model::process::{Ended, Program};
use mock_model::{MockModel, Reply, sse};
use serde_json::json;

use crate::harness::qwen;

const SECRET: &str = "correct-horse-battery-staple-9";
const TOKEN: &str = "ghp_16C7e42F292c6912E7710c838347Ae178B4a";

const WIRES: &[&[&str]] = &[
    &[],
    &["--dialect", "qwen", "--output-format", "stream-json"],
    &["--dialect", "qwen", "--output-format", "stream-chunk-json"],
    &["--dialect", "claude", "--output-format", "stream-json"],
    &["--dialect", "claude", "--output-format", "stream-json", "--include-partial-messages"],
    &["--dialect", "claude-lite", "--output-format", "stream-json"],
    &["--dialect", "loom", "--output-format", "stream-json"],
    &["--dialect", "loom-export", "--output-format", "stream-json"],
    &["--dialect", "core", "--output-format", "stream-json"],
    &["--dialect", "qwen", "--output-format", "json"],
];

/// Every file below a directory, in one text.
fn everything_in(directory: &Path) -> String {
    let mut text = String::new();
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            text.push_str(&everything_in(&path));
        } else {
            text.push_str(&String::from_utf8_lossy(&fs::read(&path).unwrap()));
        }
    }
    text
}

#[track_caller]
fn unseen(name: &str, program: &Program, mock: &MockModel, ended: &Ended) {
    let asked: String = mock.requests().iter().map(|request| request.body.to_string()).collect();
    let kept = everything_in(&program.qwen_home_path());
    for (place, text) in
        [("stdout", &ended.stdout), ("stderr", &ended.stderr), ("model", &asked), ("log", &kept)]
    {
        // Half of it is too much.
        for secret in ["horse-battery", "aG9yc2UtYmF0dGVyeS", "16C7e42F292c"] {
            let found = text.find(secret).map(|at| &text[at.saturating_sub(80)..at]);
            assert_eq!(found, None, "{name}: {secret} is in {place}");
        }
    }
}

/// Prints the secret in two pieces, with time to read the first one, and then in base64, and a token that
/// nobody knows.
fn leaky(program: &Program) -> String {
    let here = program.cwd_path().display().to_string();
    format!(
        "printf '%s' \"${{DB_PASSWORD%%battery*}}\"; touch '{here}/half'; while [ ! -e '{here}/go' ]; do :; done; \
         printf '%s\\n' \"battery${{DB_PASSWORD#*battery}}\"; printf 'user:%s' \"$DB_PASSWORD\" | base64; \
         printf '%s' \"$DB_PASSWORD\" >&2; echo {}\"\"{}; echo end",
        &TOKEN[..10],
        &TOKEN[10..]
    )
}

/// A run whose commands know the secret and are not sandboxed.
fn unsandboxed(mock: &MockModel) -> Program {
    qwen().with_model(mock).env("DB_PASSWORD", SECRET).args(["-p", "x", "--yolo", "--sandbox=false"])
}

#[test]
fn a_secret_that_a_tool_prints_in_pieces_is_redacted() {
    for flags in WIRES {
        let mock = MockModel::start();
        let program = unsandboxed(&mock).args(*flags);
        let call = json!({"command": leaky(&program)}).to_string();
        mock.push(Reply::call("c1", "run_shell_command", &call));
        mock.push(Reply::text("done"));
        let mut run = program.start();
        run.close_stdin();
        let deadline = Instant::now() + Duration::from_mins(1);
        while !program.cwd_path().join("half").exists() {
            assert!(Instant::now() < deadline, "the command does not start");
            std::thread::yield_now();
        }
        fs::write(program.cwd_path().join("go"), "").unwrap();
        let ended = run.wait();
        assert_eq!(ended.code, Some(0), "{flags:?}: {ended:?}");
        unseen(&format!("{flags:?}"), &program, &mock, &ended);
        let back = mock.requests()[1].messages().last().unwrap().to_string();
        assert!(back.contains("end") && back.contains("***"), "{back}");
    }
}

#[test]
fn the_password_in_an_address_of_the_environment_is_redacted() {
    let mock = MockModel::with([
        Reply::call("c1", "run_shell_command", r#"{"command":"echo $DATABASE_URL; echo end"}"#),
        Reply::text("done"),
    ]);
    let program = unsandboxed(&mock).env("DATABASE_URL", format!("postgres://bob:{SECRET}@db.example/x"));
    let program = program.env("DB_PASSWORD", "");
    let ended = program.run();
    assert_eq!(ended.code, Some(0), "{ended:?}");
    unseen("an address", &program, &mock, &ended);
    let back = mock.requests()[1].messages().last().unwrap().to_string();
    assert!(back.contains("postgres://bob:c***@db.example/x"), "{back}");
}

#[test]
fn a_secret_that_the_model_writes_in_pieces_is_redacted() {
    for flags in WIRES {
        for size in [1, 3, 7] {
            let mut steps = Vec::new();
            let said = format!("It is {SECRET}, and {TOKEN}. Truly.");
            let letters: Vec<char> = said.chars().collect();
            for piece in letters.chunks(size) {
                steps.push(sse::text(&piece.iter().collect::<String>()));
            }
            steps.extend([sse::finish("stop"), sse::done()]);
            let mock = MockModel::with([Reply::new(steps)]);
            let program = qwen().with_model(&mock).env("DB_PASSWORD", SECRET).args(["-p", "x"]).args(*flags);
            let ended = program.run();
            assert_eq!(ended.code, Some(0), "{flags:?}: {ended:?}");
            unseen(&format!("{flags:?} by {size}"), &program, &mock, &ended);
            // Nothing else is lost.
            if flags.is_empty() {
                assert_eq!(ended.stdout, "It is c***, and ghp_***. Truly.\n");
            }
        }
    }
}

#[test]
fn a_call_with_a_secret_in_it_runs_as_it_is_and_is_told_without() {
    for flags in WIRES {
        let mock = MockModel::start();
        mock.push(Reply::call("c1", "write_file", &json!({"file_path": "f", "content": SECRET}).to_string()));
        mock.push(Reply::text("done"));
        let program =
            qwen().with_model(&mock).env("DB_PASSWORD", SECRET).args(["-p", "x", "--yolo"]).args(*flags);
        let ended = program.run();
        assert_eq!(fs::read_to_string(program.cwd_path().join("f")).unwrap(), SECRET, "{ended:?}");
        for text in [&ended.stdout, &ended.stderr, &everything_in(&program.qwen_home_path())] {
            assert!(!text.contains("horse-battery"), "{flags:?}: {text}");
        }
    }
}

#[test]
fn a_long_output_is_clean_in_the_file_that_holds_all_of_it() {
    let mock = MockModel::start();
    let program = unsandboxed(&mock).arg("--json");
    let spilt = program.cwd_path().join("spilt");
    let noisy = "for i in $(seq 4000); do echo \"$i $DB_PASSWORD\"; done";
    mock.push(Reply::call("c1", "run_shell_command", &json!({"command": noisy}).to_string()));
    let copy = format!(
        "cat /proc/*/fd/none /dev/null; cp ${{TMPDIR:-/tmp}}/qwen-*/*/shell-*.txt {} 2>&1",
        spilt.display()
    );
    mock.push(Reply::call("c2", "run_shell_command", &json!({"command": copy}).to_string()));
    mock.push(Reply::text("done"));
    let own = program.cwd_path().join("tmp");
    fs::create_dir(&own).unwrap();
    let program = program.env("TMPDIR", &own);
    let ended = program.run();
    assert_eq!(ended.code, Some(0), "{ended:?}");
    unseen("long output", &program, &mock, &ended);
    let whole = fs::read_to_string(&spilt).unwrap();
    assert!(whole.contains("4000 c***") && !whole.contains("horse"), "{}", &whole[..200]);
}

#[test]
fn errors_and_notes_on_standard_error_are_clean() {
    for program in [
        qwen().args(["-p", "x", "--dialect", SECRET]),
        qwen().args(["-p", "x", "--no-such-flag", SECRET]),
        qwen().args(["-p", "x", "--settings", &format!("{{\"model\": {{\"maxRetries\": \"{SECRET}\"}}}}")]),
        qwen().args(["-p", "x", "--add-dir", &format!("/no/{SECRET}")]),
        qwen().args(["config", "--settings", &format!("{{\"model\": {{\"name\": \"{SECRET}\"}}}}")]),
    ] {
        let ended = program.env("DB_PASSWORD", SECRET).run();
        for text in [&ended.stdout, &ended.stderr] {
            assert!(!text.contains("horse-battery"), "{ended:?}");
        }
    }
}

#[test]
fn an_error_about_a_settings_file_shows_no_value_that_may_be_a_secret() {
    for text in [
        format!(r#"{{"model": {{"apiKey": {TOKEN}}}}}"#),
        format!(r#"{{"model": {{"maxRetries": "{TOKEN}"}}}}"#),
        format!(r#"{{"permissions": {{"defaultMode": "{TOKEN}"}}}}"#),
        format!(r#"{{"env": "{TOKEN}"}}"#),
        r#"{"model": {"headers": "horse-battery"}}"#.to_owned(),
        r#"{"mcpServers": {"s": {"command": "x", "env": {"API_KEY": ["horse-battery"]}}}}"#.to_owned(),
        r#"{"model": {"apiKey": horse-battery}}"#.to_owned(),
        format!(r#"{{"mcpServers": {{"s": {{"httpUrl": "https://x", "headers": "Bearer {TOKEN}"}}}}}}"#),
        format!(r#"{{"telemetry": {{"enabled": "{TOKEN}"}}}}"#),
    ] {
        for flags in [&["-p", "x"][..], &["config"], &["-p", "x", "--output-format", "stream-json"]] {
            let program = qwen();
            crate::harness::user(&program, &text);
            let ended = program.args(flags).run();
            let said = format!("{}{}", ended.stdout, ended.stderr);
            assert!(!said.contains("16C7e42F292c") && !said.contains("horse-battery"), "{text}: {ended:?}");
            assert!(said.contains("settings.json"), "{text}: {ended:?}");
        }
    }
}

#[test]
fn a_key_in_the_query_of_an_address_is_hidden() {
    for query in [
        "key=horse-battery",
        "api-version=1&api_key=horse-battery",
        "x=1;access_token=horse-battery#f",
        "sig=horse-battery",
    ] {
        for (file, flags) in [
            (json!({"model": {"baseUrl": format!("https://h.example/v1?{query}")}}), &["config"][..]),
            (json!({"model": {"baseUrl": format!("https://h.example/v1?{query}")}}), &["config", "--json"]),
            (json!({"model": {"proxy": format!("http://h.example/?{query}")}}), &["config", "model.proxy"]),
            (json!({"mcpServers": {"s": {"httpUrl": format!("https://h.example/?{query}")}}}), &["config"]),
            (
                json!({"model": {"baseUrl": format!("https://127.0.0.1:1/v1?{query}"), "name": "m", "maxRetries": 0}}),
                &["-p", "x"],
            ),
            (
                json!({"model": {"baseUrl": format!("https://127.0.0.1:1/v1?{query}"), "name": "m", "maxRetries": 0}}),
                &["doctor"],
            ),
        ] {
            let program = qwen();
            crate::harness::user(&program, &file.to_string());
            let ended = program.args(flags).run();
            let said = format!("{}{}", ended.stdout, ended.stderr);
            assert!(!said.contains("horse-battery"), "{query}: {flags:?}: {ended:?}");
        }
    }
}
