//! `qwen hub --bus URL` without workers: sessions run on nodes.

use std::rc::Rc;

use qwen_fleet::{Relay, RelayParts};
use qwen_kernel::front::LineWriter;

use super::{Prepared, Signals, default_session, end_with, turn_ends};
use crate::io::input::{InputLine, Lines, StdinReader};
use crate::io::output::Output;
use crate::roles::bus;

/// Serves the client until its input ends or a signal arrives, and returns the exit code.
pub async fn serve(prepared: Prepared, output: Rc<Output>, input: StdinReader, signals: Signals) -> u8 {
    let Some((name, options)) = &prepared.bus else { return 1 };
    let (connection, sessions) = match bus::open(options, bus::identity(name)).await {
        Ok(opened) => opened,
        Err(error) => return end_with(&*prepared.front, error),
    };
    let parts = RelayParts {
        bus: connection,
        sessions,
        front: prepared.front.clone(),
        writer: LineWriter::new(&*prepared.front, "qwen".into(), env!("CARGO_PKG_VERSION")),
        default_session: default_session(&[]),
        turn_ends: turn_ends(prepared.front.clone()),
        scratch: prepared.state.join("scratch"),
    };
    let relay = match Relay::start(parts).await {
        Ok(relay) => relay,
        Err(error) => return end_with(&*prepared.front, bus::to_error(&error)),
    };
    tokio::task::spawn_local(read(relay.clone(), Lines::new(input)));
    tokio::task::spawn_local(handle_signals(relay.clone(), signals));
    loop {
        let next = tokio::select! {
            next = relay.next_output() => next,
            () = output.reader_gone() => break,
        };
        let Some(bytes) = next else { break };
        if output.write_all(&bytes).await.is_err() {
            break;
        }
    }
    relay.exit_code()
}

async fn read(relay: Relay, mut lines: Lines) {
    loop {
        match lines.next().await {
            Ok(Some(InputLine::Whole(line))) => relay.client_line(&line),
            Ok(Some(InputLine::TooLong)) => relay.client_line_too_long(),
            Ok(None) | Err(_) => return relay.end(0, false),
        }
    }
}

/// The first signal refuses new prompts, the second ends at once. Turns continue on their nodes.
async fn handle_signals(relay: Relay, mut signals: Signals) {
    loop {
        tokio::select! {
            _ = signals.interrupt.recv() => relay.end(130, true),
            _ = signals.terminate.recv() => relay.end(143, true),
            _ = signals.hangup.recv() => {}
        }
    }
}
