//! Two sessions with one past.

use mock_model::{MockModel, Reply};

use super::harness::{conversation, done, exports_well, log, qwen, sessions};

#[test]
fn a_fork_goes_on_under_its_own_name_and_leaves_the_old_session_as_it_is() {
    let mock = MockModel::with(["one", "two", "three"].map(Reply::text));
    let program = qwen(&mock);
    done(&program, &["-p", "First", "--session-id", "a"]);
    let before = std::fs::read(log(&program, "a")).unwrap();
    let ended = done(&program, &["-p", "Fork", "--resume", "a", "--fork-session", "--output-format", "json"]);
    let id = ended.json_lines()[0]["session_id"].as_str().unwrap().to_owned();
    assert_ne!(id, "a");
    assert_eq!(std::fs::read(log(&program, "a")).unwrap(), before);
    assert_eq!(conversation(&mock.requests()[1]), ["user: First", "assistant: one", "user: Fork"]);
    assert_eq!(sessions(&program, &["delete", "a"]).code, Some(0));
    done(&program, &["-p", "More", "--resume", &id]);
    let expected = ["user: First", "assistant: one", "user: Fork", "assistant: two", "user: More"];
    assert_eq!(conversation(&mock.requests()[2]), expected);
    exports_well(&program, &id);
}

#[test]
fn a_fork_can_be_named_and_begin_at_an_earlier_place() {
    let mock = MockModel::with(["one", "two", "three"].map(Reply::text));
    let program = qwen(&mock);
    done(&program, &["-p", "First", "--session-id", "a"]);
    done(&program, &["-p", "Second", "--continue"]);
    let flags = ["--resume", "a", "--fork-session", "--session-id", "b", "--resume-session-at", "a########1"];
    done(&program, &[&["-p", "Instead"], &flags[..]].concat());
    assert_eq!(conversation(&mock.requests()[2]), ["user: First", "assistant: one", "user: Instead"]);
    let listed = sessions(&program, &["list", "--json"]);
    let listed: serde_json::Value = serde_json::from_str(&listed.stdout).unwrap();
    let fork = listed.as_array().unwrap().iter().find(|session| session["session_id"] == "b").unwrap();
    assert_eq!(fork["parent"], serde_json::json!({"session_id": "a", "point": "a########1"}));
    let ended = program.clone().args(["-p", "x"]).args(flags).run();
    assert_eq!(ended.code, Some(42), "a name that is taken: {}", ended.stderr);
}

#[test]
fn a_fork_of_the_end_names_that_as_its_point() {
    let mock = MockModel::with(["one", "two", "three"].map(Reply::text));
    let program = qwen(&mock);
    done(&program, &["-p", "First", "--session-id", "a"]);
    done(&program, &["-p", "Second", "--continue"]);
    done(&program, &["-p", "Fork", "--resume", "a", "--fork-session", "--session-id", "b"]);
    let kept = std::fs::read_to_string(log(&program, "b")).unwrap();
    let first: serde_json::Value = serde_json::from_str(kept.lines().next().unwrap()).unwrap();
    assert_eq!(first["parent"], serde_json::json!({"session_id": "a", "point": "a########2"}));
}

#[test]
fn a_worker_goes_on_in_a_copy_when_told_to() {
    let mock = MockModel::with(["one", "two", "three"].map(Reply::text));
    let program = qwen(&mock);
    let flags = ["--input-format", "stream-json", "--output-format", "stream-json", "--session-id", "a"];
    let mut worker = program.clone().args(flags).start();
    let mut say = |text: &str| {
        worker.write_line(serde_json::json!({"messages": [{"role": "user", "content": text}]}));
        let over = |line: &serde_json::Value| {
            line["metadata"]["turn"].is_object() || line["type"] == "result/command"
        };
        worker.json_until(over).pop().unwrap()
    };
    say("First");
    let told = say("/chat fork")["result"]["content"].as_str().unwrap().to_owned();
    let end = say("Second");
    let id = end["session_id"].as_str().unwrap().to_owned();
    assert!(id != "a" && told.contains(&id), "the copy is named: {told}");
    assert_eq!(end["metadata"]["turn"]["status"], "done");
    assert_eq!(conversation(&mock.requests()[1]), ["user: First", "assistant: one", "user: Second"]);
    assert_eq!(worker.finish().code, Some(0));
    done(&program, &["-p", "Third", "--resume", "a"]);
    assert_eq!(conversation(&mock.requests()[2]), ["user: First", "assistant: one", "user: Third"]);
    exports_well(&program, &id);
}

#[test]
fn a_copy_is_kept_under_a_name_and_the_session_goes_on() {
    let mock = MockModel::with(["one", "two", "three"].map(Reply::text));
    let program = qwen(&mock);
    let early = program.clone().args(["-p", "/chat save mine", "--session-id", "a"]).run();
    assert_eq!(early.code, Some(1), "nothing was said yet: {}", early.stdout);
    done(&program, &["-p", "First", "--session-id", "a"]);
    let saved = done(&program, &["-p", "/chat save mine", "--resume", "a"]);
    assert!(saved.stdout.contains("mine"), "{}", saved.stdout);
    done(&program, &["-p", "Second", "--resume", "a"]);
    done(&program, &["-p", "Third", "--resume", "mine"]);
    assert_eq!(conversation(&mock.requests()[2]), ["user: First", "assistant: one", "user: Third"]);
    for (words, problem) in [("mine", "mine"), ("../x", "a session id is"), ("a", "'a'")] {
        let refused = program.clone().args(["--resume", "a", "-p", &format!("/chat save {words}")]).run();
        assert_eq!(refused.code, Some(1), "{words}: {}", refused.stdout);
        assert!(refused.stdout.contains(problem), "{words}: {}", refused.stdout);
    }
}

#[test]
fn a_copy_that_is_promised_is_made() {
    let mock = MockModel::with([Reply::text("one"), Reply::text("two")]);
    let program = qwen(&mock);
    done(&program, &["-p", "First", "--session-id", "a"]);
    let told = done(&program, &["-p", "/chat fork", "--resume", "a"]).stdout;
    let id = told.trim().trim_end_matches('.').rsplit(' ').next().unwrap().to_owned();
    done(&program, &["-p", "Second", "--resume", &id]);
    assert_eq!(conversation(&mock.requests()[1]), ["user: First", "assistant: one", "user: Second"]);
}

#[test]
fn a_session_that_cannot_be_gone_on_with_is_not_promised() {
    let mock = MockModel::with([Reply::text("one"), Reply::text("two")]);
    let program = qwen(&mock);
    done(&program, &["-p", "First", "--session-id", "a"]);
    let flags = ["--input-format", "stream-json", "--output-format", "stream-json"];
    let mut holder = program.clone().args(flags).args(["--resume", "a"]).start();
    holder.json();
    let mut worker = program.clone().args(flags).args(["--session-id", "b"]).start();
    worker.write_line(serde_json::json!({"messages": [{"role": "user", "content": "/chat resume a"}]}));
    let told = worker.json_until(|line| line["type"] == "result/command").pop().unwrap();
    assert_eq!(told["result"]["level"], "error", "{told}");
    assert!(told["result"]["content"].as_str().unwrap().contains("in use"), "{told}");
    assert_eq!((holder.finish().code, worker.finish().code), (Some(0), Some(0)));
}
