//! `run_shell_command`: runs a command line, in the foreground with its output streamed, or in the
//! background.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use qwen_events::{
    Argument, ArgumentRole, ArgumentValue, Channel, ClaudeTool, NO_OUTPUT, ToolCall, ToolDeclaration,
    ToolKind,
};

use super::command_line::start;
use super::follow::{Ending, Followed, follow};
use super::shell_report::ShellReport;
use crate::background::StartedCommand;
use crate::declared::{DeclaredTool, tool_input};
use crate::output::transcript::Transcript;
use crate::refusal::Refusal;
use crate::workspace::Workspace;
use crate::{CallContext, Outcome, ToolFuture};
use qwen_sandbox::process::{Exit, SpawnError};
use qwen_sandbox::{ProcessRole, ProcessSandbox, SandboxAccess, SandboxLimits};

const MAX_TIMEOUT_MS: u64 = 600_000;

/// The share of the output limit that is reserved for exit code and notes.
const RESERVED_SHARE: usize = 16;

const DESCRIPTION: &str = "Runs a command line with bash and returns its output (stdout and stderr in the order \
written) and its exit code if that is not 0. It runs in the workspace, without a terminal and without input: answer \
prompts with flags such as --yes. A cd carries over to the next command while it stays in the workspace. When the \
command ends, every process that it started is ended; to keep a server running use is_background. Long output is \
shortened to its beginning and a longer part of its end, and the result names a file with the whole output. Prefer \
the file tools for reading, searching and editing files.";

pub(in crate::builtin) struct RunShellCommand;

tool_input! {
    struct Input {
        command: String = Argument::new(ArgumentValue::NonBlankText, "The command line, as typed into bash.").role(ArgumentRole::Command),
        is_background: Option<bool> = Argument::new(ArgumentValue::Flag, "Start it and return immediately with a task id for shell_task. Default false."),
        timeout: Option<u64> = Argument::new(ArgumentValue::Number { min: 1, max: MAX_TIMEOUT_MS }, "Time-out in milliseconds. Default 120000, unless the user set another."),
        description: Option<String> = Argument::new(ArgumentValue::Text, "What the command does, in a few words, for the user."),
        directory: Option<String> = Argument::new(ArgumentValue::NonBlankText, "The directory to run it in, relative to the workspace. Default: the directory in which the last command ended; at first the workspace.").role(ArgumentRole::WorkingDirectory),
    }
}

impl DeclaredTool for RunShellCommand {
    const DECLARATION: &'static ToolDeclaration =
        &ToolDeclaration::new("run_shell_command", ToolKind::Execute, DESCRIPTION, Input::ARGUMENTS)
            .aliases(&["shell"])
            .claude(&[ClaudeTool {
                renamed: &[("is_background", "run_in_background")],
                absent: &["directory"],
                ..ClaudeTool::with_name("Bash")
            }]);

    fn run<'a>(call: &'a ToolCall, cx: &'a CallContext) -> ToolFuture<'a> {
        Box::pin(async move { run(call, cx).await.unwrap_or_else(Outcome::from) })
    }
}

async fn run(call: &ToolCall, cx: &CallContext) -> Result<Outcome, Refusal> {
    let (input, arguments) = Input::parse(call)?;
    let command = input.command.as_str();
    let timeout = input.timeout.map_or(cx.session.shell_timeout, Duration::from_millis);
    let directory = match input.directory.as_deref() {
        None => cx.session.cwd.clone(),
        Some(directory) => {
            match Workspace::for_call(cx).and_then(|workspace| workspace.open_directory(directory)) {
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
    let sandbox = cx.session.sandbox.enter(ProcessRole::Command, access, &cx.session.scratch);
    let sandbox = sandbox.map_err(|error| Refusal::new(error.code, error.message.to_string()))?;
    if let Some(warning) = &sandbox.warning {
        cx.output.output(Channel::Stderr, format!("{warning}\n").into()).await;
    }
    let description = input.description.as_deref().filter(|words| !words.is_empty());
    let words: (Arc<str>, Arc<str>) = (command.into(), description.unwrap_or(command).into());
    if input.is_background.unwrap_or(false) {
        return start_in_background(call, command, directory, words, sandbox, cx).await;
    }
    let started_in = directory.clone();
    let changed_before = cx.session.ledger.list_changed();
    let report = ShellReport::create(command).map_err(|error| not_started(&error.into()))?;
    let running = tokio::select! {
        biased;
        () = cx.cancel.cancelled() => {
            return Ok(Outcome { cancelled: true, ..Outcome::failure("cancelled", "The command was cancelled.") });
        }
        started = start(command, directory, report.as_ref(), &sandbox, cx) => {
            started.map_err(|error| not_started(&error))?
        }
    };
    let limit = cx.session.output_limit - cx.session.output_limit / RESERVED_SHARE;
    let mut transcript = Transcript::new(limit, &cx.session.scratch, "shell");
    let foreground = cx.session.tasks.foreground(&call.id);
    let started = StartedCommand::new(running, &cx.session.redactor);
    let (exit, ending) = match follow(started, cx, timeout, &mut transcript, &foreground).await {
        Followed::Ended(exit, ending) => (exit, ending),
        Followed::Moved(started) => {
            let started = (*started, sandbox);
            return Ok(move_to_background(words, call, started, transcript, cx).await);
        }
    };
    drop(foreground);
    cx.session.ledger.attribute_changes(&changed_before, command);
    let mut outcome = outcome(exit, ending, timeout, transcript);
    let reported = report.filter(|_| ending.is_none()).map(ShellReport::read).unwrap_or_default();
    let failed_parts = reported.describe_failed_parts();
    let part_failed = failed_parts.is_some();
    let notes = [failed_parts, carry_directory(reported.directory, &started_in, cx)];
    for note in notes.into_iter().flatten() {
        push_note(&mut outcome.text, &note);
    }
    report_sandbox(&mut outcome, sandbox, command, part_failed, cx);
    Ok(outcome)
}

/// Starts a command that outlives its call.
async fn start_in_background(
    call: &ToolCall,
    command: &str,
    directory: PathBuf,
    words: (Arc<str>, Arc<str>),
    sandbox: ProcessSandbox,
    cx: &CallContext,
) -> Result<Outcome, Refusal> {
    let (path, file) = cx.session.scratch.create("background").map_err(|error| not_started(&error.into()))?;
    let started = start(command, directory, None, &sandbox, cx).await;
    let running = started.map_err(|error| not_started(&error))?;
    let pid = running.pid();
    let started = (StartedCommand::new(running, &cx.session.redactor), sandbox);
    let started = cx.session.tasks.add_command(words, call.id.clone(), started, (&path, file)).await;
    let id = &started.task.id;
    let text = format!(
        "Started in the background as task {id} (process {pid}).\nIts output goes to {}.\n{TASK_HINT}",
        path.display()
    );
    Ok(Outcome { mentions_tools: true, ..Outcome::success(text) })
}

/// Adds what the sandbox prevented during a command to its result. `part_failed`: an earlier part of its last
/// pipeline failed.
fn report_sandbox(
    outcome: &mut Outcome,
    sandbox: ProcessSandbox,
    command: &str,
    part_failed: bool,
    cx: &CallContext,
) {
    if let Some(limits) = sandbox.limits() {
        if outcome.error_code.is_some() {
            explain_by_sandbox(outcome, limits, command, cx.read_only);
        } else if part_failed
            && !cx.read_only
            && let Some(note) = limits.explain(&outcome.text)
        {
            push_note(&mut outcome.text, &note);
        }
    }
    let refusals = sandbox.take_network_refusals();
    if !refusals.is_empty() {
        push_note(
            &mut outcome.text,
            &format!("[Connections of the command were refused. {}]", refusals.join(" ")),
        );
    }
    for tampered in sandbox.release() {
        push_note(&mut outcome.text, &tampered.to_string());
    }
}

/// Lets the next command run where the shell ended, if that is in the workspace. Returns a note for the model if
/// the directory is another one than the command started in.
fn carry_directory(ended_in: Option<PathBuf>, started_in: &Path, cx: &CallContext) -> Option<String> {
    let ended_in = ended_in.filter(|directory| cx.carries_directory && directory != started_in)?;
    let workspace = Workspace::new(&cx.session.cwd, &cx.granted_roots).ok()?;
    let here = workspace.display_path(started_in).display();
    let opened = ended_in.to_str().and_then(|directory| workspace.open_directory(directory).ok());
    let Some(opened) = opened else {
        return Some(format!(
            "[The command ended in {}, outside the workspace. The next command runs in {here} again.]",
            ended_in.display()
        ));
    };
    if opened.path == started_in {
        return None;
    }
    let is_own = workspace.display_path(&opened.path) == Path::new(".");
    cx.session.shell_directory.set((!is_own).then(|| opened.path.clone()));
    Some(if is_own {
        "[The next command runs in the working directory again.]".to_owned()
    } else {
        format!(
            "[The next command runs in {}. The paths of other tools stay relative to the working directory.]",
            workspace.display_path(&opened.path).display()
        )
    })
}

/// Appends a note on its own line.
fn push_note(text: &mut String, note: &str) {
    if !text.is_empty() && !text.ends_with('\n') {
        text.push('\n');
    }
    text.push_str(note);
}

/// What the model can do with a command in the background.
const TASK_HINT: &str = "Its end is reported to you; until then shell_task shows what it writes. It ends with the session at the \
                         latest.";

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
    let output = cx.session.scratch.create("background").and_then(|(path, mut file)| {
        file.write_all(so_far.as_bytes())?;
        Ok((path, file))
    });
    let (path, file) = match output {
        Ok(output) => output,
        Err(error) => {
            // Without the file its output would be lost, so it is ended by dropping it.
            let text =
                format!("The command cannot continue in the background and was ended: {error}.\n{so_far}");
            return Outcome::failure("not_started", text);
        }
    };
    let task = cx.session.tasks.add_command(words, call.id.clone(), started, (&path, file)).await;
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

/// Programs that wait for the network until they time out, without printing why.
const NETWORK_PROGRAMS: &[&str] = &[
    "apt", "apt-get", "brew", "bun", "bundle", "cargo", "composer", "conda", "curl", "dnf", "docker", "ftp",
    "gem", "gh", "git", "go", "gradle", "helm", "kubectl", "mvn", "nc", "npm", "npx", "ping", "pip", "pip3",
    "pipx", "pnpm", "poetry", "rsync", "scp", "sftp", "ssh", "telnet", "uv", "wget", "yarn",
];

/// True if a word of the command line is the name of a program that uses the network.
fn uses_network(command: &str) -> bool {
    let words =
        command.split(|letter: char| !(letter.is_ascii_alphanumeric() || matches!(letter, '-' | '_' | '.')));
    words.into_iter().any(|word| NETWORK_PROGRAMS.contains(&word))
}

/// Explains a failure or time-out that the sandbox may have caused.
fn explain_by_sandbox(outcome: &mut Outcome, limits: &SandboxLimits, command: &str, read_only: bool) {
    let timed_out = outcome.error_code == Some("tool_timeout");
    if !timed_out && outcome.error_code != Some("command_failed") {
        return;
    }
    let waited_for_network = timed_out && uses_network(command);
    if read_only {
        explain_read_only(outcome, waited_for_network);
        return;
    }
    let silent = if waited_for_network { "Network is unreachable" } else { "" };
    if let Some(note) = limits.explain(&outcome.text).or_else(|| limits.explain(silent)) {
        push_note(&mut outcome.text, &note);
    }
}

/// Explains to the model why a command that ran without approval may have failed, and how to request
/// approval.
fn explain_read_only(outcome: &mut Outcome, waited_for_network: bool) {
    if !waited_for_network && !REFUSED_BY_SANDBOX.iter().any(|words| outcome.text.contains(words)) {
        return;
    }
    outcome.needs_write_access = true;
    push_note(
        &mut outcome.text,
        "[It ran without approval, as a read-only command, in a sandbox that cannot write and has no network. If it \
         failed because of that, repeat the call: it then requires approval.]",
    );
}

fn not_started(error: &SpawnError) -> Refusal {
    Refusal::new("spawn_failed", format!("The command was not run: {error}."))
}

fn outcome(exit: Exit, ending: Option<Ending>, timeout: Duration, transcript: Transcript<'_>) -> Outcome {
    let (mut text, file) = transcript.finish();
    let (error_code, note) = match (ending, exit) {
        (Some(Ending::Cancelled), _) => (
            Some("cancelled"),
            Some("The command was cancelled and ended, with everything that it had started.".to_owned()),
        ),
        (Some(Ending::TimedOut), _) => (
            Some("tool_timeout"),
            Some(format!(
                "The command timed out after {} ms (the tool time-out) and was ended, with everything that it had started. Give a longer \
                 timeout, or run it in the background if it keeps running.",
                timeout.as_millis()
            )),
        ),
        (None, Exit::Code(0)) => (None, text.is_empty().then(|| NO_OUTPUT.to_owned())),
        (None, Exit::Code(code)) => (Some("command_failed"), Some(format!("Exit code: {code}"))),
        (None, Exit::Signal(signal)) => {
            (Some("command_failed"), Some(format!("The command was killed by signal {signal}.")))
        }
        (None, Exit::Lost) => (
            Some("command_failed"),
            Some(
                "The process that supervised the command was killed, and the command was killed with it."
                    .to_owned(),
            ),
        ),
    };
    if let Some(note) = note {
        push_note(&mut text, &note);
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
