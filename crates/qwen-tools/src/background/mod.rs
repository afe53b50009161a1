//! What goes on while the model works on: commands in the background, and sub-agents. Each has a name by which it can be
//! looked at and stopped, and whoever listens hears how it starts and ends.

mod command;
mod tethered;

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

use self::tethered::Tethered;

/// Asks whoever writes a task's file to write what there is now, and is answered once that is done.
type CatchUp = oneshot::Sender<()>;

/// Hears what happens to tasks. Waits while its reader is slow.
pub trait TaskListener: Send + Sync {
    /// Something happened to a task.
    fn hear<'a>(&'a self, event: TaskEvent) -> Pin<Box<dyn Future<Output = ()> + Send + 'a>>;
}

/// The tasks of a session. Dropping it ends the commands among them; agents hold on to it and are ended with
/// [`BackgroundTasks::abandon_agents`].
#[derive(Default)]
pub struct BackgroundTasks {
    started: Mutex<Started>,
    listener: Arc<RwLock<Option<Arc<dyn TaskListener>>>>,
}

#[derive(Default)]
struct Started {
    tasks: Vec<Held>,
    commands: u32,
    agents: u32,
}

/// A task and, where nobody waits for it, its work.
struct Held {
    task: Arc<BackgroundTask>,
    work: Option<Tethered>,
}

/// One task, as those see it who look after it.
pub struct BackgroundTask {
    /// What it is.
    pub task: Arc<Task>,
    /// What was asked for: the command, or the sub-agent's task.
    pub asked: Arc<str>,
    /// The file that its output goes to; empty where there is none.
    pub output: PathBuf,
    stopping: CancellationToken,
    ended: watch::Sender<Option<Ended>>,
    /// Where the file is asked to catch up; none where nobody has to be asked.
    catches_up: Option<mpsc::Sender<CatchUp>>,
    /// How much of the output the model has seen.
    shown: Mutex<u64>,
    /// The model knows how it ended.
    known: AtomicBool,
    listener: Arc<RwLock<Option<Arc<dyn TaskListener>>>>,
}

/// How a task ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ended {
    /// In a word.
    pub status: TaskStatus,
    /// In a sentence, for the model.
    pub words: Arc<str>,
    /// What came of it, in few words, for the host.
    pub summary: Arc<str>,
    /// A sub-agent's report.
    pub report: Option<Arc<str>>,
    /// A command's exit code.
    pub exit_code: Option<i32>,
    /// What a sub-agent spent.
    pub spent: Option<TaskTotals>,
}

impl BackgroundTasks {
    /// Tells `listener` of tasks from here on, and nobody else.
    pub fn tell(&self, listener: Option<Arc<dyn TaskListener>>) {
        *self.listener.write().unwrap_or_else(PoisonError::into_inner) = listener;
    }

    /// A sub-agent that `call` starts, which is about to begin its work. Its output, if it is kept, goes to `output`.
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
        started.tasks.push(Held { task: task.clone(), work: None });
        task
    }

    /// Lets `work` go on beside everything else, as that of the task `id`.
    pub fn work(&self, id: &str, work: impl Future<Output = ()> + Send + 'static) {
        let work = Tethered::start(work);
        if let Some(held) = self.lock().tasks.iter_mut().find(|held| *held.task.task.id == *id) {
            held.work = Some(work);
        }
    }

    /// Forgets a task that its call has waited for.
    pub fn forget(&self, id: &str) {
        self.lock().tasks.retain(|held| *held.task.task.id != *id);
    }

    /// The task of this id.
    pub fn get(&self, id: &str) -> Option<Arc<BackgroundTask>> {
        self.lock().tasks.iter().find(|held| *held.task.task.id == *id).map(|held| held.task.clone())
    }

    /// The ids of all tasks in the background so far, those that have ended included.
    pub fn ids(&self) -> Vec<String> {
        let started = self.lock();
        let beside = started.tasks.iter().filter(|held| held.task.task.background);
        beside.map(|held| held.task.task.id.to_string()).collect()
    }

    /// The tasks in the background that have ended and whose end the model does not know of. It does from here on.
    pub fn news(&self) -> Vec<Arc<BackgroundTask>> {
        let started = self.lock();
        let beside = started.tasks.iter().filter(|held| held.task.task.background);
        let over = beside.filter(|held| held.task.is_over());
        over.filter(|held| !held.task.known.swap(true, Ordering::Relaxed))
            .map(|held| held.task.clone())
            .collect()
    }

    /// Asks the sub-agents in the background to end, and says whether there were any.
    pub fn stop_agents(&self) -> bool {
        self.lock().agents_at_work().map(|task| task.stop()).count() > 0
    }

    /// Whether a sub-agent works in the background.
    pub fn has_agents(&self) -> bool {
        self.lock().agents_at_work().next().is_some()
    }

    /// Drops the sub-agents in the background in the middle of whatever they do, and whoever listens.
    pub fn abandon_agents(&self) {
        self.tell(None);
        let agents: Vec<Option<Tethered>> = {
            let mut started = self.lock();
            let held = started.tasks.iter_mut();
            held.filter(|held| matches!(held.task.task.kind, TaskKind::Agent(_)))
                .map(|held| held.work.take())
                .collect()
        };
        // What they hold may hold us: not under the lock.
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
            known: AtomicBool::new(false),
            listener: self.listener.clone(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Started> {
        self.started.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Started {
    fn agents_at_work(&self) -> impl Iterator<Item = &Arc<BackgroundTask>> {
        self.tasks.iter().map(|held| &held.task).filter(|task| {
            task.task.background && matches!(task.task.kind, TaskKind::Agent(_)) && !task.is_over()
        })
    }
}

impl BackgroundTask {
    /// How it ended, if it has.
    pub fn ended(&self) -> Option<Ended> {
        self.ended.borrow().clone()
    }

    fn is_over(&self) -> bool {
        self.ended.borrow().is_some()
    }

    /// Asks it to end.
    pub fn stop(&self) {
        self.stopping.cancel();
    }

    /// Whether it was asked to end.
    pub fn is_stopping(&self) -> bool {
        self.stopping.is_cancelled()
    }

    /// Resolves once it is asked to end.
    pub async fn stopping(&self) {
        self.stopping.cancelled().await;
    }

    /// Waits for its end.
    pub async fn over(&self) -> Option<Ended> {
        let mut ended = self.ended.subscribe();
        // One whose work is dropped says nothing any more.
        ended.wait_for(Option::is_some).await.ok().and_then(|ended| ended.clone())
    }

    /// The model knows how it ended.
    pub fn told(&self) {
        self.known.store(true, Ordering::Relaxed);
    }

    /// Tells whoever listens what happened to it.
    pub async fn tell(&self, news: TaskUpdate) {
        let listener = self.listener.read().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some(listener) = listener {
            listener.hear(TaskEvent { task: self.task.clone(), news }).await;
        }
    }

    /// It is over.
    pub async fn end(&self, ended: Ended) {
        let end = TaskEnd {
            status: ended.status,
            summary: ended.summary.clone(),
            output_file: self.output.to_string_lossy().into(),
            spent: ended.spent,
        };
        self.ended.send_replace(Some(ended));
        self.tell(TaskUpdate::Ended(end)).await;
    }

    /// Waits until all that it wrote up to now is in the file.
    pub async fn catch_up(&self) {
        let Some(asked) = &self.catches_up else { return };
        let (done, caught_up) = oneshot::channel();
        // One that is over has nothing left to write.
        if asked.send(done).await.is_ok() {
            let _ = caught_up.await;
        }
    }

    /// What it has written since the last time, at most `limit` bytes of it from the end, and how many were skipped.
    pub fn new_output(&self, limit: u64) -> io::Result<(Vec<u8>, u64)> {
        if self.output == Path::new("") {
            return Ok((Vec::new(), 0));
        }
        let mut shown = self.shown.lock().unwrap_or_else(PoisonError::into_inner);
        let mut file = File::open(&self.output)?;
        let end = file.metadata()?.len();
        let start = (*shown).min(end).max(end.saturating_sub(limit));
        let skipped = start - (*shown).min(end);
        file.seek(SeekFrom::Start(start))?;
        let mut bytes = Vec::new();
        file.take(end - start).read_to_end(&mut bytes)?;
        *shown = end;
        Ok((bytes, skipped))
    }
}
