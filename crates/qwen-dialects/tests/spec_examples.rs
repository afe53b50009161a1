//! Every example of the specifications that belongs to `qwen` or `core` is read by our types, fits our
//! schemas, and has the shape of what we write.
#![expect(clippy::unwrap_used, reason = "tests may say what they expect, outside the test functions too")]

mod story;

use std::path::Path;

use qwen_dialects::core::wire::CoreLine;
use qwen_dialects::qwen::wire::control::{
    ControlCancelLine, ControlRequestLine, ControlResponseLine, NestedResponseLine,
};
use qwen_dialects::qwen::wire::record::{
    SessionEventRecord, TerminalRecord, ThoughtRecord, ToolDisplayRecord,
};
use qwen_dialects::qwen::wire::request::{
    CancelRequestLine, ChatRequest, ConversationRequest, HeartbeatRequestLine, HintRequestLine,
};
use qwen_dialects::qwen::wire::result::{CancelLine, CommandLine, HeartbeatLine, HintLine};
use qwen_dialects::qwen::wire::{ChatCompletion, ChatCompletionChunk, FatalError};
use qwen_dialects::{Dialect, Format, core, decode, permission_answer, qwen, schemas};
use qwen_events::{Command, CommandKind, HintTrigger, Part, PromptOrigin};
use serde::Deserialize;
use serde_json::Value;

/// The example lines of a file: one object, or one a line.
fn examples(name: &str) -> Vec<String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../corpus/spec-examples").join(name);
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    if Path::new(name).extension().is_some_and(|extension| extension == "jsonl") {
        text.lines().map(str::to_owned).collect()
    } else {
        vec![text]
    }
}

fn example(name: &str) -> Value {
    serde_json::from_str(&examples(name)[0]).unwrap()
}

fn fits(schema: &str, line: &str) {
    let (_, schema) = schemas().into_iter().find(|(name, _)| *name == schema).unwrap();
    let line: Value = serde_json::from_str(line).unwrap();
    let complaints: Vec<String> = jsonschema::validator_for(schema.as_value())
        .unwrap()
        .iter_errors(&line)
        .map(|error| error.to_string())
        .collect();
    assert!(complaints.is_empty(), "{line}\n{complaints:#?}");
}

#[track_caller]
fn reads<'a, T: Deserialize<'a>>(line: &'a str) {
    if let Err(error) = serde_json::from_str::<T>(line) {
        panic!("{line}\n{error}");
    }
}

/// Single lines that spec 1 shows of our output.
const SPEC1_OUTPUT: [&str; 11] = [
    "spec1-terminal.json",
    "spec1-tool-display.json",
    "spec1-thought.json",
    "spec1-session-event.json",
    "spec1-result-command.json",
    "spec1-result-command-hint.json",
    "spec1-result-heartbeat.json",
    "spec1-result-cancel.json",
    "spec1-control-request.json",
    "spec1-control-response.json",
    "spec1-fatal-error.json",
];

#[test]
fn the_examples_of_the_specifications_parse_into_our_types() {
    for line in &examples("spec1-stream-json.jsonl") {
        reads::<ChatCompletion<'_>>(line);
        fits("qwen-stream", line);
    }
    for name in ["spec1-chunk-role.json", "spec1-chunk-final.json"] {
        reads::<ChatCompletionChunk<'_>>(&examples(name)[0]);
        fits("qwen-stream-chunk", &examples(name)[0]);
    }
    for name in SPEC1_OUTPUT {
        fits("qwen-stream", &examples(name)[0]);
        fits("qwen-stream-chunk", &examples(name)[0]);
    }
    reads::<TerminalRecord<'_>>(&examples("spec1-terminal.json")[0]);
    reads::<ToolDisplayRecord<'_>>(&examples("spec1-tool-display.json")[0]);
    reads::<ThoughtRecord<'_>>(&examples("spec1-thought.json")[0]);
    reads::<SessionEventRecord<'_>>(&examples("spec1-session-event.json")[0]);
    reads::<CommandLine<'_>>(&examples("spec1-result-command.json")[0]);
    reads::<HintLine<'_>>(&examples("spec1-result-command-hint.json")[0]);
    reads::<HeartbeatLine<'_>>(&examples("spec1-result-heartbeat.json")[0]);
    reads::<CancelLine<'_>>(&examples("spec1-result-cancel.json")[0]);
    reads::<ControlRequestLine<'_>>(&examples("spec1-control-request.json")[0]);
    reads::<ControlResponseLine<'_>>(&examples("spec1-control-response.json")[0]);
    reads::<FatalError<'_>>(&examples("spec1-fatal-error.json")[0]);
    for name in
        ["spec4-tool-call-request.json", "spec4-tool-call-confirmation.json", "spec4-tool-call-response.json"]
    {
        reads::<CoreLine<'_>>(&examples(name)[0]);
        fits("core-stream", &examples(name)[0]);
    }
}

#[test]
fn what_the_specifications_send_fits_the_input_schema_and_its_types() {
    for name in [
        "spec1-chat-request.json",
        "spec1-command-request.json",
        "spec1-command-hint-request.json",
        "spec1-heartbeat-request.json",
        "spec1-cancel-request.json",
        "spec1-control-response.json",
        "spec1-conversation-requests.jsonl",
    ] {
        for line in examples(name) {
            fits("qwen-input", &line);
        }
    }
    for name in ["spec1-chat-request.json", "spec1-command-request.json"] {
        fits("qwen-chat-request-schema", &examples(name)[0]);
        reads::<ChatRequest>(&examples(name)[0]);
    }
    reads::<HintRequestLine>(&examples("spec1-command-hint-request.json")[0]);
    reads::<HeartbeatRequestLine>(&examples("spec1-heartbeat-request.json")[0]);
    reads::<CancelRequestLine>(&examples("spec1-cancel-request.json")[0]);
    for line in &examples("spec1-conversation-requests.jsonl") {
        reads::<ConversationRequest>(line);
    }
}

#[track_caller]
fn decoded(line: &str) -> Command {
    let mut commands = decode(line.as_bytes()).unwrap_or_else(|error| panic!("{error:?}"));
    assert_eq!(commands.len(), 1);
    commands.remove(0)
}

#[test]
fn the_decoder_reads_every_input_of_the_specifications() {
    let Command::Prompt(prompt) = decoded(&examples("spec1-chat-request.json")[0]) else { panic!() };
    assert_eq!(prompt.session_id.as_deref(), Some("session-123"));
    assert_eq!(prompt.prompt_id.unwrap().as_str(), "session-123########7");
    assert_eq!(prompt.origin, PromptOrigin::User);
    assert_eq!(prompt.parts, [Part::Text("Please fix the bug in @main.py".into())]);
    assert_eq!(prompt.options.model.as_deref(), Some("qwen-coder"));
    assert_eq!(prompt.options.sampling.temperature, Some(0.2));
    assert_eq!(prompt.options.tool_overrides.unwrap(), ["EditTool".into()]);

    let Command::Prompt(prompt) = decoded(&examples("spec1-command-request.json")[0]) else { panic!() };
    let command = prompt.command.unwrap();
    assert_eq!((command.kind, &*command.path[1], &*command.args), (CommandKind::Slash, "list", ""));

    let Command::Hint(hint) = decoded(&examples("spec1-command-hint-request.json")[0]) else { panic!() };
    assert_eq!((hint.trigger, &*hint.text, hint.cursor), (HintTrigger::Slash, "/c", Some(2)));
    assert_eq!(hint.cwd.as_deref(), Some("/workspace/demo"));

    let Command::Heartbeat { session_id, .. } = decoded(&examples("spec1-heartbeat-request.json")[0]) else {
        panic!()
    };
    assert_eq!(session_id.as_deref(), Some("session-123"));

    let Command::Cancel { reason, prompt_id, .. } = decoded(&examples("spec1-cancel-request.json")[0]) else {
        panic!()
    };
    assert_eq!((&*reason, prompt_id.unwrap().as_str()), ("escape", "session-123########8"));

    let Command::Reply { reply, .. } = decoded(&examples("spec1-control-response.json")[0]) else { panic!() };
    assert_eq!((&*reply.request_id, reply.nested), ("req-1", false));
    let answer = permission_answer(&reply.result.unwrap()).unwrap();
    assert_eq!(answer.behavior, qwen_events::Behavior::Allow);
    assert_eq!(answer.message.as_deref(), Some("Allowed to execute."));

    let said: Vec<Part> = examples("spec1-conversation-requests.jsonl")
        .iter()
        .map(|line| {
            let Command::Prompt(mut prompt) = decoded(line) else { panic!() };
            assert_eq!(prompt.options.model.as_deref(), Some("qwen-coder"));
            prompt.parts.remove(0)
        })
        .collect();
    assert_eq!(
        said,
        [Part::Text("Hello".into()), Part::Text("Output the greeting character by character.".into())]
    );
}

/// Whether `ours` has every key of `example`, each with a value of the same type; null fits all.
fn same_shape(ours: &Value, example: &Value, path: &str) -> Result<(), String> {
    match (ours, example) {
        (Value::Null, _) | (_, Value::Null) => Ok(()),
        (Value::Object(ours), Value::Object(example)) => example.iter().try_for_each(|(key, value)| {
            let path = format!("{path}.{key}");
            ours.get(key)
                .map_or_else(|| Err(format!("{path} is missing")), |mine| same_shape(mine, value, &path))
        }),
        (Value::Array(ours), Value::Array(example)) => match (ours.first(), example.first()) {
            (Some(mine), Some(value)) => same_shape(mine, value, &format!("{path}[0]")),
            _ => Ok(()),
        },
        (Value::Bool(_), Value::Bool(_))
        | (Value::Number(_), Value::Number(_))
        | (Value::String(_), Value::String(_)) => Ok(()),
        _ => Err(format!("{path} is {ours} and should be like {example}")),
    }
}

/// One of our lines must have the shape of the example.
#[track_caller]
fn one_is_like(lines: &[Value], example: &Value) {
    let kind = |line: &Value| (line["type"].clone(), line["object"].clone());
    let complaints: Vec<String> = lines
        .iter()
        .filter(|line| kind(line) == kind(example))
        .map(|line| same_shape(line, example, "").err())
        .take_while(Option::is_some)
        .flatten()
        .collect();
    let candidates = lines.iter().filter(|line| kind(line) == kind(example)).count();
    assert!(candidates > complaints.len(), "of {candidates} lines none is like {example}\n{complaints:#?}");
}

#[test]
fn what_we_write_has_the_shape_of_the_examples() {
    let lines = story::everything().told(qwen::encoder(&story::info(Dialect::Qwen, Format::StreamJson)));
    for line in examples("spec1-stream-json.jsonl") {
        let mut line: Value = serde_json::from_str(&line).unwrap();
        // The example spells out that there are no calls; ours leaves the key out.
        if line["choices"][0]["message"]["tool_calls"].is_null() {
            line["choices"][0]["message"].as_object_mut().unwrap().remove("tool_calls");
        }
        one_is_like(&lines, &line);
    }
    for name in SPEC1_OUTPUT {
        let mut example = example(name);
        if name == "spec1-control-request.json" {
            // What a tool is called with is its own affair.
            example["tool"]["arguments"] = Value::Object(serde_json::Map::default());
        }
        if name == "spec1-control-response.json" {
            example["response"]["result"] = Value::Object(serde_json::Map::default());
        }
        one_is_like(&lines, &example);
    }
    let chunks =
        story::everything().told(qwen::encoder(&story::info(Dialect::Qwen, Format::StreamChunkJson)));
    one_is_like(&chunks, &example("spec1-chunk-role.json"));
    let last = chunks.iter().rev().find(|line| line["metadata"]["turn"].is_object()).unwrap();
    assert_eq!(same_shape(last, &example("spec1-chunk-final.json"), ""), Ok(()));

    let lines = story::everything().told(core::encoder(&story::info(Dialect::Core, Format::StreamJson)));
    for name in
        ["spec4-tool-call-request.json", "spec4-tool-call-confirmation.json", "spec4-tool-call-response.json"]
    {
        let mut example = example(name);
        for request in ["/value/args", "/value/request/args"] {
            if let Some(args) = example.pointer_mut(request) {
                *args = Value::Object(serde_json::Map::default());
            }
        }
        one_is_like(&lines, &example);
    }
}

/// Every line that we write, read by its wire type and written again, is the same line: the types say all
/// there is.
#[test]
fn our_types_read_what_we_write_and_write_it_again() {
    fn again<'a, T: Deserialize<'a> + serde::Serialize>(line: &'a str) -> String {
        serde_json::to_string(
            &serde_json::from_str::<T>(line).unwrap_or_else(|error| panic!("{line}\n{error}")),
        )
        .unwrap()
    }
    for (dialect, format) in [
        (Dialect::Qwen, Format::StreamJson),
        (Dialect::Qwen, Format::StreamChunkJson),
        (Dialect::Core, Format::StreamJson),
    ] {
        let info = story::info(dialect, format);
        let encoder = if dialect == Dialect::Core { core::encoder(&info) } else { qwen::encoder(&info) };
        for line in story::everything().lines(encoder) {
            let value: Value = serde_json::from_str(&line).unwrap();
            let kind = value["type"].as_str().or(value["object"].as_str());
            let again = match kind {
                Some("chat.completion") => again::<ChatCompletion<'_>>(&line),
                Some("chat.completion.chunk") => again::<ChatCompletionChunk<'_>>(&line),
                Some("x-qwen-terminal") => again::<TerminalRecord<'_>>(&line),
                Some("x-qwen-tool-display") => again::<ToolDisplayRecord<'_>>(&line),
                Some("x-qwen-thought") => again::<ThoughtRecord<'_>>(&line),
                Some("x-qwen-session-event") => again::<SessionEventRecord<'_>>(&line),
                Some("result/command") => again::<CommandLine<'_>>(&line),
                Some("result/command_hint") => again::<HintLine<'_>>(&line),
                Some("result/heartbeat") => again::<HeartbeatLine<'_>>(&line),
                Some("result/cancel") => again::<CancelLine<'_>>(&line),
                Some("control_request") => again::<ControlRequestLine<'_>>(&line),
                Some("control_response") if value["request_id"].is_string() => {
                    again::<ControlResponseLine<'_>>(&line)
                }
                Some("control_response") => again::<NestedResponseLine<'_>>(&line),
                Some("control_cancel_request") => again::<ControlCancelLine<'_>>(&line),
                None => again::<FatalError<'_>>(&line),
                Some(_) => again::<CoreLine<'_>>(&line),
            };
            assert_eq!(again, line);
        }
    }
}
