//! `qwen node`: the workers of this machine, for hubs on a bus.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::rc::Rc;

use futures_util::future::join_all;
use qwen_dialects::Format;
use qwen_events::{ErrorInfo, ErrorKind};
use qwen_fleet::{
    AnnouncedWorkspace, Bus, BusIdentity, BusNode, BusOptions, BusSessions, NodeParts, is_bus_name,
};
use qwen_kernel::config::{HubConfig, NodeConfig, NodeWorkspace};
use qwen_kernel::front::LineWriter;
use qwen_kernel::store::SharedSessions;
use qwen_kernel::{Hub, HubParts};
use tokio::task::LocalSet;

use super::endpoint::{self, Source};
use super::record::MessageRecording;
use super::record_store::record_stores;
use super::{
    EVENTS_LIMIT, Prepared, RunningTelemetry, Signals, event_stores, open_recording, pass_on, session_logs,
    turn_ends,
};
use crate::cli::{HubArgs, NodeArgs, node_label, node_workspace};
use crate::roles::bus;
use crate::runtime::exit;

/// The hubs for one account of the bus, one for each format of lines.
struct PreparedAccount {
    tenant: Option<String>,
    options: BusOptions,
    hubs: Vec<Prepared>,
}

/// A node that is about to start.
pub struct PreparedNode {
    /// One for each tenant, or one without.
    accounts: Vec<PreparedAccount>,
    identity: BusIdentity,
    labels: BTreeMap<String, String>,
    workspaces: Vec<AnnouncedWorkspace>,
}

/// Reads the flags and the configuration.
pub fn prepare(args: &NodeArgs) -> Result<PreparedNode, ErrorInfo> {
    let mut hub = args.hub.clone();
    hub.local = true;
    let prepared = super::prepare(&hub)?;
    let Some((_, options)) = prepared.bus.clone() else {
        return Err(refuse("no_bus", "a node needs a bus; name one with --bus or QWEN_BUS".to_owned()));
    };
    let named = Named::choose(args, &prepared.config.node)?;
    let workspace = match &args.shared_workspace {
        Some(id) => format!("shared:{id}"),
        None => format!("local:{}", named.name),
    };
    let identity = BusIdentity { workspace: Some(workspace), ..bus::identity(&named.name) };
    let mut accounts = Vec::new();
    for (tenant, options) in served_accounts(&prepared.config, &options)? {
        accounts.push(prepare_account(&hub, tenant, options)?);
    }
    Ok(PreparedNode { accounts, identity, labels: named.labels, workspaces: named.workspaces })
}

/// Returns the accounts of the bus that the node serves.
fn served_accounts(
    config: &HubConfig,
    options: &BusOptions,
) -> Result<Vec<(Option<String>, BusOptions)>, ErrorInfo> {
    let accounts = bus::tenant_accounts(config, options)?;
    let wanted = match std::env::var("QWEN_BUS_NODE_TENANTS") {
        Ok(text) if !text.is_empty() => text.split(',').map(|name| name.trim().to_owned()).collect(),
        _ => config.node.tenants.clone(),
    };
    if let Some(unknown) = wanted.iter().find(|name| !config.tenants.contains_key(*name)) {
        let message = format!("`node.tenants` has '{unknown}', which `tenants` of the configuration has not");
        return Err(refuse("unknown_tenant", message));
    }
    if accounts.is_empty() {
        return Ok(vec![(None, options.clone())]);
    }
    let is_served = |name: &String| wanted.is_empty() || wanted.contains(name);
    let served = accounts.into_iter().filter(|(name, _)| is_served(name));
    Ok(served.map(|(name, options)| (Some(name), options)).collect())
}

/// Prepares a hub for each format of lines. Spares are ready for the format of the command line only.
fn prepare_account(
    hub: &HubArgs,
    tenant: Option<String>,
    options: BusOptions,
) -> Result<PreparedAccount, ErrorInfo> {
    // Spares belong to no tenant.
    let min_workers = if tenant.is_some() { Some(0) } else { hub.min_workers };
    let first = super::prepare(&HubArgs { min_workers, ..hub.clone() })?;
    let other = match first.front.format() {
        Format::StreamChunkJson => Format::StreamJson,
        _ => Format::StreamChunkJson,
    };
    let other = HubArgs { output_format: other.name().to_owned(), min_workers: Some(0), ..hub.clone() };
    let mut hubs = vec![first, super::prepare(&other)?];
    for prepared in &mut hubs {
        prepared.args.local = true;
        if let Some(tenant) = &tenant {
            prepared.router.serve_tenant(tenant);
        }
    }
    Ok(PreparedAccount { tenant, options, hubs })
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
            Some(text) => read_list("QWEN_BUS_NODE_LABELS", &text, node_label)?.into_iter().collect(),
            None => config.labels.clone(),
        };
        let workspaces = match variable("QWEN_BUS_NODE_WORKSPACES") {
            _ if !args.workspace.is_empty() => args.workspace.clone(),
            Some(text) => read_list("QWEN_BUS_NODE_WORKSPACES", &text, node_workspace)?,
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
fn read_list<T>(name: &str, text: &str, read: fn(&str) -> Result<T, String>) -> Result<Vec<T>, ErrorInfo> {
    let items = text.split(',').map(str::trim).filter(|item| !item.is_empty());
    items
        .map(|item| read(item).map_err(|why| refuse("bad_flag", format!("{name}: '{item}': {why}"))))
        .collect()
}

/// Checks a directory that the node is to announce.
fn announce(workspace: NodeWorkspace) -> Result<AnnouncedWorkspace, ErrorInfo> {
    let NodeWorkspace { id, path, kind } = workspace;
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
    let PreparedNode { accounts, identity, labels, workspaces } = node;
    let signals = Signals::listen().map_err(|error| not_started(&error))?;
    let is_draining = Rc::new(Cell::new(false));
    // A node does not note that it has finished: what it left open, hubs have brought to other nodes.
    let recorded = accounts.iter().flat_map(|account| &account.hubs).next();
    let recording = recorded.map(|hub| open_recording(&hub.args)).transpose()?.flatten();
    let connected =
        accounts.into_iter().map(|account| connect(account, identity.clone(), recording.as_ref()));
    let mut nodes = Vec::new();
    for connected in join_all(connected).await {
        nodes.push(connected?);
    }
    let all: Vec<Hub> = nodes.iter().flat_map(|node| node.hubs.iter().map(|(_, hub)| hub.clone())).collect();
    tokio::task::spawn_local(handle_signals(all.clone(), signals, is_draining.clone()));
    exit::report(&format!("qwen: the node {identity} is on the bus"));
    let telemetry: Vec<RunningTelemetry> =
        nodes.iter_mut().flat_map(|node| std::mem::take(&mut node.telemetry)).collect();
    let served = nodes.into_iter().map(|node| {
        let is_draining = is_draining.clone();
        BusNode::serve(NodeParts {
            is_draining: Rc::new(move || is_draining.get()),
            bus: node.connection,
            sessions: node.sessions,
            hubs: node.hubs,
            labels: labels.clone(),
            workspaces: workspaces.clone(),
            directory: node.directory,
            writer: node.writer,
            is_for_tenant: node.is_for_tenant,
        })
    });
    let served = join_all(served).await;
    for hub in &all {
        hub.kill_all();
    }
    join_all(telemetry.into_iter().map(RunningTelemetry::finish)).await;
    served.into_iter().collect::<Result<(), _>>().map_err(|error| bus::to_error(&error))?;
    Ok(all.first().and_then(Hub::exit_code).unwrap_or(0))
}

/// A node in one account of the bus.
struct ConnectedAccount {
    connection: Rc<Bus>,
    sessions: Rc<BusSessions>,
    hubs: Vec<(&'static str, Hub)>,
    directory: PathBuf,
    writer: LineWriter,
    is_for_tenant: bool,
    telemetry: Vec<RunningTelemetry>,
}

/// Connects to an account and starts its hubs.
async fn connect(
    account: PreparedAccount,
    identity: BusIdentity,
    recording: Option<&MessageRecording>,
) -> Result<ConnectedAccount, ErrorInfo> {
    let PreparedAccount { tenant, options, hubs: prepared } = account;
    let (connection, sessions) = bus::open(&options, identity).await?;
    BusNode::check_name(&connection).await.map_err(|error| bus::to_error(&error))?;
    let Some(first) = prepared.first() else {
        return Err(refuse("no_bus", "no account is named".to_owned()));
    };
    // Commands of sessions do not see the state directory.
    let directory = match &tenant {
        // Workers of other tenants do not see it.
        Some(tenant) => first.state.join("tenants").join(tenant).join("home/workspaces"),
        None => first.workspaces.clone(),
    };
    let writer = LineWriter::new(&*first.front, "qwen".into(), env!("CARGO_PKG_VERSION"));
    let metrics = first.args.metrics.clone();
    let (mut hubs, mut telemetry) = (Vec::new(), Vec::new());
    let process = connection.identity.to_string();
    let shared = record_stores(sessions.clone(), recording, &process, tenant.as_deref().unwrap_or_default());
    for mut prepared in prepared {
        let format = prepared.front.format().name();
        let exported = prepared.telemetry.take();
        let hub = start_hub(prepared, shared.clone(), recording).map_err(|error| not_started(&error))?;
        telemetry.extend(exported.map(|exported| RunningTelemetry::start(exported, &hub)));
        hubs.push((format, hub));
    }
    let is_for_tenant = tenant.is_some();
    if let (Some(address), Some((_, hub))) = (metrics, hubs.first()) {
        let address = tenant.map_or(address.clone(), |tenant| format!("{address}-{tenant}"));
        let counted = connection.clone();
        let source = Source::of_hub(hub.clone(), move || counted.metrics.prometheus());
        endpoint::offer(source, &address).await.map_err(|error| not_started(&error))?;
    }
    Ok(ConnectedAccount { connection, sessions, hubs, directory, writer, is_for_tenant, telemetry })
}

fn not_started(error: &std::io::Error) -> ErrorInfo {
    ErrorInfo::new(ErrorKind::Internal, "node_not_started", format!("the node cannot be started: {error}"))
}

/// Starts a hub whose sessions are on the bus.
fn start_hub(
    prepared: Prepared,
    shared: Rc<dyn SharedSessions>,
    recording: Option<&MessageRecording>,
) -> std::io::Result<Hub> {
    let mut router = prepared.router;
    if let Some(recording) = recording {
        router.record(recording.recorder());
    }
    let limit = prepared.config.max_event_bytes.unwrap_or(EVENTS_LIMIT);
    Hub::start(HubParts {
        router,
        events: Some(event_stores(prepared.state.join("events"), limit)),
        session_logs: Some(session_logs()),
        shared: Some(shared),
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
        for hub in &hubs {
            hub.drain(code);
        }
    }
}
