//! The JSON Schemas of the wires, as they are committed under `schemas/`.

use schemars::generate::SchemaSettings;
use schemars::{Schema, SchemaGenerator, json_schema, schema_for};

use crate::acp::wire as acp;
use crate::core::wire::CoreLine;
use crate::qwen::wire::control::{
    ControlCancelLine, ControlRequestLine, ControlResponseLine, NestedResponseLine,
};
use crate::qwen::wire::record::{SessionEventRecord, TerminalRecord, ThoughtRecord, ToolDisplayRecord};
use crate::qwen::wire::request::{
    CancelRequestLine, ChatRequest, ControlCancelInput, ControlInput, ConversationRequest,
    HeartbeatRequestLine, HintCancelLine, HintRequestLine, UserLine,
};
use crate::qwen::wire::result::{CancelLine, CommandLine, HeartbeatLine, HintLine};
use crate::qwen::wire::{ChatCompletion, ChatCompletionChunk, FatalError};

/// Every schema by the name of its file under `schemas/`, without `.json`.
pub fn schemas() -> Vec<(&'static str, Schema)> {
    let mut schemas = Vec::new();
    schemas.extend(qwen());
    schemas.extend(core());
    schemas.extend(acp());
    schemas.extend(crate::claude::schemas());
    schemas.extend(crate::claude_lite::schemas());
    schemas.extend(crate::loom::schemas());
    schemas
}

fn qwen() -> [(&'static str, Schema); 4] {
    [
        ("qwen-chat-request-schema", schema_for!(ChatRequest)),
        ("qwen-input", any_line("A line that a host writes", inputs)),
        (
            "qwen-stream",
            any_line("A line of the qwen dialect in stream-json", |of| {
                let mut lines =
                    vec![of.subschema_for::<ChatCompletion<'_>>(), of.subschema_for::<FatalError<'_>>()];
                lines.extend(records(of));
                lines.extend(side_lines(of));
                lines
            }),
        ),
        (
            "qwen-stream-chunk",
            any_line("A line of the qwen dialect in stream-chunk-json", |of| {
                let chunk = of.subschema_for::<ChatCompletionChunk<'_>>();
                let mut lines = vec![chunk, of.subschema_for::<FatalError<'_>>()];
                lines.extend(records(of));
                lines.extend(side_lines(of));
                lines
            }),
        ),
    ]
}

fn core() -> [(&'static str, Schema); 1] {
    [(
        "core-stream",
        any_line("A line of the core dialect", |of| {
            let mut lines = vec![of.subschema_for::<CoreLine<'_>>()];
            lines.extend(side_lines(of));
            lines
        }),
    )]
}

fn acp() -> [(&'static str, Schema); 1] {
    [("acp-stream", any_line("A line of the acp dialect", acp_lines))]
}

fn acp_lines(of: &mut SchemaGenerator) -> Vec<Schema> {
    vec![
        of.subschema_for::<acp::Notification<acp::UpdateMethod, acp::UpdateParams<'_>>>(),
        of.subschema_for::<acp::Request<'_, acp::PermissionMethod, acp::PermissionRequest<'_>>>(),
        of.subschema_for::<acp::Request<'_, acp::ElicitationMethod, acp::Elicitation<'_>>>(),
        of.subschema_for::<acp::Notification<acp::CancelMethod, acp::CancelParams<'_>>>(),
        of.subschema_for::<acp::Notification<acp::InternalMethod, acp::Internal<'_>>>(),
        of.subschema_for::<acp::PromptResponse<'_>>(),
        of.subschema_for::<acp::ErrorResponse<'_>>(),
    ]
}

/// The lines that a host writes.
fn inputs(of: &mut SchemaGenerator) -> Vec<Schema> {
    vec![
        of.subschema_for::<ChatRequest>(),
        of.subschema_for::<ConversationRequest>(),
        of.subschema_for::<UserLine>(),
        of.subschema_for::<HintRequestLine>(),
        of.subschema_for::<HintCancelLine>(),
        of.subschema_for::<HeartbeatRequestLine>(),
        of.subschema_for::<CancelRequestLine>(),
        of.subschema_for::<ControlInput>(),
        of.subschema_for::<ControlResponseLine<'_>>(),
        of.subschema_for::<NestedResponseLine<'_>>(),
        of.subschema_for::<ControlCancelInput>(),
    ]
}

/// The `x-qwen-*` records.
fn records(of: &mut SchemaGenerator) -> Vec<Schema> {
    vec![
        of.subschema_for::<TerminalRecord<'_>>(),
        of.subschema_for::<ToolDisplayRecord<'_>>(),
        of.subschema_for::<ThoughtRecord<'_>>(),
        of.subschema_for::<SessionEventRecord<'_>>(),
    ]
}

/// The answers to requests and the control channel, which a stream may have beside its own lines.
fn side_lines(of: &mut SchemaGenerator) -> Vec<Schema> {
    vec![
        of.subschema_for::<CommandLine<'_>>(),
        of.subschema_for::<HintLine<'_>>(),
        of.subschema_for::<HeartbeatLine<'_>>(),
        of.subschema_for::<CancelLine<'_>>(),
        of.subschema_for::<ControlRequestLine<'_>>(),
        of.subschema_for::<ControlResponseLine<'_>>(),
        of.subschema_for::<NestedResponseLine<'_>>(),
        of.subschema_for::<ControlCancelLine<'_>>(),
    ]
}

/// The schema of a stream: each line is one of `lines`.
fn any_line(title: &str, lines: impl FnOnce(&mut SchemaGenerator) -> Vec<Schema>) -> Schema {
    let mut generator = SchemaSettings::draft2020_12().into_generator();
    let lines = lines(&mut generator);
    let definitions = generator.take_definitions(true);
    json_schema!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": title,
        "anyOf": lines,
        "$defs": definitions,
    })
}
