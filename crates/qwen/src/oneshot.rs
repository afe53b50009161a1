//! `qwen -p`: one prompt, one turn, one exit code.

use std::io;
use std::sync::Arc;

use qwen_engine::{Cancel, Dials, Nobody, Session, Stop, TurnInput};
use qwen_events::{Body, EndStatus, ErrorInfo, Part, TurnEnd};
use tokio::sync::mpsc;

use crate::cli::Run;
use crate::output::Output;
use crate::settings::Config;
use crate::signals::Signals;
use crate::stream::{self, pump};
use crate::{exit, prompt, setup};

/// Runs the prompt and returns the exit code.
pub async fn run(run: &Run, config: Config) -> u8 {
    let output = match Output::stdout() {
        Ok(output) => output,
        Err(error) => {
            exit::say(&format!("qwen: standard output cannot be used: {error}"));
            return 1;
        }
    };
    let (sender, receiver) = mpsc::channel(stream::CAPACITY);
    let emit = setup::emitter(&config, sender);
    let cancel = Cancel::default();
    let reader = setup::reader(&config);
    let turn = async {
        let code = match start(run, &config).await {
            Ok((mut session, prompt)) => {
                let input = TurnInput { parts: vec![Part::Text(prompt.into())], ..TurnInput::default() };
                let end = until_signal(session.turn(input, &emit, &cancel), &cancel).await;
                exit::code(&end)
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

async fn start(run: &Run, config: &Config) -> Result<(Session, String), ErrorInfo> {
    let prompt = prompt::gather(run).await?;
    let permissions = setup::permissions(config);
    let session = setup::session(
        config,
        config.session_id.clone(),
        Arc::new(Nobody),
        permissions,
        Arc::new(Dials::default()),
    )?;
    Ok((session, prompt))
}

/// Runs a turn while listening for signals.
async fn until_signal(turn: impl Future<Output = TurnEnd>, cancel: &Cancel) -> TurnEnd {
    let Ok(mut signals) = Signals::new() else { return turn.await };
    tokio::select! {
        end = turn => end,
        never = signals.end_turn(cancel) => match never {},
    }
}
