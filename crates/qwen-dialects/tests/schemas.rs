//! The committed schemas are those of the wire types, and what is written fits them.
#![expect(clippy::unwrap_used, reason = "tests may say what they expect, outside the test functions too")]

mod story;

use std::path::{Path, PathBuf};

use qwen_dialects::{Dialect, Encoder, Format, core, qwen, schemas};
use serde_json::Value;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../schemas")
}

/// `QWEN_BLESS=1 cargo test -p qwen-dialects --test schemas` writes the files anew.
#[test]
fn the_committed_schemas_are_those_of_the_wire_types() {
    for (name, schema) in schemas() {
        let path = folder().join(format!("{name}.json"));
        let fresh = format!("{}\n", serde_json::to_string_pretty(&schema).unwrap());
        if std::env::var_os("QWEN_BLESS").is_some() {
            std::fs::create_dir_all(folder()).unwrap();
            std::fs::write(&path, &fresh).unwrap();
        }
        let committed = std::fs::read_to_string(&path).unwrap_or_default();
        assert!(
            committed == fresh,
            "schemas/{name}.json has drifted; run the tests with QWEN_BLESS=1 and commit it"
        );
    }
}

fn validator(name: &str) -> jsonschema::Validator {
    let (_, schema) = schemas().into_iter().find(|(known, _)| *known == name).unwrap();
    jsonschema::validator_for(schema.as_value()).unwrap()
}

#[track_caller]
fn check(name: &str, encoder: Box<dyn Encoder>) {
    let validator = validator(name);
    for line in story::everything().told(encoder) {
        let complaints: Vec<String> = validator.iter_errors(&line).map(|error| error.to_string()).collect();
        assert!(complaints.is_empty(), "{name}: {line}\n{complaints:#?}");
    }
}

#[test]
fn everything_that_is_written_fits_its_schema() {
    check("qwen-stream", qwen::encoder(&story::info(Dialect::Qwen, Format::StreamJson)));
    check("qwen-stream-chunk", qwen::encoder(&story::info(Dialect::Qwen, Format::StreamChunkJson)));
    check("core-stream", core::encoder(&story::info(Dialect::Core, Format::StreamJson)));
}

#[test]
fn the_schemas_refuse_what_is_no_line() {
    for (name, line) in [
        ("qwen-stream", r#"{"object":"chat.completion.chunk","choices":[]}"#),
        ("qwen-stream", r#"{"type":"x-qwen-thought","subject":"no description"}"#),
        ("qwen-stream-chunk", r#"{"type":"x-qwen-nothing"}"#),
        ("core-stream", r#"{"type":"content","value":1}"#),
        ("core-stream", r#"{"type":"no_such_type","value":{}}"#),
        ("qwen-input", r#"{"type":"no_such_type"}"#),
        ("qwen-chat-request-schema", r#"{"session_id":"","input":{}}"#),
        ("qwen-chat-request-schema", r#"{"session_id":"a"}"#),
    ] {
        let line: Value = serde_json::from_str(line).unwrap();
        assert!(!validator(name).is_valid(&line), "{name}: {line}");
    }
}
