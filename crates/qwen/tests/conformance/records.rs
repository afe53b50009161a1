//! "Event Payloads and Annotations": the four `x-qwen-*` records, and the annotations of chunks.

use std::fs;

use mock_model::{MockModel, Reply, ReplyEvent, sse};
use serde_json::{Value, json};

use crate::harness::{Host, each_format, openai, shell, worker};

fn of<'a>(lines: &'a [Value], kind: &str) -> Vec<&'a Value> {
    lines.iter().filter(|line| line["type"] == kind).collect()
}

#[test]
fn tool_output_is_told_as_terminal_records_with_text_spans_and_escapes() {
    each_format(|format| {
        let command = r"printf '\033[32mgr\303\274n\033[0m\n'; echo oops >&2";
        let mock =
            MockModel::with([Reply::call("c1", "run_shell_command", &shell(command)), Reply::text("ok")]);
        let mut host = Host::start(worker(&mock, format).arg("--yolo"));
        let lines = host.say("paint");
        let records = of(&lines, "x-qwen-terminal");
        let tool: Vec<&&Value> = records.iter().filter(|record| record["source"] == "tool").collect();
        let out = tool.iter().find(|record| record["channel"] == "stdout").unwrap();
        assert!(out["text"].as_str().unwrap().starts_with("grün"), "{out}");
        assert_eq!(out["ansi"][0], json!({"offset": 0, "code": "\u{1b}[32m"}), "{out}");
        assert_eq!(
            out["ansi"][1],
            json!({"offset": 4, "code": "\u{1b}[0m"}),
            "offsets count characters: {out}"
        );
        let span = &out["spans"][0];
        assert_eq!((&span["start"], &span["end"]), (&json!(0), &json!(4)), "{out}");
        assert_eq!(span["style"]["theme_token"], "AccentGreen");
        assert_eq!(out["tool_call_id"], "c1");
        let joined: String = tool
            .iter()
            .filter(|record| record["channel"] == "stderr")
            .map(|record| record["text"].as_str().unwrap())
            .collect();
        assert_eq!(joined, "oops\n");
        for record in &records {
            assert!(record["session_id"].is_string() && record["prompt_id"].is_string(), "{record}");
        }
        host.leave();
    });
}

#[test]
fn the_end_of_a_run_is_told_with_its_exit_code() {
    each_format(|format| {
        let mock = MockModel::with([Reply::text("ok"), Reply::status(400, "no")]);
        let mut host = Host::with(&mock, format);
        for code in [0, 1] {
            let lines = host.say("x");
            let system: Vec<&Value> = of(&lines, "x-qwen-terminal")
                .into_iter()
                .filter(|record| record["source"] == "system")
                .collect();
            assert_eq!(system.len(), 1, "{lines:#?}");
            assert_eq!(system[0]["exit_code"], code, "{system:?}");
        }
        host.leave();
    });
}

#[test]
fn console_logs_are_terminal_records_on_stderr_with_a_level_and_a_scope() {
    each_format(|format| {
        let mock = MockModel::with([Reply::text("ok")]);
        let program = worker(&mock, format);
        // A place that cannot be made is worth a warning.
        fs::create_dir_all(program.qwen_home_path()).unwrap();
        fs::write(program.qwen_home_path().join("sessions"), "in the way").unwrap();
        let mut host = Host::start(program);
        let lines = host.say("x");
        let logs: Vec<&Value> = of(&lines, "x-qwen-terminal")
            .into_iter()
            .filter(|record| record["source"] == "console")
            .collect();
        let [log] = logs[..] else { panic!("{lines:#?}") };
        assert_eq!(
            (&log["channel"], &log["console_level"], &log["log_scope"]),
            (&json!("stderr"), &json!("warn"), &json!("system"))
        );
        assert!(log["text"].as_str().unwrap().contains("not stored"), "{log}");
        assert_eq!(log["exit_code"], Value::Null);
        host.run.close_stdin();
        assert_eq!(host.run.wait().code, Some(0));
    });
}

#[test]
fn a_tool_passes_through_the_statuses_of_the_enum() {
    each_format(|format| {
        let edit = json!({"file_path": "main.py", "old_string": "Hi", "new_string": "Hello"}).to_string();
        let mock = MockModel::with([
            Reply::call("c0", "read_file", r#"{"file_path":"main.py"}"#),
            Reply::call("c1", "edit", &edit),
            Reply::text("ok"),
        ]);
        let program = worker(&mock, format);
        fs::write(program.cwd_path().join("main.py"), "print('Hi')\n").unwrap();
        let mut host = Host::start(program);
        host.send(openai("edit"));
        let mut lines = host.run.json_until(|line| line["type"] == "control_request");
        let question = lines.last().unwrap().clone();
        host.answer(&question, json!({"behavior": "approve"}));
        lines.extend(host.turn());
        let displays: Vec<&Value> = of(&lines, "x-qwen-tool-display")
            .into_iter()
            .filter(|line| line["tool_call_id"] == "c1")
            .collect();
        let statuses: Vec<&str> = displays.iter().map(|line| line["status"].as_str().unwrap()).collect();
        assert_eq!(statuses, ["pending", "confirming", "executing", "success"], "{displays:#?}");
        let pending: Vec<&Value> = displays.iter().map(|line| &line["pending"]).collect();
        assert_eq!(pending, [&json!(true), &json!(true), &json!(false), &json!(false)]);
        assert_eq!(displays[0]["confirmation"], Value::Null);
        assert!(
            displays[1]["confirmation"]["diff"].as_str().unwrap().contains("+print('Hello')"),
            "{}",
            displays[1]
        );
        let shown = &displays[3]["result_display"];
        assert_eq!((&shown["kind"], &shown["file_name"]), (&json!("file_diff"), &json!("main.py")));
        assert_eq!(
            (&shown["original"], &shown["modified"]),
            (&json!("print('Hi')\n"), &json!("print('Hello')\n"))
        );
        assert!(shown["diff"].as_str().unwrap().contains("-print('Hi')\n+print('Hello')"), "{shown}");
        assert_eq!(
            shown["stat"],
            json!({"ai_added_lines": 1, "ai_removed_lines": 1, "user_added_lines": 0, "user_removed_lines": 0})
        );
        for line in &displays {
            assert!(
                line["session_id"].is_string() && line["timestamp"].as_u64().unwrap() > 1_700_000_000,
                "{line}"
            );
        }
        host.leave();
    });
}

#[test]
fn result_displays_are_strings_todo_lists_and_task_executions_too() {
    each_format(|format| {
        let todos = json!({"todos": [
            {"id": "1", "content": "look", "status": "in_progress"},
            {"id": "2", "content": "mend", "status": "pending"}]});
        let task =
            json!({"subagent_type": "general-purpose", "description": "look around", "prompt": "look"});
        let mock = MockModel::with([
            Reply::call("c1", "todo_write", &todos.to_string()),
            Reply::call("c2", "list_directory", r#"{"path":"."}"#),
            Reply::call("c3", "agent", &task.to_string()),
            Reply::text("I looked."),
            Reply::text("ok"),
        ]);
        let mut host = Host::start(worker(&mock, format).arg("--yolo"));
        let lines = host.say("plan");
        let shown = |call: &str, kind: &str| {
            of(&lines, "x-qwen-tool-display")
                .into_iter()
                .any(|line| line["tool_call_id"] == call && line["result_display"]["kind"] == kind)
        };
        assert!(shown("c1", "todo_list") && shown("c2", "string"), "{lines:#?}");
        assert!(shown("c3", "task_execution"), "{lines:#?}");
        let text = of(&lines, "x-qwen-tool-display")
            .into_iter()
            .find(|line| line["result_display"]["kind"] == "string")
            .unwrap();
        assert_eq!(text["result_display"]["log_scope"], "tool", "tool logs can be filtered: {text}");
        host.leave();
    });
}

#[test]
fn an_agreed_plan_is_a_plan_summary() {
    each_format(|format| {
        let plan = json!({"plan": "1. look\n2. mend"}).to_string();
        let mock = MockModel::with([Reply::call("c1", "exit_plan_mode", &plan), Reply::text("ok")]);
        let mut host = Host::start(worker(&mock, format).args(["--approval-mode", "plan"]));
        host.send(openai("plan"));
        let question = host.question();
        assert_eq!(question["metadata"]["confirmation"]["plan"], "1. look\n2. mend", "{question}");
        host.answer(&question, json!({"behavior": "approve"}));
        let lines = host.turn();
        let summary = of(&lines, "x-qwen-tool-display")
            .into_iter()
            .find(|line| line["result_display"]["kind"] == "plan_summary");
        assert!(summary.unwrap()["result_display"]["plan"].as_str().unwrap().contains("mend"), "{lines:#?}");
        host.leave();
    });
}

#[test]
fn thinking_is_told_as_a_thought_with_subject_and_description() {
    each_format(|format| {
        let mock = MockModel::with([Reply::new([
            sse::thought("**Analyzing repo** Listing tsconfig "),
            sse::thought("patterns..."),
            sse::text("Done."),
            sse::finish("stop"),
            sse::usage(1, 1),
            sse::done(),
        ])]);
        let mut host = Host::with(&mock, format);
        let lines = host.say("think");
        let thoughts = of(&lines, "x-qwen-thought");
        assert_eq!(thoughts[0]["subject"], "Analyzing repo", "{thoughts:?}");
        let told: String = thoughts.iter().map(|line| line["description"].as_str().unwrap()).collect();
        assert!(told.contains("Listing tsconfig patterns..."), "{thoughts:?}");
        host.leave();
    });
}

#[test]
fn session_events_are_spelt_as_the_spec_spells_them() {
    each_format(|format| {
        let cut = || {
            Reply::new([ReplyEvent::Text("cut".into()).step(), ReplyEvent::Finish("length".into()).step()])
        };
        // An answer that was cut off is continued three times.
        let replies = [Reply::text("fine"), cut(), cut(), cut(), cut(), Reply::text("SUMMARY")];
        let mock = MockModel::with(replies);
        let mut host = Host::with(&mock, format);
        let event = |lines: &[Value], name: &str| {
            let found =
                of(lines, "x-qwen-session-event").into_iter().find(|line| line["event"] == name).cloned();
            found.unwrap_or_else(|| panic!("no {name}: {lines:#?}"))
        };
        let lines = host.say("one");
        assert!(event(&lines, "Finished")["message"].is_string());
        let lines = host.say("two");
        assert!(event(&lines, "MAX_TOKENS")["message"].is_string());
        host.send(openai("/compress"));
        let lines = host.run.json_until(|line| line["type"] == "result/command");
        let metrics = &event(&lines, "ChatCompressed")["metrics"];
        assert!(metrics["original_tokens"].is_u64() && metrics["compressed_tokens"].is_u64(), "{metrics}");
        host.leave();
        let call = || Reply::call("c1", "list_directory", r#"{"path":"."}"#);
        let mock = MockModel::with([call(), call(), call()]);
        let mut host = Host::start(worker(&mock, format).args(["--max-session-turns", "2"]));
        let lines = host.say("loop");
        assert_eq!(event(&lines, "MaxSessionTurns")["metrics"]["limit"], 2);
        assert_eq!(lines.last().unwrap()["metadata"]["turn"]["status"], "max_turns");
        host.leave();
    });
}
