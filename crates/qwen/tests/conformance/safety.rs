//! "Security and Resource Control" and the categories of events.

use mock_model::{MockModel, Reply};
use serde_json::json;

use crate::harness::{Host, each_format, echo, openai, qwen, shell, worker};

#[test]
fn structured_mode_asks_before_a_risky_action_and_no_answer_means_no() {
    each_format(|format| {
        let mock = MockModel::with([
            Reply::call("c1", "run_shell_command", &shell("touch made")),
            Reply::text("ok"),
        ]);
        let mut host = Host::with(&mock, format);
        host.send(openai("go"));
        let question = host.question();
        assert_eq!(question["metadata"]["confirmation"]["command"], "touch made", "{question}");
        let made = host.program.cwd_path().join("made");
        // Nobody is left to answer, so the answer is no.
        let lines = host.leave();
        let end = lines.last().unwrap();
        assert_eq!(
            end["metadata"]["turn"]["permission_denials"][0]["tool_name"], "run_shell_command",
            "{end}"
        );
        assert!(
            lines.iter().any(|line| line["type"] == "control_cancel_request"),
            "the question is taken back"
        );
        assert!(!made.exists());
    });
}

#[test]
fn tool_allowlists_and_rules_hold_in_structured_mode() {
    each_format(|format| {
        let calls = [
            Reply::call("c1", "run_shell_command", &shell("touch denied")),
            Reply::call("c2", "write_file", r#"{"file_path":"allowed","content":"x"}"#),
            Reply::text("ok"),
        ];
        let mock = MockModel::with(calls);
        let program = worker(&mock, format).arg("--yolo");
        let home = program.qwen_home_path();
        std::fs::create_dir_all(&home).unwrap();
        let settings = json!({"permissions": {"deny": ["Bash(touch *)"]}});
        std::fs::write(home.join("settings.json"), settings.to_string()).unwrap();
        let mut host = Host::start(program);
        let end = host.say("go").pop().unwrap();
        assert_eq!(
            end["metadata"]["turn"]["permission_denials"][0]["tool_name"], "run_shell_command",
            "{end}"
        );
        assert!(!host.program.cwd_path().join("denied").exists());
        assert!(host.program.cwd_path().join("allowed").exists());
        host.leave();
    });
}

#[test]
fn result_events_want_no_acknowledgement() {
    each_format(|format| {
        let mock = crate::harness::echo();
        let mut host = Host::with(&mock, format);
        for _ in 0..50 {
            host.send(json!({"type": "heartbeat_request"}));
            host.send(json!({"type": "command_hint_request", "trigger": "slash", "text": "/c"}));
            host.send(json!({"type": "control/cancel"}));
        }
        host.send(openai("x"));
        let lines = host.turn();
        for kind in ["result/heartbeat", "result/command_hint", "result/cancel"] {
            assert_eq!(lines.iter().filter(|line| line["type"] == kind).count(), 50, "{kind}");
        }
        host.leave();
    });
}

#[test]
fn a_command_says_that_there_is_no_control_channel() {
    each_format(|format| {
        let flags = ["--dialect", "qwen", "--model", "demo", "--output-format", format];
        let ended = qwen().args(flags).args(["-p", "/permissions"]).run();
        let told = ended.json_lines().into_iter().find(|line| line["type"] == "result/command").unwrap();
        assert!(told["limitation"].as_str().unwrap().contains("no control channel"), "{told}");
        let mock = echo();
        let mut host = Host::with(&mock, format);
        host.send(openai("/permissions"));
        let told = host.until(|line| line["type"] == "result/command");
        assert!(told.get("limitation").is_none(), "{told}");
        host.leave();
    });
}
