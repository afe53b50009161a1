//! `shell_task`: reads the output of a background command or sub-agent, and stops it.

use std::time::Duration;

use qwen_events::{Argument, ArgumentValue, ClaudeTool, ToolCall, ToolDeclaration, ToolKind};

use crate::declared::{DeclaredTool, tool_input};
use crate::output::plain_output::plain;
use crate::output::transcript::shorten;
use crate::refusal::Refusal;
use crate::{BackgroundTask, CallContext, Outcome, ToolFuture};

/// The longest wait for the end of a task.
const MAX_WAIT_MS: u64 = 600_000;
/// Most lines that a look at the end of the output gives.
const MAX_TAIL: u64 = 2000;

const DESCRIPTION: &str = "Reads or ends a background task: a command that run_shell_command started with \
is_background, or a sub-agent in the background. \"output\" returns its state and its new output since the last call; \
\"kill\" ends it with everything that it started.";

const OUTPUT_DESCRIPTION: &str =
    "Returns the state of a background command and its new output since the last call.";

const KILL_DESCRIPTION: &str = "Ends a background command, with everything that it started.";

const WAIT_DESCRIPTION: &str = "Returns the state of a background command or sub-agent and its new output since the last call. Waits for its end first.";

const STOP_DESCRIPTION: &str = "Ends a background command or sub-agent, with everything that it started.";

pub(in crate::builtin) struct ShellTask;

tool_input! {
    struct Input {
        task_id: String = Argument::new(ArgumentValue::NonBlankText, "The id that was returned when it was started."),
        action: String = Argument::new(ArgumentValue::Choice(&["output", "kill"]), "The action."),
        wait: Option<u64> = Argument::new(ArgumentValue::Number { min: 0, max: MAX_WAIT_MS }, "With output: wait up to this many milliseconds for it to end. Default 0."),
        tail: Option<u64> = Argument::new(ArgumentValue::Number { min: 1, max: MAX_TAIL }, "With output: return this many lines from the end of all its output instead of the new output."),
    }
}

impl DeclaredTool for ShellTask {
    const DECLARATION: &'static ToolDeclaration =
        &ToolDeclaration::new("shell_task", ToolKind::Session, DESCRIPTION, Input::ARGUMENTS).claude(&[
            ClaudeTool {
                description: Some(OUTPUT_DESCRIPTION),
                renamed: &[("task_id", "bash_id")],
                absent: &["wait", "tail"],
                implied: &[("action", "output")],
                ..ClaudeTool::with_name("BashOutput")
            },
            ClaudeTool {
                description: Some(KILL_DESCRIPTION),
                renamed: &[("task_id", "shell_id")],
                absent: &["wait", "tail"],
                implied: &[("action", "kill")],
                ..ClaudeTool::with_name("KillShell")
            },
            ClaudeTool {
                description: Some(WAIT_DESCRIPTION),
                absent: &["wait", "tail"],
                implied: &[("action", "output")],
                added: &[
                    Argument {
                        name: "block",
                        ..Argument::new(ArgumentValue::Flag, "Wait until it ends. Default true.")
                    },
                    Argument {
                        name: "timeout",
                        ..Argument::new(
                            ArgumentValue::Number { min: 0, max: MAX_WAIT_MS },
                            "The maximum time to wait, in milliseconds. Default 30000.",
                        )
                    },
                ],
                defaults: &[("block", "true"), ("timeout", "30000")],
                ..ClaudeTool::with_name("TaskOutput")
            },
            ClaudeTool {
                description: Some(STOP_DESCRIPTION),
                also: &[("task_id", "shell_id")],
                absent: &["wait", "tail"],
                implied: &[("action", "kill")],
                ..ClaudeTool::with_name("TaskStop")
            },
        ]);

    fn run<'a>(call: &'a ToolCall, cx: &'a CallContext) -> ToolFuture<'a> {
        Box::pin(async move { run(call, cx).await.unwrap_or_else(Outcome::from) })
    }
}

async fn run(call: &ToolCall, cx: &CallContext) -> Result<Outcome, Refusal> {
    let (Input { task_id, action, wait, tail }, arguments) = Input::parse(call)?;
    let (id, kill) = (task_id.as_str(), action == "kill");
    let Some(task) = cx.session.tasks.get(id) else {
        let known = cx.session.tasks.ids();
        let known = match known.as_slice() {
            [] => "none was started".to_owned(),
            known => format!("the tasks of this session are {}", known.join(", ")),
        };
        return Err(Refusal::new("task_not_found", format!("There is no background task {id}; {known}.")));
    };
    let blocks = arguments.optional_bool("block")? == Some(true);
    let timeout = arguments.optional_number("timeout", 0..=MAX_WAIT_MS)?.unwrap_or(MAX_WAIT_MS);
    let wait = if blocks { timeout } else { wait.unwrap_or(0) };
    if !kill && wait > 0 {
        tokio::select! {
            _ = task.wait() => {}
            () = tokio::time::sleep(Duration::from_millis(wait)) => {}
            () = cx.cancel.cancelled() => {}
        }
    }
    let before = task.ended();
    let state = match &before {
        Some(ended) => &*ended.words,
        None if kill => {
            task.mark_reported();
            task.stop();
            task.wait().await;
            "It was ended, with everything that it had started."
        }
        None => "It is running.",
    };
    if before.is_some() {
        task.mark_reported();
    }
    task.catch_up().await;
    let news = match tail {
        Some(lines) => last_lines_text(&task, lines, cx),
        None => new_output_text(&task, cx),
    };
    Ok(Outcome {
        exit_code: before.as_ref().and_then(|ended| ended.exit_code),
        ..Outcome::success(format!("Task {id}: {}\n{state}\n{news}", task.asked))
    })
}

/// Returns the last lines of all the output.
fn last_lines_text(task: &BackgroundTask, lines: u64, cx: &CallContext) -> String {
    let wanted = usize::try_from(lines).unwrap_or(usize::MAX);
    match task.last_lines(wanted, cx.session.output_limit as u64) {
        Err(error) => cannot_be_read(task, &error),
        Ok(text) if text.is_empty() => "Nothing was written.".to_owned(),
        Ok(text) => match text.lines().count() {
            1 => format!("The last line of its output:\n{text}"),
            count => format!("The last {count} lines of its output:\n{text}"),
        },
    }
}

/// Returns the output since the last call.
fn new_output_text(task: &BackgroundTask, cx: &CallContext) -> String {
    let limit = cx.session.output_limit;
    match task.new_output(limit as u64) {
        Err(error) => cannot_be_read(task, &error),
        Ok((bytes, _)) if bytes.is_empty() => "Nothing new was written.".to_owned(),
        Ok((bytes, skipped)) => {
            let text = shorten(&plain(&String::from_utf8_lossy(&bytes)), limit, &task.output);
            let skipped = match skipped {
                0 => String::new(),
                n => {
                    format!("[… {n} bytes before this; the whole output is in {} …]\n", task.output.display())
                }
            };
            format!("New output:\n{skipped}{text}")
        }
    }
}

fn cannot_be_read(task: &BackgroundTask, error: &std::io::Error) -> String {
    format!("Its output in {} cannot be read: {error}", task.output.display())
}
