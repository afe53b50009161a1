//! Syncs files in a separate thread, so that nothing else waits for the disk. The thread stays alive for a
//! moment, because for turns in quick succession starting threads would cost more than writing.

use std::fs::File;
use std::io;
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, ThreadId};
use std::time::Duration;

use tokio::sync::oneshot;

/// The stack size of the sync thread.
const STACK: usize = 64 * 1024;
/// How long an idle thread waits for the next job. An idle process has no such thread.
const IDLE_LIMIT: Duration = Duration::from_millis(250);

/// The thread that waits for the next job, if there is one. At most one thread waits, so that syncs of
/// several sessions run concurrently and leave a single thread.
static SPARE: Mutex<Option<Spare>> = Mutex::new(None);

type Spare = (ThreadId, Sender<Job>);

struct Job {
    file: Arc<File>,
    done: oneshot::Sender<io::Result<()>>,
}

impl Job {
    fn run(self) {
        // The receiver is gone only if the whole process is ending.
        let _ = self.done.send(self.file.sync_data());
    }
}

/// Waits until what was written to `file` is on disk.
pub(super) async fn synced(file: &Arc<File>) -> io::Result<()> {
    let (done, outcome_receiver) = oneshot::channel();
    if hand_over(Job { file: file.clone(), done }).is_ok()
        && let Ok(outcome) = outcome_receiver.await
    {
        return outcome;
    }
    // Without a thread, sync in place and block.
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

/// The thread's main loop.
fn work(first: Job) {
    let (sender, jobs) = mpsc::channel();
    first.run();
    while let Some(job) = next(&sender, &jobs) {
        job.run();
    }
}

/// The next job; `None` if another thread already waits for jobs, or after the idle timeout.
fn next(sender: &Sender<Job>, jobs: &Receiver<Job>) -> Option<Job> {
    let me = thread::current().id();
    {
        let mut spare = spare();
        if spare.is_some() {
            return None;
        }
        *spare = Some((me, sender.clone()));
    }
    match jobs.recv_timeout(IDLE_LIMIT) {
        Ok(job) => Some(job),
        Err(_) if spare().take_if(|(spare, _)| *spare == me).is_some() => None,
        // A caller has just claimed this thread, so its job is about to arrive.
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
