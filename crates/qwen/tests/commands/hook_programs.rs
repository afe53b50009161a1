//! Hooks out of settings, commands and addresses alike: what they hear, what their answers do, and what their
//! failure means.

use mock_model::process::{Program, wait_gone};
use mock_model::{MockModel, Reply, Request};
use serde_json::{Value, json};

use crate::harness::{answer, qwen, say, until_end, worker, write};
use crate::listener::Listener;

/// Every event, with the fields that its input has besides those of all events.
const EVENTS: [(&str, &[&str]); 12] = [
    ("PreToolUse", &["tool_name", "tool_use_id"]),
    ("PostToolUse", &["tool_name", "tool_use_id", "tool_response"]),
    ("PostToolUseFailure", &["tool_name", "tool_use_id", "tool_response"]),
    ("UserPromptSubmit", &["prompt"]),
    ("SessionStart", &["source", "model"]),
    ("SessionEnd", &["reason"]),
    ("Stop", &["stop_hook_active", "last_assistant_message"]),
    ("SubagentStart", &["agent_type"]),
    ("SubagentStop", &["agent_type"]),
    ("PreCompact", &["trigger"]),
    ("Notification", &["message", "notification_type"]),
    ("PermissionRequest", &["tool_name", "tool_use_id"]),
];

fn hooks(program: &Program, hooks: &Value) {
    write(program.qwen_home_path().join("settings.json"), json!({"hooks": hooks}).to_string());
}

fn asked(mock: &MockModel) -> Program {
    qwen().with_model(mock).args(["-p", "Go", "--model", "mock"])
}

fn write_call() -> Reply {
    Reply::call("c1", "write_file", r#"{"file_path":"made.txt","content":"x"}"#)
}

/// Plays a session in which everything happens that hooks can hear of.
fn eventful(program: &Program, mock: &MockModel) {
    mock.answer_with(|request: &Request| {
        let said = request.last_user_text();
        let results = request.messages().iter().filter(|message| message["role"] == "tool").count();
        Some(match (said.as_str(), results) {
            ("work", 0) => Reply::call("c1", "list_directory", r#"{"path":"."}"#),
            ("work", 1) => Reply::call("c2", "read_file", r#"{"file_path":"nothing"}"#),
            ("work", 2) => write_call(),
            ("work", 3) => Reply::call("c3", "agent", r#"{"description":"d","prompt":"help"}"#),
            _ => Reply::text("Done."),
        })
    });
    let mut run = program.start();
    say(&mut run, "work");
    let question = run.json_until(|line| line["type"] == "control_request").pop().unwrap();
    answer(&mut run, &question, &json!({"behavior": "allow"}));
    until_end(&mut run);
    say(&mut run, "/compress");
    run.json_until(|line| line["type"] == "result/command");
    run.close_stdin();
    assert_eq!(run.wait().code, Some(0));
}

fn assert_complete(event: &str, fields: &[&str], input: &Value) {
    assert_eq!(input["hook_event_name"], event, "{input}");
    for field in ["session_id", "transcript_path", "cwd", "permission_mode"].iter().chain(fields) {
        assert!(!input[field].is_null(), "{field} of {event}: {input}");
    }
}

#[test]
fn a_command_hears_of_every_event() {
    let mock = MockModel::start();
    let program = worker(&mock);
    let heard: Value = EVENTS.iter().map(|(event, _)| (*event, json!([{"hooks": [{"type": "command", "command": format!("cat >> {event}.json; echo >> {event}.json")}]}]))).collect();
    hooks(&program, &heard);
    eventful(&program, &mock);
    for (event, fields) in EVENTS {
        let text = std::fs::read_to_string(program.cwd_path().join(format!("{event}.json")));
        let text = text.unwrap_or_else(|_| panic!("{event} was not heard"));
        assert_complete(event, fields, &serde_json::from_str(text.lines().next().unwrap()).unwrap());
    }
}

#[test]
fn an_address_hears_of_every_event() {
    let listener = Listener::new(|_| ("200 OK".into(), "{}".into()));
    let mock = MockModel::start();
    let program = worker(&mock);
    let heard: Value = EVENTS
        .iter()
        .map(|(event, _)| {
            (*event, json!([{"hooks": [{"type": "http", "url": listener.url(&format!("/{event}"))}]}]))
        })
        .collect();
    hooks(&program, &heard);
    eventful(&program, &mock);
    let asked = listener.asked();
    for (event, fields) in EVENTS {
        let (_, body) = asked
            .iter()
            .find(|(first, _)| *first == format!("POST /{event} HTTP/1.1"))
            .unwrap_or_else(|| panic!("{event} was not heard"));
        assert_complete(event, fields, &serde_json::from_str(body).unwrap());
    }
}

/// An answer in both ways that a hook can give it: printed by a command, or sent by a server.
fn both_ways(event: &str, matcher: &str, answer: &Value, check: impl Fn(&MockModel, &Program)) {
    let listener = Listener::new({
        let answer = answer.to_string();
        move |_| ("200 OK".into(), answer.clone())
    });
    let command = json!({"type": "command", "command": format!("cat > /dev/null; echo '{answer}'")});
    let http = json!({"type": "http", "url": listener.url("/")});
    for hook in [command, http] {
        let mock = MockModel::with([write_call(), Reply::text("Done."), Reply::text("Again.")]);
        let program = asked(&mock).arg("--yolo");
        hooks(&program, &json!({event: [{"matcher": matcher, "hooks": [hook]}]}));
        program.run();
        check(&mock, &program);
    }
}

fn told(mock: &MockModel, number: usize) -> String {
    mock.requests().get(number).map(|request| request.body["messages"].to_string()).unwrap_or_default()
}

#[test]
fn answers_block_change_and_add() {
    let made = |program: &Program| program.cwd_path().join("made.txt").exists();
    let specific = |fields: Value| json!({"hookSpecificOutput": fields});
    let deny = specific(json!({"permissionDecision": "deny", "permissionDecisionReason": "not today"}));
    both_ways("PreToolUse", "Write", &deny, |mock, program| {
        assert!(!made(program) && told(mock, 1).contains("not today"), "{}", told(mock, 1));
    });
    both_ways("PreToolUse", "Bash|Edit", &deny, |_, program| assert!(made(program)));
    let other = specific(json!({"updatedInput": {"file_path": "other.txt", "content": "y"}}));
    both_ways("PreToolUse", "", &other, |_, program| {
        assert!(!made(program) && program.cwd_path().join("other.txt").exists());
    });
    let outside = specific(
        json!({"permissionDecision": "allow", "updatedInput": {"file_path": "/etc/qwen-was-here", "content": "y"}}),
    );
    both_ways("PreToolUse", "", &outside, |_, program| {
        assert!(!made(program) && !std::path::Path::new("/etc/qwen-was-here").exists());
    });
    let context = specific(json!({"additionalContext": "it is Monday"}));
    for (event, number) in
        [("UserPromptSubmit", 0), ("SessionStart", 0), ("PreToolUse", 1), ("PostToolUse", 1)]
    {
        both_ways(event, "", &context, |mock, _| {
            assert!(told(mock, number).contains("it is Monday"), "{event}: {}", told(mock, number));
        });
    }
    let block = json!({"decision": "block", "reason": "not this"});
    for event in ["UserPromptSubmit", "SessionStart"] {
        both_ways(event, "", &block, |mock, _| assert!(mock.requests().is_empty(), "{event}"));
    }
    both_ways("PostToolUse", "", &block, |mock, program| {
        assert!(made(program) && told(mock, 1).contains("not this"));
    });
    let stop = json!({"continue": false, "stopReason": "enough"});
    for (event, requests) in
        [("PreToolUse", 1), ("PostToolUse", 1), ("UserPromptSubmit", 0), ("SessionStart", 0), ("Stop", 2)]
    {
        both_ways(event, "", &stop, |mock, _| assert_eq!(mock.requests().len(), requests, "{event}"));
    }
}

#[test]
fn a_permission_request_can_be_answered_by_a_hook_where_nobody_else_is() {
    for (behavior, written) in [("allow", true), ("deny", false)] {
        let mock = MockModel::with([write_call(), Reply::text("Done.")]);
        let program = asked(&mock);
        let answer = json!({"hookSpecificOutput": {"decision": {"behavior": behavior}}});
        hooks(
            &program,
            &json!({"PermissionRequest": [{"matcher": "Write", "hooks": [{"command": format!("echo '{answer}'")}]}]}),
        );
        program.run();
        assert_eq!(program.cwd_path().join("made.txt").exists(), written, "{behavior}");
    }
}

#[test]
fn no_hook_allows_what_a_rule_forbids() {
    let mock = MockModel::with([write_call(), Reply::text("Done.")]);
    let program =
        asked(&mock).args(["--yolo", "--settings", r#"{"permissions":{"deny":["Edit(/made.txt)"]}}"#]);
    let allow = json!({"hookSpecificOutput": {"permissionDecision": "allow"}});
    hooks(&program, &json!({"PreToolUse": [{"hooks": [{"command": format!("echo '{allow}'")}]}]}));
    program.run();
    assert!(!program.cwd_path().join("made.txt").exists());
}

#[test]
fn a_question_that_a_rule_wants_is_answered_by_hooks_about_questions_alone() {
    let allow = json!({"hookSpecificOutput": {"permissionDecision": "allow"}});
    let answer = json!({"hookSpecificOutput": {"decision": {"behavior": "allow"}}});
    for (event, answer, rules, written) in [
        ("PreToolUse", &allow, json!({}), true),
        ("PreToolUse", &allow, json!({"ask": ["Edit(/other.txt)"]}), true),
        ("PreToolUse", &allow, json!({"ask": ["Edit(/made.txt)"]}), false),
        ("PermissionRequest", &answer, json!({"ask": ["Edit(/made.txt)"]}), true),
    ] {
        let mock = MockModel::with([write_call(), Reply::text("Done.")]);
        let program = asked(&mock).args(["--settings", &json!({"permissions": rules}).to_string()]);
        hooks(&program, &json!({event: [{"hooks": [{"command": format!("echo '{answer}'")}]}]}));
        program.run();
        assert_eq!(
            program.cwd_path().join("made.txt").exists(),
            written,
            "{event} {rules}: {}",
            told(&mock, 1)
        );
    }
}

#[test]
fn an_answer_that_contradicts_itself_allows_nothing() {
    let allow = |event: &str| json!({"hookEventName": event, "permissionDecision": "allow"});
    let both = json!({"decision": "block", "reason": "no", "hookSpecificOutput": allow("PreToolUse")});
    let other_event = json!({"hookSpecificOutput": allow("PostToolUse")});
    let twin = json!({"hookSpecificOutput": allow("PreToolUse"), "unknown": {"field": 1}});
    let twice = r#"{"decision":"block","reason":"x","decision":"approve"}"#.to_owned();
    for (answer, written) in [
        (both.to_string(), false),
        (other_event.to_string(), false),
        (twice, false),
        (twin.to_string(), true),
    ] {
        let mock = MockModel::with([write_call(), Reply::text("Done.")]);
        let program = asked(&mock);
        hooks(&program, &json!({"PreToolUse": [{"hooks": [{"command": format!("echo '{answer}'")}]}]}));
        program.run();
        assert_eq!(program.cwd_path().join("made.txt").exists(), written, "{answer}: {}", told(&mock, 1));
    }
}

#[test]
fn a_failure_means_what_its_policy_says_and_is_told() {
    let listener = Listener::new(|path| match path {
        "/500" => ("500 Oh No".into(), "{}".into()),
        "/bad" => ("200 OK".into(), "{".into()),
        "/list" => ("200 OK".into(), "[]".into()),
        _ => ("200 OK".into(), "x".repeat(2 << 20)),
    });
    let command = |line: &str| json!({"type": "command", "command": line});
    let http = |path: &str| json!({"type": "http", "url": listener.url(path)});
    let cases = [
        (command("exit 3"), "exit code 3"),
        (command("no-such-program-here"), "exit code 127"),
        (command("kill -9 $$"), "signal 9"),
        (command("echo '{\"decision\":'"), "cannot be used"),
        (command("echo '{\"decision\":\"perhaps\"}'"), "perhaps"),
        (command("head -c 2000000 /dev/zero"), "more than 1 MiB"),
        (command("exec yes"), "more than 1 MiB"),
        (command("sleep 1000"), "longer than 0.3 s"),
        (http("/500"), "status 500"),
        (http("/bad"), "cannot be used"),
        (http("/list"), "cannot be used"),
        (http("/huge"), "longer than 1 MiB"),
        (json!({"type": "http", "url": "http://127.0.0.1:1/"}), "failed"),
    ];
    for (mut hook, piece) in cases {
        if piece.contains("0.3 s") {
            hook["timeout"] = json!(0.3);
        }
        for (policy, written) in [("continue", true), ("block", false)] {
            hook["onFailure"] = json!(policy);
            let mock = MockModel::with([write_call(), Reply::text("Done.")]);
            let program = asked(&mock).arg("--yolo");
            hooks(&program, &json!({"PreToolUse": [{"hooks": [hook]}]}));
            let ended = program.run();
            assert_eq!(ended.code, Some(0), "{ended:?}");
            assert_eq!(program.cwd_path().join("made.txt").exists(), written, "{policy}: {hook}");
            assert!(ended.stderr.contains(piece), "{hook}: {ended:?}");
        }
    }
}

#[test]
fn what_a_hook_started_ends_with_it() {
    for line in ["setsid sleep 1000 & echo $! > pid; sleep 1000", "setsid sleep 1000 & echo $! > pid"] {
        let mock = MockModel::with([Reply::text("Done.")]);
        let program = asked(&mock);
        hooks(&program, &json!({"UserPromptSubmit": [{"hooks": [{"command": line, "timeout": 0.5}]}]}));
        let ended = program.run();
        assert_eq!(ended.code, Some(0), "{ended:?}");
        let pid = std::fs::read_to_string(program.cwd_path().join("pid")).unwrap();
        wait_gone(pid.trim().parse().unwrap());
    }
}

#[test]
fn exit_code_two_blocks_and_its_words_are_the_reason() {
    let mock = MockModel::with([write_call(), Reply::text("Done.")]);
    let program = asked(&mock).arg("--yolo");
    hooks(&program, &json!({"PreToolUse": [{"hooks": [{"command": "echo use tabs >&2; exit 2"}]}]}));
    program.run();
    assert!(!program.cwd_path().join("made.txt").exists());
    assert!(told(&mock, 1).contains("use tabs"));
}

/// A command that blocks the first time and is content the second time.
const ONCE: &str = "[ -e seen ] || { touch seen; echo run the tests >&2; exit 2; }";

#[test]
fn the_end_of_an_agent_or_sub_agent_can_be_refused() {
    let mock = MockModel::with(["Done.", "Really done."].map(Reply::text));
    let program = asked(&mock);
    hooks(&program, &json!({"Stop": [{"hooks": [{"command": ONCE}]}]}));
    let ended = program.run();
    assert!(ended.stdout.contains("Really done."), "{ended:?}");
    assert_eq!(mock.requests()[1].last_user_text(), "run the tests");

    for (matcher, requests) in [("general-purpose", 4), ("explore", 3)] {
        let help = Reply::call("c1", "agent", r#"{"description":"d","prompt":"help"}"#);
        let mock = MockModel::with([help].into_iter().chain(["One.", "Two.", "Three."].map(Reply::text)));
        let program = asked(&mock);
        hooks(&program, &json!({"SubagentStop": [{"matcher": matcher, "hooks": [{"command": ONCE}]}]}));
        program.run();
        assert_eq!(mock.requests().len(), requests, "{matcher}");
    }
}

#[test]
fn a_sub_agent_can_be_kept_from_starting_and_told_more() {
    let help = || Reply::call("c1", "agent", r#"{"description":"d","prompt":"help"}"#);
    let mock = MockModel::with([help(), Reply::text("Done.")]);
    let program = asked(&mock);
    hooks(&program, &json!({"SubagentStart": [{"hooks": [{"command": "echo not now >&2; exit 2"}]}]}));
    program.run();
    assert!(mock.requests().len() == 2 && told(&mock, 1).contains("not now"), "{}", told(&mock, 1));

    let mock = MockModel::with([help(), Reply::text("Helped."), Reply::text("Done.")]);
    let program = asked(&mock);
    hooks(&program, &json!({"SubagentStart": [{"hooks": [{"command": "echo it is Monday"}]}]}));
    program.run();
    assert!(told(&mock, 1).contains("it is Monday") && !told(&mock, 2).contains("it is Monday"));
}

#[test]
fn a_conversation_can_be_kept_from_being_compressed() {
    let mock = MockModel::with([Reply::text("One.")]);
    let program = worker(&mock);
    hooks(
        &program,
        &json!({"PreCompact": [{"matcher": "manual", "hooks": [{"command": "echo keep it >&2; exit 2"}]}]}),
    );
    let mut run = program.start();
    say(&mut run, "tell");
    until_end(&mut run);
    say(&mut run, "/compress");
    let answer = run.json_until(|line| line["type"] == "result/command").pop().unwrap();
    assert!(answer["result"]["level"] == "error" && answer.to_string().contains("keep it"), "{answer}");
    assert_eq!(mock.requests().len(), 1);
}

#[test]
fn a_notification_that_hangs_does_not_keep_an_answer_waiting() {
    let mock = MockModel::with([write_call(), Reply::text("Done.")]);
    let program = worker(&mock);
    hooks(&program, &json!({"Notification": [{"hooks": [{"command": "sleep 1000", "timeout": 900}]}]}));
    let mut run = program.start();
    say(&mut run, "go");
    let question = run.json_until(|line| line["type"] == "control_request").pop().unwrap();
    answer(&mut run, &question, &json!({"behavior": "allow"}));
    until_end(&mut run);
    assert!(program.cwd_path().join("made.txt").exists());
}

#[test]
fn a_prompt_withdrawn_while_a_hook_holds_the_first_turn_ends_in_its_own_session() {
    let mock = MockModel::start();
    mock.answer_with(|_: &Request| Some(Reply::text("Done.")));
    let program = worker(&mock);
    let gate = program.cwd_path().join("gate");
    assert!(std::process::Command::new("mkfifo").arg(&gate).status().unwrap().success());
    let hook =
        json!([{"hooks": [{"type": "command", "command": format!("cat {} > /dev/null", gate.display())}]}]);
    hooks(&program, &json!({"UserPromptSubmit": hook}));
    let mut run = program.start();
    let prompt = |id: &str| json!({"session_id": "named", "prompt_id": id, "messages": [{"role": "user", "content": "work"}]});
    run.write_line(prompt("first"));
    // Opening returns when the hook reads: the first turn has not announced its session yet.
    let open = std::fs::File::options().write(true).open(&gate).unwrap();
    run.write_line(prompt("second"));
    run.write_line(json!({"type": "control/cancel", "session_id": "named", "prompt_id": "second"}));
    let end = run.json_until(|line| line["metadata"]["turn"].is_object()).pop().unwrap();
    assert_eq!((&end["session_id"], &end["prompt_id"]), (&json!("named"), &json!("second")), "{end}");
    assert_eq!(end["metadata"]["turn"]["status"], "cancelled", "{end}");
    drop(open);
    let end = run.json_until(|line| line["metadata"]["turn"].is_object()).pop().unwrap();
    assert_eq!((&end["session_id"], &end["prompt_id"]), (&json!("named"), &json!("first")), "{end}");
    run.close_stdin();
    assert_eq!(run.wait().code, Some(0));
}
