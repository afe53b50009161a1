//! `qwen mcp serve`: the agent as an MCP server on standard input and output.

use std::fs::{DirBuilder, File};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use qwen_events::ErrorInfo;
use qwen_serve::{Listen, McpLines, McpParts, ServeError, ServeLimits, ServeOptions};
use tokio::sync::mpsc;
use tokio::task::LocalSet;

use super::sessions::{PreparedSessions, WorkerFlags, invocation, lock, refuse, state_directory, workspaces};
use crate::cli::McpServeArgs;
use crate::io::input::{InputLine, Lines, StdinReader};
use crate::io::output::Output;
use crate::runtime::exit;

/// How many servers may run at the same time with one QWEN_HOME.
const SERVERS: usize = 64;

/// Lines that wait to be handled or written.
const CAPACITY: usize = 16;

/// Reads the flags and opens a directory for the server.
pub fn prepare(args: &McpServeArgs) -> Result<PreparedSessions, ErrorInfo> {
    let invocation = invocation()?;
    let (state, lock) = free_directory(&state_directory(&invocation))?;
    let options = ServeOptions {
        listen: Listen::Unix(PathBuf::new()),
        workspaces: workspaces(&args.workspace, &invocation)?,
        origins: Vec::new(),
        allows_remote: false,
        is_insecure: false,
        tls: None,
        state,
        limits: ServeLimits::default(),
    };
    let flags = WorkerFlags { approval_timeout: args.approval_timeout, further: &args.worker_args };
    PreparedSessions::open(options, &invocation, &flags, lock)
}

/// Each client starts its server. The first directory that none uses is taken, so that a client that comes
/// alone finds its sessions again.
fn free_directory(parent: &Path) -> Result<(PathBuf, File), ErrorInfo> {
    for number in 1..=SERVERS {
        let state = parent.join(format!("mcp-{number}"));
        let created = DirBuilder::new().recursive(true).mode(0o700).create(&state);
        created.map_err(|error| refuse(format!("{} cannot be used: {error}.", state.display())))?;
        if let Some(lock) = lock(&state)? {
            return Ok((state, lock));
        }
    }
    Err(refuse(format!("{SERVERS} MCP servers run already. Stop one, or set another QWEN_HOME.")))
}

/// Serves until standard input ends or a signal arrives, and returns the exit code.
pub async fn run(prepared: PreparedSessions) -> u8 {
    LocalSet::new().run_until(serve(prepared)).await
}

async fn serve(prepared: PreparedSessions) -> u8 {
    let served = async {
        let failed = |error| ServeError(format!("Standard input and output cannot be used: {error}."));
        let (input, output) = (StdinReader::stdin().map_err(failed)?, Output::stdout().map_err(failed)?);
        let (sessions, _lock) = prepared.start().await?;
        let (sender, incoming) = mpsc::channel(CAPACITY);
        let (outgoing, written) = mpsc::channel(CAPACITY);
        tokio::task::spawn_local(read(Lines::new(input), sender));
        let writing = tokio::task::spawn_local(write(output, written));
        let lines = McpLines { incoming, outgoing };
        let code = qwen_serve::serve_mcp(McpParts { lines, sessions }).await;
        writing.abort();
        code
    };
    served.await.unwrap_or_else(|error| {
        exit::report(&format!("qwen: {error}"));
        1
    })
}

async fn read(mut lines: Lines, sender: mpsc::Sender<Vec<u8>>) {
    while let Ok(Some(line)) = lines.next().await {
        let line = match line {
            InputLine::Whole(line) => line,
            // Answered as a line that is not a message.
            InputLine::TooLong => b"-".to_vec(),
        };
        if sender.send(line).await.is_err() {
            return;
        }
    }
}

async fn write(output: Output, mut lines: mpsc::Receiver<Vec<u8>>) {
    loop {
        let line = tokio::select! {
            line = lines.recv() => line,
            // The client is gone; the end of the channel reports it.
            () = output.reader_gone() => return,
        };
        let Some(line) = line else { return };
        if output.write_all(&line).await.is_err() {
            return;
        }
    }
}
