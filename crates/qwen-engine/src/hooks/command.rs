//! Hooks that run a command.

use std::sync::Arc;

use qwen_events::TraceContext;
use qwen_sandbox::process::{Environment, Exit, ProcessSpec, Stdin, spawn};
use qwen_sandbox::{ProcessRole, ProcessSandbox, SandboxAccess};
use qwen_tools::SessionResources;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};

use super::HookEvent;
use super::answer::HookAnswer;
use super::capture::{HookCapture, Pipe};

/// The maximum output of a hook, in bytes.
const MAX_OUTPUT: usize = 1024 * 1024;

/// The failure of a hook that exceeds it.
const TOO_MUCH: &str = "it wrote more than 1 MiB";

/// The read buffer size, in bytes.
const PIECE: usize = 8 * 1024;

/// The exit code that blocks the observed action.
const BLOCKS: i32 = 2;

/// A hook to start.
pub(super) struct HookStart<'a> {
    pub event: HookEvent,
    pub line: &'a str,
    pub resources: &'a SessionResources,
    /// Variables that it does not get.
    pub withheld: &'a [String],
    /// It runs in the sandbox of commands.
    pub is_confined: bool,
}

/// Runs a hook's command line with `input` on its standard input and stores its output in `capture`. Dropping
/// the future kills the command and all processes that it started.
pub(super) async fn run(
    HookStart { event, line, resources, withheld, is_confined }: HookStart<'_>,
    input: &str,
    in_trace: Option<&TraceContext>,
    capture: &HookCapture,
) -> Result<HookAnswer, String> {
    let mut env = Environment::clone(&resources.env);
    for name in withheld {
        env.remove(name);
    }
    env.set("QWEN_PROJECT_DIR", &resources.cwd);
    env.set("CLAUDE_PROJECT_DIR", &resources.cwd);
    if let Some(context) = in_trace {
        env.set_trace(context);
    }
    let enter =
        || resources.sandbox.enter(ProcessRole::Command, SandboxAccess::Workspace, &resources.scratch);
    let sandbox = is_confined.then(enter).transpose().map_err(|error| error.message.to_string())?;
    let env = Arc::new(env);
    let env = sandbox.as_ref().map_or(env.clone(), |sandbox| sandbox.environment(env));
    let mut spec = ProcessSpec::new("sh", &resources.cwd, env);
    spec.args = vec!["-c".into(), line.into()];
    spec.stdin = Stdin::Pipe;
    spec.before_exec = sandbox.as_ref().and_then(ProcessSandbox::before_exec);
    let mut running = spawn(spec).await.map_err(|error| error.to_string())?;
    let stdin = running.stdin.take();
    let (stdout, stderr) = (running.stdout.take(), running.stderr.take());
    let send_input = async {
        if let Some(mut stdin) = stdin {
            // A hook may ignore its input.
            let _ = stdin.write_all(input.as_bytes()).await;
        }
        Ok(())
    };
    let stderr = async {
        match read_pipe(stderr, Pipe::Stderr, capture).await {
            PipeOutput::Complete(text) => Ok(text),
            // The exit code still counts, so the hook is not disturbed.
            PipeOutput::TooLong(mut rest) => {
                let _ = tokio::io::copy(&mut rest, &mut tokio::io::sink()).await;
                Ok(TOO_MUCH.to_owned())
            }
        }
    };
    let stdout = async {
        match read_pipe(stdout, Pipe::Stdout, capture).await {
            PipeOutput::Complete(text) => Ok(text),
            // No answer can come any more: the hook is ended without waiting for its time limit.
            PipeOutput::TooLong(_) => Err(TOO_MUCH.to_owned()),
        }
    };
    let ((), stdout, stderr) = tokio::try_join!(send_input, stdout, stderr)?;
    let exit = running.wait().await;
    let hidden = match exit {
        Exit::Code(0) => None,
        _ => sandbox.as_ref().and_then(|sandbox| sandbox.explain_hidden([line])),
    };
    let tampered = sandbox.map(ProcessSandbox::release).unwrap_or_default();
    if let Some(tampered) = tampered.first() {
        return Err(tampered.to_string());
    }
    if let Exit::Code(code) = exit {
        capture.exited(code);
    }
    match exit {
        Exit::Code(0) => answer(event, &stdout),
        Exit::Code(BLOCKS) => Ok(HookAnswer {
            block: true,
            permission: Some(super::Permission::Deny),
            reason: Some(hidden.as_deref().unwrap_or_else(|| stderr.trim()).into()),
            ..HookAnswer::default()
        }),
        Exit::Code(code) => {
            let why = hidden.unwrap_or_else(|| first_line(&stderr));
            Err(format!("it ended with exit code {code}: {why}"))
        }
        Exit::Signal(signal) => Err(format!("it was ended by signal {signal}")),
        Exit::Lost => Err("it was lost".to_owned()),
    }
}

/// The answer of a hook that succeeded: JSON, plain context, or output that has no meaning.
fn answer(event: HookEvent, stdout: &str) -> Result<HookAnswer, String> {
    let text = stdout.trim();
    if text.starts_with('{') {
        return HookAnswer::read(event, text).map_err(|error| format!("its answer cannot be used: {error}"));
    }
    let context = (event.takes_plain_context() && !text.is_empty()).then(|| text.into());
    Ok(HookAnswer { context, ..HookAnswer::default() })
}

/// What was read from a pipe.
enum PipeOutput<P> {
    Complete(String),
    /// The output exceeds the maximum; the pipe is not at its end.
    TooLong(P),
}

/// Reads a pipe to its end, or up to the maximum.
async fn read_pipe<P: AsyncRead + Unpin>(
    pipe: Option<P>,
    which: Pipe,
    capture: &HookCapture,
) -> PipeOutput<P> {
    if let Some(mut pipe) = pipe {
        let mut piece = vec![0; PIECE];
        // Output before a read error is still used.
        while let Ok(length @ 1..) = pipe.read(&mut piece).await {
            if capture.take(which, &piece[..length]) > MAX_OUTPUT {
                return PipeOutput::TooLong(pipe);
            }
        }
    }
    PipeOutput::Complete(capture.text(which))
}

fn first_line(text: &str) -> String {
    text.lines()
        .find(|line| !line.trim().is_empty())
        .unwrap_or("it wrote nothing")
        .chars()
        .take(200)
        .collect()
}

#[cfg(test)]
mod tests {

    use super::super::Permission;
    use super::*;

    #[tokio::test]
    async fn exit_codes_and_words_mean_what_they_say() {
        let cwd = tempfile::tempdir().unwrap();
        let resources = SessionResources::with_own_environment(cwd.path().into());
        let plain = HookAnswer::default();
        let blocked = |reason: &str| HookAnswer {
            block: true,
            permission: Some(Permission::Deny),
            reason: Some(reason.into()),
            ..HookAnswer::default()
        };
        let context = HookAnswer { context: Some("it rains".into()), ..HookAnswer::default() };
        let greeting = HookAnswer { message: Some("hi".into()), ..HookAnswer::default() };
        let cases = [
            (HookEvent::PreToolUse, "true", Ok(plain.clone())),
            (HookEvent::PreToolUse, "echo words", Ok(plain)),
            (HookEvent::UserPromptSubmit, "echo it rains", Ok(context)),
            (HookEvent::PreToolUse, "cat; echo no >&2; exit 2", Ok(blocked("no"))),
            (HookEvent::PreToolUse, r#"grep -q '"a":1' && echo '{"systemMessage":"hi"}'"#, Ok(greeting)),
            (HookEvent::PreToolUse, "exit 3", Err("exit code 3")),
            (HookEvent::PreToolUse, "echo '{'", Err("cannot be used")),
            (HookEvent::PreToolUse, "exec yes", Err("more than 1 MiB")),
            (HookEvent::PreToolUse, "yes | head -c 2000000 >&2; exit 2", Ok(blocked(TOO_MUCH))),
        ];
        for (event, line, expected) in cases {
            let start = HookStart { event, line, resources: &resources, withheld: &[], is_confined: false };
            let answer = run(start, r#"{"a":1}"#, None, &HookCapture::default()).await;
            match (answer, expected) {
                (Ok(answer), Ok(expected)) => assert_eq!(answer, expected, "{line}"),
                (Err(error), Err(piece)) => assert!(error.contains(piece), "{line}: {error}"),
                (answer, expected) => panic!("{line}: {answer:?}, not {expected:?}"),
            }
        }
    }
}
