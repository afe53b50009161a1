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
