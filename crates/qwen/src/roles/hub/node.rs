//! `qwen node`: the workers of this machine, for hubs on a bus.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::rc::Rc;

use qwen_dialects::Format;
use qwen_events::{ErrorInfo, ErrorKind};
use qwen_fleet::{AnnouncedWorkspace, BusIdentity, BusNode, BusSessions, NodeParts, is_bus_name};
use qwen_kernel::config::{NodeConfig, WorkspaceConfig};
use qwen_kernel::front::LineWriter;
use qwen_kernel::{Hub, HubParts};
use tokio::task::LocalSet;

use super::endpoint::{self, Source};
use super::{EVENTS_LIMIT, Prepared, Signals, event_stores, pass_on, session_logs, turn_ends};
use crate::cli::{HubArgs, NodeArgs, node_label, node_workspace};
use crate::roles::bus;
use crate::runtime::exit;

/// A node that is about to start.
pub struct PreparedNode {
    prepared: Prepared,
    /// The hub for clients that read the other format.
    other: Prepared,
    identity: BusIdentity,
    labels: BTreeMap<String, String>,
    workspaces: Vec<AnnouncedWorkspace>,
}

/// Reads the flags and the configuration.
pub fn prepare(args: &NodeArgs) -> Result<PreparedNode, ErrorInfo> {
    let mut hub = args.hub.clone();
    hub.local = true;
    let mut prepared = super::prepare(&hub)?;
    if prepared.bus.is_none() {
        return Err(refuse("no_bus", "a node needs a bus; name one with --bus or QWEN_BUS".to_owned()));
    }
    prepared.args.local = true;
    let named = Named::choose(args, &prepared.config.node)?;
    let workspace = match &args.shared_workspace {
        Some(id) => format!("shared:{id}"),
        None => format!("local:{}", named.name),
    };
    let identity = BusIdentity { workspace: Some(workspace), ..bus::identity(&named.name) };
    let other = match prepared.front.format() {
        Format::StreamChunkJson => Format::StreamJson,
        _ => Format::StreamChunkJson,
    };
    // Spares are ready for the format of the command line only.
    let other = HubArgs { output_format: other.name().to_owned(), min_workers: Some(0), ..hub };
    let other = super::prepare(&other)?;
    Ok(PreparedNode { prepared, other, identity, labels: named.labels, workspaces: named.workspaces })
}

fn refuse(code: &'static str, message: String) -> ErrorInfo {
    ErrorInfo::new(ErrorKind::Usage, code, message)
}

/// What a node announces, by flag, variable or configuration, in this order.
struct Named {
    name: String,
    labels: BTreeMap<String, String>,
    workspaces: Vec<AnnouncedWorkspace>,
}

impl Named {
    fn choose(args: &NodeArgs, config: &NodeConfig) -> Result<Self, ErrorInfo> {
        let variable = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
        let name =
            args.name.clone().or_else(|| variable("QWEN_BUS_NODE_NAME")).or_else(|| config.name.clone());
        let name = name.or_else(machine_name).ok_or_else(|| {
            refuse("invalid_bus_name", "this machine has no name; choose one with --name".to_owned())
        })?;
        let labels = match variable("QWEN_BUS_NODE_LABELS") {
            _ if !args.label.is_empty() => args.label.iter().cloned().collect(),
            Some(text) => listed("QWEN_BUS_NODE_LABELS", &text, node_label)?.into_iter().collect(),
            None => config.labels.clone(),
        };
        let workspaces = match variable("QWEN_BUS_NODE_WORKSPACES") {
            _ if !args.workspace.is_empty() => args.workspace.clone(),
            Some(text) => listed("QWEN_BUS_NODE_WORKSPACES", &text, node_workspace)?,
            None => config.workspaces.clone(),
        };
        let names = [Some(&name), args.shared_workspace.as_ref()].into_iter().flatten();
        for named in names.chain(workspaces.iter().map(|workspace| &workspace.id)).chain(labels.keys()) {
            if !is_bus_name(named) {
                let message =
                    format!("{named:?} is not a name on a bus; use 1 to 64 letters, digits, '_' and '-'");
                return Err(refuse("invalid_bus_name", message));
            }
        }
        let announced = workspaces.into_iter().map(announce).collect::<Result<_, _>>()?;
        Ok(Self { name, labels, workspaces: announced })
    }
}

/// Reads a list from a variable.
fn listed<T>(name: &str, text: &str, read: fn(&str) -> Result<T, String>) -> Result<Vec<T>, ErrorInfo> {
    let items = text.split(',').map(str::trim).filter(|item| !item.is_empty());
    items
        .map(|item| read(item).map_err(|why| refuse("bad_flag", format!("{name}: '{item}': {why}"))))
        .collect()
}

/// Checks a directory that the node is to announce.
fn announce(workspace: WorkspaceConfig) -> Result<AnnouncedWorkspace, ErrorInfo> {
    let WorkspaceConfig { id, path, kind } = workspace;
    let path = path.canonicalize().ok().filter(|path| path.is_dir()).ok_or_else(|| {
        let message =
            format!("the workspace '{id}' cannot be announced: there is no directory {}", path.display());
        refuse("invalid_workspace", message)
    })?;
    Ok(AnnouncedWorkspace { id, path, kind: kind.name().to_owned() })
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
    let PreparedNode { prepared, other, identity, labels, workspaces } = node;
    let Some((_, options)) = &prepared.bus else { return Ok(1) };
    let signals = Signals::listen().map_err(|error| not_started(&error))?;
    let (connection, sessions) = bus::open(options, identity).await?;
    BusNode::check_name(&connection).await.map_err(|error| bus::to_error(&error))?;
    // Commands of sessions do not see the state directory.
    let directory = prepared.workspaces.clone();
    let metrics = prepared.args.metrics.clone();
    let writer = LineWriter::new(&*prepared.front, "qwen".into(), env!("CARGO_PKG_VERSION"));
    let mut hubs = Vec::new();
    for prepared in [prepared, other] {
        let format = prepared.front.format().name();
        hubs.push((format, start_hub(prepared, sessions.clone()).map_err(|error| not_started(&error))?));
    }
    let all: Vec<Hub> = hubs.iter().map(|(_, hub)| hub.clone()).collect();
    if let (Some(address), Some(hub)) = (&metrics, all.first()) {
        let counted = connection.clone();
        let source = Source::of_hub(hub.clone(), move || counted.metrics.prometheus());
        endpoint::offer(source, address).await.map_err(|error| not_started(&error))?;
    }
    let is_draining = Rc::new(Cell::new(false));
    tokio::task::spawn_local(handle_signals(all.clone(), signals, is_draining.clone()));
    exit::report(&format!("qwen: the node {} is on the bus", connection.identity));
    let is_draining = Rc::new(move || is_draining.get());
    let parts =
        NodeParts { bus: connection, sessions, hubs, is_draining, labels, workspaces, directory, writer };
    let served = BusNode::serve(parts).await;
    all.iter().for_each(Hub::kill_all);
    served.map_err(|error| bus::to_error(&error))?;
    Ok(all.first().and_then(Hub::exit_code).unwrap_or(0))
}

fn not_started(error: &std::io::Error) -> ErrorInfo {
    ErrorInfo::new(ErrorKind::Internal, "node_not_started", format!("the node cannot be started: {error}"))
}

/// Starts a hub whose sessions are on the bus.
fn start_hub(prepared: Prepared, sessions: Rc<BusSessions>) -> std::io::Result<Hub> {
    let limit = prepared.config.max_event_bytes.unwrap_or(EVENTS_LIMIT);
    Hub::start(HubParts {
        router: prepared.router,
        events: Some(event_stores(prepared.state.join("events"), limit)),
        session_logs: Some(session_logs()),
        shared: Some(sessions),
        turn_ends: Some(turn_ends(prepared.front)),
        log: None,
        worker_stderr: Some(Box::new(pass_on)),
        write_now: None,
    })
}

/// SIGTERM and SIGINT drain, a second one ends at once.
async fn handle_signals(hubs: Vec<Hub>, mut signals: Signals, is_draining: Rc<Cell<bool>>) {
    loop {
        let code = tokio::select! {
            _ = signals.interrupt.recv() => 130,
            _ = signals.terminate.recv() => 143,
            _ = signals.hangup.recv() => continue,
        };
        is_draining.set(true);
        hubs.iter().for_each(|hub| hub.drain(code));
    }
}
