//! Commands, lists, going back, the transcript.

use qwen_events::{
    Body, CommandCall, CommandKind, CommandResult, CommandResultBody, Json, Level, PromptId, SessionId,
    ToolStatus,
};

use super::Scene;
use crate::harness::{Stage, call, end};

/// The result of the first command.
fn result(body: CommandResultBody) -> Body {
    result_of("t-1", body)
}

/// The result of the command with this id.
fn result_of(prompt_id: &str, body: CommandResultBody) -> Body {
    Body::CommandResult(Box::new(CommandResult {
        session_id: SessionId::parse("s").unwrap(),
        prompt_id: PromptId::new(prompt_id),
        message_uuid: None,
        message_origin: None,
        cleared_session: None,
        command: CommandCall { kind: CommandKind::Slash, path: vec!["stats".into()], args: "".into() },
        body,
    }))
}

fn dialog(data: &str) -> Body {
    result(CommandResultBody::Dialog { name: "list".into(), data: Json::trusted(data) })
}

fn transcript(stage: &mut Stage) {
    let events = [
        Body::ToolEnd(Box::new(end(
            call("c1", "run_shell_command", r#"{"command":"cargo test"}"#),
            ToolStatus::Success,
            "running 2 tests\ntest parser ... ok\ntest printer ... ok",
            None,
        ))),
        Body::ToolEnd(Box::new(end(
            call("c2", "read_file", r#"{"file_path":"src/parser.rs"}"#),
            ToolStatus::Success,
            "pub fn parse() {}",
            None,
        ))),
    ];
    stage.transcript(&events);
}

pub const SCENES: &[Scene] = &[
    ("command-result", |stage| {
        stage.keys("/stats\r");
        let content = "3 requests\n120 tokens".into();
        stage.event(result(CommandResultBody::Message { level: Level::Info, content }));
    }),
    ("list", |stage| {
        stage.keys("/resume\r");
        stage.event(dialog(
            r#"{"command":"/resume","title":"Continue with a session","searchable":true,"items":[
                {"value":"a1","label":"explain the parser","detail":"a1, 3 turns","preview":["> and the printer?","It writes."]},
                {"value":"b2","label":"fix the build","detail":"b2, 1 turn","preview":["> fix the build","Done."]}]}"#,
        ));
        stage.keys("\u{1b}[B");
    }),
    ("list-search", |stage| {
        stage.keys("/resume\r");
        stage.event(dialog(
            r#"{"command":"/resume","title":"Continue with a session","searchable":false,"items":[
                {"value":"a1","label":"explain the parser","detail":"a1, 3 turns","preview":["> and the printer?","It writes."]},
                {"value":"b2","label":"fix the build","detail":"b2, 1 turn","preview":["> fix the build","Done."]}]}"#,
        ));
        stage.keys("build");
    }),
    ("rewind-preview", |stage| {
        stage.keys("/rewind p1\r");
        stage.event(dialog(
            r#"{"command":"/rewind","title":"Before: fix the build","items":[
                {"value":"","label":"Stay here"},
                {"value":"p1 both","label":"Conversation and files","preview":["Would be restored: src/lib.rs.","Not undone, because commands cannot be: `touch made.txt`."]},
                {"value":"p1 conversation","label":"Conversation only","preview":["Files stay as they are."]},
                {"value":"p1 files","label":"Files only","preview":["Would be restored: src/lib.rs."]}]}"#,
        ));
        stage.keys("\u{1b}[B");
    }),
    ("rewound", |stage| {
        stage.keys("/rewind p1 both\r");
        stage.event(dialog(
            r#"{"text":"The conversation is back before that prompt.\nPut back: src/lib.rs.","prompt":"fix the build"}"#,
        ));
    }),
    ("copied", |stage| {
        stage.keys("/copy\r");
        let data = Json::trusted(r#"{"text":"the answer"}"#);
        stage.event(result(CommandResultBody::Dialog { name: "copy".into(), data }));
        stage.notify("Copied by wl-copy.");
    }),
    ("command-error", |stage| {
        stage.keys("/modle\r");
        let content = "There is no command '/modle'; did you mean '/model'?".into();
        stage.event(result(CommandResultBody::Message { level: Level::Error, content }));
    }),
    ("transcript", |stage| {
        transcript(stage);
        stage.keys("/parser\r");
    }),
    ("transcript-typing", |stage| {
        transcript(stage);
        stage.keys("gf/pars");
    }),
];

#[test]
fn an_answer_to_an_earlier_search_neither_replaces_nor_reopens_the_list() {
    let mut stage = Stage::new(80, 24);
    let answer = |id: &str, label: &str| {
        let data = format!(
            r#"{{"command":"/resume","title":"Sessions","searchable":true,"items":[{{"value":"v","label":"{label}"}}]}}"#
        );
        result_of(id, CommandResultBody::Dialog { name: "list".into(), data: Json::trusted(data) })
    };
    stage.keys("/resume\r");
    stage.event(answer("t-1", "all of them"));
    stage.keys("ab");
    stage.event(answer("t-s3", "both letters"));
    assert!(stage.screen().contains("both letters"), "{}", stage.screen());
    stage.event(answer("t-s2", "one letter"));
    assert!(!stage.screen().contains("one letter"), "{}", stage.screen());
    stage.keys("\r");
    stage.event(answer("t-s3", "both letters"));
    assert!(!stage.screen().contains("both letters"), "{}", stage.screen());
}
