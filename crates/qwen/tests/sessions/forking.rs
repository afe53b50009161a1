//! Two sessions with one past.

use mock_model::{MockModel, Reply};

use super::stage::{conversation, done, exports_well, log, qwen, sessions};

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
