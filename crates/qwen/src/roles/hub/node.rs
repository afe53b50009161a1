//! `qwen node`: the workers of this machine, for hubs on a bus.

use std::cell::Cell;
use std::rc::Rc;

use qwen_events::{ErrorInfo, ErrorKind};
use qwen_fleet::{BusIdentity, BusNode, is_bus_name};
use qwen_kernel::{Hub, HubParts};
use tokio::task::LocalSet;

use super::{EVENTS_LIMIT, Prepared, Signals, event_stores, pass_on, session_logs, turn_ends};
use crate::cli::NodeArgs;
use crate::roles::bus;
use crate::runtime::exit;

/// A node that is about to start.
pub struct PreparedNode {
    prepared: Prepared,
    identity: BusIdentity,
}

/// Reads the flags and the configuration.
pub fn prepare(args: &NodeArgs) -> Result<PreparedNode, ErrorInfo> {
    let refuse = |code, message: String| ErrorInfo::new(ErrorKind::Usage, code, message);
    let name = match &args.name {
        Some(name) => name.clone(),
        None => machine_name().ok_or_else(|| {
            refuse("invalid_bus_name", "this machine has no name; choose one with --name".to_owned())
        })?,
    };
    for named in [Some(&name), args.shared_workspace.as_ref()].into_iter().flatten() {
        if !is_bus_name(named) {
            let message =
                format!("{named:?} is not a name on a bus; use 1 to 64 letters, digits, '_' and '-'");
            return Err(refuse("invalid_bus_name", message));
        }
    }
    let mut hub = args.hub.clone();
    hub.local = true;
    let mut prepared = super::prepare(&hub)?;
    if prepared.bus.is_none() {
        return Err(refuse("no_bus", "a node needs a bus; name one with --bus or QWEN_BUS".to_owned()));
    }
    prepared.args.local = true;
    let workspace = match &args.shared_workspace {
        Some(id) => format!("shared:{id}"),
        None => format!("local:{name}"),
    };
    let identity = BusIdentity { workspace: Some(workspace), ..bus::identity(&name) };
    Ok(PreparedNode { prepared, identity })
}

/// The host name, as far as it is a name on a bus.
fn machine_name() -> Option<String> {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").ok()?;
    let is_allowed = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '-' | '_');
    let name: String =
        name.trim().chars().map(|letter| if is_allowed(letter) { letter } else { '-' }).take(64).collect();
    (!name.is_empty()).then_some(name)
}

/// Serves until a signal arrives, and returns the exit code.
pub async fn run(node: PreparedNode) -> u8 {
    match LocalSet::new().run_until(serve(node)).await {
        Ok(code) => code,
        Err(error) => {
            exit::report(&format!("qwen: {error}"));
            1
        }
    }
}

async fn serve(node: PreparedNode) -> Result<u8, ErrorInfo> {
    let PreparedNode { prepared, identity } = node;
    let Some((_, options)) = &prepared.bus else { return Ok(1) };
    let internal = |error: std::io::Error| {
        ErrorInfo::new(
            ErrorKind::Internal,
            "node_not_started",
            format!("the node cannot be started: {error}"),
        )
    };
    let signals = Signals::listen().map_err(internal)?;
    let (connection, sessions) = bus::open(options, identity).await?;
    BusNode::check_name(&connection).await.map_err(|error| bus::to_error(&error))?;
    let limit = prepared.config.max_event_bytes.unwrap_or(EVENTS_LIMIT);
    let parts = HubParts {
        router: prepared.router,
        events: Some(event_stores(prepared.state.join("events"), limit)),
        session_logs: Some(session_logs()),
        shared: Some(sessions),
        turn_ends: Some(turn_ends(prepared.front.clone())),
        log: None,
        worker_stderr: Some(Box::new(pass_on)),
        write_now: None,
    };
    let hub = Hub::start(parts).map_err(internal)?;
    let is_draining = Rc::new(Cell::new(false));
    tokio::task::spawn_local(handle_signals(hub.clone(), signals, is_draining.clone()));
    exit::report(&format!("qwen: the node {} is on the bus", connection.identity));
    let draining = Rc::new(move || is_draining.get());
    let served = BusNode::serve(connection, hub.clone(), draining).await;
    hub.kill_all();
    served.map_err(|error| bus::to_error(&error))?;
    Ok(hub.exit_code().unwrap_or(0))
}

/// SIGTERM and SIGINT drain, a second one ends at once.
async fn handle_signals(hub: Hub, mut signals: Signals, is_draining: Rc<Cell<bool>>) {
    loop {
        tokio::select! {
            _ = signals.interrupt.recv() => drain(&hub, &is_draining, 130),
            _ = signals.terminate.recv() => drain(&hub, &is_draining, 143),
            _ = signals.hangup.recv() => {}
        }
    }
}

fn drain(hub: &Hub, is_draining: &Cell<bool>, code: u8) {
    is_draining.set(true);
    hub.drain(code);
}
