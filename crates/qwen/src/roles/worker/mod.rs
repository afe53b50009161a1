//! `--input-format stream-json`: a worker that is driven by JSON lines.
//!
//! One task reads lines and never waits for anything but the next line; one loop obeys what they say, also while a
//! turn runs; one task writes. So a question that is open, a slow tool or a slow reader never keeps a heartbeat, a
//! hint or a cancel from being heard.

mod cancel;
mod commands;
mod control;
mod control_host;
mod dismiss;
mod gauges;
mod heart;
mod held;
mod hints;
mod host_tools;
mod mcp;
mod past;
mod permission_tool;
mod serve;
mod steering;
mod tasks;
mod turns;
mod waiting;

use std::io;
use std::sync::Arc;
use std::time::Duration;

use qwen_dialects::{Dialect, decode};
use qwen_engine::{Cancel, Stop};
use qwen_events::{Body, Command, EndStatus, ErrorInfo, ErrorKind};
use tokio::sync::mpsc;

use self::control_host::ControlHost;
use self::permission_tool::PermissionTool;
use self::serve::Worker;
use crate::io::input::{Input, Line, Lines, MAX_LINE};
use crate::io::output::Output;
use crate::io::stream::{self, pump};
use crate::runtime::exit;
use crate::runtime::signals;
use crate::session::setup;
use crate::session::setup::Parts;
use crate::settings::Config;

/// What one line of input comes to.
type Incoming = Result<Vec<Command>, ErrorInfo>;

/// How long a question to a host stays open unless the host says otherwise.
const PATIENCE: Duration = Duration::from_secs(60);

/// Claude's SDKs put permission questions to people, who take their time.
const PATIENCE_WITH_PEOPLE: Duration = Duration::from_secs(3600);

/// Serves until standard input ends or a signal comes, and returns the exit code. What the command line says is the
/// first prompt.
pub async fn run(config: Config, given: &str) -> u8 {
    let ending = Cancel::default();
    let (output, input) = match (Output::stdout(), Input::stdin(), signals::listen(&ending)) {
        (Ok(output), Ok(input), Ok(())) => (output, input),
        (Err(error), ..) | (_, Err(error), _) | (.., Err(error)) => {
            exit::say(&format!("qwen: standard input and output cannot be used: {error}"));
            return 1;
        }
    };
    let (sender, receiver) = mpsc::channel(stream::CAPACITY);
    let (lines, mut incoming) = mpsc::channel(64);
    let reading = tokio::spawn(read(Lines::new(input), lines));
    let reader = setup::reader(&config);
    let served = async {
        let emit = setup::emitter(&config, sender);
        let claude_sdk = config.dialect == Dialect::Claude && !config.qwen_sdk;
        let listens = !claude_sdk || config.permission_prompts;
        let patience = if claude_sdk { PATIENCE_WITH_PEOPLE } else { PATIENCE };
        let host = Arc::new(ControlHost::new(emit.clone(), config.session_id.clone(), listens, patience));
        host.set_silent(config.never_ask);
        match Parts::new(&config, host.clone()) {
            Ok(parts) => {
                if let Some(tool) = config.permission_tool.as_ref().filter(|_| config.permission_prompts) {
                    host.delegate(PermissionTool::new(tool.clone(), &parts.mcp, config.cwd.clone()));
                }
                Worker::new(config, emit, host, parts, ending.clone()).asked(given).serve(incoming).await
            }
            Err(error) => {
                let code = error.exit_code();
                emit.emit(Body::Fatal(Box::new(error))).await;
                // See `exit::await_host`.
                let _ = tokio::time::timeout(exit::HEARING, incoming.recv()).await;
                code
            }
        }
    };
    let written = async {
        let written = pump(receiver, reader, &output).await;
        if written.is_err() {
            ending.stop(Stop { status: EndStatus::Interrupted, error: None });
        }
        written
    };
    let (code, written) = tokio::join!(served, written);
    reading.abort();
    match written {
        Ok(()) => code,
        // The host is gone; there is nobody left to tell.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => 0,
        Err(error) => {
            exit::say(&format!("qwen: standard output: {error}"));
            1
        }
    }
}

/// Reads lines and hands on what they mean, until the end of input.
async fn read(mut lines: Lines, sender: mpsc::Sender<Incoming>) {
    loop {
        let incoming = match lines.next().await {
            Ok(Some(Line::Whole(line))) if line.iter().all(u8::is_ascii_whitespace) => continue,
            Ok(Some(Line::Whole(line))) => decode(&line),
            Ok(Some(Line::TooLong)) => {
                let message =
                    format!("the line is longer than {} MiB and was skipped", MAX_LINE / 1024 / 1024);
                Err(ErrorInfo::new(ErrorKind::Input, "line_too_long", message))
            }
            Ok(None) => return,
            Err(error) => {
                let message = format!("standard input: {error}");
                // The worker may be ending already, and then nobody needs to know.
                let _ = sender.send(Err(ErrorInfo::new(ErrorKind::Input, "unreadable_stdin", message))).await;
                return;
            }
        };
        if sender.send(incoming).await.is_err() {
            return;
        }
    }
}
