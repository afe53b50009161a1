//! Agent definitions in JSON, from the host or the command line.

use std::sync::Arc;
use std::time::Duration;

use qwen_engine::subagent::{self, AgentDefinition, AgentLimits};
use qwen_events::{ErrorInfo, ErrorKind, Json};
use serde_json::Value;

/// The agents of `--agents`.
pub fn of_flag(json: Option<&str>) -> Result<Vec<AgentDefinition>, ErrorInfo> {
    let Some(json) = json.filter(|json| !json.trim().is_empty()) else { return Ok(Vec::new()) };
    let bad = |why: &dyn std::fmt::Display| {
        let message =
            format!("--agents: {why}; give agents by name, such as {{\"reviewer\":{{\"prompt\":\"…\"}}}}");
        ErrorInfo::new(ErrorKind::Usage, "bad_flag", message)
    };
    let agents: serde_json::Map<String, Value> = serde_json::from_str(json).map_err(|error| bad(&error))?;
    if let Some((name, _)) = agents.iter().find(|(_, agent)| !agent.is_object()) {
        return Err(bad(&format_args!("'{name}' is not an object")));
    }
    let agents = agents.iter();
    Ok(agents.map(|(name, agent)| read(&name.as_str().into(), &Json::trusted(agent.to_string()))).collect())
}

/// Parses an agent that the host defines. Missing fields stay empty.
pub fn read(name: &Arc<str>, definition: &Json) -> AgentDefinition {
    let value: Value = serde_json::from_str(definition.as_str()).unwrap_or_default();
    let text = |field: &str| value.get(field).and_then(Value::as_str);
    let texts = |field: &str| {
        let list = value.get(field).and_then(Value::as_array)?;
        Some(list.iter().filter_map(Value::as_str).map(Arc::from).collect::<Vec<Arc<str>>>())
    };
    AgentDefinition {
        name: name.clone(),
        description: text("description").unwrap_or_default().into(),
        prompt: text("prompt").or_else(|| text("systemPrompt")).unwrap_or_default().into(),
        tools: texts("tools"),
        model: text("model")
            .or_else(|| value["modelConfig"]["model"].as_str())
            .and_then(subagent::chosen_model),
        disallowed_tools: texts("disallowedTools").unwrap_or_default(),
        background: value["background"] == true,
        limits: limits(&value),
    }
}

/// The limits of an agent, in the spelling of either SDK family.
fn limits(definition: &Value) -> AgentLimits {
    let run = &definition["runConfig"];
    let minutes = run["max_time_minutes"].as_f64();
    let time = minutes.and_then(|minutes| Duration::try_from_secs_f64(minutes * 60.0).ok());
    AgentLimits {
        turns: definition["maxTurns"]
            .as_u64()
            .or_else(|| run["max_turns"].as_u64())
            .filter(|count| *count > 0),
        wall_time: time.filter(|time| !time.is_zero()),
        ..AgentLimits::default()
    }
}
