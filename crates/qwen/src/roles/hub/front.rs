//! `qwen hub --bus URL` without workers: sessions run on nodes.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

use qwen_events::{ErrorInfo, ErrorKind};
use qwen_fleet::{Nodes, Relay, RelayParts};
use qwen_kernel::front::LineWriter;
use serde_json::{Value, json};
use tokio::task::LocalSet;

use super::endpoint::{self, Source};
use super::{Prepared, Signals, default_session, end_before_start, end_with, turn_ends};
use crate::cli::HubArgs;
use crate::io::input::{InputLine, Lines, StdinReader};
use crate::io::output::Output;
use crate::roles::{bus, run_to_completion};
use crate::settings::Invocation;

/// How often the state that is served is read from the bus.
const STATUS_INTERVAL: Duration = Duration::from_secs(2);
/// The largest number of sessions whose owners are printed.
const DESCRIBED: usize = 200;

/// Serves the client until its input ends or a signal arrives, and returns the exit code.
pub async fn serve(prepared: Prepared, output: Rc<Output>, input: StdinReader, signals: Signals) -> u8 {
    let Some((name, options)) = &prepared.bus else { return 1 };
    let (connection, sessions) = match bus::open(options, bus::identity(name)).await {
        Ok(opened) => opened,
        Err(error) => return end_with(&*prepared.front, error),
    };
    let parts = RelayParts {
        bus: connection.clone(),
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
    if let Some(address) = &prepared.args.metrics {
        let status = Rc::new(RefCell::new(Value::Null));
        tokio::task::spawn_local(refresh_status(relay.clone(), status.clone()));
        let source = Source {
            metrics: Box::new(move || connection.metrics.prometheus()),
            status: Box::new(move || status.borrow().clone()),
        };
        if let Err(error) = endpoint::offer(Rc::new(source), address).await {
            return end_before_start(&*prepared.front, format!("--metrics {address}: {error}"));
        }
    }
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

/// Keeps the state that is served up to date.
async fn refresh_status(relay: Relay, status: Rc<RefCell<Value>>) {
    loop {
        let described = relay.describe().await;
        *status.borrow_mut() = described;
        tokio::time::sleep(STATUS_INTERVAL).await;
    }
}

/// `qwen hub --status --bus URL`: asks the bus itself. None if no bus is named.
pub fn status_of_bus(args: &HubArgs) -> Result<Option<String>, ErrorInfo> {
    let invocation = Invocation::current()
        .map_err(|error| ErrorInfo::new(ErrorKind::Input, "no_working_directory", error.to_string()))?;
    let config = bus::configured(args.config.as_deref())?;
    let Some(options) = bus::options(&args.bus, &config, &invocation)? else { return Ok(None) };
    let work = async {
        let identity = bus::identity("qwen-status");
        let (connection, sessions) = bus::open(&options, identity.clone()).await?;
        let nodes = Nodes::follow(&connection).await.map_err(|error| bus::to_error(&error))?;
        // Every node has the time for a heartbeat.
        tokio::time::sleep(options.timing.interval * 2).await;
        let all = sessions.list().await.map_err(|error| bus::unreadable(&error))?;
        let owners = sessions.describe_all(&all, DESCRIBED).await.map_err(|error| bus::unreadable(&error))?;
        let streams = sessions.describe_streams().await.map_err(|error| bus::to_error(&error))?;
        Ok::<Value, ErrorInfo>(json!({
            "hub": {"id": identity.name, "version": env!("CARGO_PKG_VERSION")},
            "machines": nodes.report(), "sessions": all.len(), "owners": owners, "shards": streams,
        }))
    };
    let state = run_to_completion(LocalSet::new().run_until(work))??;
    Ok(Some(endpoint::for_people(&state)))
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
