//! What the decoder promises of prompts and requests: every shape is read, and a bad line costs one error
//! that names the field.

mod decoded;

use decoded::{command, commands};
use qwen_dialects::decode;
use qwen_events::{
    CallId, Command, CommandCall, CommandKind, ErrorKind, Media, MediaSource, Message, Part, Prompt,
    PromptOrigin, Role, ToolResult,
};

#[track_caller]
fn prompt(line: &str) -> Prompt {
    let Command::Prompt(prompt) = command(line) else { panic!("{line}") };
    *prompt
}

fn text(text: &str) -> Part {
    Part::Text(text.into())
}

fn image(data: &str) -> Part {
    Part::Media(Media { mime_type: "image/png".into(), source: MediaSource::Base64(data.into()) })
}

fn result(call_id: &str, name: &str, text: &str, is_error: bool) -> Part {
    Part::Result(ToolResult {
        call_id: CallId::new(call_id),
        name: name.into(),
        text: text.into(),
        media: Vec::new(),
        is_error,
    })
}

#[test]
fn a_bad_line_costs_one_error_that_names_the_field() {
    let deep = format!(r#"{{"input":{}{}}}"#, "[".repeat(200), "]".repeat(200));
    #[rustfmt::skip]
    let cases = [
        ("nonsense", "invalid_json", None),
        ("{", "invalid_json", None),
        ("{} {}", "invalid_json", None),
        (r#"{"a":1,}"#, "invalid_json", None),
        ("{\"a\":\"\u{1}\"}", "invalid_json", None),
        ("[1]", "not_an_object", None),
        ("\"text\"", "not_an_object", None),
        ("null", "not_an_object", None),
        (&deep, "too_deep", None),
        (r#"{"input":{"parts":"a"},"input":{}}"#, "duplicate_key", Some("input")),
        (r#"{"input":{"parts":[{"text":"a","text":"b"}]}}"#, "duplicate_key", Some("input.parts[0].text")),
        (r#"{"input":{"parts":"\ud800"}}"#, "lone_surrogate", Some("input.parts")),
        ("{}", "missing_field", Some("input")),
        (r#"{"session_id":"a"}"#, "missing_field", Some("input")),
        (r#"{"type":"nope"}"#, "unknown_type", Some("type")),
        (r#"{"type":7}"#, "wrong_type", Some("type")),
        (r#"{"input":7}"#, "wrong_type", Some("input")),
        (r#"{"input":{}}"#, "missing_field", Some("input.parts")),
        (r#"{"input":{"parts":[]}}"#, "missing_field", Some("input.parts")),
        (r#"{"input":{"parts":[{"type":"text","text":""}]}}"#, "empty_prompt", Some("input.parts")),
        (r#"{"input":{"parts":7}}"#, "wrong_type", Some("input.parts")),
        (r#"{"input":{"parts":[7]}}"#, "wrong_type", Some("input.parts[0]")),
        (r#"{"input":{"parts":[{}]}}"#, "missing_field", Some("input.parts[0].type")),
        (r#"{"input":{"parts":[{"type":"video"}]}}"#, "unknown_type", Some("input.parts[0].type")),
        (r#"{"input":{"parts":["a",{"type":"text"}]}}"#, "missing_field", Some("input.parts[1].text")),
        (r#"{"input":{"parts":[{"type":"text","text":[]}]}}"#, "wrong_type", Some("input.parts[0].text")),
        (r#"{"input":{"parts":[{"type":"image_url","image_url":{}}]}}"#, "missing_field", Some("input.parts[0].image_url.url")),
        (r#"{"input":{"parts":[{"image_url":"data:text/plain,x"}]}}"#, "invalid_value", Some("input.parts[0].image_url")),
        (r#"{"input":{"parts":[{"inline_data":{}}]}}"#, "missing_field", Some("input.parts[0].inline_data.data")),
        (r#"{"input":{"origin":"me","parts":"a"}}"#, "invalid_value", Some("input.origin")),
        (r#"{"input":{"origin":1,"parts":"a"}}"#, "wrong_type", Some("input.origin")),
        (r#"{"input":{"origin":"tool_response","parts":"a"}}"#, "missing_field", Some("tool_call_id")),
        (r#"{"input":{"command":{"kind":"slash"}}}"#, "missing_field", Some("input.command.path")),
        (r#"{"input":{"command":{"kind":"slash","path":[]}}}"#, "missing_field", Some("input.command.path[0]")),
        (r#"{"input":{"command":{"kind":"shout","path":["a"]}}}"#, "invalid_value", Some("input.command.kind")),
        (r#"{"session_id":"","input":{"parts":"a"}}"#, "empty_session_id", Some("session_id")),
        (r#"{"session_id":"../x","input":{"parts":"a"}}"#, "invalid_session_id", Some("session_id")),
        (r#"{"session_id":5,"input":{"parts":"a"}}"#, "wrong_type", Some("session_id")),
        (r#"{"prompt_id":"","input":{"parts":"a"}}"#, "empty_field", Some("prompt_id")),
        (r#"{"continuation":"yes","input":{"parts":"a"}}"#, "wrong_type", Some("continuation")),
        (r#"{"input":{"parts":"a"},"options":[]}"#, "wrong_type", Some("options")),
        (r#"{"input":{"parts":"a"},"options":{"temperature":"hot"}}"#, "wrong_type", Some("options.temperature")),
        (r#"{"input":{"parts":"a"},"options":{"max_tokens":-1}}"#, "wrong_type", Some("options.max_tokens")),
        (r#"{"input":{"parts":"a"},"options":{"tool_overrides":"edit"}}"#, "wrong_type", Some("options.tool_overrides")),
        (r#"{"input":{"parts":"a"},"options":{"tool_overrides":[1]}}"#, "wrong_type", Some("options.tool_overrides[0]")),
        (r#"{"input":{"parts":"a"},"options":{"tools":[{"function":{}}]}}"#, "missing_field", Some("options.tools[0].function.name")),
        (r#"{"input":{"parts":"a"},"options":{"tools":[{"function":{"name":"a","parameters":1}}]}}"#, "wrong_type", Some("options.tools[0].function.parameters")),
        (r#"{"input":{"parts":"a"},"requires":"x"}"#, "wrong_type", Some("requires")),
        (r#"{"messages":{}}"#, "wrong_type", Some("messages")),
        (r#"{"messages":[]}"#, "no_prompt", Some("messages")),
        (r#"{"messages":[{"role":"user"}]}"#, "missing_field", Some("messages[0].content")),
        (r#"{"messages":[{"role":"user","content":""}]}"#, "empty_prompt", Some("messages[0].content")),
        (r#"{"messages":[{"role":"robot","content":"a"}]}"#, "invalid_value", Some("messages[0].role")),
        (r#"{"messages":[{"role":"user","content":"a"},{"role":"assistant","content":"b"}]}"#, "no_prompt", Some("messages")),
        (r#"{"messages":[{"role":"tool","content":"a"}]}"#, "missing_field", Some("messages[0].tool_call_id")),
        (r#"{"type":"user"}"#, "missing_field", Some("message")),
        (r#"{"type":"user","message":{"role":"user"}}"#, "missing_field", Some("message.content")),
        (r#"{"type":"user","message":{"role":"assistant","content":"a"}}"#, "invalid_value", Some("message.role")),
        (r#"{"type":"user","message":{"role":"user","content":[]}}"#, "missing_field", Some("message.content[0]")),
        (r#"{"type":"command_hint_request"}"#, "missing_field", Some("text")),
        (r#"{"type":"command_hint_request","text":"/","trigger":"dollar"}"#, "invalid_value", Some("trigger")),
        (r#"{"type":"command_hint_request","text":"/","cursor":1.5}"#, "wrong_type", Some("cursor")),
        (r#"{"type":"heartbeat_request","session_id":""}"#, "empty_session_id", Some("session_id")),
        (r#"{"type":"control/cancel","session_id":"a/b"}"#, "invalid_session_id", Some("session_id")),
        (r#"{"type":"control_request","subtype":"interrupt"}"#, "missing_field", Some("request_id")),
        (r#"{"type":"control_request","request_id":"","subtype":"interrupt"}"#, "empty_field", Some("request_id")),
        (r#"{"type":"control_response","response":{}}"#, "missing_field", Some("request_id")),
        (r#"{"type":"control_cancel_request"}"#, "missing_field", Some("request_id")),
    ];
    for (line, code, param) in cases {
        let error = decode(line.as_bytes()).expect_err(line);
        assert_eq!((error.code, error.param.as_deref()), (code, param), "{line}\n{}", error.message);
        assert_eq!(error.kind, ErrorKind::Input);
        assert!(!error.message.is_empty());
    }
    assert_eq!(decode(b"{\"a\":\"\xff\"}").unwrap_err().code, "invalid_utf8");
}

#[test]
fn an_unknown_type_is_named() {
    assert!(decode(br#"{"type":"make_coffee"}"#).unwrap_err().message.contains("make_coffee"));
}

#[test]
fn blank_lines_hold_nothing_and_a_byte_order_mark_does_not_matter() {
    for line in ["", "  ", "\r", "\u{feff}"] {
        assert_eq!(commands(line), []);
    }
    assert_eq!(prompt("\u{feff}{\"input\":{\"parts\":\"a\"}}\r").parts, [text("a")]);
}

#[test]
fn unknown_fields_are_ignored_and_null_is_the_same_as_absent() {
    let line = r#"{"session_id":null,"prompt_id":null,"shoe_size":43,"model":null,
        "input":{"origin":null,"parts":"a","command":null,"mood":[{}]},"options":null,"tool_request":null}"#;
    assert_eq!(prompt(&line.replace('\n', "")), Prompt { parts: vec![text("a")], ..Prompt::default() });
}

#[test]
fn absurdly_large_values_are_fine() {
    let options = r#"{"max_tokens":1e300,"temperature":1e999,"seed":-1e300,"top_p":99999999999999999999999}"#;
    let sampling = prompt(&format!(r#"{{"input":{{"parts":"a"}},"options":{options}}}"#)).options.sampling;
    assert_eq!(sampling.max_tokens, Some(u64::MAX));
    assert_eq!(sampling.temperature, Some(f64::MAX));
    assert_eq!(sampling.seed, Some(i64::MIN));
    let long = "x".repeat(3_000_000);
    assert_eq!(prompt(&format!(r#"{{"input":{{"parts":"{long}"}}}}"#)).parts, [text(&long)]);
}

#[test]
fn parts_are_read_in_every_spelling() {
    for (part, expected) in [
        (r#""a""#, text("a")),
        (r#"{"type":"text","text":"a"}"#, text("a")),
        (r#"{"text":"a"}"#, text("a")),
        (r#"{"type":"inline_data","inline_data":{"mime_type":"image/png","data":"AA=="}}"#, image("AA==")),
        (r#"{"type":"inline_data","mime_type":"image/png","data":"AA=="}"#, image("AA==")),
        (r#"{"inlineData":{"mimeType":"image/png","data":"AA=="}}"#, image("AA==")),
        (r#"{"type":"image_url","image_url":{"url":"data:image/png;base64,AA=="}}"#, image("AA==")),
        (
            r#"{"type":"image","source":{"type":"base64","media_type":"image/png","data":"AA=="}}"#,
            image("AA=="),
        ),
        (
            r#"{"fileData":{"fileUri":"https://a/b.pdf"}}"#,
            Part::Media(Media {
                mime_type: "application/pdf".into(),
                source: MediaSource::Url("https://a/b.pdf".into()),
            }),
        ),
        (
            r#"{"type":"file_data","file_data":{"file_uri":"gs://a","mime_type":"text/x"}}"#,
            Part::Media(Media { mime_type: "text/x".into(), source: MediaSource::Url("gs://a".into()) }),
        ),
        (
            r#"{"type":"image_url","image_url":"https://a/b?c=d.png"}"#,
            Part::Media(Media {
                mime_type: "image/*".into(),
                source: MediaSource::Url("https://a/b?c=d.png".into()),
            }),
        ),
        (r#"{"type":"document","source":{"type":"text","media_type":"text/plain","data":"a"}}"#, text("a")),
        (
            r#"{"functionResponse":{"id":"c","name":"add","response":{"output":"3"}}}"#,
            result("c", "add", "3", false),
        ),
        (
            r#"{"type":"function_response","id":"c","name":"add","response":{"error":"no"}}"#,
            result("c", "add", "no", true),
        ),
        (
            r#"{"type":"function_response","function_response":{"id":"c","response":{"a":[1,2]}}}"#,
            result("c", "", r#"{"a":[1,2]}"#, false),
        ),
        (
            r#"{"type":"tool_result","tool_use_id":"c","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}],"is_error":true}"#,
            result("c", "", "a\nb", true),
        ),
    ] {
        for parts in [format!("[{part}]"), part.to_owned()] {
            assert_eq!(
                prompt(&format!(r#"{{"input":{{"parts":{parts}}}}}"#)).parts,
                std::slice::from_ref(&expected),
                "{parts}"
            );
        }
    }
}

#[test]
fn a_tool_response_answers_its_call() {
    let said = prompt(
        r#"{"tool_call_id":"c","input":{"origin":"tool_response","parts":[{"text":"a"},{"text":"b"}]},"continuation":true}"#,
    );
    assert_eq!(said.origin, PromptOrigin::ToolResponse);
    assert_eq!(said.parts, [result("c", "", "a\nb", false)]);
    assert_eq!(said.tool_call_id, Some(CallId::new("c")));
    assert!(said.continuation);
    let said = prompt(
        r#"{"tool_request":{"callId":"c","name":"add","args":{}},"input":{"origin":"tool_response","parts":[{"functionResponse":{"response":"3"}}]}}"#,
    );
    assert_eq!(said.parts, [result("c", "add", "3", false)]);
    let said = prompt(
        r#"{"input":{"origin":"tool_response","parts":[{"functionResponse":{"id":"a","response":"1"}},{"functionResponse":{"id":"b","response":"2"}}]}}"#,
    );
    assert_eq!(said.parts, [result("a", "", "1", false), result("b", "", "2", false)]);
}

#[test]
fn a_tool_request_names_the_call_that_is_answered_and_starts_nothing() {
    let request = r#"{"callId":"c","name":"add","args":{"a":1},"isClientInitiated":false,"prompt_id":"p"}"#;
    for said in [
        prompt(&format!(r#"{{"tool_request":{request},"input":{{"origin":"tool_response","parts":"3"}}}}"#)),
        prompt(&format!(r#"{{"input":{{"tool_request":{request},"origin":"tool_response","parts":"3"}}}}"#)),
        prompt(&format!(
            r#"{{"tool_call_id":"c","tool_request":{request},"input":{{"origin":"tool_response","parts":"3"}}}}"#
        )),
    ] {
        assert_eq!(said.parts, [result("c", "add", "3", false)]);
        assert_eq!(said.tool_call_id, Some(CallId::new("c")));
    }
    let bad = |line: String| decode(line.as_bytes()).expect_err(&line);
    let alone = bad(format!(r#"{{"tool_request":{request},"input":{{"origin":"user","parts":[]}}}}"#));
    assert_eq!((alone.code, alone.param.as_deref()), ("empty_prompt", Some("input.parts")));
    assert!(alone.message.contains("starts no tool"), "{alone}");
    let other = bad(format!(
        r#"{{"tool_call_id":"d","tool_request":{request},"input":{{"origin":"tool_response","parts":"3"}}}}"#
    ));
    assert_eq!((other.code, other.param.as_deref()), ("invalid_value", Some("tool_request.callId")));
}

#[test]
fn a_session_is_named_or_asked_for() {
    for id in ["_new", "a", "session-123", "0.1_x-Y"] {
        let line = format!(r#"{{"session_id":"{id}","input":{{"parts":"a"}}}}"#);
        assert_eq!(prompt(&line).session_id.as_deref(), Some(id));
    }
    assert_eq!(prompt(r#"{"input":{"parts":"a"}}"#).session_id, None);
}

#[test]
fn commands_are_declared_in_full_or_short() {
    let declared =
        |command: &str| prompt(&format!(r#"{{"input":{{"command":{command}}}}}"#)).command.unwrap();
    assert_eq!(
        declared(r#"{"kind":"slash","path":["chat","list"],"args":"x"}"#),
        CommandCall { kind: CommandKind::Slash, path: vec!["chat".into(), "list".into()], args: "x".into() }
    );
    assert_eq!(declared(r#"{"kind":"at","path":"src/main.rs"}"#).kind, CommandKind::At);
    assert_eq!(declared(r#"{"kind":"help"}"#).kind, CommandKind::Help);
}

#[test]
fn options_are_read_and_tool_names_stay_as_written() {
    let said = prompt(
        r#"{"model":"m","input":{"parts":"a"},"options":{"model":"n","temperature":0.5,"top_p":1,"max_tokens":10,"seed":3,"stop":"END","effort":"high","tool_overrides":["EditTool","Bash","mcp__x__y"],"tools":[{"type":"function","function":{"name":"add","description":"adds","parameters":{"type":"object"}}},{"name":"sub"}]}}"#,
    );
    let options = said.options;
    assert_eq!(options.model.as_deref(), Some("n"), "the nearer one wins");
    assert_eq!((options.sampling.temperature, options.sampling.top_p), (Some(0.5), Some(1.0)));
    assert_eq!((options.sampling.max_tokens, options.sampling.seed), (Some(10), Some(3)));
    assert_eq!(
        (options.sampling.stop, options.sampling.effort.as_deref()),
        (vec!["END".into()], Some("high"))
    );
    assert_eq!(options.tool_overrides.unwrap(), ["EditTool".into(), "Bash".into(), "mcp__x__y".into()]);
    assert_eq!(options.host_tools[0].parameters.as_str(), r#"{"type":"object"}"#);
    assert_eq!((&*options.host_tools[1].name, &*options.host_tools[1].description), ("sub", ""));
}

#[test]
fn a_conversation_is_split_into_system_history_and_prompt() {
    let said = prompt(
        r#"{"model":"m","temperature":0,"max_completion_tokens":5,"messages":[
        {"role":"system","content":"Be brief."},{"role":"developer","content":[{"type":"text","text":"Be kind."}]},
        {"role":"user","content":"First"},
        {"role":"assistant","content":null,"tool_calls":[{"id":"c","type":"function","function":{"name":"add","arguments":"{\"a\":\n1}"}}]},
        {"role":"tool","tool_call_id":"c","content":"3"},
        {"role":"assistant","content":"Three"},
        {"role":"user","content":[{"type":"text","text":"Second"},{"type":"image_url","image_url":{"url":"data:image/png;base64,AA=="}}]}]}"#
            .replace('\n', " ")
            .as_str(),
    );
    assert_eq!(said.system.as_deref(), Some("Be brief.\n\nBe kind."));
    assert_eq!(said.parts, [text("Second"), image("AA==")]);
    assert_eq!(said.origin, PromptOrigin::User);
    assert_eq!(said.options.sampling.max_tokens, Some(5));
    let roles: Vec<Role> = said.history.iter().map(|message| message.role).collect();
    assert_eq!(roles, [Role::User, Role::Assistant, Role::Tool, Role::Assistant]);
    assert_eq!(said.history[0], Message::text(Role::User, "First"));
    let Part::Call(call) = &said.history[1].parts[0] else { panic!() };
    assert_eq!((call.id.as_str(), &*call.name), ("c", "add"));
    assert!(!call.arguments.as_str().contains('\n'), "a payload stays on one line");
    assert_eq!(said.history[2].parts, [result("c", "", "3", false)]);
}

#[test]
fn a_conversations_options_win_over_its_top_level() {
    let said = prompt(
        r#"{"model":"m","seed":1,"stop":["a"],"messages":[{"role":"user","content":"a"}],"options":{"model":"n","stop":"b","tool_overrides":["Read"]}}"#,
    );
    assert_eq!((said.options.model.as_deref(), said.options.sampling.seed), (Some("n"), Some(1)));
    assert_eq!(said.options.sampling.stop, ["b".into()]);
    assert_eq!(said.options.tool_overrides.unwrap(), ["Read".into()]);
}

#[test]
fn a_conversation_that_ends_in_tool_results_goes_on_with_them() {
    let said = prompt(
        r#"{"messages":[{"role":"user","content":"a"},{"role":"assistant","tool_calls":[{"id":"c","function":{"name":"f","arguments":"oops"}}]},{"role":"tool","tool_call_id":"c","name":"f","content":"3"}]}"#,
    );
    assert_eq!(said.origin, PromptOrigin::ToolResponse);
    assert_eq!(said.parts, [result("c", "f", "3", false)]);
    assert_eq!(said.history.len(), 2);
    let Part::Call(call) = &said.history[1].parts[0] else { panic!() };
    assert_eq!((call.arguments.as_str(), call.malformed.as_deref()), ("{}", Some("oops")));
}

#[test]
fn the_user_line_of_the_sdks_belongs_to_the_session_that_runs() {
    for session in [r#""""#, r#""default""#, "null", r#""../x""#] {
        let said = prompt(&format!(
            r#"{{"type":"user","session_id":{session},"uuid":"u-1","message":{{"role":"user","content":"Hello"}},"parent_tool_use_id":null}}"#
        ));
        assert_eq!(said.session_id, None);
        assert_eq!(said.uuid.as_deref(), Some("u-1"));
        assert_eq!(said.parts, [text("Hello")]);
    }
    let said = prompt(
        r#"{"type":"user","message":{"role":"user","content":[{"type":"text","text":"a"},{"type":"image","source":{"type":"base64","media_type":"image/png","data":"AA=="}}]}}"#,
    );
    assert_eq!(said.parts, [text("a"), image("AA==")]);
    let said = prompt(
        r#"{"type":"user","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"c","content":"3"}]}}"#,
    );
    assert_eq!((said.origin, said.tool_call_id), (PromptOrigin::ToolResponse, Some(CallId::new("c"))));
}

#[test]
fn requests_beside_the_conversation_are_read() {
    assert_eq!(
        command(r#"{"type":"heartbeat_request","interval_ms":2000}"#),
        Command::Heartbeat { session_id: None, interval_ms: Some(2000) }
    );
    assert_eq!(
        command(r#"{"type":"control/cancel","request_id":"r"}"#),
        Command::Cancel {
            session_id: None,
            prompt_id: None,
            reason: "escape".into(),
            request_id: Some("r".into())
        }
    );
    assert_eq!(
        command(r#"{"type":"command_hint_cancel","session_id":"s"}"#),
        Command::HintCancel { session_id: Some("s".into()), prompt_id: None }
    );
    assert_eq!(
        command(r#"{"type":"control_cancel_request","request_id":"r"}"#),
        Command::ControlCancel { request_id: "r".into() }
    );
}
