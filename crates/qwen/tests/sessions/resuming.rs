//! Going on with a session.

use mock_model::{MockModel, Reply};
use serde_json::json;

use super::harness::{conversation, done, exports_well, log, qwen};

#[test]
fn a_resumed_session_knows_what_was_said_and_done() {
    let arguments = r#"{"file_path":"notes.txt"}"#;
    let mock = MockModel::with([
        Reply::call("call_1", "read_file", arguments),
        Reply::text("It says hello."),
        Reply::text("You are welcome."),
    ]);
    let program = qwen(&mock);
    std::fs::write(program.cwd_path().join("notes.txt"), "hello from the file\n").unwrap();
    done(&program, &["-p", "Read notes.txt", "--session-id", "s1"]);
    done(&program, &["-p", "Thanks", "--resume", "s1"]);
    let said = conversation(&mock.requests()[2]);
    assert_eq!(said[0], "user: Read notes.txt");
    assert_eq!(said[1], "assistant: [call_1]");
    assert!(said[2].starts_with("tool call_1: ") && said[2].contains("hello from the file"), "{}", said[2]);
    assert_eq!(said[3..], ["assistant: It says hello.", "user: Thanks"]);
    exports_well(&program, "s1");
}

#[test]
fn every_signed_block_of_thinking_goes_back_to_its_provider_after_a_resume() {
    use mock_model::anthropic::{
        block_stop, event, message_delta, message_start, message_stop, signature, text, text_start, thought,
        thought_start,
    };
    let redacted = json!({"index": 1, "content_block": {"type": "redacted_thinking", "data": "sealed"}});
    let mock = MockModel::with([
        Reply::new([
            message_start(10),
            thought_start(0),
            thought(0, "First."),
            signature(0, "proof-1"),
            block_stop(0),
            event("content_block_start", redacted),
            block_stop(1),
            thought_start(2),
            thought(2, "Second."),
            signature(2, "proof-2"),
            block_stop(2),
            text_start(3),
            text(3, "Hello."),
            block_stop(3),
            message_delta("end_turn", 5),
            message_stop(),
        ]),
        Reply::text("Still here."),
    ]);
    let program = mock_model::process::qwen(env!("CARGO_BIN_EXE_qwen"))
        .env("ANTHROPIC_BASE_URL", mock.origin())
        .env("ANTHROPIC_API_KEY", "k")
        .args(["--auth-type", "anthropic", "--model", "mock"]);
    done(&program, &["-p", "Think", "--session-id", "s1"]);
    done(&program, &["-p", "Again", "--resume", "s1"]);
    let said = mock.requests()[1].messages()[1]["content"].clone();
    assert_eq!(
        said,
        json!([
            {"type": "thinking", "thinking": "First.", "signature": "proof-1"},
            {"type": "redacted_thinking", "data": "sealed"},
            {"type": "thinking", "thinking": "Second.", "signature": "proof-2"},
            {"type": "text", "text": "Hello."},
        ])
    );
    exports_well(&program, "s1");
}

#[test]
fn a_session_that_is_taken_up_asks_the_model_the_same_as_one_that_was_never_left() {
    let replies = || {
        let missing = r#"{"file_path":"missing.txt"}"#;
        let refused = r#"{"command":"touch x"}"#;
        let steps = [
            mock_model::sse::thought("Hm."),
            mock_model::sse::text("I look."),
            mock_model::sse::call(0, "call_1", "read_file", missing),
            mock_model::sse::call(1, "call_2", "run_shell_command", refused),
            mock_model::sse::finish("tool_calls"),
            mock_model::sse::done(),
        ];
        [Reply::new(steps), Reply::text("Nothing there."), Reply::text("As I said."), Reply::text("Bye.")]
    };
    let prompts = ["Look", "Really?", "Bye"];
    let whole = MockModel::with(replies());
    let line =
        |words: &str| json!({"session_id": "s1", "input": {"parts": [{"type": "text", "text": words}]}});
    let input = prompts.map(|words| line(words).to_string()).join("\n");
    let flags = ["--input-format", "stream-json", "--output-format", "stream-json"];
    let worker = qwen(&whole).args(flags).stdin(input);
    assert_eq!(worker.run().code, Some(0));
    let parts = MockModel::with(replies());
    let program = qwen(&parts);
    for words in prompts {
        let session = if words == "Look" { "--session-id" } else { "--resume" };
        done(&program, &["-p", words, session, "s1"]);
    }
    // The remedy that a refusal names depends on who drives the run.
    let without_remedy = |said: String| match said.find(" can allow it ") {
        Some(at) => said[..at].trim_end_matches("The user").trim_end_matches("The host").to_owned(),
        None => said,
    };
    let requests = |mock: &MockModel| -> Vec<Vec<String>> {
        let requests = mock.requests();
        requests
            .iter()
            .map(|request| conversation(request).into_iter().map(without_remedy).collect())
            .collect()
    };
    let (at_once, in_parts) = (requests(&whole), requests(&parts));
    assert_eq!(at_once.len(), 4);
    assert_eq!(at_once, in_parts);
}

#[test]
fn continue_takes_the_latest_session_of_this_directory() {
    let mock = MockModel::with(["one", "two", "three", "four"].map(Reply::text));
    let program = qwen(&mock);
    done(&program, &["-p", "First", "--session-id", "a"]);
    done(&program, &["-p", "Second", "--session-id", "b"]);
    let elsewhere = tempfile::tempdir().unwrap();
    done(&program.clone().cwd(elsewhere.path()), &["-p", "Third", "--session-id", "c"]);
    // Not the name and not the order on disk count, but when something was last said.
    let past = std::time::UNIX_EPOCH + std::time::Duration::from_secs(1_000_000);
    std::fs::File::open(log(&program, "b")).unwrap().set_modified(past).unwrap();
    done(&program, &["-p", "More", "--continue"]);
    assert_eq!(conversation(&mock.requests()[3]), ["user: First", "assistant: one", "user: More"]);
}

#[test]
fn continue_without_a_session_of_this_directory_says_so() {
    let mock = MockModel::start();
    let ended = qwen(&mock).args(["-p", "x", "-c"]).run();
    assert_eq!(ended.code, Some(42), "{}", ended.stderr);
    assert!(ended.stderr.contains("no session"), "{}", ended.stderr);
}

#[test]
fn an_unknown_session_is_refused_in_the_words_of_the_dialect() {
    let mock = MockModel::start();
    let ended = qwen(&mock).args(["-p", "x", "--resume", "nope", "--output-format", "json"]).run();
    assert_eq!(ended.code, Some(42), "{}", ended.stderr);
    assert_eq!(ended.json_lines()[0]["error"]["code"], "unknown_session");
    let flags =
        ["--resume", "nope", "--input-format", "stream-json", "--output-format", "stream-json", "--verbose"];
    let ended = qwen(&mock).args(flags).run();
    assert_eq!(ended.code, Some(1), "{}", ended.stderr);
    let result = &ended.json_lines()[0];
    assert_eq!(result["subtype"], "error_during_execution");
    assert_eq!(result["errors"], json!(["No conversation found with session ID: nope"]));
    assert!(mock.requests().is_empty());
}

#[test]
fn names_that_are_no_session_ids_are_refused() {
    let mock = MockModel::start();
    for flags in
        [["--resume", "../x"], ["--session-id", "../x"], ["--session-id", "a/b"], ["--resume", ".hidden"]]
    {
        let program = qwen(&mock);
        let ended = program.clone().args(["-p", "x"]).args(flags).run();
        assert_eq!(ended.code, Some(42), "{flags:?}: {}", ended.stderr);
        assert!(!program.qwen_home_path().exists(), "{flags:?}");
    }
}

#[test]
fn a_worker_takes_up_a_session_that_is_on_disk() {
    let mock = MockModel::with(["one", "two", "three"].map(Reply::text));
    let program = qwen(&mock);
    done(&program, &["-p", "First", "--session-id", "a"]);
    done(&program, &["-p", "Other", "--session-id", "b"]);
    let mut worker =
        program.args(["--input-format", "stream-json", "--output-format", "stream-json"]).start();
    let line = |id: &str, words: &str| json!({"session_id": id, "input": {"parts": [{"type": "text", "text": words}]}});
    worker.write_line(line("a", "More"));
    worker.json_until(|line| line["metadata"]["turn"]["status"] == "done");
    assert_eq!(conversation(&mock.requests()[2]), ["user: First", "assistant: one", "user: More"]);
    // It holds one session at a time, and goes over to another only when there is one.
    worker.write_line(line("nowhere", "More"));
    let refused = worker.json_until(|line| line["metadata"]["error"].is_object());
    assert_eq!(refused.last().unwrap()["metadata"]["error"]["code"], "unknown_session");
    mock.push(Reply::text("four"));
    worker.write_line(line("b", "More"));
    worker.json_until(|line| line["metadata"]["turn"]["status"] == "done");
    assert_eq!(conversation(&mock.requests()[3]), ["user: Other", "assistant: two", "user: More"]);
    assert_eq!(worker.finish().code, Some(0));
}

#[test]
fn a_session_can_be_resumed_from_an_earlier_point() {
    let mock = MockModel::with(["one", "two", "other", "again"].map(Reply::text));
    let program = qwen(&mock);
    done(&program, &["-p", "First", "--session-id", "a"]);
    done(&program, &["-p", "Second", "--resume", "a"]);
    done(&program, &["-p", "Instead", "--resume", "a", "--resume-session-at", "a########1"]);
    assert_eq!(conversation(&mock.requests()[2]), ["user: First", "assistant: one", "user: Instead"]);
    done(&program, &["-p", "And", "--resume", "a"]);
    let expected = ["user: First", "assistant: one", "user: Instead", "assistant: other", "user: And"];
    assert_eq!(conversation(&mock.requests()[3]), expected);
    let ended = program.clone().args(["-p", "x", "--resume", "a", "--resume-session-at", "nowhere"]).run();
    assert_eq!(ended.code, Some(42), "{}", ended.stderr);
    assert!(ended.stderr.contains("'nowhere'"), "{}", ended.stderr);
}
