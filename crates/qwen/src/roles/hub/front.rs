//! `qwen hub --bus URL` without workers: sessions run on nodes.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use qwen_events::{ErrorInfo, ErrorKind, SessionId};
use qwen_fleet::{Bus, Nodes, Relay, RelayParts};
use qwen_kernel::front::{Front, InputKind, LineWriter};
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::task::LocalSet;

use super::endpoint::{self, Source};
use super::record::MessageRecording;
use super::{Prepared, Signals, default_session, end_before_start, end_with, open_recording, turn_ends};
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
    let recording = match open_recording(&prepared.args) {
        Ok(recording) => recording,
        Err(error) => return end_with(&*prepared.front, error),
    };
    let tenants = match Tenants::start(&prepared, recording.as_ref()).await {
        Ok(tenants) => Rc::new(tenants),
        Err(error) => return end_with(&*prepared.front, error),
    };
    if let Some(address) = &prepared.args.metrics
        && let Err(error) = endpoint::offer(tenants.offer_state(), address).await
    {
        return end_before_start(&*prepared.front, format!("--metrics {address}: {error}"));
    }
    tokio::task::spawn_local(read(tenants.clone(), Lines::new(input)));
    tokio::task::spawn_local(handle_signals(tenants.clone(), signals));
    // The pieces of several tenants are written one after the other.
    let (sender, mut pieces) = mpsc::channel::<Vec<u8>>(1);
    for relay in tenants.relays() {
        tokio::task::spawn_local(collect(relay.clone(), sender.clone()));
    }
    drop(sender);
    loop {
        let next = tokio::select! {
            next = pieces.recv() => next,
            () = output.reader_gone() => break,
        };
        let Some(bytes) = next else {
            if let Some(recording) = recording.filter(|_| tenants.relays().all(Relay::has_finished)) {
                recording.finish();
            }
            break;
        };
        if output.write_all(&bytes).await.is_err() {
            break;
        }
    }
    tenants.first().exit_code()
}

/// Passes on what a relay writes, until it ends.
async fn collect(relay: Relay, pieces: mpsc::Sender<Vec<u8>>) {
    while let Some(bytes) = relay.next_output().await {
        if pieces.send(bytes).await.is_err() {
            return;
        }
    }
}

/// The relays of a hub: one for each tenant of the configuration, or a single one.
struct Tenants {
    front: Arc<dyn Front>,
    all: Vec<(Option<String>, Relay, Rc<Bus>)>,
    first: Relay,
}

impl Tenants {
    async fn start(prepared: &Prepared, recording: Option<&MessageRecording>) -> Result<Self, ErrorInfo> {
        let Some((name, options)) = &prepared.bus else {
            return Err(ErrorInfo::new(ErrorKind::Usage, "no_bus", "no bus is named"));
        };
        let accounts = bus::tenant_accounts(&prepared.config, options)?;
        let mut accounts: Vec<_> =
            accounts.into_iter().map(|(tenant, options)| (Some(tenant), options)).collect();
        if accounts.is_empty() {
            accounts.push((None, options.clone()));
        }
        let default_session = default_session(&[]);
        let mut all = Vec::new();
        for (tenant, options) in accounts {
            let (connection, sessions) = bus::open(&options, bus::identity(name)).await?;
            let parts = RelayParts {
                bus: connection.clone(),
                sessions,
                front: prepared.front.clone(),
                writer: LineWriter::new(&*prepared.front, "qwen".into(), env!("CARGO_PKG_VERSION")),
                default_session: default_session.clone(),
                turn_ends: turn_ends(prepared.front.clone()),
                scratch: prepared.state.join("scratch"),
                tenant: tenant.clone(),
                has_handshake: all.is_empty(),
                recorder: recording.map(MessageRecording::recorder),
            };
            let relay = Relay::start(parts).await.map_err(|error| bus::to_error(&error))?;
            all.push((tenant, relay, connection));
        }
        let first = all.first().map(|(_, relay, _)| relay.clone());
        let first = first.ok_or_else(|| ErrorInfo::new(ErrorKind::Usage, "no_bus", "no account is named"))?;
        Ok(Self { front: prepared.front.clone(), all, first })
    }

    fn relays(&self) -> impl Iterator<Item = &Relay> {
        self.all.iter().map(|(_, relay, _)| relay)
    }

    fn first(&self) -> &Relay {
        &self.first
    }

    /// Passes a line to the relay of its tenant: the one that it names, or else the one with its session.
    fn client_line(&self, line: &[u8]) {
        let Ok(input) = self.front.input(line.trim_ascii()) else { return self.first.client_line(line) };
        if self.all.len() == 1 && self.all[0].0.is_none() || input.invalid_tenant.is_some() {
            return self.first.client_line(line);
        }
        let session = input.session_id.as_deref().and_then(|text| SessionId::parse(text).ok());
        let relay = match (input.tenant.as_deref(), input.request_id.as_deref()) {
            (Some(named), _) => self.all.iter().find(|(tenant, ..)| tenant.as_deref() == Some(named)),
            (None, Some(id)) if input.kind == InputKind::Answer => {
                self.all.iter().find(|(_, relay, _)| relay.has_asked(id))
            }
            _ => self.with_session(session.as_ref()),
        };
        let is_about_hub = input.kind == InputKind::Control && session.is_none();
        match (relay, input.tenant.as_deref()) {
            (Some((tenant, relay, _)), _) => {
                let owner = self.with_session(session.as_ref()).filter(|(owner, ..)| owner != tenant);
                match owner.zip(session) {
                    Some((_, session)) => {
                        let message = format!("the session '{session}' belongs to another tenant");
                        self.first.refuse(&input, refusal("foreign_session", message, "session_id"));
                    }
                    None => relay.client_line(line),
                }
            }
            (None, Some(named)) => {
                let message = format!("there is no tenant '{named}' in the hub's configuration");
                self.first.refuse(&input, refusal("unknown_tenant", message, "tenant"));
            }
            (None, None) if is_about_hub => self.first.client_line(line),
            (None, None) => {
                let message = "the hub has several tenants; name one with `tenant`".to_owned();
                self.first.refuse(&input, refusal("missing_tenant", message, "tenant"));
            }
        }
    }

    fn with_session(&self, session: Option<&SessionId>) -> Option<&(Option<String>, Relay, Rc<Bus>)> {
        let session = session?;
        self.all.iter().find(|(_, relay, _)| relay.has_session(session))
    }

    /// Returns the metrics and the state for `--metrics`.
    fn offer_state(&self) -> Rc<Source> {
        let status = Rc::new(RefCell::new(Value::Null));
        tokio::task::spawn_local(refresh_status(self.first.clone(), status.clone()));
        let connections: Vec<Rc<Bus>> = self.all.iter().map(|(_, _, bus)| bus.clone()).collect();
        Rc::new(Source {
            metrics: Box::new(move || connections.iter().map(|bus| bus.metrics.prometheus()).collect()),
            status: Box::new(move || status.borrow().clone()),
        })
    }
}

fn refusal(code: &'static str, message: String, param: &str) -> ErrorInfo {
    ErrorInfo::new(ErrorKind::Input, code, message).with_param(param)
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

async fn read(tenants: Rc<Tenants>, mut lines: Lines) {
    loop {
        match lines.next().await {
            Ok(Some(InputLine::Whole(line))) => tenants.client_line(&line),
            Ok(Some(InputLine::TooLong)) => tenants.first().client_line_too_long(),
            Ok(None) | Err(_) => {
                for relay in tenants.relays() {
                    relay.end(0, false);
                }
                return;
            }
        }
    }
}

/// The first signal refuses new prompts, the second ends at once. Turns continue on their nodes.
async fn handle_signals(tenants: Rc<Tenants>, mut signals: Signals) {
    loop {
        let code = tokio::select! {
            _ = signals.interrupt.recv() => 130,
            _ = signals.terminate.recv() => 143,
            _ = signals.hangup.recv() => continue,
        };
        for relay in tenants.relays() {
            relay.end(code, true);
        }
    }
}
