//! A key never leaves the process except in the header that it is for.

use mock_model::process::{Ended, Program};
use mock_model::{MockModel, Reply, Step, sse};

use crate::harness::qwen;
use crate::wire;

const KEY: &str = "sk-geheim-4f9a1c7e";

#[track_caller]
fn silent(name: &str, ended: &Ended) {
    for (place, text) in [("stdout", &ended.stdout), ("stderr", &ended.stderr)] {
        assert!(!text.contains("geheim"), "{name}: the key is on {place}: {text}");
    }
}

/// The key echoed by everything that a server can say.
fn echoes() -> Vec<(&'static str, Reply)> {
    let body = format!(
        r#"{{"error":{{"message":"Incorrect API key provided: {KEY}","type":"{KEY}","code":"{KEY}"}}}}"#
    );
    let status = |code: u16, body: &str| {
        let headers = vec![("retry-after".to_owned(), "0".to_owned()), ("x-echo".to_owned(), KEY.to_owned())];
        Reply::new([Step::Status(code, headers, body.to_owned())])
    };
    vec![
        ("401", status(401, &body)),
        ("403 in plain words", status(403, &format!("Bearer {KEY} may not"))),
        ("400", status(400, &body)),
        ("404", status(404, &body)),
        ("500", status(500, &body)),
        ("a page", status(200, &format!("<html>{KEY}</html>"))),
        ("garbage", Reply::new([sse::raw(format!("data: {{{KEY}}}\n\n"))])),
        ("an error in the stream", Reply::new([sse::text("Hi"), sse::error(&format!("bad key {KEY}"))])),
    ]
}

#[test]
fn an_echoed_key_is_never_repeated() {
    wire::each(&wire::all(), |wire| {
        for (name, reply) in echoes() {
            let mock = MockModel::start();
            mock.answer_with(move |_: &mock_model::Request| Some(reply.clone()));
            let program = qwen().args(["-p", "x", "-m", "mock"]).args(wire.flags());
            let ended = program.with_model(&mock).env("OPENAI_API_KEY", KEY).run();
            assert_ne!(ended.code, Some(0), "{name}: {ended:?}");
            silent(name, &ended);
            assert_eq!(mock.requests()[0].header("authorization"), Some(&*format!("Bearer {KEY}")));
        }
    });
    for (name, reply) in echoes() {
        let mock = MockModel::start();
        mock.answer_with(move |_: &mock_model::Request| Some(reply.clone()));
        silent(name, &qwen().with_model(&mock).env("OPENAI_API_KEY", KEY).args(["-p", "x"]).run());
    }
}

#[test]
fn an_address_with_a_key_in_it_is_never_shown() {
    let mock = MockModel::with([]);
    let port = mock.port();
    let addresses = [
        format!("http://user:{KEY}@127.0.0.1:{port}/v1"),
        format!("http://{KEY}@127.0.0.1:{port}/v1"),
        format!("http://127.0.0.1:{port}/v1?api_key={KEY}"),
        format!("http://127.0.0.1:{port}/v1/{KEY}"),
        format!("http://127.0.0.1:1/v1?key={KEY}"),
        format!("http://user:{KEY}@127.0.0.1:1/v1"),
        format!("ftp://user:{KEY}@127.0.0.1/v1"),
        format!("ftp://127.0.0.1/v1?key={KEY}"),
        format!("http://user:{KEY}@/v1"),
        format!("http://no host?key={KEY}"),
    ];
    mock.answer_with(|_: &mock_model::Request| Some(Reply::status(400, "no")));
    let run = |address: &str, format: &str| {
        let base = qwen().args(["-p", "x", "--output-format", format]);
        for program in
            [base.clone().env("OPENAI_BASE_URL", address), base.args(["--openai-base-url", address])]
        {
            let ended = program.run();
            assert_ne!(ended.code, Some(0), "{address}: {ended:?}");
            silent(address, &ended);
        }
    };
    std::thread::scope(|scope| {
        for address in &addresses {
            scope.spawn(|| run(address, "text"));
            scope.spawn(|| run(address, "stream-json"));
        }
    });
}

#[test]
fn a_key_that_cannot_be_sent_or_stands_on_the_command_line_is_not_shown() {
    let mock = MockModel::with([Reply::status(401, KEY)]);
    let base = || qwen().with_model(&mock).args(["-p", "x", "--output-format", "stream-json"]);
    let runs: [(&str, Program); 4] = [
        ("a line break in the key", base().env("OPENAI_API_KEY", format!("{KEY}\nmore"))),
        ("a key by flag", base().args(["--openai-api-key", KEY])),
        ("a key by flag and a bad flag", base().args(["--openai-api-key", KEY, "--no-such-flag"])),
        ("a key by flag and a bad dialect", base().args(["--openai-api-key", KEY, "--dialect", "x"])),
    ];
    for (name, program) in runs {
        let ended = program.run();
        assert_ne!(ended.code, Some(0), "{name}: {ended:?}");
        silent(name, &ended);
    }
}

#[test]
fn a_tool_does_not_inherit_the_models_keys() {
    let call = r#"{"command":"env"}"#;
    let mock = MockModel::with([Reply::call("c1", "run_shell_command", call), Reply::text("ok")]);
    let names = ["OPENAI_API_KEY", "DASHSCOPE_API_KEY", "ANTHROPIC_API_KEY"];
    let program = names.iter().fold(qwen().with_model(&mock), |program, name| program.env(name, KEY));
    let ended = program.args(["-p", "x", "--yolo", "--json"]).env("HARMLESS", "shown").run();
    assert_eq!(ended.code, Some(0), "{ended:?}");
    silent("env", &ended);
    let back = mock.requests()[1].messages().last().unwrap().to_string();
    assert!(back.contains("HARMLESS=shown") && !back.contains("geheim"), "{back}");
}
