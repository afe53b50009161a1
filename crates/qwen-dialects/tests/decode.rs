//! What the decoder promises: every shape is read, and a bad line costs one error that names the field.

use proptest::prelude::*;
use qwen_dialects::{decode, permission_answer};
use qwen_events::{
    Behavior, CallId, Command, CommandCall, CommandKind, ControlBody, ControlReply, ErrorKind, HookMatcher,
    Initialize, Json, Media, MediaSource, Message, Part, PermissionUpdate, Prompt, PromptOrigin, Role,
    ToolResult,
};

#[track_caller]
fn commands(line: &str) -> Vec<Command> {
    decode(line.as_bytes()).unwrap_or_else(|error| panic!("{line}\n{error:?}"))
}

#[track_caller]
fn command(line: &str) -> Command {
    let mut commands = commands(line);
    assert_eq!(commands.len(), 1, "{line}");
    commands.remove(0)
}

#[track_caller]
fn prompt(line: &str) -> Prompt {
    let Command::Prompt(prompt) = command(line) else { panic!("{line}") };
    *prompt
}

#[track_caller]
fn control(line: &str) -> ControlBody {
    let Command::Control { body, .. } = command(line) else { panic!("{line}") };
    *body
}

#[track_caller]
fn reply(line: &str) -> ControlReply {
    let Command::Reply(reply) = command(line) else { panic!("{line}") };
    *reply
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
    for (line, code, param) in [
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
        (
            r#"{"input":{"parts":[{"type":"image_url","image_url":{}}]}}"#,
            "missing_field",
            Some("input.parts[0].image_url.url"),
        ),
        (
            r#"{"input":{"parts":[{"image_url":"data:text/plain,x"}]}}"#,
            "invalid_value",
            Some("input.parts[0].image_url"),
        ),
        (
            r#"{"input":{"parts":[{"inline_data":{}}]}}"#,
            "missing_field",
            Some("input.parts[0].inline_data.data"),
        ),
        (r#"{"input":{"origin":"me","parts":"a"}}"#, "invalid_value", Some("input.origin")),
        (r#"{"input":{"origin":1,"parts":"a"}}"#, "wrong_type", Some("input.origin")),
        (r#"{"input":{"origin":"tool_response","parts":"a"}}"#, "missing_field", Some("tool_call_id")),
        (r#"{"input":{"command":{"kind":"slash"}}}"#, "missing_field", Some("input.command.path")),
        (
            r#"{"input":{"command":{"kind":"slash","path":[]}}}"#,
            "missing_field",
            Some("input.command.path[0]"),
        ),
        (
            r#"{"input":{"command":{"kind":"shout","path":["a"]}}}"#,
            "invalid_value",
            Some("input.command.kind"),
        ),
        (r#"{"session_id":"","input":{"parts":"a"}}"#, "empty_session_id", Some("session_id")),
        (r#"{"session_id":"../x","input":{"parts":"a"}}"#, "invalid_session_id", Some("session_id")),
        (r#"{"session_id":5,"input":{"parts":"a"}}"#, "wrong_type", Some("session_id")),
        (r#"{"prompt_id":"","input":{"parts":"a"}}"#, "empty_field", Some("prompt_id")),
        (r#"{"continuation":"yes","input":{"parts":"a"}}"#, "wrong_type", Some("continuation")),
        (r#"{"input":{"parts":"a"},"options":[]}"#, "wrong_type", Some("options")),
        (
            r#"{"input":{"parts":"a"},"options":{"temperature":"hot"}}"#,
            "wrong_type",
            Some("options.temperature"),
        ),
        (r#"{"input":{"parts":"a"},"options":{"max_tokens":-1}}"#, "wrong_type", Some("options.max_tokens")),
        (
            r#"{"input":{"parts":"a"},"options":{"tool_overrides":"edit"}}"#,
            "wrong_type",
            Some("options.tool_overrides"),
        ),
        (
            r#"{"input":{"parts":"a"},"options":{"tool_overrides":[1]}}"#,
            "wrong_type",
            Some("options.tool_overrides[0]"),
        ),
        (
            r#"{"input":{"parts":"a"},"options":{"tools":[{"function":{}}]}}"#,
            "missing_field",
            Some("options.tools[0].function.name"),
        ),
        (
            r#"{"input":{"parts":"a"},"options":{"tools":[{"function":{"name":"a","parameters":1}}]}}"#,
            "wrong_type",
            Some("options.tools[0].function.parameters"),
        ),
        (r#"{"input":{"parts":"a"},"requires":"x"}"#, "wrong_type", Some("requires")),
        (r#"{"messages":{}}"#, "wrong_type", Some("messages")),
        (r#"{"messages":[]}"#, "no_prompt", Some("messages")),
        (r#"{"messages":[{"role":"user"}]}"#, "missing_field", Some("messages[0].content")),
        (r#"{"messages":[{"role":"user","content":""}]}"#, "empty_prompt", Some("messages[0].content")),
        (r#"{"messages":[{"role":"robot","content":"a"}]}"#, "invalid_value", Some("messages[0].role")),
        (
            r#"{"messages":[{"role":"user","content":"a"},{"role":"assistant","content":"b"}]}"#,
            "no_prompt",
            Some("messages"),
        ),
        (
            r#"{"messages":[{"role":"tool","content":"a"}]}"#,
            "missing_field",
            Some("messages[0].tool_call_id"),
        ),
        (r#"{"type":"user"}"#, "missing_field", Some("message")),
        (r#"{"type":"user","message":{"role":"user"}}"#, "missing_field", Some("message.content")),
        (
            r#"{"type":"user","message":{"role":"assistant","content":"a"}}"#,
            "invalid_value",
            Some("message.role"),
        ),
        (
            r#"{"type":"user","message":{"role":"user","content":[]}}"#,
            "missing_field",
            Some("message.content[0]"),
        ),
        (r#"{"type":"command_hint_request"}"#, "missing_field", Some("text")),
        (
            r#"{"type":"command_hint_request","text":"/","trigger":"dollar"}"#,
            "invalid_value",
            Some("trigger"),
        ),
        (r#"{"type":"command_hint_request","text":"/","cursor":1.5}"#, "wrong_type", Some("cursor")),
        (r#"{"type":"heartbeat_request","session_id":""}"#, "empty_session_id", Some("session_id")),
        (r#"{"type":"control/cancel","session_id":"a/b"}"#, "invalid_session_id", Some("session_id")),
        (r#"{"type":"control_request","subtype":"interrupt"}"#, "missing_field", Some("request_id")),
        (
            r#"{"type":"control_request","request_id":"","subtype":"interrupt"}"#,
            "empty_field",
            Some("request_id"),
        ),
        (r#"{"type":"control_response","response":{}}"#, "missing_field", Some("request_id")),
        (r#"{"type":"control_cancel_request"}"#, "missing_field", Some("request_id")),
    ] {
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
                [expected.clone()],
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
fn options_are_read_and_tool_names_made_ours() {
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
    assert_eq!(
        options.tool_overrides.unwrap(),
        ["edit".into(), "run_shell_command".into(), "mcp__x__y".into()]
    );
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

#[test]
fn control_requests_are_read_flat_nested_and_with_a_payload() {
    for (line, nested) in [
        (r#"{"type":"control_request","request_id":"r","subtype":"set_model","model":"m"}"#, false),
        (
            r#"{"type":"control_request","request_id":"r","subtype":"set_model","payload":{"model":"m"}}"#,
            false,
        ),
        (
            r#"{"type":"control_request","request_id":"r","request":{"subtype":"set_model","model":"m"}}"#,
            true,
        ),
    ] {
        assert_eq!(
            command(line),
            Command::Control {
                request_id: "r".into(),
                nested,
                body: Box::new(ControlBody::SetModel(Some("m".into()))),
            }
        );
    }
}

#[test]
fn every_subtype_is_known_and_any_other_is_answered_too() {
    let read = |request: &str| {
        control(&format!(r#"{{"type":"control_request","request_id":"r","request":{request}}}"#))
    };
    for (request, body) in [
        (r#"{"subtype":"interrupt"}"#, ControlBody::Interrupt),
        (r#"{"subtype":"set_model","model":null}"#, ControlBody::SetModel(None)),
        (r#"{"subtype":"set_permission_mode","mode":"plan"}"#, ControlBody::SetPermissionMode("plan".into())),
        (r#"{"subtype":"set_effort","effort":"high"}"#, ControlBody::SetEffort(Some("high".into()))),
        (r#"{"subtype":"supported_commands"}"#, ControlBody::SupportedCommands),
        (r#"{"subtype":"mcp_status"}"#, ControlBody::McpStatus),
        (r#"{"subtype":"mcp_server_status"}"#, ControlBody::McpStatus),
        (r#"{"subtype":"mcp_reconnect","serverName":"s"}"#, ControlBody::McpReconnect("s".into())),
        (
            r#"{"subtype":"mcp_toggle","serverName":"s","enabled":false}"#,
            ControlBody::McpToggle { server: "s".into(), enabled: false },
        ),
        (
            r#"{"subtype":"get_context_usage","show_details":true}"#,
            ControlBody::ContextUsage { details: true },
        ),
        (r#"{"subtype":"get_available_models"}"#, ControlBody::AvailableModels),
        (
            r#"{"subtype":"get_usage_info","range":"week"}"#,
            ControlBody::UsageInfo { range: Some("week".into()) },
        ),
        (r#"{"subtype":"continue_last_turn"}"#, ControlBody::ContinueLastTurn),
        (
            r#"{"subtype":"rewind_files","user_message_id":"u","dry_run":true}"#,
            ControlBody::RewindFiles { message_id: "u".into(), dry_run: true },
        ),
        (r#"{"subtype":"stop_task","task_id":"t"}"#, ControlBody::StopTask("t".into())),
        (r#"{"subtype":"end_session"}"#, ControlBody::EndSession),
        (
            r#"{"subtype":"mcp_message","server_name":"s","message":{"jsonrpc":"2.0"}}"#,
            ControlBody::McpMessage { server: "s".into(), message: Json::trusted(r#"{"jsonrpc":"2.0"}"#) },
        ),
        (r#"{"subtype":"make_coffee"}"#, ControlBody::Unknown("make_coffee".into())),
    ] {
        assert_eq!(read(request), body);
    }
    for (request, subtype, param) in [
        (r#"{"subtype":"set_permission_mode"}"#, "set_permission_mode", "request.mode"),
        (r#"{"subtype":"mcp_toggle","serverName":"s","enabled":"no"}"#, "mcp_toggle", "request.enabled"),
        (r#"{"subtype":"initialize","hooks":7}"#, "initialize", "request.hooks"),
        (
            r#"{"subtype":"initialize","hooks":{"Stop":[{}]}}"#,
            "initialize",
            "request.hooks.Stop[0].hookCallbackIds",
        ),
        (r#"{"subtype":"initialize","protocol_version":[]}"#, "initialize", "request.protocol_version"),
        (r#"{"mode":"plan"}"#, "", "request.subtype"),
        ("7", "", "request"),
    ] {
        let ControlBody::Malformed { subtype: named, error } = read(request) else { panic!("{request}") };
        assert_eq!((&*named, error.param.as_deref()), (subtype, Some(param)), "{request}");
    }
}

#[test]
fn the_handshake_is_read_in_claudes_spelling() {
    let body = control(
        r#"{"type":"control_request","request_id":"r","request":{"subtype":"initialize","hooks":{"PreToolUse":[{"matcher":"Bash","hookCallbackIds":["hook_0","hook_1"],"timeout":5,"onFailure":"block"}],"Stop":[{"matcher":null,"hookCallbackIds":["hook_2"]}]},"agents":{"explorer":{"description":"d","prompt":"p"}},"sdkMcpServers":["calc"],"systemPrompt":["a","b"],"appendSystemPrompt":"c","jsonSchema":{"type":"object"},"skills":[]}}"#,
    );
    let hook = |event: &str, matcher: Option<&str>, ids: &[&str], timeout_ms, block_on_failure| HookMatcher {
        event: event.into(),
        matcher: matcher.map(Into::into),
        callback_ids: ids.iter().map(|id| (*id).into()).collect(),
        timeout_ms,
        block_on_failure,
    };
    assert_eq!(
        body,
        ControlBody::Initialize(Box::new(Initialize {
            hooks: vec![
                hook("PreToolUse", Some("Bash"), &["hook_0", "hook_1"], Some(5000), true),
                hook("Stop", None, &["hook_2"], None, false),
            ],
            sdk_mcp_servers: vec!["calc".into()],
            agents: vec![("explorer".into(), Json::trusted(r#"{"description":"d","prompt":"p"}"#))],
            system_prompt: Some("a\n\nb".into()),
            append_system_prompt: Some("c".into()),
            json_schema: Some(Json::trusted(r#"{"type":"object"}"#)),
            ..Initialize::default()
        }))
    );
}

#[test]
fn the_handshake_is_read_in_qwens_spelling() {
    let body = control(
        r#"{"type":"control_request","request_id":"r","request":{"subtype":"initialize","hooks":[{"event":"PreToolUse","callback_id":"h"}],"timeout":{"canUseTool":1500},"sdkMcpServers":{"calc":{"type":"sdk","name":"calc"}},"mcpServers":{"files":{"command":"x"},"inner":{"type":"sdk"}},"agents":[{"name":"explorer","prompt":"p"}],"effort":"high","heartbeat_ms":2000}}"#,
    );
    let ControlBody::Initialize(body) = body else { panic!() };
    assert_eq!((&*body.hooks[0].event, &*body.hooks[0].callback_ids[0]), ("PreToolUse", "h"));
    assert_eq!(body.sdk_mcp_servers, ["calc".into(), "inner".into()]);
    assert_eq!(body.mcp_servers, [("files".into(), Json::trusted(r#"{"command":"x"}"#))]);
    assert_eq!(&*body.agents[0].0, "explorer");
    assert_eq!((body.permission_timeout_ms, body.heartbeat_ms), (Some(1500), Some(2000)));
    assert_eq!(body.effort.as_deref(), Some("high"));
    let bare = control(
        r#"{"type":"control_request","request_id":"r","request":{"subtype":"initialize","hooks":null}}"#,
    );
    assert_eq!(bare, ControlBody::Initialize(Box::default()));
}

#[test]
fn demands_come_before_what_they_came_with() {
    let demand = |version: Option<&str>, names: &[&str]| Command::Requires {
        protocol_version: version.map(Into::into),
        capabilities: names.iter().map(|name| (*name).into()).collect(),
    };
    let read = commands(r#"{"protocol_version":"2.0","requires":["x"],"input":{"parts":"a"}}"#);
    assert_eq!(read[0], demand(Some("2.0"), &["x"]));
    assert!(matches!(read[1], Command::Prompt(_)));
    let read = commands(r#"{"type":"heartbeat_request","protocol_version":1.0}"#);
    assert_eq!(read[0], demand(Some("1.0"), &[]));
    assert_eq!(read.len(), 2);
    let read = commands(
        r#"{"type":"control_request","request_id":"r","request":{"subtype":"initialize","requires":["hook_callback"]}}"#,
    );
    assert_eq!(read[0], demand(None, &["hook_callback"]));
    let read = commands(
        r#"{"type":"control_request","request_id":"r","subtype":"initialize","protocol_version":"1.0"}"#,
    );
    assert_eq!(read.len(), 2, "demands are made once");
    assert_eq!(commands(r#"{"protocol_version":"1.0"}"#), [demand(Some("1.0"), &[])]);
}

#[test]
fn answers_are_read_in_both_forms() {
    let flat = reply(
        r#"{"type":"control_response","request_id":"r","response":{"subtype":"success","result":{"behavior":"approve"}}}"#,
    );
    assert_eq!((flat.nested, flat.result.unwrap().as_str()), (false, r#"{"behavior":"approve"}"#));
    let nested = reply(
        r#"{"type":"control_response","response":{"subtype":"success","request_id":"r","response":{"behavior":"allow"}}}"#,
    );
    assert_eq!((nested.nested, nested.result.unwrap().as_str()), (true, r#"{"behavior":"allow"}"#));
    let empty = reply(r#"{"type":"control_response","response":{"subtype":"success","request_id":"r"}}"#);
    assert_eq!(empty.result.unwrap().as_str(), "{}");
    let error = reply(
        r#"{"type":"control_response","request_id":"r","response":{"subtype":"error","error":{"message":"boom","retryable":true}}}"#,
    );
    let error = error.result.unwrap_err();
    assert_eq!((&*error.message, error.retryable, error.code), ("boom", true, "host_error"));
    let error = reply(
        r#"{"type":"control_response","response":{"subtype":"error","request_id":"r","error":"boom"}}"#,
    );
    assert_eq!(&*error.result.unwrap_err().message, "boom");
}

#[test]
fn a_malformed_answer_to_a_named_question_settles_it_at_once() {
    for response in ["7", "{}", r#"{"subtype":"maybe"}"#, r#"{"subtype":"error"}"#, "null"] {
        let line = format!(r#"{{"type":"control_response","request_id":"r","response":{response}}}"#);
        let reply = reply(&line);
        assert_eq!(&*reply.request_id, "r");
        assert!(reply.result.is_err(), "{response}");
    }
}

#[test]
fn permission_answers_are_read_in_every_word() {
    let read = |answer: &str| permission_answer(&Json::trusted(answer));
    for (word, behavior) in [
        ("approve", Behavior::Allow),
        ("allow", Behavior::Allow),
        ("deny", Behavior::Deny),
        ("reject", Behavior::Deny),
        ("ask", Behavior::Ask),
    ] {
        assert_eq!(read(&format!(r#"{{"behavior":"{word}"}}"#)).unwrap().behavior, behavior);
    }
    let answer = read(
        r#"{"behavior":"allow","message":null,"updatedInput":{"a":1},"interrupt":false,"updatedPermissions":[
        {"type":"addRules","rules":[{"toolName":"Bash","ruleContent":"git log *"},{"toolName":"Read"}],"behavior":"allow","destination":"session"},
        {"type":"replaceRules","rules":["Edit(/src/**)"],"behavior":"deny"},
        {"type":"removeRules","rules":[{"toolName":"Edit"}],"behavior":"ask"},
        {"type":"setMode","mode":"acceptEdits","destination":"session"},
        {"type":"addDirectories","directories":["/tmp/x"]}]}"#,
    )
    .unwrap();
    assert_eq!(answer.updated_input, Some(Json::trusted(r#"{"a":1}"#)));
    assert_eq!(
        answer.updated_permissions,
        [
            PermissionUpdate::AddRules {
                behavior: Behavior::Allow,
                rules: vec!["Bash(git log *)".into(), "Read".into()]
            },
            PermissionUpdate::AddRules { behavior: Behavior::Deny, rules: vec!["Edit(/src/**)".into()] },
            PermissionUpdate::RemoveRules { behavior: Behavior::Ask, rules: vec!["Edit".into()] },
            PermissionUpdate::SetMode("acceptEdits".into()),
            PermissionUpdate::AddDirectories(vec!["/tmp/x".into()]),
        ]
    );
    let no = read(r#"{"behavior":"deny","message":"not now","interrupt":true}"#).unwrap();
    assert_eq!((no.message.as_deref(), no.interrupt), (Some("not now"), true));
    for malformed in [
        "7",
        "{}",
        r#"{"behavior":"yes"}"#,
        r#"{"behavior":true}"#,
        r#"{"behavior":"allow","updatedInput":"x"}"#,
        r#"{"behavior":"allow","updatedPermissions":[{"type":"removeDirectories","directories":[]}]}"#,
        r#"{"behavior":"allow","interrupt":"no"}"#,
    ] {
        assert!(read(malformed).is_err(), "{malformed}");
    }
}

/// Lines to start mutating from: one of every shape.
const SOUND: [&str; 9] = [
    r#"{"session_id":"s","prompt_id":"s########7","model":"m","input":{"origin":"user","parts":[{"type":"text","text":"a\u00e4\ud83e\udd80"}],"command":{"kind":"slash","path":["chat"],"args":""}},"options":{"temperature":0.2,"tool_overrides":["EditTool"],"tools":[{"type":"function","function":{"name":"add"}}]}}"#,
    r#"{"tool_call_id":"c","input":{"origin":"tool_response","parts":[{"functionResponse":{"id":"c","response":{"output":"3"}}}]}}"#,
    r#"{"messages":[{"role":"system","content":"a"},{"role":"assistant","tool_calls":[{"id":"c","function":{"name":"f","arguments":"{}"}}]},{"role":"tool","tool_call_id":"c","content":"x"},{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:image/png;base64,AA"}}]}]}"#,
    r#"{"type":"user","session_id":"","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"c","content":[{"type":"text","text":"a"}]},{"type":"document","source":{"type":"url","url":"https://a/b.pdf"}}]}}"#,
    r#"{"type":"command_hint_request","session_id":"s","trigger":"slash","text":"/c","cursor":2,"context":{"cwd":"/w"}}"#,
    r#"{"type":"control_request","request_id":"r","request":{"subtype":"initialize","hooks":{"Stop":[{"hookCallbackIds":["h"],"timeout":5}]},"agents":[{"name":"a"}],"mcpServers":{"f":{"command":"x"}},"requires":["x"]}}"#,
    r#"{"type":"control_response","response":{"subtype":"success","request_id":"r","response":{"behavior":"allow","updatedPermissions":[{"type":"addRules","rules":[{"toolName":"Bash"}]}]}}}"#,
    r#"{"type":"control_response","request_id":"r","response":{"subtype":"error","error":{"message":"m","retryable":false}}}"#,
    r#"{"type":"control/cancel","session_id":"s","prompt_id":"p","reason":"escape","request_id":"r"}"#,
];

/// Decodes, and follows an answer one step further; an error always has its words.
fn survives(line: &[u8]) {
    match decode(line) {
        Ok(commands) => {
            for command in commands {
                if let Command::Reply(reply) = command
                    && let Ok(json) = reply.result
                {
                    drop(permission_answer(&json));
                }
            }
        }
        Err(error) => assert!(!error.message.is_empty()),
    }
}

#[test]
fn the_lines_that_are_mutated_below_are_sound() {
    for line in SOUND {
        commands(line);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn arbitrary_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        survives(&bytes);
    }

    #[test]
    fn mutated_lines_never_panic(
        line in prop::sample::select(&SOUND[..]),
        cuts in prop::collection::vec((any::<prop::sample::Index>(), any::<prop::sample::Index>(), any::<u8>(), 0..4_u8), 1..6),
    ) {
        let mut bytes = line.as_bytes().to_vec();
        for (one, other, byte, how) in cuts {
            if bytes.is_empty() {
                break;
            }
            let (a, b) = (one.index(bytes.len()), other.index(bytes.len()));
            match how {
                0 => bytes[a] = byte,
                1 => bytes.insert(a, b"{}[]\",:\\u0tfn1-"[usize::from(byte) % 15]),
                2 => drop(bytes.drain(a.min(b)..a.max(b))),
                _ => bytes.extend_from_within(a.min(b)..a.max(b)),
            }
        }
        survives(&bytes);
    }

    /// Any value in place of any value: the shapes hold whatever stands where.
    #[test]
    fn values_of_the_wrong_type_never_panic(
        line in prop::sample::select(&SOUND[..]),
        at in any::<prop::sample::Index>(),
        value in prop::sample::select(&["null", "true", "7", "-1.5e300", "\"\"", "\"x\"", "[]", "[[]]", "{}", "{\"a\":1}"][..]),
    ) {
        let starts: Vec<usize> = line.match_indices(':').map(|(at, _)| at + 1).collect();
        let start = starts[at.index(starts.len())];
        let mut values = serde_json::Deserializer::from_str(&line[start..]).into_iter::<serde_json::Value>();
        if let Some(Ok(_)) = values.next() {
            let end = start + values.byte_offset();
            survives(format!("{}{value}{}", &line[..start], &line[end..]).as_bytes());
        }
    }
}
