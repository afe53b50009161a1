//! `--metrics`: metrics for Prometheus at `/metrics` and the hub's state at `/status`, on loopback or a Unix
//! socket.

use std::fmt::Write as _;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use qwen_kernel::{Hub, Router};
use serde_json::Value;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, UnixListener};

/// The timeout for a reader.
const TIME_LIMIT: Duration = Duration::from_secs(5);

/// Serves both endpoints from now on.
pub async fn offer(hub: Hub, address: &str) -> io::Result<()> {
    if let Some(path) = address.strip_prefix("unix:") {
        match std::fs::remove_file(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let listener = UnixListener::bind(path)?;
        tokio::task::spawn_local(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::task::spawn_local(tokio::time::timeout(TIME_LIMIT, answer(hub.clone(), stream)));
            }
        });
        return Ok(());
    }
    let resolved = loopback(address)?;
    let listener = TcpListener::bind(resolved).await?;
    tokio::task::spawn_local(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::task::spawn_local(tokio::time::timeout(TIME_LIMIT, answer(hub.clone(), stream)));
        }
    });
    Ok(())
}

/// Parses the address and rejects any that is not a loopback address.
fn loopback(address: &str) -> io::Result<SocketAddr> {
    let mut found = address.to_socket_addrs()?;
    found.find(|address| address.ip().is_loopback()).ok_or_else(|| {
        io::Error::new(io::ErrorKind::InvalidInput, "only a loopback address or unix:PATH is offered to")
    })
}

async fn answer(hub: Hub, mut stream: impl AsyncRead + AsyncWrite + Unpin) {
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
        b"/metrics" => ("200 OK", "text/plain; version=0.0.4", hub.inspect(Router::prometheus)),
        b"/status" => ("200 OK", "application/json", hub.inspect(|router| router.status().to_string())),
        _ => ("404 Not Found", "text/plain", "there are /metrics and /status\n".to_owned()),
    };
    let head = format!(
        "HTTP/1.1 {code}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    );
    // If the reader has disconnected, the response is not needed.
    let _ = stream.write_all(format!("{head}{body}").as_bytes()).await;
}

/// Requests the state of a hub and formats it as text.
pub fn status(address: &str) -> io::Result<String> {
    let request = b"GET /status HTTP/1.1\r\nHost: hub\r\nConnection: close\r\n\r\n";
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

fn for_people(state: &Value) -> String {
    let mut out = String::new();
    let hub = &state["hub"];
    let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let draining = if hub["draining"] == true { ", draining" } else { "" };
    let _ = writeln!(out, "hub {} (version {}{draining})", text(&hub["id"]), text(&hub["version"]));
    for machine in state["machines"].as_array().into_iter().flatten() {
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
    let _ =
        writeln!(out, "  {} sessions, {} waiting for a worker", state["sessions"], state["queue"]["length"]);
    out
}
