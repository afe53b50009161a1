//! `--input-format stream-json`: a worker that is driven by JSON lines.
//!
//! One task only reads lines; one loop handles them, also while a turn runs; one task writes. An open
//! question, a slow tool or a slow reader therefore never delays a heartbeat, a hint or a cancel.

mod cancel;
mod control;
mod heartbeat;
mod hints;
mod host;
mod join_turn;
mod parent;
mod queue;
mod reports;
mod session_slot;
mod slash_commands;
mod tool_results;
mod turn;
mod usage;
#[expect(clippy::module_inception, reason = "the worker itself, beside its components")]
mod worker;

use std::io;
use std::sync::Arc;
use std::time::Duration;

use qwen_dialects::{Dialect, decode};
use qwen_engine::{Cancel, Emitter, Stop};
use qwen_events::{Body, Command, EndStatus, ErrorInfo, ErrorKind};
use tokio::sync::mpsc;

use self::host::{ControlHost, PermissionTool};
use self::parent::ParentProcess;
pub use self::parent::{report_failure, report_warnings};
use self::reports::OutputReports;
use self::worker::Worker;
use crate::io::debug_log::DebugLog;
use crate::io::input::{InputLine, Lines, MAX_LINE, StdinReader};
use crate::io::output::Output;
use crate::io::stream::{self, ObservedOutput, OutputObserver, pump};
use crate::runtime::exit;
use crate::runtime::signals;
use crate::session::ProcessContext;
use crate::session::setup;
use crate::settings::Config;

/// The commands in one line of input.
pub type Incoming = Result<Vec<Command>, ErrorInfo>;

/// The default control time-out.
const CONTROL_TIMEOUT: Duration = Duration::from_secs(60);

/// The default control time-out for Claude hosts, which ask their users.
const PEOPLE_TIMEOUT: Duration = Duration::from_secs(3600);

/// The control time-out for an interactive terminal, which shows a question until it is answered or the turn
/// ends. In practice there is no deadline.
const TERMINAL_TIMEOUT: Duration = Duration::from_secs(365 * 24 * 3600);

/// Serves until standard input ends or a signal arrives, and returns the exit code. `given` is the prompt of
/// the command line, which runs first.
pub async fn run(config: Arc<Config>, given: &str) -> u8 {
    let ending = Cancel::default();
    let (output, input) = match (Output::stdout(), StdinReader::stdin(), signals::listen(&ending)) {
        (Ok(output), Ok(input), Ok(())) => (output, input),
        (Err(error), ..) | (_, Err(error), _) | (.., Err(error)) => {
            exit::report(&format!("qwen: standard input and output cannot be used: {error}"));
            return 1;
        }
    };
    let (sender, receiver) = mpsc::channel(stream::CAPACITY);
    let (lines, mut incoming) = mpsc::channel(64);
    let parent = match ParentProcess::open(&config.stream.supervision, &ending) {
        Ok(parent) => parent,
        Err(error) => {
            exit::report(&format!("qwen: {error}"));
            return error.exit_code();
        }
    };
    let reading = tokio::spawn(read(Lines::new(input), lines, parent.clone()));
    let debug_log = config.diagnostics.log.debug.as_ref().and_then(DebugLog::open);
    let renderer = setup::renderer(&config, debug_log.as_ref());
    let served = async {
        let emit = setup::emitter(&config, sender);
        let dialect = config.stream.dialect;
        let claude_sdk = dialect == Dialect::Claude && !config.claude.qwen_sdk;
        // Text has no lines for questions, so a host that reads text cannot answer them.
        let reads_questions = config.stream.format.is_some();
        let is_attached = reads_questions && (!claude_sdk || config.claude.permission_prompts);
        let usual = match dialect {
            // A user of an editor answers when they like; the editor closes its questions itself.
            Dialect::Acp => TERMINAL_TIMEOUT,
            Dialect::Claude if claude_sdk => PEOPLE_TIMEOUT,
            _ => CONTROL_TIMEOUT,
        };
        let timeout = config.stream.supervision.question_timeout.unwrap_or(usual);
        let host = Arc::new(ControlHost::new(emit.clone(), config.session.id.clone(), is_attached, timeout));
        if let Some(parent) = &parent {
            host.set_parent(parent.clone());
        }
        match ProcessContext::new(config, host.clone(), debug_log) {
            Ok(process) => {
                let claude = &process.config.claude;
                if let Some(tool) = claude.permission_tool.as_ref().filter(|_| claude.permission_prompts) {
                    host.delegate(PermissionTool::new(
                        tool.clone(),
                        &process.services.mcp,
                        process.config.workspace.cwd.clone(),
                    ));
                }
                Worker::new(process, emit, host, ending.clone()).with_prompt(given).serve(incoming).await
            }
            Err(error) => refuse_start(error, dialect, &emit, &mut incoming).await,
        }
    };
    let mut reports = parent.clone().filter(|parent| parent.commits()).map(OutputReports::new);
    let written = async {
        let observer = reports.as_mut().map(|reports| reports as &mut dyn OutputObserver);
        let written = pump(receiver, renderer, ObservedOutput { output: &output, observer }).await;
        if written.is_err() {
            ending.stop(Stop { status: EndStatus::Interrupted, error: None });
        }
        written
    };
    let (code, written) = tokio::join!(served, written);
    reading.abort();
    match written {
        Ok(()) => {
            if let Some(parent) = parent.filter(|_| !ending.is_stopped()) {
                parent.restart_if_discarding(reports.map_or(0, |reports| reports.lines())).await;
            }
            code
        }
        // The host has disconnected, so the error cannot be reported.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => 0,
        Err(error) => {
            exit::report(&format!("qwen: standard output: {error}"));
            1
        }
    }
}

/// Reports why the worker cannot start and returns the exit code. Until the host pauses, its lines are read
/// (`exit::drain_stdin`).
async fn refuse_start(
    error: ErrorInfo,
    dialect: Dialect,
    emit: &Emitter,
    incoming: &mut mpsc::Receiver<Incoming>,
) -> u8 {
    let code = exit::error_code(&error, dialect);
    exit::report(&format!("qwen: {error}"));
    emit.emit(Body::Fatal(Box::new(error))).await;
    let drained = async {
        let mut patience = exit::HOST_GRACE;
        while let Ok(Some(_)) = tokio::time::timeout(patience, incoming.recv()).await {
            patience = exit::HOST_PAUSE;
        }
    };
    // A host that never stops writing does not keep the process alive.
    let _ = tokio::time::timeout(exit::HOST_LIMIT, drained).await;
    code
}

/// Reads and parses lines and forwards their commands until the end of input.
async fn read(mut lines: Lines, sender: mpsc::Sender<Incoming>, parent: Option<Arc<ParentProcess>>) {
    loop {
        let line = lines.next().await;
        if let Some(parent) = &parent {
            match &line {
                Ok(Some(_)) => parent.record_contact(),
                Ok(None) | Err(_) => parent.note_input_ended(),
            }
        }
        let incoming = match line {
            Ok(Some(InputLine::Whole(line))) if line.iter().all(u8::is_ascii_whitespace) => continue,
            Ok(Some(InputLine::Whole(line))) => decode(&line),
            Ok(Some(InputLine::TooLong)) => {
                let message =
                    format!("the line is longer than {} MiB and was skipped", MAX_LINE / 1024 / 1024);
                Err(ErrorInfo::new(ErrorKind::Input, "line_too_long", message))
            }
            Ok(None) => return,
            Err(error) => {
                let message = format!("standard input: {error}");
                // If the worker is already ending, the error is not needed.
                let _ = sender.send(Err(ErrorInfo::new(ErrorKind::Input, "unreadable_stdin", message))).await;
                return;
            }
        };
        if sender.send(incoming).await.is_err() {
            return;
        }
    }
}

/// Serves an interactive terminal, which sends commands through `incoming` and reads the events of `emit`,
/// until either ends.
pub async fn serve_person(
    config: Arc<Config>,
    given: &str,
    incoming: mpsc::Receiver<Incoming>,
    emit: Emitter,
    ending: Cancel,
) -> u8 {
    let host = Arc::new(ControlHost::new(emit.clone(), config.session.id.clone(), true, TERMINAL_TIMEOUT));
    let debug_log = config.diagnostics.log.debug.as_ref().and_then(DebugLog::open);
    match ProcessContext::new(config, host.clone(), debug_log) {
        Ok(process) => Worker::new(process, emit, host, ending).with_prompt(given).serve(incoming).await,
        Err(error) => {
            let code = error.exit_code();
            emit.emit(Body::Fatal(Box::new(error))).await;
            code
        }
    }
}
