//! Whole runs, as a user sees them: command, exit code, standard output, standard error. What varies is
//! filtered.

use std::fs;

use mock_model::process::Program;
use mock_model::{MockModel, Reply, ReplyEvent};

use crate::harness::qwen;

/// Everything that a run wrote, with what varies replaced.
fn snapshot(program: &Program) -> String {
    let ended = program.run();
    let code = ended.code.map_or("none".to_owned(), |code| code.to_string());
    let text = format!("exit code {code}\n--- stdout\n{}--- stderr\n{}", ended.stdout, ended.stderr);
    let cwd = program.cwd_path().to_string_lossy().into_owned();
    filtered(&text.replace(&cwd, "[cwd]"))
}

/// Replaces ids, times and ports.
fn filtered(text: &str) -> String {
    const NUMBERS: [&str; 5] = ["created", "timestamp", "duration_ms", "duration_api_ms", "ts"];
    let mut out = String::new();
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let number = NUMBERS.iter().find_map(|key| {
            let value = rest.strip_prefix(&format!("\"{key}\":"))?;
            let end = value.find(|c: char| !c.is_ascii_digit())?;
            (end > 0).then(|| (format!("\"{key}\":[n]"), &value[end..]))
        });
        let replaced = number
            .or_else(|| uuid(rest).map(|rest| ("[uuid]".to_owned(), rest)))
            .or_else(|| hex_after(rest, "msg-").map(|rest| ("msg-[hex]".to_owned(), rest)))
            .or_else(|| date(rest).map(|rest| ("[date]".to_owned(), rest)));
        if let Some((replacement, after)) = replaced {
            out.push_str(&replacement);
            rest = after;
        } else {
            out.push(c);
            rest = &rest[c.len_utf8()..];
        }
    }
    out
}

/// What follows a UUID at the start of `text`.
fn uuid(text: &str) -> Option<&str> {
    let (id, rest) = text.split_at_checked(36)?;
    let sound = id.char_indices().all(|(at, c)| match at {
        8 | 13 | 18 | 23 => c == '-',
        _ => c.is_ascii_hexdigit(),
    });
    sound.then_some(rest)
}

/// What follows a moment like `2025-10-13T08:00:00.000Z`.
fn date(text: &str) -> Option<&str> {
    let (moment, rest) = text.split_at_checked(24)?;
    let sound = moment.char_indices().all(|(at, c)| match at {
        4 | 7 => c == '-',
        10 => c == 'T',
        13 | 16 => c == ':',
        19 => c == '.',
        23 => c == 'Z',
        _ => c.is_ascii_digit(),
    });
    sound.then_some(rest)
}

fn hex_after<'a>(text: &'a str, prefix: &str) -> Option<&'a str> {
    let id = text.strip_prefix(prefix)?;
    let end = id.find(|c: char| !c.is_ascii_hexdigit())?;
    (end == 16).then(|| &id[end..])
}

/// A model that reads a file and answers.
fn reader() -> MockModel {
    MockModel::with([
        Reply::new([
            ReplyEvent::Thought("**Reading** the file".into()).step(),
            ReplyEvent::Text("Let me look.".into()).step(),
            ReplyEvent::call("c1", "read_file", r#"{"file_path":"a.txt"}"#).step(),
        ]),
        Reply::text("It says hi."),
    ])
}

fn run(mock: &MockModel, args: &[&str]) -> Program {
    let program = qwen().with_model(mock).args(["-p", "What does a.txt say?", "--model", "mock"]).args(args);
    fs::write(program.cwd_path().join("a.txt"), "hi\n").unwrap();
    program
}

#[test]
fn text() {
    insta::assert_snapshot!(snapshot(&run(&reader(), &[])), @r##"
    exit code 0
    --- stdout
    It says hi.
    --- stderr
    Let me look.
    qwen: session [uuid], 30 tokens
    "##);
}

#[test]
fn claude_lite() {
    insta::assert_snapshot!(snapshot(&run(&reader(), &["--output-format", "stream-json"])), @r##"
    exit code 0
    --- stdout
    {"type":"message_start","message":{"id":"[uuid]########1","model":"mock"},"session_id":"[uuid]"}
    {"type":"thinking_delta","text":"**Reading** the file"}
    {"type":"content_block_delta","text":"Let me look."}
    {"type":"tool_call","id":"c1","name":"read_file","arguments":{"file_path":"a.txt"}}
    {"type":"tool_result","id":"c1","name":"read_file","is_error":false,"content":"[lines 1 to 1 of 1]\n1\thi\n"}
    {"type":"content_block_delta","text":"It says hi."}
    {"type":"message_stop","stop_reason":"stop_turn","reason":"stop_turn","usage":{"input_tokens":20,"output_tokens":10}}
    --- stderr
    "##);
}

#[test]
fn qwen_messages() {
    let lines = r#"{"session_id":"s","input":{"origin":"user","parts":[{"type":"text","text":"What does a.txt say?"}]}}"#;
    let mock = reader();
    let program =
        qwen().with_model(&mock).args(["--input-format", "stream-json", "--model", "mock"]).stdin(lines);
    fs::write(program.cwd_path().join("a.txt"), "hi\n").unwrap();
    insta::assert_snapshot!(snapshot(&program), @r##"
    exit code 0
    --- stdout
    {"object":"chat.completion","id":"chatcmpl-[uuid]","created":[n],"model":"mock","session_id":"[uuid]","choices":[],"system_fingerprint":"qwen-0.1.0","metadata":{"protocol_version":"1.0","input_format":"stream-json","output_format":"stream-json","capabilities":["stream-json","stream-chunk-json","sessions","commands","command_hint","heartbeat","cancel","control","can_use_tool","hook_callback","mcp_message","host_tools","images","sub_agents","steer"],"session_id":"[uuid]"}}
    {"type":"x-qwen-thought","subject":"Reading","description":"the file","session_id":"s","prompt_id":"s########1"}
    {"type":"x-qwen-tool-display","tool_call_id":"c1","tool_name":"read_file","session_id":"s","prompt_id":"s########1","status":"pending","result_display":null,"confirmation":null,"pending":true,"timestamp":[n]}
    {"object":"chat.completion","id":"chatcmpl-s","created":[n],"model":"mock","session_id":"s","prompt_id":"s########1","choices":[{"index":0,"message":{"role":"assistant","content":"Let me look.","tool_calls":[{"id":"c1","type":"function","function":{"name":"read_file","arguments":"{\"file_path\":\"a.txt\"}"}}]},"finish_reason":"tool_calls"}],"usage":{"prompt_tokens":10,"completion_tokens":5,"total_tokens":15}}
    {"type":"x-qwen-tool-display","tool_call_id":"c1","tool_name":"read_file","session_id":"s","prompt_id":"s########1","status":"executing","result_display":null,"confirmation":null,"pending":false,"timestamp":[n]}
    {"type":"x-qwen-tool-display","tool_call_id":"c1","tool_name":"read_file","session_id":"s","prompt_id":"s########1","status":"success","result_display":{"kind":"string","text":"[lines 1 to 1 of 1]\n1\thi\n","log_scope":"tool"},"confirmation":null,"pending":false,"timestamp":[n]}
    {"type":"x-qwen-session-event","event":"Finished","message":"The turn is done.","session_id":"s","prompt_id":"s########1"}
    {"type":"x-qwen-terminal","channel":"stdout","source":"system","text":"","spans":[],"ansi":[],"console_level":null,"log_scope":"system","exit_code":0,"session_id":"s","prompt_id":"s########1"}
    {"object":"chat.completion","id":"chatcmpl-s","created":[n],"model":"mock","session_id":"s","prompt_id":"s########1","choices":[{"index":0,"message":{"role":"assistant","content":"It says hi."},"finish_reason":"stop"}],"usage":{"prompt_tokens":20,"completion_tokens":10,"total_tokens":30},"metadata":{"turn":{"status":"done","duration_ms":[n],"model_calls":2,"tool_calls":1,"permission_denials":[],"usage_by_model":{"mock":{"calls":2,"prompt_tokens":20,"completion_tokens":10,"total_tokens":30}}}}}
    --- stderr
    "##);
}

#[test]
fn qwen_chunks() {
    let mock = MockModel::with([Reply::new([
        ReplyEvent::Text("Hel".into()).step(),
        ReplyEvent::Text("lo".into()).step(),
    ])]);
    insta::assert_snapshot!(snapshot(&run(&mock, &["--output-format", "stream-chunk-json", "--session-id", "s"])), @r##"
    exit code 0
    --- stdout
    {"object":"chat.completion.chunk","id":"chatcmpl-s","created":[n],"model":"mock","session_id":"s","prompt_id":"s########1","choices":[],"system_fingerprint":"qwen-0.1.0","metadata":{"protocol_version":"1.0","input_format":"text","output_format":"stream-chunk-json","capabilities":["stream-json","stream-chunk-json","sessions","commands","command_hint","heartbeat","cancel","control","can_use_tool","hook_callback","mcp_message","host_tools","images","sub_agents","steer"],"session_id":"s"}}
    {"object":"chat.completion.chunk","id":"chatcmpl-s","created":[n],"model":"mock","session_id":"s","prompt_id":"s########1","choices":[{"index":0,"delta":{"role":"assistant"},"finish_reason":null}]}
    {"object":"chat.completion.chunk","id":"chatcmpl-s","created":[n],"model":"mock","session_id":"s","prompt_id":"s########1","choices":[{"index":0,"delta":{"content":"Hel"},"finish_reason":null}]}
    {"object":"chat.completion.chunk","id":"chatcmpl-s","created":[n],"model":"mock","session_id":"s","prompt_id":"s########1","choices":[{"index":0,"delta":{"content":"lo"},"finish_reason":null}]}
    {"type":"x-qwen-session-event","event":"Finished","message":"The turn is done.","session_id":"s","prompt_id":"s########1"}
    {"type":"x-qwen-terminal","channel":"stdout","source":"system","text":"","spans":[],"ansi":[],"console_level":null,"log_scope":"system","exit_code":0,"session_id":"s","prompt_id":"s########1"}
    {"object":"chat.completion.chunk","id":"chatcmpl-s","created":[n],"model":"mock","session_id":"s","prompt_id":"s########1","choices":[{"index":0,"delta":{},"finish_reason":"stop"}],"usage":{"prompt_tokens":10,"completion_tokens":5,"total_tokens":15},"metadata":{"turn":{"status":"done","duration_ms":[n],"model_calls":1,"tool_calls":0,"permission_denials":[],"usage_by_model":{"mock":{"calls":1,"prompt_tokens":10,"completion_tokens":5,"total_tokens":15}}}}}
    --- stderr
    "##);
}

#[test]
fn loom() {
    let mock = MockModel::with([Reply::text("Hello")]);
    insta::assert_snapshot!(snapshot(&run(&mock, &["--json", "--session-id", "s"])), @r##"
    exit code 0
    --- stdout
    {"session_id":"s","event_id":1,"type":"run_start","run_id":"run-1","message":"What does a.txt say?","agent":"react"}
    {"session_id":"s","node_id":"run-think-1","event_id":2,"type":"node_enter","id":"think"}
    {"session_id":"s","node_id":"run-think-1","event_id":3,"type":"message_chunk","content":"Hello","id":"think"}
    {"session_id":"s","node_id":"run-think-1","event_id":4,"type":"usage","prompt_tokens":10,"completion_tokens":5,"total_tokens":15}
    {"session_id":"s","node_id":"run-think-1","event_id":5,"type":"node_exit","id":"think","result":"Ok"}
    {"session_id":"s","node_id":"run-think-1","event_id":6,"type":"values","state":{"messages":[{"content":"What does a.txt say?","role":"user"},{"content":"Hello","role":"assistant"}],"pending_tool_calls":[]}}
    {"session_id":"s","node_id":"run-think-1","event_id":7,"type":"updates","id":"think","state":{"messages":[{"content":"What does a.txt say?","role":"user"},{"content":"Hello","role":"assistant"}],"pending_tool_calls":[]}}
    {"session_id":"s","event_id":8,"type":"checkpoint","checkpoint_id":"s-1-1","timestamp":"[date]","step":1,"state":{"messages":[{"content":"What does a.txt say?","role":"user"},{"content":"Hello","role":"assistant"}],"pending_tool_calls":[]},"thread_id":"s","checkpoint_ns":""}
    {"session_id":"s","event_id":9,"type":"custom","value":{"kind":"session_event","event":"Finished"}}
    {"session_id":"s","node_id":"run-think-1","event_id":10,"reply":"Hello"}
    --- stderr
    "##);
}

#[test]
fn loom_export_document() {
    let mock = MockModel::with([Reply::text("Hello")]);
    let args = ["--dialect", "loom-export", "--output-format", "json", "--session-id", "s"];
    insta::assert_snapshot!(snapshot(&run(&mock, &args)), @r##"
    exit code 0
    --- stdout
    {"events":[{"RunStart":{"run_id":"run-1","message":"What does a.txt say?","agent":"react"}},{"TaskStart":{"node_id":"think"}},{"Messages":{"chunk":{"content":"Hello"},"metadata":{"loom_node":"think"}}},{"Usage":{"prompt_tokens":10,"completion_tokens":5,"total_tokens":15}},{"TaskEnd":{"node_id":"think","result":"Ok"}},{"Values":{"messages":[{"content":"What does a.txt say?","role":"user"},{"content":"Hello","role":"assistant"}],"pending_tool_calls":[]}},{"Updates":{"node_id":"think","state":{"messages":[{"content":"What does a.txt say?","role":"user"},{"content":"Hello","role":"assistant"}],"pending_tool_calls":[]}}},{"Checkpoint":{"checkpoint_id":"s-1-1","timestamp":"[date]","step":1,"state":{"messages":[{"content":"What does a.txt say?","role":"user"},{"content":"Hello","role":"assistant"}],"pending_tool_calls":[]},"thread_id":"s","checkpoint_ns":""}},{"Custom":{"kind":"session_event","event":"Finished"}}],"reply":"Hello"}
    --- stderr
    "##);
}

#[test]
fn core() {
    insta::assert_snapshot!(
        snapshot(&run(&reader(), &["--dialect", "core", "--output-format", "stream-json", "--session-id", "s"])),
        @r##"
    exit code 0
    --- stdout
    {"type":"thought","value":{"subject":"Reading","description":"the file"}}
    {"type":"content","value":"Let me look."}
    {"type":"tool_call_request","value":{"callId":"c1","name":"read_file","args":{"file_path":"a.txt"},"isClientInitiated":false,"prompt_id":"s########1","response_id":"msg-[hex]"}}
    {"type":"tool_call_response","value":{"callId":"c1","responseParts":[{"text":"[lines 1 to 1 of 1]\n1\thi\n"}],"resultDisplay":"[lines 1 to 1 of 1]\n1\thi\n","error":null,"errorType":null,"outputFile":null,"contentLength":25}}
    {"type":"content","value":"It says hi."}
    {"type":"finished","value":{"reason":"STOP","prompt_id":"s########1","usageMetadata":{"promptTokenCount":20,"candidatesTokenCount":10,"totalTokenCount":30}}}
    --- stderr
    "##
    );
}

#[test]
fn claude_document() {
    let mock = MockModel::with([Reply::text("Hello")]);
    insta::assert_snapshot!(snapshot(&run(&mock, &["--output-format", "json", "--verbose"])), @r##"
    exit code 0
    --- stdout
    {"type":"result","subtype":"success","uuid":"[uuid]","session_id":"[uuid]","is_error":false,"duration_ms":[n],"duration_api_ms":[n],"num_turns":1,"result":"Hello","stop_reason":"end_turn","total_cost_usd":0.0,"usage":{"input_tokens":10,"output_tokens":5,"cache_read_input_tokens":0,"cache_creation_input_tokens":0,"total_tokens":15},"modelUsage":{"mock":{"inputTokens":10,"outputTokens":5,"cacheReadInputTokens":0,"cacheCreationInputTokens":0,"webSearchRequests":0,"contextWindow":131072,"maxOutputTokens":0,"costUSD":0.0}},"permission_denials":[],"terminal_reason":"completed"}
    --- stderr
    "##);
}

#[test]
fn a_wrong_key() {
    let mock = MockModel::with([Reply::status(401, r#"{"error":{"message":"Incorrect API key provided"}}"#)]);
    insta::assert_snapshot!(snapshot(&run(&mock, &["--output-format", "stream-json"])), @r##"
    exit code 41
    --- stdout
    {"type":"message_start","message":{"id":"[uuid]########1","model":"mock"},"session_id":"[uuid]"}
    {"type":"error","error":{"type":"authentication_error","message":"the server of the model `mock` answered 401 Unauthorized: Incorrect API key provided; check the API key","code":"unauthorized","status":401,"retryable":false}}
    {"type":"message_stop","stop_reason":"error","reason":"error","usage":{"input_tokens":0,"output_tokens":0}}
    --- stderr
    qwen: the server of the model `mock` answered 401 Unauthorized: Incorrect API key provided; check the API key
    "##);
}

#[test]
fn no_model_in_text_mode() {
    insta::assert_snapshot!(snapshot(&qwen().args(["-p", "x"])), @r##"
    exit code 41
    --- stdout
    --- stderr
    qwen: no model is configured: set OPENAI_API_KEY (and OPENAI_BASE_URL for a server other than OpenAI's), DASHSCOPE_API_KEY or ANTHROPIC_API_KEY, and choose a model with --model NAME; or try '--model demo', which needs neither key nor network
    "##);
}

#[test]
fn a_mistyped_flag() {
    insta::assert_snapshot!(snapshot(&qwen().args(["-p", "x", "--output-formt", "json"])), @r##"
    exit code 2
    --- stdout
    {"error":{"message":"unexpected argument '--output-formt' found\n\n  tip: a similar argument exists: '--output-format'\n\nUsage: qwen --prompt [<TEXT>] --output-format <FORMAT> [PROMPT]...\n\nFor more information, try '--help'.","type":"invalid_request_error","param":null,"code":"bad_flag"}}
    --- stderr
    qwen: unexpected argument '--output-formt' found

      tip: a similar argument exists: '--output-format'

    Usage: qwen --prompt [<TEXT>] --output-format <FORMAT> [PROMPT]...

    For more information, try '--help'.
    "##);
}
