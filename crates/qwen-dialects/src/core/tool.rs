//! Tool calls as the lines carry them: asked for, confirmed, answered.

use std::borrow::Cow;

use qwen_events::{Confirmation, Display, FileDiff, Media, MediaSource, TaskProgress, Todo};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::qwen::wire::record::{LineCounts, TodoRecord, confirmation_title};
use crate::tool_records::{confirmation_records, display_records};

/// A call that the model wants.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct ToolCallRequest<'a> {
    /// The call.
    #[serde(rename = "callId")]
    pub call_id: Cow<'a, str>,
    /// The tool.
    pub name: Cow<'a, str>,
    /// The arguments, an object.
    #[schemars(with = "serde_json::Map<String, serde_json::Value>")]
    #[serde(borrow)]
    pub args: &'a RawValue,
    /// Whether the client asked for it and not the model.
    #[serde(rename = "isClientInitiated")]
    pub is_client_initiated: bool,
    /// The turn.
    pub prompt_id: Cow<'a, str>,
    /// The model's message that holds the call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub response_id: Option<Cow<'a, str>>,
    /// The call whose sub-agent calls.
    #[serde(rename = "parentCallId", default, skip_serializing_if = "Option::is_none")]
    pub parent_call_id: Option<Cow<'a, str>>,
}

/// A call that someone is asked about.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct ToolCallConfirmation<'a> {
    /// The call.
    #[serde(borrow)]
    pub request: ToolCallRequest<'a>,
    /// What they are shown.
    pub details: ConfirmationDetails<'a>,
}

confirmation_records!(
    /// What someone is shown when asked. `onConfirm` names the control request that the answer goes to, or says
    /// `control_response` where that request is still to come.
    #[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
    #[serde(tag = "type", rename_all = "snake_case", rename_all_fields = "camelCase")]
    ConfirmationDetails (
        /// Where the answer goes.
        on_confirm: Cow<'a, str>,
    ) {
        /// The name of the file, without its directory.
        file_name: Cow<'a, str>,
        /// The absolute path.
        file_path: Cow<'a, str>,
        /// The unified diff.
        file_diff: Cow<'a, str>,
        /// The text before; null when the file is new.
        original_content: Option<Cow<'a, str>>,
        /// The text after.
        new_content: Cow<'a, str>,
        /// Whether someone is changing the edit at the moment.
        #[serde(default)]
        is_modifying: bool,
    }
);

impl<'a> ConfirmationDetails<'a> {
    /// What is shown of `confirmation`, answered at `on_confirm`.
    pub(crate) fn new(confirmation: &'a Confirmation, on_confirm: &'a str) -> Self {
        let on_confirm = Cow::Borrowed(on_confirm);
        Self::of(confirmation, on_confirm.clone(), |title, diff| Self::Edit {
            title,
            on_confirm,
            file_name: Cow::Borrowed(base_name(&diff.file_name)),
            file_path: Cow::Borrowed(&diff.file_path),
            file_diff: Cow::Borrowed(&diff.diff),
            original_content: diff.original.as_deref().map(Cow::Borrowed),
            new_content: Cow::Borrowed(&diff.modified),
            is_modifying: false,
        })
    }
}

/// The last component of a path.
fn base_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// A call that is over.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ToolCallResponse<'a> {
    /// The call.
    pub call_id: Cow<'a, str>,
    /// What goes back to the model.
    pub response_parts: Vec<ResponsePart<'a>>,
    /// What people are shown.
    pub result_display: ShownResult<'a>,
    /// What went wrong.
    #[serde(default)]
    pub error: Option<Cow<'a, str>>,
    /// A stable word for it.
    #[serde(default)]
    pub error_type: Option<Cow<'a, str>>,
    /// Where the whole output is kept, when the text was cut.
    #[serde(default)]
    pub output_file: Option<Cow<'a, str>>,
    /// The length of the text that goes back, in characters.
    #[serde(default)]
    pub content_length: Option<u64>,
    /// The call whose sub-agent called.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent_call_id: Option<Cow<'a, str>>,
}

/// A piece of what goes back to the model.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ResponsePart<'a> {
    /// Text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<Cow<'a, str>>,
    /// A medium in line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inline_data: Option<InlineData<'a>>,
    /// A medium at an address.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file_data: Option<FileData<'a>>,
}

impl<'a> From<&'a Media> for ResponsePart<'a> {
    fn from(media: &'a Media) -> Self {
        let mime_type = Cow::Borrowed(&*media.mime_type);
        match &media.source {
            MediaSource::Base64(data) => Self {
                inline_data: Some(InlineData { mime_type, data: Cow::Borrowed(data) }),
                ..Self::default()
            },
            MediaSource::Url(url) => Self {
                file_data: Some(FileData { mime_type, file_uri: Cow::Borrowed(url) }),
                ..Self::default()
            },
        }
    }
}

/// A medium in line.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct InlineData<'a> {
    /// Its type.
    pub mime_type: Cow<'a, str>,
    /// Its bytes, as base64.
    pub data: Cow<'a, str>,
}

/// A medium at an address.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FileData<'a> {
    /// Its type.
    pub mime_type: Cow<'a, str>,
    /// The address.
    pub file_uri: Cow<'a, str>,
}

/// What people are shown of a tool's work.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum ShownResult<'a> {
    /// A text.
    Text(Cow<'a, str>),
    /// A changed file.
    #[serde(rename_all = "camelCase")]
    FileDiff {
        /// The unified diff.
        file_diff: Cow<'a, str>,
        /// The name of the file, without its directory.
        file_name: Cow<'a, str>,
        /// The text before; null when the file is new.
        original_content: Option<Cow<'a, str>>,
        /// The text after.
        new_content: Cow<'a, str>,
        /// Line counts.
        diff_stat: LineCounts,
    },
    /// Something that says in `type` what it is.
    Typed(TypedResult<'a>),
}

display_records!(
    /// What people are shown, where it says what it is.
    #[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
    #[serde(tag = "type", rename_all = "snake_case", rename_all_fields = "camelCase")]
    TypedResult {} subagent_name task_description
);

impl<'a> From<&'a Display> for ShownResult<'a> {
    fn from(display: &'a Display) -> Self {
        match display {
            Display::Text(text) => Self::Text(Cow::Borrowed(text)),
            Display::FileDiff(diff) => Self::FileDiff {
                file_diff: Cow::Borrowed(&diff.diff),
                file_name: Cow::Borrowed(base_name(&diff.file_name)),
                original_content: diff.original.as_deref().map(Cow::Borrowed),
                new_content: Cow::Borrowed(&diff.modified),
                diff_stat: LineCounts::from(&diff.stat),
            },
            Display::TodoList(todos) => Self::Typed(TypedResult::todos(todos)),
            Display::Plan { message, plan } => Self::Typed(TypedResult::plan(message, plan)),
            Display::Task(task) => Self::Typed(TypedResult::task(task)),
        }
    }
}
