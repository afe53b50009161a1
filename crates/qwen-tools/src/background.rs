//! Commands that go on while the model works on.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::Mutex as AsyncMutex;
use tokio::task::JoinHandle;

use crate::clean_pipe::{BUFFER, CleanPipe};
use crate::fence::Inside;
use crate::process::{Exit, Running};
use crate::redact::Redactor;
use crate::transcript::FILE_LIMIT;

/// How long the last of a command's output is waited for.
const LEFT_OVER: Duration = Duration::from_millis(300);

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
            keeper: Keeper(tokio::spawn(keep(pipes, file))),
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

    /// Waits until all that it wrote is in the file, once it has ended.
    pub async fn settled(&mut self) {
        if self.exit().is_some() && !self.keeper.0.is_finished() {
            // A descriptor may have been handed to a process that is not ours to end.
            let _ = tokio::time::timeout(LEFT_OVER, &mut self.keeper.0).await;
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
struct Keeper(JoinHandle<()>);

impl Drop for Keeper {
    fn drop(&mut self) {
        self.0.abort();
    }
}

async fn keep([mut stdout, mut stderr]: [CleanPipe; 2], mut file: File) {
    let mut buffer = vec![0; BUFFER];
    let mut written = 0;
    // What the disk does not take is lost, and the command goes on; so does what would fill it.
    let mut write = |text: &str| {
        if written < FILE_LIMIT && file.write_all(text.as_bytes()).is_ok() {
            written += text.len() as u64;
        }
    };
    while !(stdout.is_closed() && stderr.is_closed()) {
        let pipe = tokio::select! {
            () = stdout.ready() => &mut stdout,
            () = stderr.ready() => &mut stderr,
        };
        write(&pipe.read(&mut buffer).unwrap_or_default());
        if pipe.is_closed() {
            write(&pipe.rest().unwrap_or_default());
        }
    }
}
