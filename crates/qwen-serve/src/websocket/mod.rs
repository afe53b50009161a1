//! WebSocket connections: the hub's protocol (`/api/ws`) and the Agent Client Protocol (`/acp`), one line a
//! message.

mod commands;
mod frame;

use std::rc::Rc;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use hyper::StatusCode;
use hyper::header::{self, HeaderMap, HeaderValue};
use hyper::upgrade::{OnUpgrade, Upgraded};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncReadExt, AsyncWriteExt, ReadHalf, WriteHalf};
use tokio::sync::mpsc;

use self::commands::Commands;
use self::frame::{
    FrameParser, GOING_AWAY, NORMAL, SocketMessage, push_close, push_ping, push_pong, push_text,
};
use crate::acp::AcpConnection;
use crate::respond::{HttpReply, Refusal, empty};
use crate::server::{Call, Server};
use crate::token::Access;

/// What the key of a client is joined with, so that only a server that knows the protocol can answer (RFC 6455).
const GUID: &str = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";

/// The subprotocol that is selected if the client offers it beside its token.
const PROTOCOL: &str = "qwen";

/// How many lines may wait for the connection.
const QUEUED: usize = 4;

/// What the messages of a connection are.
#[derive(Debug, Clone, Copy)]
pub enum SocketProtocol {
    /// Lines of the hub.
    Hub,
    /// JSON-RPC of the Agent Client Protocol.
    Acp,
}

/// Carries out the messages of a connection.
enum Handler {
    Hub(Commands),
    Acp(AcpConnection),
}

impl Handler {
    async fn run(&mut self, line: &[u8]) -> Option<Bytes> {
        match self {
            Self::Hub(commands) => commands.run(line).await,
            Self::Acp(connection) => connection.run(line).await,
        }
    }
}

/// Answers the handshake and serves the connection.
pub fn open(
    server: &Rc<Server>,
    mut call: Call,
    access: Option<Access>,
    protocol: SocketProtocol,
) -> Result<HttpReply, Refusal> {
    let upgrade = call.head.extensions.remove::<OnUpgrade>();
    let headers = &call.head.headers;
    let contains = |name, word: &str| {
        let values = headers.get_all(name).iter().filter_map(|value: &HeaderValue| value.to_str().ok());
        values.flat_map(|value| value.split(',')).any(|part| part.trim().eq_ignore_ascii_case(word))
    };
    let key = headers.get(header::SEC_WEBSOCKET_KEY).and_then(|key| key.to_str().ok());
    let key = key.filter(|key| STANDARD.decode(key).is_ok_and(|bytes| bytes.len() == 16));
    let version = headers.get(header::SEC_WEBSOCKET_VERSION).map(HeaderValue::as_bytes);
    let is_handshake = contains(header::CONNECTION, "upgrade")
        && contains(header::UPGRADE, "websocket")
        && version == Some(b"13");
    let (Some(upgrade), Some(key), true) = (upgrade, key, is_handshake) else {
        let message = "This is a WebSocket. Connect with version 13 of the protocol.";
        return Err(Refusal::new(StatusCode::UPGRADE_REQUIRED, "upgrade_required", message));
    };
    let digest = ring::digest::digest(
        &ring::digest::SHA1_FOR_LEGACY_USE_ONLY,
        [key.as_bytes(), GUID.as_bytes()].concat().as_slice(),
    );
    let mut reply = empty(StatusCode::SWITCHING_PROTOCOLS);
    let mut set = |name, value: Result<HeaderValue, _>| {
        if let Ok(value) = value {
            reply.headers_mut().insert(name, value);
        }
    };
    set(header::CONNECTION, Ok(HeaderValue::from_static("upgrade")));
    set(header::UPGRADE, Ok(HeaderValue::from_static("websocket")));
    set(header::SEC_WEBSOCKET_ACCEPT, HeaderValue::try_from(STANDARD.encode(digest)));
    if let Some(selected) = subprotocol(headers) {
        set(header::SEC_WEBSOCKET_PROTOCOL, HeaderValue::try_from(selected));
    }
    let server = server.clone();
    tokio::task::spawn_local(async move {
        // A connection that breaks before the upgrade has nothing to serve.
        if let Ok(upgraded) = upgrade.await {
            serve(server, upgraded, access, protocol).await;
        }
    });
    Ok(reply)
}

/// One of the subprotocols that the client offers, which it expects in the answer.
fn subprotocol(headers: &HeaderMap) -> Option<&str> {
    let offered = headers.get(header::SEC_WEBSOCKET_PROTOCOL)?.to_str().ok()?;
    let mut offered = offered.split(',').map(str::trim);
    let first = offered.clone().next();
    offered.find(|name| *name == PROTOCOL).or(first)
}

/// The sending side of a connection.
struct FrameWriter {
    half: WriteHalf<TokioIo<Upgraded>>,
    patience: Duration,
}

impl FrameWriter {
    /// False if the client is gone or accepts nothing.
    async fn write(&mut self, bytes: &[u8]) -> bool {
        matches!(tokio::time::timeout(self.patience, self.half.write_all(bytes)).await, Ok(Ok(())))
    }

    async fn close(mut self, code: u16) {
        let mut last = Vec::new();
        push_close(&mut last, code);
        self.write(&last).await;
        // The client may be gone.
        let _ = self.half.shutdown().await;
    }
}

async fn serve(server: Rc<Server>, upgraded: Upgraded, access: Option<Access>, protocol: SocketProtocol) {
    let limits = &server.sessions.limits;
    let (mut reader, half): (ReadHalf<_>, _) = tokio::io::split(TokioIo::new(upgraded));
    let mut writer = FrameWriter { half, patience: limits.stalled_reader };
    let (out, mut lines) = mpsc::channel::<Bytes>(QUEUED);
    let mut handler = match protocol {
        SocketProtocol::Hub => Handler::Hub(Commands::new(server.clone(), out, access == Some(Access::Full))),
        SocketProtocol::Acp => Handler::Acp(AcpConnection::new(server.clone(), out)),
    };
    let mut parser = FrameParser::new(limits.body);
    let mut closing = server.sessions.closing();
    let mut buffer = vec![0; 16 * 1024];
    let mut is_alive = true;
    loop {
        tokio::select! {
            read = reader.read(&mut buffer) => match read {
                Ok(count) if count > 0 => {
                    is_alive = true;
                    parser.push(&buffer[..count]);
                }
                _ => return,
            },
            Some(line) = lines.recv() => {
                let mut frames = Vec::with_capacity(line.len() + 10);
                push_text(&mut frames, &line);
                while let Ok(line) = lines.try_recv() {
                    push_text(&mut frames, &line);
                }
                if !writer.write(&frames).await {
                    return;
                }
                continue;
            }
            _ = closing.wait_for(|closing| *closing) => return writer.close(GOING_AWAY).await,
            () = tokio::time::sleep(limits.keep_alive) => {
                // The last ping was not answered.
                if !is_alive {
                    return;
                }
                is_alive = false;
                let mut ping = Vec::new();
                push_ping(&mut ping);
                if !writer.write(&ping).await {
                    return;
                }
            }
        }
        loop {
            match parser.next() {
                Ok(None) => break,
                Ok(Some(SocketMessage::Text(line))) => {
                    if let Some(answer) = handler.run(&line).await {
                        let mut text = Vec::with_capacity(answer.len() + 10);
                        push_text(&mut text, &answer);
                        if !writer.write(&text).await {
                            return;
                        }
                    }
                }
                Ok(Some(SocketMessage::Pong)) => {}
                Ok(Some(SocketMessage::Ping(payload))) => {
                    let mut pong = Vec::new();
                    push_pong(&mut pong, &payload);
                    if !writer.write(&pong).await {
                        return;
                    }
                }
                Ok(Some(SocketMessage::Close(code))) => return writer.close(code.unwrap_or(NORMAL)).await,
                Err(code) => return writer.close(code).await,
            }
        }
    }
}
