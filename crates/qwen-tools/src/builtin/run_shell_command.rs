//! `run_shell_command`: runs a command line, in the foreground with its output streamed, or in the
//! background.

use std::io::Write;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use qwen_events::{
    Argument, ArgumentRole, ArgumentValue, Channel, ClaudeTool, ToolCall, ToolDeclaration, ToolKind,
};

use super::command_line::start;
use crate::background::{ForegroundCall, StartedCommand};
use crate::declared::{DeclaredTool, tool_input};
use crate::output::clean_pipe::BUFFER;
use crate::output::plain_output::PlainOutput;
use crate::output::transcript::Transcript;
use crate::refusal::Refusal;
use crate::workspace::Workspace;
use crate::{CallContext, Outcome, ToolFuture};
use qwen_sandbox::process::{Exit, SpawnError};
use qwen_sandbox::{ProcessRole, ProcessSandbox, SandboxAccess};

const MAX_TIMEOUT_MS: u64 = 600_000;
/// How many buffers are read after all processes of the command have ended.
const LEFT_OVER_READS: usize = 64;

const DESCRIPTION: &str = "Runs a command line with bash and gives back what it printed (stdout and stderr together) \
and its exit code. It runs in the workspace, without a terminal and without input: answer prompts with flags such as \
--yes. Everything that the command started is ended when it ends; to keep a server running use is_background. Long \
output is cut in the middle, and the result names a file with all of it. Prefer the file tools for reading, searching \
and editing files.";

pub(super) struct RunShellCommand;

tool_input! {
    struct Input {
        command: String = Argument::new(ArgumentValue::NonBlankText, "The command line, as typed into bash.").role(ArgumentRole::Command),
        is_background: Option<bool> = Argument::new(ArgumentValue::Flag, "Start it and return at once with a task id for shell_task. Default false."),
        timeout: Option<u64> = Argument::new(ArgumentValue::Number { min: 1, max: MAX_TIMEOUT_MS }, "Milliseconds until the command is ended. Default 120000, unless the user chose another."),
        description: Option<String> = Argument::new(ArgumentValue::Text, "What the command does, in a few words, for the person who watches."),
        directory: Option<String> = Argument::new(ArgumentValue::NonBlankText, "Where to run it, relative to the workspace. Default: the workspace itself.").role(ArgumentRole::WorkingDirectory),
    }
}

impl DeclaredTool for RunShellCommand {
    const DECLARATION: &'static ToolDeclaration =
        &ToolDeclaration::new("run_shell_command", ToolKind::Execute, DESCRIPTION, Input::ARGUMENTS)
            .aliases(&["shell"])
            .claude(&[ClaudeTool {
                renamed: &[("is_background", "run_in_background")],
                absent: &["directory"],
                added: &[Argument {
                    name: "dangerouslyDisableSandbox",
                    ..Argument::new(
                        ArgumentValue::Flag,
                        "Has no effect: the user's settings decide about the sandbox.",
                    )
                }],
                ..ClaudeTool::named("Bash")
            }]);

    fn run<'a>(call: &'a ToolCall, cx: &'a CallContext) -> ToolFuture<'a> {
        Box::pin(async move { run(call, cx).await.unwrap_or_else(Outcome::from) })
    }
}

async fn run(call: &ToolCall, cx: &CallContext) -> Result<Outcome, Refusal> {
    let (input, arguments) = Input::parse(call)?;
    let command = input.command.as_str();
    let timeout = input.timeout.map_or(cx.shell_timeout, Duration::from_millis);
    let background = input.is_background.unwrap_or(false);
    let description = input.description.as_deref();
    let directory = match input.directory.as_deref() {
        None => cx.cwd.clone(),
        Some(directory) => {
            match Workspace::of(cx).and_then(|workspace| workspace.open_directory(directory)) {
                Ok(opened) => opened.path,
                Err(error) => {
                    return Err(arguments
                        .refuse("directory", format_args!("cannot be used: {error}"))
                        .into());
                }
            }
        }
    };

    let access = if cx.read_only { SandboxAccess::ReadOnly } else { SandboxAccess::Workspace };
    let sandbox = cx.sandbox.enter(ProcessRole::Command, access, &cx.scratch);
    let sandbox = sandbox.map_err(|error| Refusal::new(error.code, error.message.to_string()))?;
    if let Some(warning) = &sandbox.warning {
        cx.output.output(Channel::Stderr, format!("{warning}\n").into()).await;
    }
    let starting = start(command, directory, &sandbox, cx);
    let words: (Arc<str>, Arc<str>) =
        (command.into(), description.filter(|words| !words.is_empty()).unwrap_or(command).into());
    if background {
        let (path, file) = cx.scratch.create("background").map_err(|error| not_started(&error.into()))?;
        let running = starting.await.map_err(|error| not_started(&error))?;
        let pid = running.pid();
        let started = (StartedCommand::new(running, &cx.redactor), sandbox);
        let started = cx.tasks.add_command(words, call.id.clone(), started, (&path, file)).await;
        let id = &started.task.id;
        let text = format!(
            "Started in the background as task {id} (process {pid}).\nIts output goes to {}.\n{TASK_HINT}",
            path.display()
        );
        return Ok(Outcome { mentions_tools: true, ..Outcome::success(text) });
    }
    let running = tokio::select! {
        biased;
        () = cx.cancel.cancelled() => {
            return Ok(Outcome { cancelled: true, ..Outcome::failure("cancelled", "The command was cancelled.") });
        }
        started = starting => started.map_err(|error| not_started(&error))?,
    };
    let mut transcript = Transcript::new(cx.output_limit, &cx.scratch, "shell");
    let foreground = cx.tasks.foreground(&call.id);
    let started = StartedCommand::new(running, &cx.redactor);
    let (exit, ending) = match follow(started, cx, timeout, &mut transcript, &foreground).await {
        Followed::Ended(exit, ending) => (exit, ending),
        Followed::Moved(started) => {
            let started = (*started, sandbox);
            return Ok(move_to_background(words, call, started, transcript, cx).await);
        }
    };
    drop(foreground);
    let mut outcome = outcome(exit, ending, timeout, transcript);
    if let Some(limits) = sandbox.limits().filter(|_| outcome.error_code == Some("command_failed")) {
        if cx.read_only {
            explain_read_only(&mut outcome);
        } else if let Some(note) = limits.explain(&outcome.text) {
            outcome.text.push_str(&format!("\n{note}"));
        }
    }
    for tampered in sandbox.release() {
        outcome.text.push_str(&format!("\n{tampered}"));
    }
    Ok(outcome)
}

/// What the model can do with a command in the background.
const TASK_HINT: &str =
    "Use shell_task to see its new output or to end it; it ends with the session at the latest.";

/// Leaves a command that the user moved to the background to its task.
async fn move_to_background(
    words: (Arc<str>, Arc<str>),
    call: &ToolCall,
    started: (StartedCommand, ProcessSandbox),
    transcript: Transcript<'_>,
    cx: &CallContext,
) -> Outcome {
    let pid = started.0.running.pid();
    let (so_far, _) = transcript.finish();
    let output = cx.scratch.create("background").and_then(|(path, mut file)| {
        file.write_all(so_far.as_bytes())?;
        Ok((path, file))
    });
    let (path, file) = match output {
        Ok(output) => output,
        Err(error) => {
            // Without the file its output would be lost, so it is ended by dropping it.
            let text =
                format!("The command cannot go on in the background and was ended: {error}.\n{so_far}");
            return Outcome::failure("not_started", text);
        }
    };
    let task = cx.tasks.add_command(words, call.id.clone(), started, (&path, file)).await;
    let id = &task.task.id;
    let text = format!(
        "The user moved the command to the background, where it continues as task {id} (process {pid}).\nIts output \
         goes to {}. {TASK_HINT}\nIts output so far:\n{so_far}",
        path.display()
    );
    Outcome { mentions_tools: true, ..Outcome::success(text) }
}

/// Messages that programs print when the read-only sandbox denies an operation.
const REFUSED_BY_SANDBOX: &[&str] = &[
    "Read-only file system",
    "Permission denied",
    "Operation not permitted",
    "Network is unreachable",
    "Could not resolve",
    "name resolution",
    "Failed to connect",
    "onnection refused",
];

/// Explains to the model why a command that ran without approval may have failed, and how to request
/// approval.
fn explain_read_only(outcome: &mut Outcome) {
    if !REFUSED_BY_SANDBOX.iter().any(|words| outcome.text.contains(words)) {
        return;
    }
    outcome.needs_write_access = true;
    outcome.text.push_str(
        "\n[It ran without approval because it seemed to only read, in a sandbox that cannot write and has no network. If it \
         failed because of that, make the same call again: the user is then asked for approval.]",
    );
}

fn not_started(error: &SpawnError) -> Refusal {
    Refusal::new("spawn_failed", format!("The command was not run: {error}."))
}

/// Why we ended a command.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Ending {
    Cancelled,
    TimedOut,
}

/// How the wait for a command ended.
enum Followed {
    Ended(Exit, Option<Ending>),
    /// The command continues in the background.
    Moved(Box<StartedCommand>),
}

/// Forwards the command's output until all its processes have ended, or it is moved to the background.
async fn follow(
    started: StartedCommand,
    cx: &CallContext,
    timeout: Duration,
    transcript: &mut Transcript<'_>,
    foreground: &ForegroundCall,
) -> Followed {
    let StartedCommand { mut running, pipes: [stdout, stderr] } = started;
    let (mut stdout, mut stderr) = ((stdout, Channel::Stdout), (stderr, Channel::Stderr));
    let mut buffer = vec![0; BUFFER];
    // Displays get the output as it is, the model without escape sequences.
    let mut plain = PlainOutput::default();
    let mut ending = None;
    let mut stop = pin!(async {
        tokio::select! {
            biased;
            () = cx.cancel.cancelled() => Ending::Cancelled,
            () = tokio::time::sleep(timeout) => Ending::TimedOut,
        }
    });
    let exit = loop {
        // In this order, so that what is there at the same moment always comes out the same way: output, then
        // errors.
        let (pipe, channel) = tokio::select! {
            biased;
            why = &mut stop, if ending.is_none() => {
                ending = Some(why);
                running.terminate();
                continue;
            }
            () = foreground.moved(), if ending.is_none() => {
                transcript.push(&plain.finish());
                return Followed::Moved(Box::new(StartedCommand { running, pipes: [stdout.0, stderr.0] }));
            }
            () = stdout.0.ready() => &mut stdout,
            () = stderr.0.ready() => &mut stderr,
            exit = running.gone() => break exit,
        };
        let Some(text) = pipe.read(&mut buffer).filter(|text| !text.is_empty()) else { continue };
        transcript.push(&plain.push(&text));
        // A slow reader slows the command down, but must not prevent ending it.
        let mut sent = cx.output.output(*channel, text);
        loop {
            tokio::select! {
                biased;
                () = &mut sent => break,
                why = &mut stop, if ending.is_none() => {
                    ending = Some(why);
                    running.terminate();
                }
            }
        }
    };
    for (pipe, channel) in [&mut stdout, &mut stderr] {
        // Bounded, because a process outside our control may hold the descriptor.
        for _ in 0..LEFT_OVER_READS {
            let Some(text) = pipe.read_left_over(&mut buffer) else { break };
            if !text.is_empty() {
                transcript.push(&plain.push(&text));
                cx.output.output(*channel, text).await;
            }
        }
        if let Some(text) = pipe.rest() {
            transcript.push(&plain.push(&text));
            cx.output.output(*channel, text).await;
        }
    }
    transcript.push(&plain.finish());
    Followed::Ended(exit, ending)
}

fn outcome(exit: Exit, ending: Option<Ending>, timeout: Duration, transcript: Transcript<'_>) -> Outcome {
    let (mut text, file) = transcript.finish();
    let (error_code, note) = match (ending, exit) {
        (Some(Ending::Cancelled), _) => (
            Some("cancelled"),
            Some("The command was cancelled and ended, with all that it had started.".to_owned()),
        ),
        (Some(Ending::TimedOut), _) => (
            Some("tool_timeout"),
            Some(format!(
                "The command timed out after {} ms (the tool time-out) and was ended, with all that it had started. Give a longer \
                 timeout, or use is_background for what runs on.",
                timeout.as_millis()
            )),
        ),
        (None, Exit::Code(0)) => (None, text.is_empty().then(|| "(no output)".to_owned())),
        (None, Exit::Code(code)) => (Some("command_failed"), Some(format!("Exit code: {code}"))),
        (None, Exit::Signal(signal)) => {
            (Some("command_failed"), Some(format!("The command was killed by signal {signal}.")))
        }
        (None, Exit::Lost) => (
            Some("command_failed"),
            Some("The process that watched the command was killed, and it with it.".to_owned()),
        ),
    };
    if let Some(note) = note {
        if !text.is_empty() && !text.ends_with('\n') {
            text.push('\n');
        }
        text.push_str(&note);
    }
    Outcome {
        text,
        error_code,
        cancelled: ending == Some(Ending::Cancelled),
        output_file: file.map(|file| file.to_string_lossy().into()),
        exit_code: match exit {
            Exit::Code(code) => Some(code),
            Exit::Signal(signal) => Some(128 + signal),
            Exit::Lost => None,
        },
        ..Outcome::default()
    }
}
