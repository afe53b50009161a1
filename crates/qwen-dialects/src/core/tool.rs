//! Tool calls as the lines carry them: asked for, confirmed, answered.

use std::borrow::Cow;

use qwen_events::{Confirmation, Display, FileDiff, Media, MediaSource, TaskProgress, Todo};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::qwen::wire::record::{LineCounts, TodoRecord, confirmation_title};
use crate::tool_records::{confirmation_records, display_records};

/// A tool call requested by the model.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct ToolCallRequest<'a> {
    /// The id of the tool call.
    #[serde(rename = "callId")]
    pub call_id: Cow<'a, str>,
    /// The name of the tool.
    pub name: Cow<'a, str>,
    /// The arguments of the call, a JSON object.
    #[schemars(with = "serde_json::Map<String, serde_json::Value>")]
    #[serde(borrow)]
    pub args: &'a RawValue,
    /// True if the client requested the call and not the model.
    #[serde(rename = "isClientInitiated")]
    pub is_client_initiated: bool,
    /// The id of the turn's prompt.
    pub prompt_id: Cow<'a, str>,
    /// The id of the model's message that contains the call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub response_id: Option<Cow<'a, str>>,
    /// The id of the tool call that started the sub-agent.
    #[serde(rename = "parentCallId", default, skip_serializing_if = "Option::is_none")]
    pub parent_call_id: Option<Cow<'a, str>>,
}

/// A call that needs permission.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct ToolCallConfirmation<'a> {
    /// The tool call that needs permission.
    #[serde(borrow)]
    pub request: ToolCallRequest<'a>,
    /// The content of the permission request.
    pub details: ConfirmationDetails<'a>,
}

confirmation_records!(
    /// The content of a permission request. `onConfirm` is the id of the control request to answer, or
    /// `control_response` if that request follows.
    #[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
    #[serde(tag = "type", rename_all = "snake_case", rename_all_fields = "camelCase")]
    ConfirmationDetails (
        /// The id of the control request to answer, or `control_response`.
        on_confirm: Cow<'a, str>,
    ) {
        /// The name of the file, without its directory.
        file_name: Cow<'a, str>,
        /// The absolute path of the file.
        file_path: Cow<'a, str>,
        /// The unified diff.
        file_diff: Cow<'a, str>,
        /// The text before the change; null for a new file.
        original_content: Option<Cow<'a, str>>,
        /// The text after the change.
        new_content: Cow<'a, str>,
        /// True while the user is modifying the edit.
        #[serde(default)]
        is_modifying: bool,
    }
);

impl<'a> ConfirmationDetails<'a> {
    /// What is shown of `confirmation`, answered at `on_confirm`.
    pub(crate) fn new(confirmation: &'a Confirmation, on_confirm: &'a str) -> Self {
        let on_confirm = Cow::Borrowed(on_confirm);
        Self::from_confirmation(confirmation, on_confirm.clone(), |title, diff| Self::Edit {
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

/// A tool call that ended.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ToolCallResponse<'a> {
    /// The id of the tool call.
    pub call_id: Cow<'a, str>,
    /// The result text that the model receives.
    pub response_parts: Vec<ResponsePart<'a>>,
    /// The result for display.
    pub result_display: ShownResult<'a>,
    /// The error, if the request failed.
    #[serde(default)]
    pub error: Option<Cow<'a, str>>,
    /// A stable identifier of the error.
    #[serde(default)]
    pub error_type: Option<Cow<'a, str>>,
    /// The file with the whole output, if the text was truncated.
    #[serde(default)]
    pub output_file: Option<Cow<'a, str>>,
    /// The length of the result text in characters.
    #[serde(default)]
    pub content_length: Option<u64>,
    /// The id of the tool call that started the sub-agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent_call_id: Option<Cow<'a, str>>,
}

/// A part of the result that the model receives.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ResponsePart<'a> {
    /// The text of a text part.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<Cow<'a, str>>,
    /// A medium whose data is inside the message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inline_data: Option<InlineData<'a>>,
    /// A medium given by its URL.
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

/// A medium whose data is inside the message.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct InlineData<'a> {
    /// The MIME type of the data.
    pub mime_type: Cow<'a, str>,
    /// The bytes as base64.
    pub data: Cow<'a, str>,
}

/// A medium given by its URL.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FileData<'a> {
    /// The MIME type of the data.
    pub mime_type: Cow<'a, str>,
    /// The URL of the file.
    pub file_uri: Cow<'a, str>,
}

/// The result of a tool for display.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum ShownResult<'a> {
    /// A plain text to display.
    Text(Cow<'a, str>),
    /// The change of a file.
    #[serde(rename_all = "camelCase")]
    FileDiff {
        /// The change as unified diff.
        file_diff: Cow<'a, str>,
        /// The name of the file, without its directory.
        file_name: Cow<'a, str>,
        /// The text before the change; null for a new file.
        original_content: Option<Cow<'a, str>>,
        /// The text after the change.
        new_content: Cow<'a, str>,
        /// The numbers of changed lines.
        diff_stat: LineCounts,
    },
    /// An object that names its kind in `type`.
    Typed(TypedResult<'a>),
}

display_records!(
    /// The result for display, with its kind in `type`.
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
