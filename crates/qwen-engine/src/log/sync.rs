//! Waiting for the disk beside everything else: in a thread that stays for a moment, because turns that follow each other
//! closely would pay more for starting threads than for writing.

use std::fs::File;
use std::io;
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, ThreadId};
use std::time::Duration;

use tokio::sync::oneshot;

/// The stack of a thread that does nothing else.
const STACK: usize = 64 * 1024;
/// How long a thread waits for more to do. A process that rests has none.
const PATIENCE: Duration = Duration::from_millis(250);

/// The thread that waits for more to do, if one does. A second one never waits, so that syncs of several sessions go on
/// beside each other and leave one thread.
static SPARE: Mutex<Option<Spare>> = Mutex::new(None);

type Spare = (ThreadId, Sender<Job>);

struct Job {
    file: Arc<File>,
    done: oneshot::Sender<io::Result<()>>,
}

impl Job {
    fn run(self) {
        // Nobody hears it only where the whole process is ending.
        let _ = self.done.send(self.file.sync_data());
    }
}

/// Waits until what was written to `file` is on disk.
pub(super) async fn synced(file: &Arc<File>) -> io::Result<()> {
    let (done, heard) = oneshot::channel();
    if hand_over(Job { file: file.clone(), done }).is_ok()
        && let Ok(outcome) = heard.await
    {
        return outcome;
    }
    // Where there can be no thread, others wait.
    file.sync_data()
}

fn hand_over(mut job: Job) -> io::Result<()> {
    let spare = spare().take();
    if let Some((_, spare)) = spare {
        match spare.send(job) {
            Ok(()) => return Ok(()),
            Err(refused) => job = refused.0,
        }
    }
    let thread = thread::Builder::new().name("sync".to_owned()).stack_size(STACK);
    thread.spawn(move || work(job)).map(drop)
}

/// A thread's whole life.
fn work(first: Job) {
    let (sender, jobs) = mpsc::channel();
    first.run();
    while let Some(job) = next(&sender, &jobs) {
        job.run();
    }
}

/// The next job; none when somebody else waits for it, or when there is none for a while.
fn next(sender: &Sender<Job>, jobs: &Receiver<Job>) -> Option<Job> {
    let me = thread::current().id();
    {
        let mut spare = spare();
        if spare.is_some() {
            return None;
        }
        *spare = Some((me, sender.clone()));
    }
    match jobs.recv_timeout(PATIENCE) {
        Ok(job) => Some(job),
        Err(_) if spare().take_if(|(spare, _)| *spare == me).is_some() => None,
        // Somebody has just chosen us, so a job is on its way.
        Err(_) => jobs.recv().ok(),
    }
}

fn spare() -> MutexGuard<'static, Option<Spare>> {
    SPARE.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn every_sync_is_heard_of_however_they_follow_each_other() {
        let file = Arc::new(tempfile::tempfile().unwrap());
        for _ in 0..20 {
            synced(&file).await.unwrap();
            let (one, other, third) = tokio::join!(synced(&file), synced(&file), synced(&file));
            one.and(other).and(third).unwrap();
        }
    }
}
