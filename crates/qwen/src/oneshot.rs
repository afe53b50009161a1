//! `qwen -p`: one prompt, one turn, one exit code.

use std::io;
use std::sync::Arc;

use qwen_engine::{Cancel, Nobody, Session, Stop, TurnInput};
use qwen_events::{Body, EndStatus, ErrorInfo, Part};
use tokio::sync::mpsc;

use crate::cli::Run;
use crate::output::Output;
use crate::settings::Config;
use crate::setup::Parts;
use crate::stream::{self, pump};
use crate::{exit, prompt, sessions, setup, signals};

/// Runs the prompt and returns the exit code.
pub async fn run(run: &Run, config: Config) -> u8 {
    let output = match Output::stdout() {
        Ok(output) => output,
        Err(error) => {
            exit::say(&format!("qwen: standard output cannot be used: {error}"));
            return 1;
        }
    };
    let cancel = Cancel::default();
    if let Err(error) = signals::listen(&cancel) {
        exit::say(&format!("qwen: signals cannot be heard: {error}"));
        return 1;
    }
    let (sender, receiver) = mpsc::channel(stream::CAPACITY);
    let emit = setup::emitter(&config, sender);
    let reader = setup::reader(&config);
    let turn = async {
        let code = match start(run, &config, &cancel).await {
            Ok((mut session, prompt)) => {
                let end = match prompt {
                    None => session.go_on(&emit, &cancel).await,
                    Some(prompt) => {
                        let input = TurnInput {
                            parts: vec![Part::Text(prompt.into())],
                            sampling: config.sampling.clone(),
                            ..TurnInput::default()
                        };
                        Some(session.turn(input, &emit, &cancel).await)
                    }
                };
                session.end("other", &emit).await;
                end.as_ref().map_or(0, exit::code)
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
        let written = pump(receiver, reader, &output).await;
        if written.is_err() {
            // Nobody reads any more, so there is nothing left to work for.
            cancel.stop(Stop { status: EndStatus::Interrupted, error: None });
        }
        written
    };
    match tokio::join!(turn, written) {
        (code, Ok(())) => code,
        // A reader that goes away is a normal end (`qwen … | head`), as for any program in a pipeline.
        (_, Err(error)) if error.kind() == io::ErrorKind::BrokenPipe => 0,
        (_, Err(error)) => {
            exit::say(&format!("qwen: standard output: {error}"));
            1
        }
    }
}

/// The session, and the prompt; none to go on with a turn that was left unfinished.
async fn start(run: &Run, config: &Config, cancel: &Cancel) -> Result<(Session, Option<String>), ErrorInfo> {
    let prompt = tokio::select! {
        prompt = prompt::gather(run) => prompt?,
        // The turn that was asked for still gets its record; it ends before anything is done.
        _ = cancel.stopped() => Some(prompt::given(run)),
    };
    let parts = Parts::new(config, Arc::new(Nobody))?;
    let session = sessions::open(config, &config.session_id, &parts, None)?;
    if prompt.is_none() && session.unfinished().is_none() {
        return Err(prompt::missing());
    }
    Ok((session, prompt))
}
