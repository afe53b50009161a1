//! `qwen --acp`: any number of sessions for an editor that speaks the Agent Client Protocol.
//!
//! This process owns the connection and the kernel; each session runs on a worker. Workers write updates and
//! questions in the form of the protocol, which are passed on unchanged, so that live and replayed updates come
//! from the same encoder. Here are only the lifecycle of the sessions, the client's request ids, and what was
//! offered in each question.

mod connection;
mod kernel;
mod lifecycle;
mod mcp_servers;
mod questions;
mod replay;
mod session;
mod session_settings;
mod turn;
mod worker_lines;

use std::time::Duration;

use qwen_events::{ErrorInfo, ErrorKind};
use qwen_kernel::Hub;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc;
use tokio::task::LocalSet;

use self::connection::EditorConnection;
use crate::cli::{Run, arguments};
use crate::io::input::{InputLine, Lines, StdinReader};
use crate::io::output::Output;
use crate::runtime::exit;

/// How long the workers may take to end after the editor has gone.
const END_LIMIT: Duration = Duration::from_millis(1800);

/// Lines of the client that wait to be handled.
const CAPACITY: usize = 64;

/// Fails if the command line has flags that make no sense for many sessions.
pub fn check(run: &Run) -> Result<(), ErrorInfo> {
    let refuse = |flag: &str| {
        let message = format!("--acp cannot be combined with {flag}: the editor opens the sessions");
        Err(ErrorInfo::new(ErrorKind::Usage, "bad_flag", message))
    };
    match () {
        () if !run.words.is_empty() || run.prompt.is_some() => refuse("a prompt"),
        () if run.resume.is_some() || run.continue_latest => refuse("--resume or --continue"),
        () if run.session_id.is_some() || run.fork_session => refuse("--session-id or --fork-session"),
        () if run.input_format.is_some() || run.output_format.is_some() => {
            refuse("--input-format or --output-format")
        }
        () if run.dialect.is_some() || run.json => refuse("--dialect or --json"),
        () => Ok(()),
    }
}

/// The flags of this process that its workers get, too.
fn worker_args() -> Vec<String> {
    let mut arguments = arguments().into_iter().skip(1).map(|word| word.to_string_lossy().into_owned());
    let mut kept = Vec::new();
    while let Some(word) = arguments.next() {
        match word.as_str() {
            "--acp" | "--experimental-acp" => {}
            "--acp-unstable" => drop(arguments.next()),
            word if word.starts_with("--acp-unstable=") => {}
            _ => kept.push(word),
        }
    }
    kept
}

/// Serves until standard input ends or a signal arrives, and returns the exit code.
pub async fn run(run: &Run) -> u8 {
    LocalSet::new().run_until(serve(run)).await
}

async fn serve(run: &Run) -> u8 {
    let opened = (
        Output::stdout(),
        StdinReader::stdin(),
        signal(SignalKind::terminate()),
        signal(SignalKind::interrupt()),
    );
    let (output, input, mut terminate, mut interrupt) = match opened {
        (Ok(output), Ok(input), Ok(terminate), Ok(interrupt)) => (output, input, terminate, interrupt),
        (Err(error), ..) | (_, Err(error), ..) | (_, _, Err(error), _) | (.., Err(error)) => {
            exit::report(&format!("qwen: standard input and output cannot be used: {error}"));
            return 1;
        }
    };
    let hub = match kernel::start(&worker_args()) {
        Ok(hub) => hub,
        Err(error) => {
            exit::report(&format!("qwen: {error}"));
            return error.exit_code();
        }
    };
    let (sender, mut incoming) = mpsc::channel(CAPACITY);
    let reading = tokio::task::spawn_local(read(Lines::new(input), sender));
    let mut connection = EditorConnection::new(run, hub.clone());
    let code = loop {
        tokio::select! {
            line = incoming.recv() => match line {
                Some(InputLine::Whole(line)) => connection.client_line(&line),
                Some(InputLine::TooLong) => connection.line_too_long(),
                None => break 0,
            },
            bytes = hub.next_output() => match bytes {
                Some(bytes) => pass_lines(&mut connection, &bytes),
                None => break hub.exit_code().unwrap_or(0),
            },
            () = output.reader_gone() => break 0,
            _ = terminate.recv() => break 143,
            _ = interrupt.recv() => break 130,
        }
        let lines = connection.take_output();
        if !lines.is_empty() && output.write_all(&lines).await.is_err() {
            break 0;
        }
    };
    reading.abort();
    end(&mut connection, &hub, &output).await;
    code
}

fn pass_lines(connection: &mut EditorConnection<'_>, bytes: &[u8]) {
    for line in bytes.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
        connection.worker_line(line);
    }
}

/// Cancels what runs, lets the workers end, and kills those that do not.
async fn end(connection: &mut EditorConnection<'_>, hub: &Hub, output: &Output) {
    connection.cancel_all();
    hub.drain(0);
    let ending = async {
        while let Some(bytes) = hub.next_output().await {
            pass_lines(connection, &bytes);
            let lines = connection.take_output();
            if !lines.is_empty() && output.write_all(&lines).await.is_err() {
                return;
            }
        }
    };
    // Workers that do not end are killed, and their guardians end what they started.
    let _ = tokio::time::timeout(END_LIMIT, ending).await;
    hub.kill_all();
}

async fn read(mut lines: Lines, sender: mpsc::Sender<InputLine>) {
    while let Ok(Some(line)) = lines.next().await {
        if sender.send(line).await.is_err() {
            return;
        }
    }
}
