//! Commands that go on while the model works on.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::{Mutex as AsyncMutex, mpsc, oneshot};
use tokio::task::JoinHandle;

use crate::clean_pipe::{BUFFER, CleanPipe};
use crate::fence::Inside;
use crate::process::{Exit, Running};
use crate::redact::Redactor;
use crate::transcript::FILE_LIMIT;

/// How many buffers are read at once for whoever wants to see what is new: a command may write faster than we read.
const READS_AT_ONCE: usize = 64;

/// The commands that a session runs in the background. Dropping it ends them all.
#[derive(Default)]
pub struct BackgroundTasks {
    started: Mutex<Vec<Arc<AsyncMutex<BackgroundTask>>>>,
}

/// One command in the background.
pub struct BackgroundTask {
    /// What was asked for.
    pub command: Arc<str>,
    /// The file that its output goes to.
    pub output: PathBuf,
    running: Running,
    /// Its stay inside the fence, which lasts as long as it does.
    _inside: Inside,
    keeper: Keeper,
    exit: Option<Exit>,
    shown: u64,
}

impl BackgroundTasks {
    /// Takes charge of a command, whose output goes to a file without the secrets in it. Gives back the task's id.
    pub fn add(
        &self,
        command: Arc<str>,
        mut running: Running,
        inside: Inside,
        (output, file): (&Path, File),
        redactor: &Arc<Redactor>,
    ) -> String {
        let pipes = [running.stdout.take(), running.stderr.take()].map(|pipe| CleanPipe::new(pipe, redactor));
        let task = BackgroundTask {
            keeper: Keeper::start(pipes, file),
            command,
            output: output.to_owned(),
            running,
            _inside: inside,
            exit: None,
            shown: 0,
        };
        let mut started = self.started.lock().unwrap_or_else(PoisonError::into_inner);
        started.push(Arc::new(AsyncMutex::new(task)));
        format!("shell-{}", started.len())
    }

    /// The task of this id.
    pub fn get(&self, id: &str) -> Option<Arc<AsyncMutex<BackgroundTask>>> {
        let number: usize = id.strip_prefix("shell-")?.parse().ok()?;
        self.started.lock().unwrap_or_else(PoisonError::into_inner).get(number.checked_sub(1)?).cloned()
    }

    /// The ids of all tasks so far, those that have ended included.
    pub fn ids(&self) -> Vec<String> {
        let count = self.started.lock().unwrap_or_else(PoisonError::into_inner).len();
        (1..=count).map(|number| format!("shell-{number}")).collect()
    }
}

impl BackgroundTask {
    /// How it ended, if it has.
    pub fn exit(&mut self) -> Option<Exit> {
        self.exit = self.exit.or_else(|| self.running.gone_by_now());
        self.exit
    }

    /// Ends it with all that it started: politely at first, then not.
    pub async fn end(&mut self) -> Exit {
        if self.exit().is_none() {
            self.running.terminate();
        }
        let exit = self.running.gone().await;
        self.exit = Some(exit);
        exit
    }

    /// Waits until all that it wrote up to now is in the file.
    pub async fn catch_up(&mut self) {
        let (done, caught_up) = oneshot::channel();
        // A keeper that is gone has nothing left to write.
        if self.keeper.wishes.send(done).await.is_ok() {
            let _ = caught_up.await;
        }
    }

    /// What it has written since the last time, at most `limit` bytes of it from the end, and how many were skipped.
    pub fn new_output(&mut self, limit: u64) -> io::Result<(Vec<u8>, u64)> {
        let mut file = File::open(&self.output)?;
        let end = file.metadata()?.len();
        let start = self.shown.min(end).max(end.saturating_sub(limit));
        let skipped = start - self.shown.min(end);
        file.seek(SeekFrom::Start(start))?;
        let mut bytes = Vec::new();
        file.take(end - start).read_to_end(&mut bytes)?;
        self.shown = end;
        Ok((bytes, skipped))
    }
}

/// The task that writes a command's output to its file. It ends with the command, or with us.
struct Keeper {
    /// Asks it to write what there is now, and to say when it has.
    wishes: mpsc::Sender<oneshot::Sender<()>>,
    task: JoinHandle<()>,
}

impl Keeper {
    fn start(pipes: [CleanPipe; 2], file: File) -> Self {
        let (wishes, wished) = mpsc::channel(1);
        Self { wishes, task: tokio::spawn(keep(pipes, file, wished)) }
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn keep(
    [mut stdout, mut stderr]: [CleanPipe; 2],
    mut file: File,
    mut wished: mpsc::Receiver<oneshot::Sender<()>>,
) {
    let mut buffer = vec![0; BUFFER];
    let mut written = 0;
    // What the disk does not take is lost, and the command goes on; so does what would fill it.
    let mut write = |text: &str| {
        if written < FILE_LIMIT && file.write_all(text.as_bytes()).is_ok() {
            written += text.len() as u64;
        }
    };
    while !(stdout.is_closed() && stderr.is_closed()) {
        let (ready, wish) = tokio::select! {
            () = stdout.ready() => (&mut [&mut stdout][..], None),
            () = stderr.ready() => (&mut [&mut stderr][..], None),
            Some(wish) = wished.recv() => (&mut [&mut stdout, &mut stderr][..], Some(wish)),
        };
        for pipe in ready {
            let reads = if wish.is_some() { READS_AT_ONCE } else { 1 };
            for _ in 0..reads {
                let text =
                    if wish.is_some() { pipe.read_left_over(&mut buffer) } else { pipe.read(&mut buffer) };
                let Some(text) = text else { break };
                write(&text);
            }
            if pipe.is_closed() {
                write(&pipe.rest().unwrap_or_default());
            }
        }
        // Whoever wished may have stopped waiting.
        let _ = wish.map(|wish| wish.send(()));
    }
}
