//! `qwen -p`: one prompt, one turn, one exit code.

use std::io::{self, Write};
use std::path::Path;
use std::pin::pin;
use std::sync::Arc;

use qwen_engine::commands::SessionTotals;
use qwen_engine::{Cancel, DeferredAnswers, Emitter, HeadlessHost, Host, Session, Stop, TurnInput};
use qwen_events::{
    Body, CallId, CommandCall, EndStatus, ErrorInfo, ErrorKind, Part, Prompt, PromptId, PromptOptions,
    TurnEnd,
};
use tokio::sync::mpsc;

use crate::cli::Run;
use crate::io::debug_log::DebugLog;
use crate::io::host_file::{SharedPlaces, WriteMode};
use crate::io::output::Output;
use crate::io::stream::{self, ObservedOutput, pump};
use crate::runtime::code_pages;
use crate::runtime::exit;
use crate::runtime::signals;
use crate::session::ProcessContext;
use crate::session::main_agent;
use crate::session::prompt;
use crate::session::setup;
use crate::session::slash::{self, Attachments, CommandRun, HostMessage, NextStep};
use crate::session::stored;
use crate::settings::Config;

/// Runs the prompt and returns the exit code.
pub async fn run(run: &Run, config: Arc<Config>) -> u8 {
    let output = match Output::stdout() {
        Ok(output) => output,
        Err(error) => {
            exit::report(&format!("qwen: standard output cannot be used: {error}"));
            return 1;
        }
    };
    let cancel = Cancel::default();
    if let Err(error) = signals::listen(&cancel) {
        exit::report(&format!("qwen: signals cannot be handled: {error}"));
        return 1;
    }
    let (sender, receiver) = mpsc::channel(stream::CAPACITY);
    let emit = setup::emitter(&config, sender);
    let debug_log = config.diagnostics.log.debug.as_ref().and_then(DebugLog::open);
    let renderer = setup::renderer(&config, debug_log.as_ref());
    let turn = async {
        let code = match start(run, &config, debug_log, &cancel).await {
            Ok(Start::Session(process, mut session, prompt)) => {
                // Startup code is no longer needed, and a turn uses different code.
                code_pages::release();
                let code = match prompt {
                    None => match session.continue_unfinished(true, &emit, &cancel).await {
                        Some(end) => finished(run, &session, &end),
                        None => 0,
                    },
                    Some(prompt) => {
                        let end = {
                            let turn = pin!(run_prompt(&process, &mut session, prompt, &emit, &cancel));
                            code_pages::release_at_first_wait(turn).await
                        };
                        match end {
                            PromptEnd::Turn(end) => finished(run, &session, &end),
                            PromptEnd::Command { failed } => u8::from(failed),
                        }
                    }
                };
                session.end("other", &emit).await;
                code
            }
            Ok(Start::Command(process, call)) => {
                let prompt_id = PromptId::of_turn(&config.session.id, 1);
                match command_run(&process, None, prompt_id, &emit, &cancel).run(call).await {
                    NextStep::Over { failed } => u8::from(failed),
                    NextStep::Turn(_) | NextStep::TypedCommand(_) | NextStep::Switch(_) | NextStep::Quit => 0,
                }
            }
            Err(error) => {
                let code = error.exit_code();
                emit.emit(Body::Fatal(Box::new(error))).await;
                code
            }
        };
        drop(emit);
        code
    };
    let written = async {
        let written = pump(receiver, renderer, ObservedOutput { output: &output, observer: None }).await;
        if written.is_err() {
            // Standard output has no reader any more, so the turn is stopped.
            cancel.stop(Stop { status: EndStatus::Interrupted, error: None });
        }
        written
    };
    match tokio::join!(turn, written) {
        (code, Ok(())) => code,
        // A reader that closes the pipe is a normal end (`qwen … | head`), as for any program in a pipeline.
        (_, Err(error)) if error.kind() == io::ErrorKind::BrokenPipe => 0,
        (_, Err(error)) => {
            exit::report(&format!("qwen: standard output: {error}"));
            1
        }
    }
}

/// The starting point of a run.
enum Start {
    /// The session and the prompt; without a prompt, the run continues an unfinished turn.
    Session(ProcessContext, Box<Session>, Option<String>),
    /// A command that needs neither a session nor a model.
    Command(ProcessContext, CommandCall),
}

/// How a prompt ended.
enum PromptEnd {
    Turn(Box<TurnEnd>),
    Command { failed: bool },
}

/// Writes `--output-last-message`, and returns the exit code of a turn.
fn finished(run: &Run, session: &Session, end: &TurnEnd) -> u8 {
    let flags = &run.diagnostics;
    let resources = &session.context().resources;
    let mut code = end.exit_code();
    if code == 0 && flags.fail_on_denied && !end.denials.is_empty() {
        code = 54;
    }
    if let Some(path) = &flags.output_last_message {
        let path = resources.cwd.join(path);
        let redacted = match &end.structured {
            Some(result) => resources.redactor.redact_json(result.as_str()),
            None => resources.redactor.redact(&end.reply),
        };
        let mut text = redacted.into_owned();
        if !text.is_empty() && !text.ends_with('\n') {
            text.push('\n');
        }
        if let Err(error) = write_last_message(&path, &resources.cwd, &text) {
            exit::report(&format!("qwen: --output-last-message {}: {error}", path.display()));
            code = if code == 0 { 1 } else { code };
        }
    }
    code
}

/// Replaces a file. Commands may have made links in the workspace, which are not followed.
fn write_last_message(path: &Path, cwd: &Path, text: &str) -> io::Result<()> {
    let file = SharedPlaces::new([cwd.to_owned()]).open_file(path, WriteMode::Replace);
    file.and_then(|mut file| file.write_all(text.as_bytes()))
}

/// Runs the prompt, or the command that it contains.
async fn run_prompt(
    process: &ProcessContext,
    session: &mut Session,
    prompt: String,
    emit: &Emitter,
    cancel: &Cancel,
) -> PromptEnd {
    let mut prompt_parts = vec![Part::Text(prompt.into())];
    let prompt_id = session.next_prompt_id();
    let command = slash::command(process, &prompt_parts, None);
    let is_submitted = command.is_some();
    if let Some(call) = command {
        match command_run(process, Some(session), prompt_id.clone(), emit, cancel).run(call).await {
            NextStep::Over { failed } => return PromptEnd::Command { failed },
            NextStep::Switch(_) | NextStep::Quit => return PromptEnd::Command { failed: false },
            NextStep::Turn(prompt) => prompt_parts = vec![Part::Text(prompt)],
            NextStep::TypedCommand(command) => {
                let mut input = TurnInput::message(vec![Part::Text(format!("!{command}").into())]);
                input.prompt.prompt_id = Some(prompt_id);
                input.typed_command = Some(command);
                return PromptEnd::Turn(Box::new(session.turn(input, emit, cancel).await));
            }
        }
    }
    let Attachments { parts: attachments, resources } =
        slash::attach(&prompt_parts, process, session, &prompt_id, is_submitted, emit).await;
    let prompt = Prompt {
        prompt_id: Some(prompt_id),
        parts: prompt_parts,
        options: PromptOptions {
            sampling: process.config.model.sampling.clone(),
            tool_overrides: main_agent::tools(&process.config, None),
            ..PromptOptions::default()
        },
        ..Prompt::default()
    };
    let input = TurnInput { prompt, attachments, resources, ..TurnInput::default() };
    PromptEnd::Turn(Box::new(session.turn(input, emit, cancel).await))
}

fn command_run<'a>(
    process: &'a ProcessContext,
    session: Option<&'a mut Session>,
    prompt_id: PromptId,
    emit: &'a Emitter,
    cancel: &'a Cancel,
) -> CommandRun<'a> {
    let session_id = process.config.session.id.clone();
    CommandRun {
        process,
        session,
        session_id,
        prompt_id,
        message: HostMessage::default(),
        spent: SessionTotals::default(),
        emit,
        cancel,
    }
}

/// The host for permission requests: one that answers none, or one that leaves them to a later run
/// (`--ask-later`) and uses the answers of `--answer`.
fn host(run: &Run) -> Result<Arc<dyn Host>, ErrorInfo> {
    if !run.ask_later && run.answer.is_empty() {
        return Ok(Arc::new(HeadlessHost));
    }
    if run.no_session_persistence && run.ask_later {
        let message = "--ask-later leaves questions to a later run, and a session that is not kept has none";
        return Err(ErrorInfo::new(ErrorKind::Usage, "bad_flag", message));
    }
    let answer = |text: &String| match text.split_once('=') {
        Some((call, answer)) if !call.is_empty() => Ok((CallId::new(call), Arc::from(answer))),
        _ => {
            let message = format!("--answer '{text}': give CALL=ANSWER, such as call_1=allow");
            Err(ErrorInfo::new(ErrorKind::Usage, "bad_flag", message))
        }
    };
    Ok(Arc::new(DeferredAnswers::new(run.answer.iter().map(answer).collect::<Result<_, _>>()?)))
}

async fn start(
    run: &Run,
    config: &Arc<Config>,
    debug_log: Option<DebugLog>,
    cancel: &Cancel,
) -> Result<Start, ErrorInfo> {
    let prompt = tokio::select! {
        prompt = prompt::gather(run) => prompt?,
        // The requested turn still gets its record; it ends before any work is done.
        _ = cancel.stopped() => Some(prompt::join_prompt_arguments(run)),
    };
    let process = ProcessContext::new(config.clone(), host(run)?, debug_log)?;
    let prompt_parts = prompt.as_deref().map(|prompt| Part::Text(prompt.into()));
    let call = prompt_parts.and_then(|prompt_parts| slash::command(&process, &[prompt_parts], None));
    if let Some(call) = call.filter(|call| process.commands.is_live(call)) {
        return Ok(Start::Command(process, call));
    }
    if let Some(error) = &config.model.undecided {
        return Err(error.clone());
    }
    let session = stored::open(&process, &config.session.id, None)?;
    // Resuming a call that a hook deferred needs no prompt.
    let prompt = prompt.or_else(|| session.has_postponed().then(String::new));
    if prompt.is_none() && session.unfinished().is_none() {
        return Err(prompt::missing());
    }
    Ok(Start::Session(process, Box::new(session), prompt))
}
