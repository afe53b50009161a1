//! `qwen sessions`.

use mock_model::{MockModel, Reply, sse};

use super::harness::{done, exports_well, log, qwen, sessions};

fn place() -> (MockModel, mock_model::process::Program) {
    let steps = [
        sse::thought("Where is it?"),
        sse::text("I look."),
        sse::call(0, "call_1", "read_file", r#"{"file_path":"notes.txt"}"#),
        sse::call(1, "call_2", "run_shell_command", r#"{"command":"printf 'out\\n'; printf 'err\\n' >&2"}"#),
        sse::finish("tool_calls"),
        sse::usage(100, 20),
        sse::done(),
    ];
    let mock =
        MockModel::with([Reply::new(steps), Reply::text("It says\u{1b}[31m hi."), Reply::text("Bye.")]);
    let program = qwen(&mock);
    std::fs::write(program.cwd_path().join("notes.txt"), "hi\n").unwrap();
    done(&program, &["-p", "Read notes.txt", "--session-id", "a", "--yolo"]);
    (mock, program)
}

#[test]
fn list_tells_id_turns_directory_and_first_prompt() {
    let (_mock, program) = place();
    done(&program, &["-p", "Bye", "--resume", "a"]);
    let listed = sessions(&program, &["list"]);
    let line = listed.stdout.lines().next().unwrap();
    let cwd = program.cwd_path().canonicalize().unwrap();
    for part in ["a  ", "2 turns", "Read notes.txt", cwd.to_str().unwrap()] {
        assert!(line.contains(part), "{part:?} is missing in {line:?}");
    }
    let json = sessions(&program, &["list", "--json"]);
    let json: serde_json::Value = serde_json::from_str(&json.stdout).unwrap();
    assert_eq!(json[0]["session_id"], "a");
    assert_eq!(json[0]["turns"], 2);
    assert_eq!(json[0]["first_prompt"], "Read notes.txt");
}

#[test]
fn the_columns_of_the_list_stand_below_each_other() {
    let mock = MockModel::with(["one", "two"].map(Reply::text));
    let program = qwen(&mock);
    for id in ["a", "a-much-longer-name"] {
        done(&program, &["-p", "Hello", "--session-id", id]);
    }
    let listed = sessions(&program, &["list"]).stdout;
    let columns: Vec<Option<usize>> = listed.lines().map(|line| line.find("1 turn")).collect();
    assert!(columns.len() == 2 && columns[0] == columns[1] && columns[0].is_some(), "{listed}");
}

#[test]
fn where_there_are_no_sessions_the_list_is_empty() {
    let mock = MockModel::start();
    let program = qwen(&mock);
    let listed = sessions(&program, &["list"]);
    assert_eq!((listed.code, listed.stdout.as_str()), (Some(0), ""));
    assert_eq!(sessions(&program, &["list", "--json"]).stdout, "[]\n");
    assert!(!program.qwen_home_path().exists());
}

#[test]
fn show_is_for_people_and_cannot_drive_their_terminal() {
    let (_mock, program) = place();
    let shown = sessions(&program, &["show", "a"]).stdout;
    for part in ["> Read notes.txt", "I look.", "✓ read_file", "It says hi.", "[done · "] {
        assert!(shown.contains(part), "{part:?} is missing in {shown}");
    }
    assert!(!shown.contains('\u{1b}'), "{shown}");
}

#[test]
fn export_gives_the_stream_of_every_dialect() {
    let (_mock, program) = place();
    exports_well(&program, "a");
    let once = sessions(&program, &["export", "a", "--dialect", "claude"]).stdout;
    let again = sessions(&program, &["export", "a", "--dialect", "claude"]).stdout;
    assert_eq!(once, again, "the same session gives the same stream");
    let replayed = sessions(&program, &["replay", "a", "--dialect", "claude", "--speed", "1000000"]).stdout;
    assert_eq!(once, replayed);
}

#[test]
fn a_trajectory_has_a_step_per_message_with_the_results_of_its_calls() {
    let mock = MockModel::with([
        Reply::call("call_1", "list_directory", r#"{"path":"."}"#),
        Reply::text("One file."),
    ]);
    let program = qwen(&mock);
    done(&program, &["-p", "Look", "--session-id", "a"]);
    let exported = sessions(&program, &["export", "a", "--dialect", "atif"]).json_lines();
    let [trajectory] = &exported[..] else { panic!("{exported:?}") };
    assert_eq!(trajectory["schema_version"], "ATIF-v1.8");
    assert_eq!(trajectory["session_id"], "a");
    let steps = trajectory["steps"].as_array().unwrap();
    let sources: Vec<_> = steps.iter().map(|step| step["source"].as_str().unwrap()).collect();
    assert_eq!(sources, ["user", "agent", "agent"]);
    assert_eq!(steps[1]["tool_calls"][0]["tool_call_id"], "call_1");
    assert_eq!(steps[1]["observation"]["results"][0]["source_call_id"], "call_1");
    assert_eq!(steps[2]["message"], "One file.");
    assert_eq!(trajectory["final_metrics"]["total_steps"], 3);
    assert_eq!(trajectory["extra"]["turns"][0]["status"], "done");
}

#[test]
fn an_export_says_what_the_stream_said() {
    let mock = MockModel::with([
        Reply::call("call_1", "list_directory", r#"{"path":"."}"#),
        Reply::text("One file."),
    ]);
    let program = qwen(&mock);
    let flags = ["-p", "Look", "--session-id", "a", "--output-format", "stream-json", "--dialect"];
    for dialect in ["claude", "loom", "core"] {
        let live = done(&program, &[&flags[..], &[dialect]].concat()).json_lines();
        let export = sessions(&program, &["export", "a", "--dialect", dialect]).json_lines();
        let kinds = |lines: &[serde_json::Value]| -> Vec<String> {
            let kind = |line: &serde_json::Value| line["type"].as_str().unwrap_or("reply").to_owned();
            let mut kinds: Vec<String> = lines.iter().map(kind).collect();
            // The user's words are repeated in an export, and pieces come as one.
            kinds.retain(|kind| kind != "user");
            kinds.dedup();
            kinds
        };
        assert_eq!(kinds(&live), kinds(&export), "{dialect}");
        assert_eq!(sessions(&program, &["delete", "a"]).code, Some(0));
        mock.push(Reply::call("call_1", "list_directory", r#"{"path":"."}"#));
        mock.push(Reply::text("One file."));
    }
}

#[test]
fn checkpoints_are_places_to_go_back_to() {
    let (mock, program) = place();
    let listed = sessions(&program, &["checkpoints", "a"]).stdout;
    let ids: Vec<&str> = listed.lines().filter_map(|line| line.split_whitespace().next()).collect();
    assert_eq!(ids, ["a-1-1", "a-1-2", "a-1-3", "a-1-4"]);
    done(&program, &["-p", "Why?", "--resume", "a", "--fork-session", "--resume-session-at", "a-1-3"]);
    let said = super::harness::conversation(&mock.requests()[2]);
    assert_eq!(said.len(), 5, "{said:?}");
    assert_eq!(said[4], "user: Why?");
}

#[test]
fn delete_takes_the_log_away() {
    let (_mock, program) = place();
    assert_eq!(sessions(&program, &["delete", "a"]).code, Some(0));
    assert!(!log(&program, "a").exists());
    for command in [&["delete", "a"][..], &["show", "a"], &["export", "a"], &["checkpoints", "a"]] {
        let ended = sessions(&program, command);
        assert_eq!(ended.code, Some(42), "{command:?}");
        assert!(ended.stderr.contains("'a'"), "{command:?}: {}", ended.stderr);
    }
    assert_eq!(sessions(&program, &["show", "../a"]).code, Some(42));
}
