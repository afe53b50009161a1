//! The handshake of the control channel, in the spellings of the Claude and Qwen Code SDKs.

use std::sync::Arc;

use qwen_events::{HookMatcher, Initialize, Json};

use crate::decode::Result;
use crate::decode::error::invalid;
use crate::decode::field::{Kind, Object, Value};
use crate::decode::options::filled;

/// Options that the SDKs may send and that have no effect.
const UNHEEDED: &[&str] = &[
    "agentProgressSummaries",
    "appendSubagentSystemPrompt",
    "codeRunningMcpTools",
    "managedSettings",
    "perTaskStopAffordance",
    "planModeInstructions",
    "plugins",
    "promptSuggestions",
    "supportedDialogKinds",
    "title",
    "webSearchIsolationExemptMcpServers",
];

/// True if a value requests anything.
fn is_requested(value: &Value<'_>) -> bool {
    match value.kind() {
        Kind::Null => false,
        Kind::Bool => value.bool().unwrap_or(false),
        _ => !matches!(value.json().as_str(), "[]" | "{}" | "\"\""),
    }
}

/// Reads `initialize`.
pub(in crate::decode) fn initialize(fields: &Object<'_>) -> Result<Initialize> {
    let text = |names: &[&str]| fields.any(names).map(|value| joined(&value)).transpose();
    let mut sdk_mcp_servers = match fields.any(&["sdkMcpServers", "sdk_mcp_servers"]) {
        Some(value) => parse_named_items(&value)?.into_iter().map(|(name, _)| name).collect(),
        None => Vec::new(),
    };
    let mut mcp_servers = Vec::new();
    if let Some(value) = fields.any(&["mcpServers", "mcp_servers"]) {
        for (name, config) in parse_named_items(&value)? {
            if is_sdk_server(&config)? {
                if !sdk_mcp_servers.contains(&name) {
                    sdk_mcp_servers.push(name);
                }
            } else {
                mcp_servers.push((name, config.json()));
            }
        }
    }
    let timeout = fields.get("timeout").map(|value| value.object()).transpose()?;
    let json_schema = fields.any(&["jsonSchema", "json_schema"]);
    let heartbeat = fields.any(&["heartbeat_ms", "heartbeatMs", "heartbeat_interval_ms"]);
    Ok(Initialize {
        hooks: fields.get("hooks").map(|value| hooks(&value)).transpose()?.unwrap_or_default(),
        sdk_mcp_servers,
        mcp_servers,
        agents: match fields.get("agents") {
            Some(value) => parse_named_items(&value)?.into_iter().map(agent).collect::<Result<_>>()?,
            None => Vec::new(),
        },
        without_agents: fields.get("agents").is_some_and(|value| value.json().as_str() == "[]"),
        system_prompt: text(&["systemPrompt", "system_prompt"])?,
        append_system_prompt: text(&["appendSystemPrompt", "append_system_prompt"])?,
        policy_description: text(&["policyDescription", "policy_description"])?,
        environment_in_prompt: fields
            .any(&["excludeDynamicSections", "exclude_dynamic_sections"])
            .map(|value| value.bool())
            .transpose()?
            .unwrap_or(false),
        tool_aliases: match fields.get("toolAliases") {
            Some(value) => {
                let target = |(name, target): (&str, Value<'_>)| Ok((name.into(), filled(&target)?));
                value.object()?.entries().map(target).collect::<Result<_>>()?
            }
            None => Vec::new(),
        },
        forward_agent_text: fields
            .any(&["forwardSubagentText", "forward_subagent_text"])
            .map(|value| value.bool())
            .transpose()?,
        ignored_options: UNHEEDED
            .iter()
            .copied()
            .filter(|name| fields.get(name).is_some_and(|value| is_requested(&value)))
            .collect(),
        skills: fields
            .get("skills")
            .filter(|value| value.kind() == Kind::Array)
            .map(|value| value.strings())
            .transpose()?,
        json_schema: json_schema.map(|value| schema(&value)).transpose()?,
        effort: fields.string("effort")?,
        permission_timeout_ms: match timeout {
            Some(timeout) => {
                timeout.any(&["canUseTool", "can_use_tool"]).map(|value| value.count()).transpose()?
            }
            None => None,
        },
        heartbeat_ms: heartbeat.map(|value| value.count()).transpose()?,
    })
}

fn agent((name, definition): (Arc<str>, Value<'_>)) -> Result<(Arc<str>, Json)> {
    if definition.kind() == Kind::Object {
        Ok((name, definition.json()))
    } else {
        Err(definition.type_error("an agent's definition, which is an object"))
    }
}

/// A text, or a list of texts to join.
fn joined(value: &Value<'_>) -> Result<Arc<str>> {
    match value.kind() {
        Kind::Array => Ok(value.strings()?.join("\n\n").into()),
        _ => value.text_or("a string or an array of strings").map(Arc::from),
    }
}

fn schema(value: &Value<'_>) -> Result<Json> {
    if value.kind() == Kind::Object {
        Ok(value.json())
    } else {
        Err(value.type_error("a JSON Schema, which is an object"))
    }
}

/// Named items: a map, a list of objects with `name`, or a list of names.
fn parse_named_items<'a>(value: &Value<'a>) -> Result<Vec<(Arc<str>, Value<'a>)>> {
    if value.kind() == Kind::Object {
        return Ok(value.object()?.entries().map(|(name, value)| (name.into(), value)).collect());
    }
    let mut things = Vec::new();
    for item in value.array_or("an object by name, or an array")? {
        let name = match item.kind() {
            Kind::String => filled(&item)?,
            _ => filled(&item.object_or("a name or an object with `name`")?.need("name", "a string")?)?,
        };
        things.push((name, item));
    }
    Ok(things)
}

/// True if a server's configuration says that it runs in the host.
fn is_sdk_server(config: &Value<'_>) -> Result<bool> {
    let kind = config.object()?.string("type")?;
    Ok(kind.as_deref() == Some("sdk"))
}

/// Hooks as Claude's map of events, or as a list of `{event, callback_id}`.
fn hooks(value: &Value<'_>) -> Result<Vec<HookMatcher>> {
    let mut hooks = Vec::new();
    if value.kind() == Kind::Object {
        for (event, matchers) in value.object()?.entries() {
            if matchers.kind() == Kind::Null {
                continue;
            }
            for matcher in matchers.array()? {
                hooks.push(hook(event.into(), &matcher.object()?)?);
            }
        }
    } else {
        for item in value.array_or("an object by event, or an array of hooks")? {
            let item = item.object()?;
            let event = item.need_any(&["event", "hook_event_name"], "the name of an event")?;
            hooks.push(hook(filled(&event)?, &item)?);
        }
    }
    Ok(hooks)
}

fn hook(event: Arc<str>, fields: &Object<'_>) -> Result<HookMatcher> {
    const IDS: [&str; 6] =
        ["hookCallbackIds", "hook_callback_ids", "callback_ids", "callbackIds", "callback_id", "callbackId"];
    let ids = fields.need_any(&IDS, "the host's names for its functions")?;
    let callback_ids = if ids.kind() == Kind::String { vec![filled(&ids)?] } else { ids.strings()? };
    let seconds = fields.get("timeout").map(|value| value.number()).transpose()?;
    let timeout_ms = match fields.count("timeout_ms")? {
        Some(milliseconds) => Some(milliseconds),
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "negative is 0; saturates"
        )]
        None => seconds.map(|seconds| (seconds * 1000.0) as u64),
    };
    let block_on_failure = match fields.any(&["onFailure", "on_failure"]) {
        Some(value) => match &*value.text()? {
            "block" => true,
            "continue" | "allow" | "ignore" | "warn" => false,
            other => return Err(invalid(value.path(), other, "`block` or `continue`")),
        },
        None => false,
    };
    let matcher = fields.string("matcher")?.filter(|matcher| !matcher.is_empty());
    Ok(HookMatcher { event, matcher, callback_ids, timeout_ms, block_on_failure })
}
