//! Commands that go on while the model works on.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::Mutex as AsyncMutex;

use crate::fence::Inside;
use crate::process::{Exit, Running};

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
    exit: Option<Exit>,
    shown: u64,
}

impl BackgroundTasks {
    /// Takes charge of a command whose output goes to a file. Gives back the task's id.
    pub fn add(&self, command: Arc<str>, running: Running, inside: Inside, output: &Path) -> String {
        let task = BackgroundTask {
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
