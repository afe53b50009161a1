//! The scripted model.

use std::path::PathBuf;
use std::time::Duration;

use qwen_events::{Finish, Message, Role, Usage};
use qwen_model::{ModelConfig, Piece, Provider, build};

use crate::asking::{Outcome, ask, request};

/// Plays `script` for as many calls as there are prompts.
async fn play(script: &str, prompts: &[&str]) -> Vec<Outcome> {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), script).unwrap();
    let config = ModelConfig {
        retry_base: Duration::from_millis(1),
        ..ModelConfig::new(Provider::Script(file.path().into()), "script")
    };
    let model = build(&config).unwrap();
    let mut outcomes = Vec::new();
    for prompt in prompts {
        outcomes.push(ask(&*model, request(prompt)).await);
    }
    outcomes
}

#[tokio::test]
async fn calls_are_answered_in_order() {
    let script = r#"{"turns":[
        {"steps":[{"model":"m1"},{"thought":"hm"},{"text":"a b c","split":"word"},
                  {"tool_call":{"name":"read_file","arguments":{"file_path":"x"},"id":"c1","chunks":2}},
                  {"usage":{"prompt_tokens":5,"completion_tokens":2}}]},
        {"steps":[{"repeat":3,"text":"x"},{"finish":"length"}]}
    ]}"#;
    let outcomes = play(script, &["one", "two", "three"]).await;
    assert_eq!(outcomes[0].pieces[0], Piece::Start { model: "m1".into() });
    assert_eq!((outcomes[0].thought(), outcomes[0].text()), ("hm".into(), "a b c".into()));
    assert_eq!(outcomes[0].calls(), [("c1".into(), "read_file".into(), r#"{"file_path":"x"}"#.into())]);
    assert_eq!(outcomes[0].finish(), Some(Finish::ToolCalls));
    let usage = Usage { prompt_tokens: 5, completion_tokens: 2, ..Usage::default() };
    assert_eq!(outcomes[0].usage(), Some(usage));
    assert_eq!((outcomes[1].text(), outcomes[1].finish()), ("xxx".into(), Some(Finish::Length)));
    assert!(outcomes[1].usage().unwrap().estimated);
    assert_eq!(outcomes[2].code(), "script_exhausted");
}

#[tokio::test]
async fn errors_go_through_the_retry_policy() {
    let script = r#"[[{"error":{"status":503,"message":"busy"}}], [{"break":true}], [],
                     [{"error":{"status":429,"message":"slow","retry_after":0}}], [{"text":"at last"}]]"#;
    let outcomes = play(script, &["hi"]).await;
    let codes: Vec<_> = outcomes[0].retries().iter().map(|retry| (retry.0, retry.2)).collect();
    assert_eq!(codes, [(1, "server_error"), (2, "stream_broken"), (3, "empty_stream"), (4, "rate_limited")]);
    assert_eq!(outcomes[0].text(), "at last");
}

#[tokio::test]
async fn a_break_after_the_first_token_is_final() {
    let outcomes = play(r#"[[{"text":"half"},{"break":true}],[{"text":"never"}]]"#, &["hi"]).await;
    assert_eq!((outcomes[0].text(), outcomes[0].code()), ("half".into(), "stream_broken"));
}

#[tokio::test]
async fn a_match_picks_the_call_and_an_expectation_is_checked() {
    let script = r#"[{"match":"blue","steps":[{"text":"B"}]},{"steps":[{"expect":{"contains":"red"}},{"text":"R"}]},
                     [{"expect":{"contains":"absent"}}]]"#;
    let outcomes = play(script, &["red please", "blue please", "green"]).await;
    assert_eq!((outcomes[0].text(), outcomes[1].text()), ("R".into(), "B".into()));
    assert_eq!(outcomes[2].code(), "script_expectation");
    assert!(outcomes[2].message().contains("absent") && outcomes[2].message().contains("green"));
}

#[tokio::test]
async fn a_note_after_the_prompt_is_neither_matched_nor_expected() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("script.json");
    std::fs::write(&file, r#"[{"match":"red","steps":[{"expect":{"contains":"red"}},{"text":"R"}]}]"#)
        .unwrap();
    let model = build(&ModelConfig::new(Provider::Script(file), "")).unwrap();
    let note = Message::text(Role::User, "<situation>\nthe mode is now plan\n</situation>");
    let mut request = request("red please");
    std::sync::Arc::make_mut(&mut request.messages).push(note);
    let outcome = ask(&*model, request).await;
    assert_eq!(outcome.text(), "R");
}

#[tokio::test]
async fn a_script_waits_for_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let gate = folder.path().join("go");
    let script = format!(r#"[[{{"wait_for_file":{:?}}},{{"text":"went"}}]]"#, gate.to_str().unwrap());
    let opening = async { std::fs::write(&gate, "").unwrap() };
    let (outcomes, ()) = tokio::join!(play(&script, &["hi"]), opening);
    assert_eq!(outcomes[0].text(), "went");
}

#[test]
fn a_script_that_cannot_be_used_is_refused_with_its_name() {
    let error = |path: PathBuf| match build(&ModelConfig::new(Provider::Script(path), "")) {
        Ok(_) => panic!("it was accepted"),
        Err(error) => error,
    };
    let missing = error("no/such/script.json".into());
    assert_eq!(missing.code, "script_unreadable");
    assert!(missing.message.contains("no/such/script.json"));
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), r#"{"turns":[{"steps":[{"txet":"a"}]}]}"#).unwrap();
    let wrong = error(file.path().into());
    assert_eq!(wrong.code, "script_invalid");
    let told = &wrong.message;
    assert!(told.contains(file.path().to_str().unwrap()) && told.contains("line 1 column 27"), "{told}");
}

#[test]
fn the_examples_in_the_documentation_are_scripts() {
    let page = include_str!("../../../../docs/script-model.md");
    let examples: Vec<&str> =
        page.split("```json\n").skip(1).map(|rest| rest.split("```").next().unwrap()).collect();
    assert!(examples.len() > 3);
    for example in examples {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), example).unwrap();
        if let Err(error) = build(&ModelConfig::new(Provider::Script(file.path().into()), "")) {
            panic!("{example}: {error}");
        }
    }
}
