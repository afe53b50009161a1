//! Log form of turn starts, turn ends and checkpoints.

use std::sync::Arc;

use qwen_events::{
    AgentName, AgentUsage, CallId, Checkpoint, Denial, EndStatus, ErrorInfo, Finish, Journal, Json,
    McpServer, ModelUsage, Part, PromptId, SessionId, Timestamp, ToolSpec, TurnEnd, TurnStart, Usage,
};
use serde::{Deserialize, Serialize};

use super::{ByName, CallForm, ErrorForm, PartForm, Raw, is_default};

#[derive(Debug, Serialize, Deserialize)]
pub(in crate::log) struct TurnStartForm {
    prompt_id: Arc<str>,
    pub turn: u64,
    run_id: Arc<str>,
    agent: ByName<AgentName>,
    /// The user's message, if it differs from the text of the parts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    message: Option<Arc<str>>,
    parts: Vec<PartForm>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    message_uuid: Option<Arc<str>>,
    model: Arc<str>,
    cwd: Arc<str>,
    permission_mode: Arc<str>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    tools: Vec<Arc<str>>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    host_tools: Vec<ToolSpecForm>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    json_schema: Option<Raw>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    mcp_servers: Vec<(Arc<str>, Arc<str>)>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    slash_commands: Vec<Arc<str>>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    agents: Vec<Arc<str>>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    skills: Vec<Arc<str>>,
    key_source: Arc<str>,
}

#[derive(Debug, Serialize, Deserialize)]
struct ToolSpecForm {
    name: Arc<str>,
    description: Arc<str>,
    parameters: Raw,
}

impl From<&ToolSpec> for ToolSpecForm {
    fn from(spec: &ToolSpec) -> Self {
        let parameters = Raw(spec.parameters.clone());
        Self { name: spec.name.clone(), description: spec.description.clone(), parameters }
    }
}

impl From<ToolSpecForm> for ToolSpec {
    fn from(form: ToolSpecForm) -> Self {
        Self { name: form.name, description: form.description, parameters: form.parameters.0 }
    }
}

#[derive(Debug, Serialize, Deserialize)]
pub(in crate::log) struct TurnEndForm {
    prompt_id: Arc<str>,
    status: ByName<EndStatus>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    error: Option<ErrorForm>,
    /// The answer, if it differs from the text of the last message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    reply: Option<Arc<str>>,
    finish: ByName<Finish>,
    usage: UsageForm,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    usage_by_model: Vec<ModelUsageForm>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    usage_by_agent: Vec<AgentUsageForm>,
    cost_usd: f64,
    duration_ms: u64,
    api_duration_ms: u64,
    model_calls: u64,
    tool_calls: u64,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    denials: Vec<DenialForm>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    control_errors: Vec<ErrorForm>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    structured: Option<Raw>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    deferred: Option<CallForm>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    continuation: bool,
}

#[derive(Debug, Serialize, Deserialize)]
struct DenialForm {
    tool_name: Arc<str>,
    call_id: Arc<str>,
    arguments: Raw,
    reason: Arc<str>,
}

#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
pub(in crate::log) struct UsageForm {
    prompt: u64,
    completion: u64,
    #[serde(default, skip_serializing_if = "is_default")]
    cached: u64,
    #[serde(default, skip_serializing_if = "is_default")]
    cache_write: u64,
    #[serde(default, skip_serializing_if = "is_default")]
    thought: u64,
    #[serde(default, skip_serializing_if = "is_default")]
    estimated: bool,
}

#[derive(Debug, Serialize, Deserialize)]
pub(in crate::log) struct ModelUsageForm {
    model: Arc<str>,
    calls: u64,
    usage: UsageForm,
    cost_usd: f64,
}

#[derive(Debug, Serialize, Deserialize)]
struct AgentUsageForm {
    agent: Arc<str>,
    runs: u64,
    model_calls: u64,
    tool_calls: u64,
    usage: UsageForm,
    cost_usd: f64,
}

#[derive(Debug, Serialize, Deserialize)]
pub(in crate::log) struct CheckpointForm {
    id: Arc<str>,
    timestamp: u64,
    step: u64,
    /// Omitted if the state can be derived from the log.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    state: Option<Raw>,
    #[serde(default, skip_serializing_if = "str::is_empty")]
    namespace: Arc<str>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(in crate::log) enum JournalForm {
    Base { version: u32, next: Arc<str>, state: Raw },
    Effect { key: Arc<str>, value: Raw },
    Step { next: Option<Arc<str>>, delta: Raw },
}

/// The text of a user's parts, which readers get as the message.
pub(in crate::log) fn joined_text(parts: &[Part]) -> String {
    parts.iter().filter_map(Part::as_text).collect()
}

impl From<&TurnStart> for TurnStartForm {
    fn from(start: &TurnStart) -> Self {
        let plain = joined_text(&start.parts) == *start.message;
        Self {
            prompt_id: start.prompt_id.as_str().into(),
            turn: start.turn,
            run_id: start.run_id.clone(),
            agent: ByName(start.agent),
            message: (!plain).then(|| start.message.clone()),
            parts: start.parts.iter().map(PartForm::from).collect(),
            message_uuid: start.message_uuid.clone(),
            model: start.model.clone(),
            cwd: start.cwd.clone(),
            permission_mode: start.permission_mode.clone(),
            tools: start.tools.clone(),
            host_tools: start.host_tools.iter().map(ToolSpecForm::from).collect(),
            json_schema: start.json_schema.clone().map(Raw),
            mcp_servers: start.mcp_servers.iter().map(|s| (s.name.clone(), s.status.clone())).collect(),
            slash_commands: start.slash_commands.clone(),
            agents: start.agents.clone(),
            skills: start.skills.clone(),
            key_source: start.key_source.clone(),
        }
    }
}

impl TurnStartForm {
    /// The start of a turn of `session`.
    pub fn into_start(self, session: &SessionId) -> TurnStart {
        let parts: Vec<Part> = self.parts.into_iter().map(Part::from).collect();
        TurnStart {
            session_id: session.clone(),
            prompt_id: PromptId::new(self.prompt_id),
            turn: self.turn,
            run_id: self.run_id,
            agent: self.agent.0,
            message: self.message.unwrap_or_else(|| joined_text(&parts).into()),
            parts,
            message_uuid: self.message_uuid,
            message_origin: None,
            model: self.model,
            cwd: self.cwd,
            permission_mode: self.permission_mode,
            tools: self.tools,
            host_tools: self.host_tools.into_iter().map(ToolSpec::from).collect(),
            json_schema: self.json_schema.map(|raw| raw.0),
            mcp_servers: self
                .mcp_servers
                .into_iter()
                .map(|(name, status)| McpServer { name, status })
                .collect(),
            slash_commands: self.slash_commands,
            agents: self.agents,
            skills: self.skills,
            key_source: self.key_source,
        }
    }
}

impl TurnEndForm {
    /// The form of `end`; `last_text` is the text of the turn's last message.
    pub fn new(end: &TurnEnd, last_text: &str) -> Self {
        Self {
            prompt_id: end.prompt_id.as_str().into(),
            status: ByName(end.status),
            error: end.error.as_ref().map(ErrorForm::from),
            reply: (*end.reply != *last_text).then(|| end.reply.clone()),
            finish: ByName(end.finish),
            usage: (&end.usage).into(),
            usage_by_model: end.usage_by_model.iter().map(ModelUsageForm::from).collect(),
            usage_by_agent: end.usage_by_agent.iter().map(AgentUsageForm::from).collect(),
            cost_usd: end.cost_usd,
            duration_ms: end.duration_ms,
            api_duration_ms: end.api_duration_ms,
            model_calls: end.model_calls,
            tool_calls: end.tool_calls,
            denials: end.denials.iter().map(DenialForm::from).collect(),
            control_errors: end.control_errors.iter().map(ErrorForm::from).collect(),
            structured: end.structured.clone().map(Raw),
            deferred: end.postponed.as_deref().map(CallForm::from),
            continuation: end.continuation,
        }
    }

    /// The end of a turn whose last message has the text `last_text`.
    pub fn into_end(self, last_text: &Arc<str>) -> TurnEnd {
        TurnEnd {
            prompt_id: PromptId::new(self.prompt_id),
            status: self.status.0,
            error: self.error.map(ErrorInfo::from),
            reply: self.reply.unwrap_or_else(|| last_text.clone()),
            finish: self.finish.0,
            usage: self.usage.into(),
            usage_by_model: self.usage_by_model.into_iter().map(ModelUsage::from).collect(),
            usage_by_agent: self.usage_by_agent.into_iter().map(AgentUsage::from).collect(),
            cost_usd: self.cost_usd,
            duration_ms: self.duration_ms,
            api_duration_ms: self.api_duration_ms,
            model_calls: self.model_calls,
            tool_calls: self.tool_calls,
            denials: self.denials.into_iter().map(Denial::from).collect(),
            control_errors: self.control_errors.into_iter().map(ErrorInfo::from).collect(),
            structured: self.structured.map(|raw| raw.0),
            postponed: self.deferred.map(|call| Arc::new(call.into())),
            continuation: self.continuation,
            session_id: None,
        }
    }
}

impl From<&Denial> for DenialForm {
    fn from(denial: &Denial) -> Self {
        Self {
            tool_name: denial.tool_name.clone(),
            call_id: denial.call_id.as_str().into(),
            arguments: Raw(denial.arguments.clone()),
            reason: denial.reason.clone(),
        }
    }
}

impl From<DenialForm> for Denial {
    fn from(form: DenialForm) -> Self {
        Self {
            tool_name: form.tool_name,
            call_id: CallId::new(form.call_id),
            arguments: form.arguments.0,
            reason: form.reason,
        }
    }
}

impl From<&Usage> for UsageForm {
    fn from(usage: &Usage) -> Self {
        Self {
            prompt: usage.prompt_tokens,
            completion: usage.completion_tokens,
            cached: usage.cached_tokens,
            cache_write: usage.cache_write_tokens,
            thought: usage.thought_tokens,
            estimated: usage.estimated,
        }
    }
}

impl From<UsageForm> for Usage {
    fn from(form: UsageForm) -> Self {
        Self {
            prompt_tokens: form.prompt,
            completion_tokens: form.completion,
            cached_tokens: form.cached,
            cache_write_tokens: form.cache_write,
            thought_tokens: form.thought,
            estimated: form.estimated,
        }
    }
}

impl From<&ModelUsage> for ModelUsageForm {
    fn from(spent: &ModelUsage) -> Self {
        Self {
            model: spent.model.clone(),
            calls: spent.calls,
            usage: (&spent.usage).into(),
            cost_usd: spent.cost_usd,
        }
    }
}

impl From<ModelUsageForm> for ModelUsage {
    fn from(form: ModelUsageForm) -> Self {
        Self { model: form.model, calls: form.calls, usage: form.usage.into(), cost_usd: form.cost_usd }
    }
}

impl From<&AgentUsage> for AgentUsageForm {
    fn from(spent: &AgentUsage) -> Self {
        Self {
            agent: spent.agent.clone(),
            runs: spent.runs,
            model_calls: spent.model_calls,
            tool_calls: spent.tool_calls,
            usage: (&spent.usage).into(),
            cost_usd: spent.cost_usd,
        }
    }
}

impl From<AgentUsageForm> for AgentUsage {
    fn from(form: AgentUsageForm) -> Self {
        Self {
            agent: form.agent,
            runs: form.runs,
            model_calls: form.model_calls,
            tool_calls: form.tool_calls,
            usage: form.usage.into(),
            cost_usd: form.cost_usd,
        }
    }
}

impl CheckpointForm {
    /// The form of a checkpoint, with or without its state.
    pub fn new(checkpoint: &Checkpoint, with_state: bool) -> Self {
        Self {
            id: checkpoint.id.clone(),
            timestamp: checkpoint.timestamp.0,
            step: checkpoint.step,
            state: with_state.then(|| Raw(checkpoint.state.clone())),
            namespace: checkpoint.namespace.clone(),
        }
    }

    /// A checkpoint of `session`.
    pub fn into_checkpoint(self, session: &SessionId) -> Checkpoint {
        Checkpoint {
            id: self.id,
            timestamp: Timestamp(self.timestamp),
            step: self.step,
            state: self.state.map_or_else(Json::empty_object, |raw| raw.0),
            thread_id: session.clone(),
            namespace: self.namespace,
        }
    }
}

impl From<&Journal> for JournalForm {
    fn from(journal: &Journal) -> Self {
        match journal.clone() {
            Journal::Base { version, next, state } => Self::Base { version, next, state: Raw(state) },
            Journal::Effect { key, value } => Self::Effect { key, value: Raw(value) },
            Journal::Step { next, delta } => Self::Step { next, delta: Raw(delta) },
        }
    }
}

impl From<JournalForm> for Journal {
    fn from(form: JournalForm) -> Self {
        match form {
            JournalForm::Base { version, next, state } => Self::Base { version, next, state: state.0 },
            JournalForm::Effect { key, value } => Self::Effect { key, value: value.0 },
            JournalForm::Step { next, delta } => Self::Step { next, delta: delta.0 },
        }
    }
}
