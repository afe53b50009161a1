//! `--metrics`: metrics for Prometheus at `/metrics` and the hub's state at `/status`, on loopback or a Unix
//! socket.

use std::fmt::Write as _;
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream, ToSocketAddrs};
use std::os::unix::fs::FileTypeExt;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::rc::Rc;
use std::time::Duration;

use qwen_kernel::{Hub, Router};
use serde_json::Value;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, UnixListener};

use crate::io::host_file::SharedPlaces;

/// The timeout for a reader.
const TIME_LIMIT: Duration = Duration::from_secs(5);

/// What the endpoints answer.
pub struct Source {
    pub metrics: Box<dyn Fn() -> String>,
    pub status: Box<dyn Fn() -> Value>,
}

impl Source {
    /// Returns the source of a hub with workers; `further` are metrics besides its own.
    pub fn of_hub(hub: Hub, further: impl Fn() -> String + 'static) -> Rc<Self> {
        let asked = hub.clone();
        Rc::new(Self {
            metrics: Box::new(move || hub.inspect(Router::prometheus) + &further()),
            status: Box::new(move || asked.inspect(Router::status)),
        })
    }
}

/// Serves both endpoints from now on.
pub async fn offer(source: Rc<Source>, address: &str) -> io::Result<()> {
    if let Some(path) = address.strip_prefix("unix:") {
        let listener = bind_socket(Path::new(path))?;
        tokio::task::spawn_local(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let answer = answer(source.clone(), stream, Endpoint::Socket);
                tokio::task::spawn_local(tokio::time::timeout(TIME_LIMIT, answer));
            }
        });
        return Ok(());
    }
    let resolved = loopback(address)?;
    let listener = TcpListener::bind(resolved).await?;
    tokio::task::spawn_local(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let answer = answer(source.clone(), stream, Endpoint::Port);
            tokio::task::spawn_local(tokio::time::timeout(TIME_LIMIT, answer));
        }
    });
    Ok(())
}

/// The kind of listener that a request came from.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Endpoint {
    /// Only users with access to the file reach it.
    Socket,
    /// A web page reaches it through a name that resolves to this machine, so the host is checked.
    Port,
}

/// Listens at a Unix socket. A socket without a listener is replaced; anything else at the path is refused.
fn bind_socket(path: &Path) -> io::Result<UnixListener> {
    let name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?;
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let directory = SharedPlaces::new(std::env::current_dir()).open_existing_directory(parent)?;
    let at = directory.path_of(name);
    match at.symlink_metadata() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(error),
        Ok(about) if !about.file_type().is_socket() => {
            return Err(io::Error::other(
                "there is a file that is not a socket; remove it or choose another path",
            ));
        }
        Ok(_) => match UnixStream::connect(&at) {
            Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => std::fs::remove_file(&at)?,
            Err(error) => return Err(error),
            Ok(_) => {
                return Err(io::Error::new(
                    io::ErrorKind::AddrInUse,
                    "another process listens at this socket",
                ));
            }
        },
    }
    UnixListener::bind(&at)
}

/// Parses the address and rejects any that is not a loopback address.
fn loopback(address: &str) -> io::Result<SocketAddr> {
    let mut found = address.to_socket_addrs()?;
    found.find(|address| address.ip().is_loopback()).ok_or_else(|| {
        io::Error::new(io::ErrorKind::InvalidInput, "only a loopback address or unix:PATH is offered to")
    })
}

async fn answer(source: Rc<Source>, mut stream: impl AsyncRead + AsyncWrite + Unpin, endpoint: Endpoint) {
    let mut request = Vec::new();
    let mut buffer = [0; 1024];
    while !request.windows(4).any(|window| window == b"\r\n\r\n") && request.len() < 8192 {
        match stream.read(&mut buffer).await {
            Ok(0) | Err(_) => return,
            Ok(read) => request.extend_from_slice(&buffer[..read]),
        }
    }
    let path = request.split(|byte| *byte == b' ').nth(1).unwrap_or_default();
    let (code, kind, body) = match path {
        _ if endpoint == Endpoint::Port && !has_local_host(&request) => {
            ("421 Misdirected Request", "text/plain", "the host is not this machine\n".to_owned())
        }
        b"/metrics" => ("200 OK", "text/plain; version=0.0.4", (source.metrics)()),
        b"/status" => ("200 OK", "application/json", (source.status)().to_string()),
        _ => ("404 Not Found", "text/plain", "there are /metrics and /status\n".to_owned()),
    };
    let head = format!(
        "HTTP/1.1 {code}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    );
    // If the reader has disconnected, the response is not needed.
    let _ = stream.write_all(format!("{head}{body}").as_bytes()).await;
}

/// True if the request has one `Host`, and it is a name or an address of this machine.
fn has_local_host(request: &[u8]) -> bool {
    let head = String::from_utf8_lossy(request);
    let mut hosts = head.split("\r\n").skip(1).take_while(|line| !line.is_empty()).filter_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("host").then_some(value.trim())
    });
    let (Some(host), None) = (hosts.next(), hosts.next()) else { return false };
    let has_port = |rest: &str| {
        rest.is_empty() || rest.strip_prefix(':').is_some_and(|port| port.parse::<u16>().is_ok())
    };
    if let Some((address, rest)) = host.strip_prefix('[').and_then(|host| host.split_once(']')) {
        return address.parse::<Ipv6Addr>().is_ok_and(|address| address.is_loopback()) && has_port(rest);
    }
    let (name, rest) = host.split_at(host.find(':').unwrap_or(host.len()));
    let is_local = name.eq_ignore_ascii_case("localhost")
        || name.parse::<Ipv4Addr>().is_ok_and(|address| address.is_loopback());
    is_local && has_port(rest)
}

/// Requests the state of a hub and formats it as text.
pub fn status(address: &str) -> io::Result<String> {
    let request = b"GET /status HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    let mut text = String::new();
    if let Some(path) = address.strip_prefix("unix:") {
        let mut stream = UnixStream::connect(path)?;
        stream.set_read_timeout(Some(TIME_LIMIT))?;
        stream.write_all(request)?;
        stream.read_to_string(&mut text)?;
    } else {
        let mut stream = TcpStream::connect(loopback(address)?)?;
        stream.set_read_timeout(Some(TIME_LIMIT))?;
        stream.write_all(request)?;
        stream.read_to_string(&mut text)?;
    }
    let body = text.split_once("\r\n\r\n").map_or("", |(_, body)| body);
    let state: Value = serde_json::from_str(body).map_err(io::Error::other)?;
    Ok(for_people(&state))
}

pub fn for_people(state: &Value) -> String {
    let mut out = String::new();
    let hub = &state["hub"];
    let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let draining = if hub["draining"] == true { ", draining" } else { "" };
    let _ = writeln!(out, "hub {} (version {}{draining})", text(&hub["id"]), text(&hub["version"]));
    for machine in state["machines"].as_array().into_iter().flatten() {
        if machine["workers"].is_null() {
            print_node(&mut out, machine);
            continue;
        }
        let workers = &machine["workers"];
        let _ = writeln!(
            out,
            "  {}: {} busy, {} idle, {} warm, {} quarantined of at most {}",
            text(&machine["name"]),
            workers["busy"],
            workers["idle"],
            workers["warm"],
            workers["quarantined"],
            workers["max"]
        );
        for (tenant, turns) in machine["turns_by_tenant"].as_object().into_iter().flatten() {
            let tenant = if tenant.is_empty() { "(no tenant)" } else { tenant };
            let _ = writeln!(out, "  turns of {tenant}: {turns}");
        }
        for (reason, count) in machine["restarts"].as_object().into_iter().flatten() {
            let _ = writeln!(out, "  workers lost, {reason}: {count}");
        }
    }
    if state["queue"].is_object() {
        let (sessions, waiting) = (&state["sessions"], &state["queue"]["length"]);
        let _ = writeln!(out, "  {sessions} sessions, {waiting} waiting for a worker");
    } else {
        print_bus(&mut out, state);
    }
    out
}

/// Prints a node of a bus.
fn print_node(out: &mut String, node: &Value) {
    let state = match (&node["is_live"], &node["draining"]) {
        (Value::Bool(false), _) => "away",
        (_, Value::Bool(true)) => "draining",
        _ => "live",
    };
    let name = node["name"].as_str().unwrap_or_default();
    let version = node["version"].as_str().unwrap_or_default();
    let (sessions, free) = (&node["sessions"], &node["free"]);
    let _ = writeln!(out, "  node {name}: {state}, {sessions} sessions, {free} free, version {version}");
}

/// Prints the sessions and streams of a bus.
fn print_bus(out: &mut String, state: &Value) {
    let _ = writeln!(out, "  {} sessions", state["sessions"]);
    for session in state["owners"].as_array().into_iter().flatten() {
        let id = session["session_id"].as_str().unwrap_or_default();
        let owner = session["owner"].as_str().unwrap_or("no one");
        let _ = writeln!(
            out,
            "  session {id}: owned by {owner}, epoch {}, shard {}",
            session["epoch"], session["shard"]
        );
    }
    for stream in state["shards"].as_array().into_iter().flatten() {
        let name = stream["stream"].as_str().unwrap_or_default();
        let leader = stream["leader"].as_str().unwrap_or("-");
        let _ = writeln!(out, "  stream {name}: leader {leader}, {} replicas", stream["replicas"]);
    }
}
