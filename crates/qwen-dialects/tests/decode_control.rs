//! What the decoder promises of the control channel.

mod decoded;

use decoded::{command, commands};
use qwen_dialects::permission_answer;
use qwen_events::{
    Behavior, CallId, Command, ControlBody, ControlReply, HookMatcher, Initialize, Json, PermissionUpdate,
};

#[track_caller]
fn control(line: &str) -> ControlBody {
    let Command::Control { body, .. } = command(line) else { panic!("{line}") };
    *body
}

#[track_caller]
fn reply(line: &str) -> ControlReply {
    let Command::Reply { reply, .. } = command(line) else { panic!("{line}") };
    *reply
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
        (r#"{"subtype":"continue_last_turn"}"#, ControlBody::ContinueLastTurn { replay: true }),
        (
            r#"{"subtype":"continue_last_turn","replay":false}"#,
            ControlBody::ContinueLastTurn { replay: false },
        ),
        (
            r#"{"subtype":"rewind_files","user_message_id":"u","dry_run":true}"#,
            ControlBody::RewindFiles { message_id: "u".into(), dry_run: true },
        ),
        (r#"{"subtype":"stop_task","task_id":"t"}"#, ControlBody::StopTask("t".into())),
        (
            r#"{"subtype":"background_tasks","tool_use_id":"c"}"#,
            ControlBody::BackgroundTasks(Some(CallId::new("c"))),
        ),
        (r#"{"subtype":"background_tasks"}"#, ControlBody::BackgroundTasks(None)),
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
        (r#"{"subtype":"initialize","agents":{"explorer":null}}"#, "initialize", "request.agents.explorer"),
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
        r#"{"type":"control_request","request_id":"r","request":{"subtype":"initialize","hooks":{"PreToolUse":[{"matcher":"Bash","hookCallbackIds":["hook_0","hook_1"],"timeout":5,"onFailure":"block"}],"Stop":[{"matcher":null,"hookCallbackIds":["hook_2"]}]},"agents":{"explorer":{"description":"d","prompt":"p"}},"sdkMcpServers":["calc"],"systemPrompt":["a","b"],"appendSystemPrompt":"c","jsonSchema":{"type":"object"},"skills":[],"excludeDynamicSections":true,"toolAliases":{"Bash":"mcp__ws__bash"},"title":"t","promptSuggestions":false}}"#,
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
            skills: Some(Vec::new()),
            environment_in_prompt: true,
            tool_aliases: vec![("Bash".into(), "mcp__ws__bash".into())],
            ignored_options: vec!["title"],
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
