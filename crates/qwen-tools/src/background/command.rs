//! Background commands: each is supervised until all its processes have ended, and its output goes to a file.

use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::sync::Arc;

use qwen_events::{CallId, Task, TaskKind, TaskStatus, TaskUpdate};
use tokio::sync::{mpsc, oneshot};

use super::{BackgroundTask, BackgroundTasks, CatchUp, Ended, TaskEntry};
use crate::output::clean_pipe::BUFFER;
use crate::output::command_output::CommandOutput;
use crate::output::transcript::FILE_LIMIT;
use qwen_redact::Redactor;
use qwen_sandbox::ProcessSandbox;
use qwen_sandbox::process::{Exit, Running};

/// Most buffers that are read for one catch-up request. Bounded because a command may write faster than we
/// read.
const READS_AT_ONCE: usize = 64;

/// A running command and its output, with secrets redacted.
pub(crate) struct StartedCommand {
    pub(crate) running: Running,
    pub(crate) output: CommandOutput,
}

impl StartedCommand {
    pub(crate) fn new(mut running: Running, redactor: &Arc<Redactor>) -> Self {
        let output = CommandOutput::take(&mut running, redactor);
        Self { running, output }
    }
}

impl BackgroundTasks {
    /// Supervises a command that `call` started. Its output goes to a file with secrets redacted.
    pub(crate) async fn add_command(
        &self,
        (command, description): (Arc<str>, Arc<str>),
        call: CallId,
        (started, sandbox): (StartedCommand, ProcessSandbox),
        (output, file): (&Path, File),
    ) -> Arc<BackgroundTask> {
        let StartedCommand { running, output: written } = started;
        let (catches_up, wished) = mpsc::channel(1);
        let task = {
            let mut started = self.lock();
            started.commands += 1;
            let id = format!("shell-{}", started.commands).into();
            let task = Task { id, kind: TaskKind::Command, call_id: call, description, background: true };
            let task = Arc::new(self.task(task, command, output.to_owned(), Some(catches_up.clone())));
            started.tasks.push(TaskEntry { task: task.clone(), work: None });
            task
        };
        let (known, seen) = oneshot::channel();
        let watched = task.clone();
        self.work(&task.task.id, async move {
            // Hold the sandbox while the command runs.
            let _sandbox = sandbox;
            let ended =
                wait_for_end(running, write_output(written, file, wished), catches_up, &watched).await;
            // Report the start before the end.
            let _ = seen.await;
            watched.end(ended).await;
        });
        task.notify(TaskUpdate::Started).await;
        let _ = known.send(());
        task
    }
}

/// Waits until all processes of a command have ended and its output is in its file.
async fn wait_for_end(
    mut running: Running,
    keeping: impl Future<Output = ()>,
    catches_up: mpsc::Sender<CatchUp>,
    task: &BackgroundTask,
) -> Ended {
    let mut stopped = false;
    let exit = {
        let gone = async {
            tokio::select! {
                exit = running.wait() => return exit,
                () = task.stopping() => {}
            }
            stopped = true;
            // Terminate first, then kill.
            running.terminate();
            running.wait().await
        };
        tokio::pin!(gone, keeping);
        let mut kept = false;
        let exit = loop {
            tokio::select! {
                exit = &mut gone => break exit,
                () = &mut keeping, if !kept => kept = true,
            }
        };
        if !kept {
            let last_look = async {
                let (done, looked) = oneshot::channel();
                if catches_up.send(done).await.is_ok() {
                    let _ = looked.await;
                }
            };
            tokio::select! {
                () = keeping => {}
                () = last_look => {}
            }
        }
        exit
    };
    let words = match exit {
        Exit::Code(code) => format!("It ended with exit code {code}."),
        Exit::Signal(signal) => format!("It was killed by signal {signal}."),
        Exit::Lost => "It ended, because the process that supervised it was killed.".to_owned(),
    };
    let (status, how) = match exit {
        _ if stopped => (TaskStatus::Stopped, "was stopped".to_owned()),
        Exit::Code(0) => (TaskStatus::Completed, "completed (exit code 0)".to_owned()),
        Exit::Code(code) => (TaskStatus::Failed, format!("failed with exit code {code}")),
        Exit::Signal(signal) => (TaskStatus::Failed, format!("was killed by signal {signal}")),
        Exit::Lost => (TaskStatus::Failed, "ended with the process that supervised it".to_owned()),
    };
    Ended {
        status,
        words: words.into(),
        summary: format!("The command \"{}\" {how}", task.task.description).into(),
        report: None,
        exit_code: if let Exit::Code(code) = exit { Some(code) } else { None },
        spent: None,
    }
}

/// Writes a command's output to its file until the output ends.
async fn write_output(mut output: CommandOutput, mut file: File, mut wished: mpsc::Receiver<CatchUp>) {
    let mut buffer = vec![0; BUFFER];
    let mut written = 0;
    // Output that cannot be written, or that exceeds the file limit, is lost. The command continues.
    let mut write = |text: &str| {
        if written < FILE_LIMIT && file.write_all(text.as_bytes()).is_ok() {
            written += text.len() as u64;
        }
    };
    loop {
        let wish = tokio::select! {
            piece = output.next(&mut buffer) => match piece {
                Some((_, text)) => {
                    write(&text);
                    continue;
                }
                None => break,
            },
            Some(wish) = wished.recv() => wish,
        };
        for _ in 0..READS_AT_ONCE {
            let Some((_, text)) = output.read_now(&mut buffer) else { break };
            write(&text);
        }
        // The requester may have stopped waiting.
        let _ = wish.send(());
    }
    for (_, text) in output.rest() {
        write(&text);
    }
}
