//! Log form of conversation messages.

use std::sync::Arc;

use qwen_events::{
    CallId, Finish, HistoryChange, Media, MediaSource, Message, MessageEnd, Part, Role, ThoughtBlock,
    ToolResult,
};
use serde::{Deserialize, Serialize};

use super::{ByName, CallForm, UsageForm, is_default};

#[derive(Debug, Serialize, Deserialize)]
pub(in crate::log) struct MessageForm {
    role: RoleForm,
    parts: Vec<PartForm>,
}

#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum RoleForm {
    User,
    Assistant,
    Tool,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(in crate::log) enum PartForm {
    Text(Arc<str>),
    Thought {
        text: Arc<str>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        signature: Option<Arc<str>>,
    },
    Media(MediaForm),
    Call(CallForm),
    Result(ResultForm),
}

#[derive(Debug, Serialize, Deserialize)]
pub(in crate::log) struct MediaForm {
    mime_type: Arc<str>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    base64: Option<Arc<str>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    url: Option<Arc<str>>,
}

#[derive(Debug, Serialize, Deserialize)]
pub(in crate::log) struct ResultForm {
    call_id: Arc<str>,
    name: Arc<str>,
    text: Arc<str>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    media: Vec<MediaForm>,
    #[serde(default, skip_serializing_if = "is_default")]
    is_error: bool,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(in crate::log) enum HistoryForm {
    Added(Vec<MessageForm>),
    Replaced(Vec<MessageForm>),
    Situation(Arc<str>),
}

#[derive(Debug, Serialize, Deserialize)]
pub(in crate::log) struct MessageEndForm {
    id: Arc<str>,
    model: Arc<str>,
    text: Arc<str>,
    #[serde(default, skip_serializing_if = "str::is_empty")]
    thought: Arc<str>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    signature: Option<Arc<str>>,
    /// The blocks, if there are several; `thought`, which is these joined, is omitted then.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    thoughts: Vec<ThoughtForm>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    calls: Vec<CallForm>,
    finish: ByName<Finish>,
    usage: UsageForm,
    #[serde(default, skip_serializing_if = "is_default")]
    aborted: bool,
}

#[derive(Debug, Serialize, Deserialize)]
struct ThoughtForm {
    text: Arc<str>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    signature: Option<Arc<str>>,
}

impl From<&Message> for MessageForm {
    fn from(message: &Message) -> Self {
        let role = match message.role {
            Role::User => RoleForm::User,
            Role::Assistant => RoleForm::Assistant,
            Role::Tool => RoleForm::Tool,
        };
        Self { role, parts: message.parts.iter().map(PartForm::from).collect() }
    }
}

impl From<MessageForm> for Message {
    fn from(form: MessageForm) -> Self {
        let role = match form.role {
            RoleForm::User => Role::User,
            RoleForm::Assistant => Role::Assistant,
            RoleForm::Tool => Role::Tool,
        };
        Self { role, parts: form.parts.into_iter().map(Part::from).collect() }
    }
}

impl From<&Part> for PartForm {
    fn from(part: &Part) -> Self {
        match part {
            Part::Text(text) => Self::Text(text.clone()),
            Part::Thought { text, signature } => {
                Self::Thought { text: text.clone(), signature: signature.clone() }
            }
            Part::Media(media) => Self::Media(media.into()),
            Part::Call(call) => Self::Call((&**call).into()),
            Part::Result(result) => Self::Result(ResultForm {
                call_id: result.call_id.as_str().into(),
                name: result.name.clone(),
                text: result.text.clone(),
                media: result.media.iter().map(MediaForm::from).collect(),
                is_error: result.is_error,
            }),
        }
    }
}

impl From<PartForm> for Part {
    fn from(form: PartForm) -> Self {
        match form {
            PartForm::Text(text) => Self::Text(text),
            PartForm::Thought { text, signature } => Self::Thought { text, signature },
            PartForm::Media(media) => Self::Media(media.into()),
            PartForm::Call(call) => Self::Call(Arc::new(call.into())),
            PartForm::Result(result) => Self::Result(ToolResult {
                call_id: CallId::new(result.call_id),
                name: result.name,
                text: result.text,
                media: result.media.into_iter().map(Media::from).collect(),
                is_error: result.is_error,
            }),
        }
    }
}

impl From<&Media> for MediaForm {
    fn from(media: &Media) -> Self {
        let (base64, url) = match &media.source {
            MediaSource::Base64(text) => (Some(text.clone()), None),
            MediaSource::Url(url) => (None, Some(url.clone())),
        };
        Self { mime_type: media.mime_type.clone(), base64, url }
    }
}

impl From<MediaForm> for Media {
    fn from(form: MediaForm) -> Self {
        let source = match (form.base64, form.url) {
            (Some(text), _) => MediaSource::Base64(text),
            (None, url) => MediaSource::Url(url.unwrap_or_default()),
        };
        Self { mime_type: form.mime_type, source }
    }
}

impl From<&HistoryChange> for HistoryForm {
    fn from(change: &HistoryChange) -> Self {
        let forms = |messages: &[Message]| messages.iter().map(MessageForm::from).collect();
        match change {
            HistoryChange::Added(messages) => Self::Added(forms(messages)),
            HistoryChange::Replaced(messages) => Self::Replaced(forms(messages)),
            HistoryChange::Situation(text) => Self::Situation(text.clone()),
        }
    }
}

impl From<HistoryForm> for HistoryChange {
    fn from(form: HistoryForm) -> Self {
        let messages = |forms: Vec<MessageForm>| forms.into_iter().map(Message::from).collect();
        match form {
            HistoryForm::Added(forms) => Self::Added(messages(forms)),
            HistoryForm::Replaced(forms) => Self::Replaced(messages(forms)),
            HistoryForm::Situation(text) => Self::Situation(text),
        }
    }
}

impl From<&ThoughtBlock> for ThoughtForm {
    fn from(block: &ThoughtBlock) -> Self {
        Self { text: block.text.clone(), signature: block.signature.clone() }
    }
}

impl From<ThoughtForm> for ThoughtBlock {
    fn from(form: ThoughtForm) -> Self {
        Self { text: form.text, signature: form.signature }
    }
}

impl From<&MessageEnd> for MessageEndForm {
    fn from(end: &MessageEnd) -> Self {
        Self {
            id: end.message_id.clone(),
            model: end.model.clone(),
            text: end.text.clone(),
            thought: if end.thoughts.is_empty() { end.thought.clone() } else { "".into() },
            signature: end.signature.clone(),
            thoughts: end.thoughts.iter().map(ThoughtForm::from).collect(),
            calls: end.calls.iter().map(|call| CallForm::from(&**call)).collect(),
            finish: ByName(end.finish),
            usage: (&end.usage).into(),
            aborted: end.aborted,
        }
    }
}

impl From<MessageEndForm> for MessageEnd {
    fn from(form: MessageEndForm) -> Self {
        let thoughts: Vec<ThoughtBlock> = form.thoughts.into_iter().map(ThoughtBlock::from).collect();
        let joined = || thoughts.iter().map(|block| &*block.text).collect::<String>().into();
        Self {
            message_id: form.id,
            model: form.model,
            text: form.text,
            thought: if thoughts.is_empty() { form.thought } else { joined() },
            signature: form.signature,
            thoughts,
            calls: form.calls.into_iter().map(|call| Arc::new(call.into())).collect(),
            finish: form.finish.0,
            usage: form.usage.into(),
            aborted: form.aborted,
        }
    }
}
