//! Reports tasks to the SDKs: `task_started`, `task_progress`, `task_updated` and `task_notification`.

use std::borrow::Cow;
use std::sync::Arc;

use qwen_events::{
    CallId, ControlCall, Task, TaskEvent, TaskKind, TaskStatus, TaskTotals, TaskUpdate, Timestamp,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::stream::Stream;
use super::stream::limit::fitted;
use super::wire::Notice;
use crate::qwen::wire::wire_struct;

/// The longest text of such a line, in bytes of JSON: it is a line of a list, and three of them fit into any line.
const LONGEST_TEXT: usize = 8 * 1024;

wire_struct! {
    /// The start of a background task.
    #[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
    pub struct TaskStarted<'a> {
        /// The id of the task.
        pub task_id: Cow<'a, str>,
        /// The id of the tool call that started the task.
        pub tool_use_id?: Cow<'a, str>,
        /// A description of the task.
        pub description: Cow<'a, str>,
        /// `local_bash` for commands, `local_agent` for sub-agents.
        pub task_type?: Cow<'a, str>,
        /// The type of the sub-agent; absent for commands.
        pub subagent_type?: Cow<'a, str>,
        /// True if the tool call returned before the task ended.
        #[serde(default)]
        pub is_backgrounded: bool,
    }
}

wire_struct! {
    /// A sub-agent made progress.
    #[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
    pub struct TaskProgress<'a> {
        /// The id of the task.
        pub task_id: Cow<'a, str>,
        /// The id of the tool call that started the task.
        pub tool_use_id?: Cow<'a, str>,
        /// A description of the task.
        pub description: Cow<'a, str>,
        /// The type of the sub-agent; absent for commands.
        pub subagent_type?: Cow<'a, str>,
        /// The usage so far.
        pub usage: TaskUsage,
        /// The name of the last tool that the sub-agent used.
        pub last_tool_name?: Cow<'a, str>,
    }
}

wire_struct! {
    /// The end of a background task.
    #[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
    pub struct TaskNotification<'a> {
        /// The id of the task.
        pub task_id: Cow<'a, str>,
        /// The id of the tool call that started the task.
        pub tool_use_id?: Cow<'a, str>,
        /// `completed`, `failed` or `stopped`.
        pub status: Cow<'a, str>,
        /// The file with the whole output; empty if there is none.
        pub output_file: Cow<'a, str>,
        /// A summary of the result.
        pub summary: Cow<'a, str>,
        /// The usage of a sub-agent; absent for commands.
        pub usage?: TaskUsage,
    }
}

wire_struct! {
    /// A task that runs in the background.
    #[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
    pub struct LiveTask<'a> {
        /// The id of the task, as in `task_started`.
        pub task_id: Cow<'a, str>,
        /// `local_bash` for commands, `local_agent` for sub-agents.
        pub task_type: Cow<'a, str>,
        /// The type of the sub-agent; absent for commands.
        pub subagent_type?: Cow<'a, str>,
        /// A description of the task.
        pub description: Cow<'a, str>,
    }
}

wire_struct! {
    /// The changed fields of a task.
    #[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
    pub struct TaskPatch<'a> {
        /// The current status of the task.
        pub status?: Cow<'a, str>,
        /// The end time in milliseconds since the Unix epoch.
        pub end_time?: u64,
    }
}

/// The usage of a sub-agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TaskUsage {
    /// The number of tokens.
    pub total_tokens: u64,
    /// The number of tool calls.
    pub tool_uses: u64,
    /// The duration in milliseconds.
    pub duration_ms: u64,
}

impl From<&TaskTotals> for TaskUsage {
    fn from(spent: &TaskTotals) -> Self {
        Self { total_tokens: spent.tokens, tool_uses: spent.tool_calls, duration_ms: spent.duration_ms }
    }
}

/// The tasks that the stream has reported, and the reports that are still due.
#[derive(Debug, Default)]
pub(super) struct Tasks {
    /// The calls whose sub-agents work in the background.
    agents: Vec<CallId>,
    /// The tasks in the background that have not ended.
    live: Vec<Arc<Task>>,
    /// What happened between two turns, for a reader that reads nothing then.
    held: Vec<(Timestamp, TaskEvent)>,
}

impl Tasks {
    /// Tells what happened to a task.
    pub(super) fn write_event(
        &mut self,
        stream: &mut Stream,
        event: &TaskEvent,
        at: Timestamp,
        out: &mut Vec<u8>,
    ) {
        if event.task.background && matches!(event.task.kind, TaskKind::Agent(_)) {
            self.agents.retain(|call| *call != event.task.call_id);
            if !matches!(event.news, TaskUpdate::Ended(_)) {
                self.agents.push(event.task.call_id.clone());
            }
        }
        let ended = matches!(event.news, TaskUpdate::Ended(_));
        let before = self.live.len();
        self.live.retain(|task| task.id != event.task.id || !ended);
        if event.task.background && matches!(event.news, TaskUpdate::Started) {
            self.live.push(event.task.clone());
        }
        let changed = stream.claude_host && self.live.len() != before;
        if changed && !ended {
            self.push_live(stream, out);
        }
        push(stream, event, at, out);
        if changed && ended {
            self.push_live(stream, out);
        }
    }

    /// Tells which tasks work in the background.
    fn push_live(&self, stream: &mut Stream, out: &mut Vec<u8>) {
        let room = LONGEST_TEXT / self.live.len().clamp(1, LONGEST_TEXT / 64);
        let live = |task: &'_ Arc<Task>| {
            let (task_type, agent) = kind_of(task);
            LiveTask {
                task_id: task.id.to_string().into(),
                task_type: task_type.into(),
                subagent_type: agent.map(|agent| agent.to_owned().into()),
                description: fitted(&task.description, room).into_owned().into(),
            }
        };
        let tasks = self.live.iter().map(live).collect();
        stream.push_system(out, Notice::BackgroundTasksChanged { tasks });
    }

    /// Keeps it for the next turn. Steps are of the moment.
    pub(super) fn hold(&mut self, event: &TaskEvent, at: Timestamp) {
        if !matches!(event.news, TaskUpdate::Progress { .. }) {
            self.held.push((at, event.clone()));
        }
    }

    /// Tells what was kept.
    pub(super) fn release(&mut self, stream: &mut Stream, out: &mut Vec<u8>) {
        for (at, event) in std::mem::take(&mut self.held) {
            self.write_event(stream, &event, at, out);
        }
    }

    /// True if a background sub-agent asks the question: the session's own state is that of its turn.
    pub(super) fn is_from_background_agent(&self, question: &ControlCall) -> bool {
        let ControlCall::CanUseTool { agent_id: Some(agent), .. } = question else { return false };
        self.agents.iter().any(|call| *call.as_str() == **agent)
    }
}

/// The type of a task, and which sub-agent it is.
fn kind_of(task: &Task) -> (&'static str, Option<&str>) {
    match &task.kind {
        TaskKind::Command => ("local_bash", None),
        TaskKind::Agent(name) => ("local_agent", Some(name)),
    }
}

fn push(stream: &mut Stream, event: &TaskEvent, at: Timestamp, out: &mut Vec<u8>) {
    let Task { id, call_id, description, background, .. } = event.task.as_ref();
    let task_id = || Cow::Borrowed(&**id);
    let tool_use_id = || Some(Cow::Borrowed(call_id.as_str()));
    let description = || fitted(description, LONGEST_TEXT);
    let (task_type, agent) = kind_of(&event.task);
    let agent = agent.map(Cow::Borrowed);
    let notice = match &event.news {
        TaskUpdate::Started => Notice::TaskStarted(TaskStarted {
            task_id: task_id(),
            tool_use_id: tool_use_id(),
            description: description(),
            task_type: Some(task_type.into()),
            subagent_type: agent,
            is_backgrounded: *background,
        }),
        TaskUpdate::Progress { spent, last_tool } => Notice::TaskProgress(TaskProgress {
            task_id: task_id(),
            tool_use_id: tool_use_id(),
            description: description(),
            subagent_type: agent,
            usage: spent.into(),
            last_tool_name: last_tool.as_deref().map(Cow::Borrowed),
        }),
        TaskUpdate::Ended(end) => {
            if end.status == TaskStatus::Stopped || stream.claude_host {
                let status = match end.status {
                    TaskStatus::Stopped => "killed",
                    other => other.name(),
                };
                let patch = TaskPatch { status: Some(status.into()), end_time: Some(at.0) };
                stream.push_system(out, Notice::TaskUpdated { task_id: task_id(), patch });
            }
            Notice::TaskNotification(TaskNotification {
                task_id: task_id(),
                tool_use_id: tool_use_id(),
                status: end.status.name().into(),
                output_file: (&*end.output_file).into(),
                summary: fitted(&end.summary, LONGEST_TEXT),
                usage: end.spent.as_ref().map(TaskUsage::from),
            })
        }
    };
    stream.push_system(out, notice);
}
