//! `shell_task`: what a command or a sub-agent in the background has written, and its end.

use qwen_events::{ToolCall, ToolSpec};

use super::spec;
use crate::refusal::Refusal;
use crate::transcript::shorten;
use crate::{Arguments, BackgroundTask, Outcome, Tool, ToolCx, ToolFuture};

const DESCRIPTION: &str = "Looks after a command that run_shell_command started with is_background, or a sub-agent in the \
background. \"output\" gives its state and what it has written since the last look; \"kill\" ends it with everything that \
it started.";

const SCHEMA: &str = r#"{"type":"object","properties":{
"task_id":{"type":"string","description":"The id that its start gave."},
"action":{"type":"string","enum":["output","kill"],"description":"What to do."}},
"required":["task_id","action"]}"#;

/// The tool.
pub(super) struct ShellTask {
    spec: ToolSpec,
}

impl ShellTask {
    pub(super) fn new() -> Self {
        Self { spec: spec("shell_task", DESCRIPTION, SCHEMA) }
    }
}

impl Tool for ShellTask {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn run<'a>(&'a self, call: &'a ToolCall, cx: &'a ToolCx) -> ToolFuture<'a> {
        Box::pin(async move { run(call, cx).await.unwrap_or_else(Outcome::from) })
    }
}

async fn run(call: &ToolCall, cx: &ToolCx) -> Result<Outcome, Refusal> {
    let arguments = Arguments::of(call)?;
    let id = arguments.sound_text("task_id")?;
    let kill = match arguments.text("action")? {
        "output" => false,
        "kill" => true,
        other => {
            return Err(arguments
                .refuse("action", format_args!("is {other:?}; it must be output or kill"))
                .into());
        }
    };
    let Some(task) = cx.bench.tasks.get(id) else {
        let known = cx.bench.tasks.ids();
        let known = if known.is_empty() { "none was started".to_owned() } else { known.join(", ") };
        return Err(Refusal::new("task_not_found", format!("There is no background task {id}: {known}.")));
    };
    let before = task.ended();
    let state = match &before {
        Some(ended) => &*ended.words,
        None if kill => {
            task.told();
            task.stop();
            task.over().await;
            "It was ended, with all that it had started."
        }
        None => "It is running.",
    };
    if before.is_some() {
        task.told();
    }
    task.catch_up().await;
    let news = news(&task, cx);
    Ok(Outcome {
        exit_code: before.as_ref().and_then(|ended| ended.exit_code),
        ..Outcome::success(format!("Task {id}: {}\n{state}\n{news}", task.asked))
    })
}

/// What is new since the last look.
fn news(task: &BackgroundTask, cx: &ToolCx) -> String {
    let limit = cx.bench.output_limit;
    // A character has at most four bytes.
    match task.new_output(limit as u64 * 4) {
        Err(error) => format!("Its output in {} cannot be read: {error}", task.output.display()),
        Ok((bytes, _)) if bytes.is_empty() => "Nothing new was written.".to_owned(),
        Ok((bytes, skipped)) => {
            let text = shorten(&String::from_utf8_lossy(&bytes), limit, &task.output);
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
