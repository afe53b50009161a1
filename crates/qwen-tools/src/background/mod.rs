//! Background tasks: commands and sub-agents that run while the model continues. Each has an id for
//! inspecting and stopping it. A listener receives its start and end.

mod abort_on_drop;
mod command;
mod foreground;

use std::fs::File;
use std::future::Future;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

use qwen_events::{CallId, Task, TaskEnd, TaskEvent, TaskKind, TaskStatus, TaskTotals, TaskUpdate};
use tokio::sync::{mpsc, oneshot, watch};
use tokio_util::sync::CancellationToken;

use self::abort_on_drop::AbortOnDrop;
pub(crate) use self::command::StartedCommand;
pub(crate) use self::foreground::ForegroundCall;
use self::foreground::ForegroundCalls;
use crate::output::boundary::start_of_whole_lines;
use crate::output::plain_output::plain;
use crate::output::transcript::PARTIAL_LINE;

/// Asks the writer of a task's file to write all pending output. The writer replies when that is done.
type CatchUp = oneshot::Sender<()>;

/// Receives task events. Applies back-pressure: the future completes only when the reader accepts the event.
pub trait TaskListener: Send + Sync {
    /// Receives one event of a task.
    fn on_event<'a>(&'a self, event: TaskEvent) -> Pin<Box<dyn Future<Output = ()> + Send + 'a>>;
}

/// The tasks of a session. Dropping it ends its commands. Agents hold a reference to it, so they are ended
/// with [`BackgroundTasks::abandon_agents`].
#[derive(Default)]
pub struct BackgroundTasks {
    started: Mutex<Started>,
    foreground: ForegroundCalls,
    listener: Arc<RwLock<Option<Arc<dyn TaskListener>>>>,
}

#[derive(Default)]
struct Started {
    tasks: Vec<TaskEntry>,
    commands: u32,
    agents: u32,
}

/// A task and, if no call waits for it, its future.
struct TaskEntry {
    task: Arc<BackgroundTask>,
    work: Option<AbortOnDrop>,
}

/// One task, as its supervisors see it.
pub struct BackgroundTask {
    pub task: Arc<Task>,
    /// The command, or the sub-agent's prompt.
    pub asked: Arc<str>,
    /// The output file; empty if there is none.
    pub output: PathBuf,
    stopping: CancellationToken,
    ended: watch::Sender<Option<Ended>>,
    /// Requests that the output file is brought up to date; `None` if that is never needed.
    catches_up: Option<mpsc::Sender<CatchUp>>,
    /// How many bytes of the output the model has seen.
    shown: Mutex<u64>,
    /// Set once the end was reported to the model.
    end_reported: AtomicBool,
    listener: Arc<RwLock<Option<Arc<dyn TaskListener>>>>,
}

/// How a task ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ended {
    pub status: TaskStatus,
    /// One sentence for the model.
    pub words: Arc<str>,
    /// A short summary for the host.
    pub summary: Arc<str>,
    /// The report of a sub-agent.
    pub report: Option<Arc<str>>,
    /// A command's exit code.
    pub exit_code: Option<i32>,
    /// Usage totals of a sub-agent.
    pub spent: Option<TaskTotals>,
}

impl BackgroundTasks {
    /// Replaces the listener that receives task events.
    pub fn set_listener(&self, listener: Option<Arc<dyn TaskListener>>) {
        *self.listener.write().unwrap_or_else(PoisonError::into_inner) = listener;
    }

    /// Records that `call` waits for its command, which can be moved to the background until the result is
    /// dropped.
    pub(crate) fn foreground(&self, call: &CallId) -> ForegroundCall {
        self.foreground.begin(call)
    }

    /// Moves the command of a call, or of all calls that wait for one, to the background. Returns how many
    /// are moved.
    pub fn move_to_background(&self, call: Option<&CallId>) -> usize {
        self.foreground.move_away(call)
    }

    /// Adds a sub-agent that `call` starts. Its output, if it is stored, goes to `output`.
    pub fn add_agent(
        &self,
        agent: Arc<str>,
        call: CallId,
        (description, prompt): (Arc<str>, Arc<str>),
        background: bool,
        output: PathBuf,
    ) -> Arc<BackgroundTask> {
        let mut started = self.lock();
        started.agents += 1;
        let id = format!("agent-{}", started.agents).into();
        let task = Task { id, kind: TaskKind::Agent(agent), call_id: call, description, background };
        let task = Arc::new(self.task(task, prompt, output, None));
        started.tasks.push(TaskEntry { task: task.clone(), work: None });
        task
    }

    /// Runs `work` concurrently as the future of task `id`.
    pub fn work(&self, id: &str, work: impl Future<Output = ()> + Send + 'static) {
        let work = AbortOnDrop::start(work);
        if let Some(entry) = self.lock().tasks.iter_mut().find(|entry| *entry.task.task.id == *id) {
            entry.work = Some(work);
        }
    }

    /// Removes a task whose call has waited for its end.
    pub fn forget(&self, id: &str) {
        self.lock().tasks.retain(|entry| *entry.task.task.id != *id);
    }

    pub fn get(&self, id: &str) -> Option<Arc<BackgroundTask>> {
        self.lock().tasks.iter().find(|entry| *entry.task.task.id == *id).map(|entry| entry.task.clone())
    }

    /// The ids of all background tasks, including those that have ended.
    pub fn ids(&self) -> Vec<String> {
        let started = self.lock();
        let background = started.tasks.iter().filter(|entry| entry.task.task.background);
        background.map(|entry| entry.task.task.id.to_string()).collect()
    }

    /// Returns the background tasks whose end has not been reported to the model, and marks them as reported.
    pub fn take_unreported(&self) -> Vec<Arc<BackgroundTask>> {
        let started = self.lock();
        let background = started.tasks.iter().filter(|entry| entry.task.task.background);
        let ended = background.filter(|entry| entry.task.is_over());
        ended
            .filter(|entry| !entry.task.end_reported.swap(true, Ordering::Relaxed))
            .map(|entry| entry.task.clone())
            .collect()
    }

    /// The background tasks that are running.
    pub fn running(&self) -> Vec<Arc<Task>> {
        let started = self.lock();
        let tasks = started.tasks.iter().map(|entry| &entry.task);
        tasks.filter(|task| task.task.background && !task.is_over()).map(|task| task.task.clone()).collect()
    }

    /// True while a command runs in the background.
    pub fn has_commands(&self) -> bool {
        let started = self.lock();
        started.tasks.iter().any(|entry| entry.task.task.kind == TaskKind::Command && !entry.task.is_over())
    }

    /// Asks the background sub-agents to end. Returns true if there were any.
    pub fn stop_agents(&self) -> bool {
        self.lock().agents_at_work().map(|task| task.stop()).count() > 0
    }

    pub fn has_agents(&self) -> bool {
        self.lock().agents_at_work().next().is_some()
    }

    /// Drops the background sub-agents without waiting for them, and the listener.
    pub fn abandon_agents(&self) {
        self.set_listener(None);
        let agents: Vec<Option<AbortOnDrop>> = {
            let mut started = self.lock();
            let entries = started.tasks.iter_mut();
            entries
                .filter(|entry| matches!(entry.task.task.kind, TaskKind::Agent(_)))
                .map(|entry| entry.work.take())
                .collect()
        };
        // Agents may hold a reference to this object, so drop them outside the lock.
        drop(agents);
    }

    fn task(
        &self,
        task: Task,
        asked: Arc<str>,
        output: PathBuf,
        catches_up: Option<mpsc::Sender<CatchUp>>,
    ) -> BackgroundTask {
        BackgroundTask {
            task: Arc::new(task),
            asked,
            output,
            stopping: CancellationToken::new(),
            ended: watch::Sender::new(None),
            catches_up,
            shown: Mutex::new(0),
            end_reported: AtomicBool::new(false),
            listener: self.listener.clone(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Started> {
        self.started.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Started {
    fn agents_at_work(&self) -> impl Iterator<Item = &Arc<BackgroundTask>> {
        self.tasks.iter().map(|entry| &entry.task).filter(|task| {
            task.task.background && matches!(task.task.kind, TaskKind::Agent(_)) && !task.is_over()
        })
    }
}

impl BackgroundTask {
    pub fn ended(&self) -> Option<Ended> {
        self.ended.borrow().clone()
    }

    fn is_over(&self) -> bool {
        self.ended.borrow().is_some()
    }

    pub fn stop(&self) {
        self.stopping.cancel();
    }

    pub fn is_stopping(&self) -> bool {
        self.stopping.is_cancelled()
    }

    pub async fn stopping(&self) {
        self.stopping.cancelled().await;
    }

    /// Waits for the end. Returns `None` if the task was dropped before it ended.
    pub async fn wait(&self) -> Option<Ended> {
        let mut ended = self.ended.subscribe();
        // A dropped task never sends its end.
        ended.wait_for(Option::is_some).await.ok().and_then(|ended| ended.clone())
    }

    /// Records that the end was reported to the model.
    pub fn mark_reported(&self) {
        self.end_reported.store(true, Ordering::Relaxed);
    }

    /// Sends an update to the listener.
    pub async fn notify(&self, news: TaskUpdate) {
        let listener = self.listener.read().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some(listener) = listener {
            listener.on_event(TaskEvent { task: self.task.clone(), news }).await;
        }
    }

    /// Records the end and reports it.
    pub async fn end(&self, ended: Ended) {
        let end = TaskEnd {
            status: ended.status,
            summary: ended.summary.clone(),
            output_file: self.output.to_string_lossy().into(),
            spent: ended.spent,
        };
        self.ended.send_replace(Some(ended));
        self.notify(TaskUpdate::Ended(end)).await;
    }

    /// Waits until all output so far is in the file.
    pub async fn catch_up(&self) {
        let Some(asked) = &self.catches_up else { return };
        let (done, caught_up) = oneshot::channel();
        // A task that has ended has nothing left to write.
        if asked.send(done).await.is_ok() {
            let _ = caught_up.await;
        }
    }

    /// Returns the last `lines` lines of the output, at most `limit` bytes, without marking them as seen.
    pub fn last_lines(&self, lines: usize, limit: u64) -> io::Result<String> {
        if self.output == Path::new("") {
            return Ok(String::new());
        }
        let mut file = File::open(&self.output)?;
        let end = file.metadata()?.len();
        file.seek(SeekFrom::Start(end.saturating_sub(limit)))?;
        let mut bytes = Vec::new();
        file.take(limit).read_to_end(&mut bytes)?;
        let mut text = plain(&String::from_utf8_lossy(&bytes));
        if end > limit {
            text.drain(..start_of_whole_lines(text.as_bytes(), PARTIAL_LINE));
        }
        let start = text.trim_end_matches('\n').rmatch_indices('\n').nth(lines.saturating_sub(1));
        Ok(text[start.map_or(0, |(at, _)| at + 1)..].to_owned())
    }

    /// Returns the output since the last call, at most its last `limit` bytes, and how many bytes were
    /// skipped.
    pub fn new_output(&self, limit: u64) -> io::Result<(Vec<u8>, u64)> {
        if self.output == Path::new("") {
            return Ok((Vec::new(), 0));
        }
        let mut shown = self.shown.lock().unwrap_or_else(PoisonError::into_inner);
        let mut file = File::open(&self.output)?;
        let end = file.metadata()?.len();
        let start = (*shown).min(end).max(end.saturating_sub(limit));
        let mut skipped = start - (*shown).min(end);
        file.seek(SeekFrom::Start(start))?;
        let mut bytes = Vec::new();
        file.take(end - start).read_to_end(&mut bytes)?;
        if skipped > 0 {
            let partial = start_of_whole_lines(&bytes, PARTIAL_LINE);
            bytes.drain(..partial);
            skipped += partial as u64;
        }
        *shown = end;
        Ok((bytes, skipped))
    }
}
