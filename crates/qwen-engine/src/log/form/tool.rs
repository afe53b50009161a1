//! Log form of tool calls.

use std::sync::Arc;

use qwen_events::{
    CallId, Channel, Confirmation, Decision, DiffStat, Display, FileDiff, Media, TaskProgress, Todo,
    TodoStatus, ToolCall, ToolEnd, ToolStatus, Verdict,
};
use serde::{Deserialize, Serialize};

use super::{MediaForm, Raw, word};

#[derive(Debug, Serialize, Deserialize)]
pub(in crate::log) struct CallForm {
    id: Arc<str>,
    name: Arc<str>,
    arguments: Raw,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    malformed: Option<Arc<str>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    provider_fields: Option<Raw>,
}

/// Refers by its id to a call that the log already contains; other fields are present only if they differ.
#[derive(Debug, Serialize, Deserialize)]
pub(in crate::log) struct CallRef {
    pub id: Arc<str>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    whole: Option<CallForm>,
}

#[derive(Debug, Serialize, Deserialize)]
pub(in crate::log) struct DecisionForm {
    pub call: CallRef,
    verdict: VerdictForm,
    reason: Arc<str>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    rule: Option<Arc<str>>,
}

#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum VerdictForm {
    Allow,
    Ask,
    Deny,
}

#[derive(Debug, Serialize, Deserialize)]
pub(in crate::log) struct ApprovalForm {
    pub call: CallRef,
    pub confirmation: ConfirmationForm,
    pub reason: Arc<str>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(in crate::log) enum ConfirmationForm {
    Edit(DiffForm),
    Exec { command: Arc<str>, root_command: Arc<str> },
    Mcp { server: Arc<str>, tool: Arc<str>, display: Arc<str> },
    Info { prompt: Arc<str>, urls: Vec<Arc<str>> },
    Plan { plan: Arc<str> },
}

#[derive(Debug, Serialize, Deserialize)]
pub(in crate::log) struct OutputForm {
    pub call: CallRef,
    pub channel: ChannelForm,
    pub text: Box<str>,
}

#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(in crate::log) enum ChannelForm {
    Stdout,
    Stderr,
}

#[derive(Debug, Serialize, Deserialize)]
pub(in crate::log) struct ToolEndForm {
    call: CallRef,
    status: StatusForm,
    text: Arc<str>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    media: Vec<MediaForm>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    display: Option<DisplayForm>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    error_code: Option<Arc<str>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    output_file: Option<Arc<str>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    exit_code: Option<i32>,
    duration_ms: u64,
}

#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum StatusForm {
    Success,
    Error,
    Denied,
    Cancelled,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum DisplayForm {
    Text(Arc<str>),
    FileDiff(DiffForm),
    TodoList(Vec<TodoForm>),
    Plan { message: Arc<str>, plan: Arc<str> },
    Task(TaskForm),
}

#[derive(Debug, Serialize, Deserialize)]
pub(in crate::log) struct DiffForm {
    file_name: Arc<str>,
    file_path: Arc<str>,
    diff: Arc<str>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    original: Option<Arc<str>>,
    modified: Arc<str>,
    stat: [u64; 4],
}

#[derive(Debug, Serialize, Deserialize)]
struct TodoForm {
    id: Arc<str>,
    content: Arc<str>,
    status: TodoStatusForm,
}

#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum TodoStatusForm {
    Pending,
    InProgress,
    Completed,
}

#[derive(Debug, Serialize, Deserialize)]
struct TaskForm {
    agent: Arc<str>,
    description: Arc<str>,
    status: Arc<str>,
    tool_calls: u64,
    tokens: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    result: Option<Arc<str>>,
}

impl From<&ToolCall> for CallForm {
    fn from(call: &ToolCall) -> Self {
        Self {
            id: call.id.as_str().into(),
            name: call.name.clone(),
            arguments: Raw(call.arguments.clone()),
            malformed: call.malformed.clone(),
            provider_fields: call.provider_fields.clone().map(Raw),
        }
    }
}

impl From<CallForm> for ToolCall {
    fn from(form: CallForm) -> Self {
        Self {
            id: CallId::new(form.id),
            name: form.name,
            arguments: form.arguments.0,
            malformed: form.malformed,
            provider_fields: form.provider_fields.map(|fields| fields.0),
        }
    }
}

impl CallRef {
    /// Refers to `call`; `logged` is the logged call with this id.
    pub fn new(call: &Arc<ToolCall>, logged: Option<&Arc<ToolCall>>) -> Self {
        let same = logged.is_some_and(|logged| Arc::ptr_eq(logged, call) || logged == call);
        Self { id: call.id.as_str().into(), whole: (!same).then(|| (&**call).into()) }
    }

    /// The call that is meant; `None` if the log does not contain it.
    pub fn resolve(self, logged: Option<&Arc<ToolCall>>) -> Option<Arc<ToolCall>> {
        match self.whole {
            Some(form) => Some(Arc::new(form.into())),
            None => logged.cloned(),
        }
    }
}

impl DecisionForm {
    pub fn new(call: CallRef, decision: &Decision) -> Self {
        let verdict = match decision.verdict {
            Verdict::Allow => VerdictForm::Allow,
            Verdict::Ask => VerdictForm::Ask,
            Verdict::Deny => VerdictForm::Deny,
        };
        Self { call, verdict, reason: decision.reason.clone(), rule: decision.rule.clone() }
    }

    pub fn into_parts(self) -> (CallRef, Decision) {
        let verdict = match self.verdict {
            VerdictForm::Allow => Verdict::Allow,
            VerdictForm::Ask => Verdict::Ask,
            VerdictForm::Deny => Verdict::Deny,
        };
        (self.call, Decision { verdict, reason: self.reason, rule: self.rule })
    }
}

impl From<&Confirmation> for ConfirmationForm {
    fn from(confirmation: &Confirmation) -> Self {
        match confirmation {
            Confirmation::Edit(diff) => Self::Edit(diff.into()),
            Confirmation::Exec { command, root_command } => {
                Self::Exec { command: command.clone(), root_command: root_command.clone() }
            }
            Confirmation::Mcp { server, tool, display } => {
                Self::Mcp { server: server.clone(), tool: tool.clone(), display: display.clone() }
            }
            Confirmation::Info { prompt, urls } => Self::Info { prompt: prompt.clone(), urls: urls.clone() },
            Confirmation::Plan { plan } => Self::Plan { plan: plan.clone() },
        }
    }
}

impl From<ConfirmationForm> for Confirmation {
    fn from(form: ConfirmationForm) -> Self {
        match form {
            ConfirmationForm::Edit(diff) => Self::Edit(diff.into()),
            ConfirmationForm::Exec { command, root_command } => Self::Exec { command, root_command },
            ConfirmationForm::Mcp { server, tool, display } => Self::Mcp { server, tool, display },
            ConfirmationForm::Info { prompt, urls } => Self::Info { prompt, urls },
            ConfirmationForm::Plan { plan } => Self::Plan { plan },
        }
    }
}

impl From<Channel> for ChannelForm {
    fn from(channel: Channel) -> Self {
        match channel {
            Channel::Stdout => Self::Stdout,
            Channel::Stderr => Self::Stderr,
        }
    }
}

impl From<ChannelForm> for Channel {
    fn from(form: ChannelForm) -> Self {
        match form {
            ChannelForm::Stdout => Self::Stdout,
            ChannelForm::Stderr => Self::Stderr,
        }
    }
}

impl ToolEndForm {
    pub fn new(call: CallRef, end: &ToolEnd) -> Self {
        Self {
            call,
            status: match end.status {
                ToolStatus::Success => StatusForm::Success,
                ToolStatus::Error => StatusForm::Error,
                ToolStatus::Denied => StatusForm::Denied,
                ToolStatus::Cancelled => StatusForm::Cancelled,
            },
            text: end.text.clone(),
            media: end.media.iter().map(MediaForm::from).collect(),
            display: end.display.as_ref().map(DisplayForm::from),
            error_code: end.error_code.map(Arc::from),
            output_file: end.output_file.clone(),
            exit_code: end.exit_code,
            duration_ms: end.duration_ms,
        }
    }

    /// The end of the call that `resolve` finds; `None` if it finds none.
    pub fn into_end(self, resolve: impl FnOnce(CallRef) -> Option<Arc<ToolCall>>) -> Option<ToolEnd> {
        Some(ToolEnd {
            call: resolve(self.call)?,
            status: match self.status {
                StatusForm::Success => ToolStatus::Success,
                StatusForm::Error => ToolStatus::Error,
                StatusForm::Denied => ToolStatus::Denied,
                StatusForm::Cancelled => ToolStatus::Cancelled,
            },
            text: self.text,
            media: self.media.into_iter().map(Media::from).collect(),
            display: self.display.map(Display::from),
            error_code: self.error_code.as_deref().map(word),
            output_file: self.output_file,
            exit_code: self.exit_code,
            duration_ms: self.duration_ms,
        })
    }
}

impl From<&Display> for DisplayForm {
    fn from(display: &Display) -> Self {
        match display {
            Display::Text(text) => Self::Text(text.clone()),
            Display::FileDiff(diff) => Self::FileDiff(diff.into()),
            Display::TodoList(todos) => Self::TodoList(todos.iter().map(TodoForm::from).collect()),
            Display::Plan { message, plan } => Self::Plan { message: message.clone(), plan: plan.clone() },
            Display::Task(task) => Self::Task(TaskForm {
                agent: task.agent.clone(),
                description: task.description.clone(),
                status: task.status.into(),
                tool_calls: task.tool_calls,
                tokens: task.tokens,
                result: task.result.clone(),
            }),
        }
    }
}

impl From<DisplayForm> for Display {
    fn from(form: DisplayForm) -> Self {
        match form {
            DisplayForm::Text(text) => Self::Text(text),
            DisplayForm::FileDiff(diff) => Self::FileDiff(diff.into()),
            DisplayForm::TodoList(todos) => Self::TodoList(todos.into_iter().map(Todo::from).collect()),
            DisplayForm::Plan { message, plan } => Self::Plan { message, plan },
            DisplayForm::Task(task) => Self::Task(TaskProgress {
                agent: task.agent,
                description: task.description,
                status: word(&task.status),
                tool_calls: task.tool_calls,
                tokens: task.tokens,
                result: task.result,
            }),
        }
    }
}

impl From<&FileDiff> for DiffForm {
    fn from(diff: &FileDiff) -> Self {
        let stat = &diff.stat;
        Self {
            file_name: diff.file_name.clone(),
            file_path: diff.file_path.clone(),
            diff: diff.diff.clone(),
            original: diff.original.clone(),
            modified: diff.modified.clone(),
            stat: [
                stat.ai_added_lines,
                stat.ai_removed_lines,
                stat.user_added_lines,
                stat.user_removed_lines,
            ],
        }
    }
}

impl From<DiffForm> for FileDiff {
    fn from(form: DiffForm) -> Self {
        let [ai_added_lines, ai_removed_lines, user_added_lines, user_removed_lines] = form.stat;
        Self {
            file_name: form.file_name,
            file_path: form.file_path,
            diff: form.diff,
            original: form.original,
            modified: form.modified,
            stat: DiffStat { ai_added_lines, ai_removed_lines, user_added_lines, user_removed_lines },
        }
    }
}

impl From<&Todo> for TodoForm {
    fn from(todo: &Todo) -> Self {
        let status = match todo.status {
            TodoStatus::Pending => TodoStatusForm::Pending,
            TodoStatus::InProgress => TodoStatusForm::InProgress,
            TodoStatus::Completed => TodoStatusForm::Completed,
        };
        Self { id: todo.id.clone(), content: todo.content.clone(), status }
    }
}

impl From<TodoForm> for Todo {
    fn from(form: TodoForm) -> Self {
        let status = match form.status {
            TodoStatusForm::Pending => TodoStatus::Pending,
            TodoStatusForm::InProgress => TodoStatus::InProgress,
            TodoStatusForm::Completed => TodoStatus::Completed,
        };
        Self { id: form.id, content: form.content, status }
    }
}
