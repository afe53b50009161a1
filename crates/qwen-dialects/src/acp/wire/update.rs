//! `session/update` and what it contains.

use std::borrow::Cow;

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;
use serde_json::value::RawValue;

/// JSON that passes through unchanged; invalid JSON becomes `null`.
#[derive(Debug, Clone, PartialEq)]
pub struct RawJson<'a>(pub Cow<'a, str>);

impl Serialize for RawJson<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serde_json::from_str::<&RawValue>(&self.0).unwrap_or(RawValue::NULL).serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for RawJson<'_> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Value::deserialize(deserializer).map(|value| Self(Cow::Owned(value.to_string())))
    }
}

impl JsonSchema for RawJson<'_> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "RawJson".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        true.into()
    }
}

/// One change of a session that the client shows.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "sessionUpdate", rename_all = "snake_case", rename_all_fields = "camelCase")]
pub enum SessionUpdate<'a> {
    /// A piece of the user's message; only in a replay.
    UserMessageChunk(Chunk<'a>),
    /// A piece of the agent's message.
    AgentMessageChunk(Chunk<'a>),
    /// A piece of the agent's thinking.
    AgentThoughtChunk(Chunk<'a>),
    /// A tool call begins.
    ToolCall(ToolUpdate<'a>),
    /// A tool call changes.
    ToolCallUpdate(ToolUpdate<'a>),
    /// The complete plan, which replaces the previous one.
    Plan {
        /// All entries, in order.
        entries: Vec<PlanEntry<'a>>,
    },
    /// The slash commands of the session became known or changed.
    AvailableCommandsUpdate {
        /// All commands of the session, which replace the previous ones.
        available_commands: Vec<AvailableCommand<'a>>,
    },
    /// The approval mode changed.
    CurrentModeUpdate {
        /// The id of the mode.
        current_mode_id: Cow<'a, str>,
    },
    /// The options of the session changed.
    ConfigOptionUpdate {
        /// All options of the session with their current values.
        config_options: Vec<ConfigOption<'a>>,
    },
    /// The session has a new title.
    SessionInfoUpdate {
        /// The new title, absent if it did not change.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        title: Option<Cow<'a, str>>,
        /// The time of the last change, in ISO 8601.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        updated_at: Option<Cow<'a, str>>,
    },
    /// How much of the context window is used.
    UsageUpdate {
        /// Tokens in the context.
        used: u64,
        /// The size of the context window in tokens.
        size: u64,
        /// The cost of the session so far.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cost: Option<Cost<'a>>,
        /// Extensions: `qwen.turnCostUsd` is the cost of the turn that ends.
        #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
        meta: Option<Value>,
    },
    /// A sub-agent started. Only for clients that show sub-agents as sessions.
    SubagentSpawned {
        /// The id of the session in which its updates follow.
        subagent_session_id: Cow<'a, str>,
        /// The name of the sub-agent.
        name: Cow<'a, str>,
        /// The task, as a title.
        task: Cow<'a, str>,
    },
    /// A sub-agent ended. Only for clients that show sub-agents as sessions.
    SubagentStateUpdate {
        /// The id of the sub-agent's session.
        subagent_session_id: Cow<'a, str>,
        /// `completed`, `failed` or `cancelled`
        state: Cow<'a, str>,
    },
    /// A notice that is not part of the conversation.
    Notice {
        /// `info`, `warning` or `error`
        severity: Cow<'a, str>,
        /// The text of the notice, on one line.
        title: Cow<'a, str>,
        /// Details in addition to the title, absent if there are none.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        description: Option<Cow<'a, str>>,
    },
    /// The conversation was replaced by a summary.
    CompactionUpdate {
        /// The id of the compaction.
        compaction_id: Cow<'a, str>,
        /// The state of the compaction, always `completed`: its start is not reported.
        status: Cow<'a, str>,
    },
}

/// A piece of a message.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Chunk<'a> {
    /// The id of the message; a new id begins a new message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message_id: Option<Cow<'a, str>>,
    /// The content that this piece adds to the message.
    pub content: ContentBlock<'a>,
    /// Extensions, ours in `qwen`.
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Value>,
}

/// A piece of content.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case", rename_all_fields = "camelCase")]
pub enum ContentBlock<'a> {
    /// Text that the client renders as Markdown.
    Text {
        /// The Markdown text, which may be incomplete in a chunk.
        text: Cow<'a, str>,
    },
    /// An image, embedded as base64.
    Image {
        /// The bytes as base64.
        data: Cow<'a, str>,
        /// The MIME type, such as `image/png`.
        mime_type: Cow<'a, str>,
        /// Where the image is.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        uri: Option<Cow<'a, str>>,
    },
    /// A reference to a resource.
    ResourceLink {
        /// The address of the resource; a `file://` URI for a file.
        uri: Cow<'a, str>,
        /// A readable name of the resource, such as a file name.
        name: Cow<'a, str>,
        /// The MIME type of the resource, absent if unknown.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        mime_type: Option<Cow<'a, str>>,
    },
    /// A resource with its content.
    Resource {
        /// The resource, with its text or its bytes.
        resource: Resource<'a>,
    },
}

/// A resource whose content is embedded in the message.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Resource<'a> {
    /// The address of the resource; a `file://` URI for a file.
    pub uri: Cow<'a, str>,
    /// The MIME type of the content, absent if unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mime_type: Option<Cow<'a, str>>,
    /// The content of a text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<Cow<'a, str>>,
    /// Other content, as base64.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blob: Option<Cow<'a, str>>,
}

/// A tool call, or the changed fields of one.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ToolUpdate<'a> {
    /// The id of the call, unique in its session.
    pub tool_call_id: Cow<'a, str>,
    /// A readable description of the call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<Cow<'a, str>>,
    /// The name of the tool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<Cow<'a, str>>,
    /// The kind of the tool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<Cow<'a, str>>,
    /// `pending`, `in_progress`, `completed` or `failed`
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<Cow<'a, str>>,
    /// What the call produced so far.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content: Option<Vec<ToolContent<'a>>>,
    /// The files that the call works on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub locations: Option<Vec<Location<'a>>>,
    /// The arguments of the call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub raw_input: Option<RawJson<'a>>,
    /// The result of the call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub raw_output: Option<RawJson<'a>>,
    /// Extensions, ours in `qwen`.
    #[serde(rename = "_meta", default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Value>,
}

/// A part of what a call produced.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case", rename_all_fields = "camelCase")]
pub enum ToolContent<'a> {
    /// Text or an image.
    Content {
        /// The content block that the client renders.
        content: ContentBlock<'a>,
    },
    /// A change of a file.
    Diff {
        /// The absolute path of the changed file.
        path: Cow<'a, str>,
        /// The text before; null for a new file.
        old_text: Option<Cow<'a, str>>,
        /// The text after the change: of one hunk, or of the file if there are no hunks.
        new_text: Cow<'a, str>,
    },
    /// A terminal that the client shows.
    Terminal {
        /// The id of the display-only terminal, which is the id of the call.
        terminal_id: Cow<'a, str>,
    },
}

/// A place in a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Location<'a> {
    /// The absolute path of the file.
    pub path: Cow<'a, str>,
    /// The line, from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u64>,
}

/// An entry of the plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PlanEntry<'a> {
    /// A description of the task, for users.
    pub content: Cow<'a, str>,
    /// `high`, `medium` or `low`; the agent always sends `medium`.
    pub priority: Cow<'a, str>,
    /// `pending`, `in_progress` or `completed`
    pub status: Cow<'a, str>,
}

/// A slash command that a prompt can start with.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AvailableCommand<'a> {
    /// The name, without the slash.
    pub name: Cow<'a, str>,
    /// One line that describes the command; empty if it has no description.
    pub description: Cow<'a, str>,
    /// What may follow the name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input: Option<CommandInput<'a>>,
}

/// The input of a slash command.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CommandInput<'a> {
    /// A hint for the user.
    pub hint: Cow<'a, str>,
}

/// An option of the session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ConfigOption<'a> {
    /// The id of the option.
    pub id: Cow<'a, str>,
    /// The name for users.
    pub name: Cow<'a, str>,
    /// An explanation for users, absent if the name suffices.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<Cow<'a, str>>,
    /// `mode`, `model` or `thought_level`
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub category: Option<Cow<'a, str>>,
    /// The type of the option, always `select`: a choice from a list.
    #[serde(rename = "type")]
    pub kind: Cow<'a, str>,
    /// The value in force, which is one of `options`.
    pub current_value: Cow<'a, str>,
    /// The values to choose from, without groups.
    pub options: Vec<ConfigChoice<'a>>,
}

/// A value of an option.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ConfigChoice<'a> {
    /// The id of the choice, as `session/set_config_option` sends it.
    pub value: Cow<'a, str>,
    /// The name for users.
    pub name: Cow<'a, str>,
    /// An explanation for users, absent for models and thought levels.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<Cow<'a, str>>,
}

/// The approval modes of a session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ModeState<'a> {
    /// The mode in force.
    pub current_mode_id: Cow<'a, str>,
    /// The modes to choose from.
    pub available_modes: Vec<Mode<'a>>,
}

/// An approval mode that the client can select.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Mode<'a> {
    /// The id of the mode.
    pub id: Cow<'a, str>,
    /// The name for users.
    pub name: Cow<'a, str>,
    /// An explanation for users, absent for a mode that is not a standard one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<Cow<'a, str>>,
}

/// An amount of money.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Cost<'a> {
    /// The amount in units of `currency`, such as dollars rather than cents.
    pub amount: f64,
    /// The currency, in ISO 4217.
    pub currency: Cow<'a, str>,
}
