//! A connection whose bytes are passed on, after its first ones have shown that it leads where it claims to.

use std::io;

use tokio::io::{AsyncWrite, AsyncWriteExt, copy_bidirectional};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;

use crate::buffered::Buffered;
use crate::client_hello::{self, ClientHello, HANDSHAKE, read_client_hello};
use crate::exchange::{Exchange, respond};
use crate::gatekeeper::{Admission, Problem};
use crate::head::{MAX_HEAD, RequestHead};
use crate::server::{ByteStream, Door, HEAD_LIMIT, socks_reply};
use crate::{ConnectionRecord, Destination};

/// The TLS alert `unrecognized_name`, which ends a handshake.
const WRONG_NAME: [u8; 7] = [0x15, 3, 3, 0, 2, 2, 112];
const MAX_METHOD: usize = 20;

/// A tunnel that a program asked for.
pub struct Tunnel<'a> {
    pub door: &'a Door,
    pub destination: Destination,
    pub is_socks: bool,
}

/// The protocol of a tunnel's first bytes.
#[derive(Debug, PartialEq, Eq)]
enum Protocol {
    /// The name of the server, if the client sends one.
    Tls(Option<String>),
    Http,
    Other,
    /// The program sent nothing and closed the connection.
    None,
}

impl Tunnel<'_> {
    pub async fn run<C: ByteStream>(self, mut client: Buffered<C>) {
        let gatekeeper = &self.door.gatekeeper;
        let admission = match gatekeeper.admit(&self.destination, None).await {
            Ok(admission) => admission,
            Err(reason) => return self.decline(client, Problem::Refused(reason)).await,
        };
        let is_read = admission.is_by_method || gatekeeper.find_credential(&self.destination.host).is_some();
        if is_read {
            if self.accept(&mut client).await.is_ok() {
                self.read_requests(client, admission).await;
            }
            return;
        }
        let server = match self.door.connect(&self.destination).await {
            Ok(server) => server,
            Err(problem) => return self.decline(client, problem).await,
        };
        if self.accept(&mut client).await.is_ok() {
            self.pass_on(client, server, admission).await;
        }
    }

    /// Tells the program that the tunnel is there.
    async fn accept<W: AsyncWrite + Unpin>(&self, client: &mut W) -> io::Result<()> {
        if self.is_socks {
            client.write_all(&socks_reply(0)).await
        } else {
            client.write_all(b"HTTP/1.1 200 Connection established\r\n\r\n").await
        }
    }

    /// Tells the program that there is no tunnel, and records it.
    async fn decline<W: AsyncWrite + Unpin>(&self, mut client: W, problem: Problem) {
        const NOT_ALLOWED: u8 = 2;
        const HOST_UNREACHABLE: u8 = 4;
        if self.is_socks {
            let code = if matches!(problem, Problem::Refused(_)) { NOT_ALLOWED } else { HOST_UNREACHABLE };
            // The program may have gone.
            let _ = client.write_all(&socks_reply(code)).await;
        } else {
            respond(&mut client, &problem).await;
        }
        let _ = client.shutdown().await;
        self.door.record_problem(&self.destination, problem);
    }

    /// Passes everything on once the first bytes have been checked.
    async fn pass_on<C: ByteStream>(
        &self,
        mut client: Buffered<C>,
        mut server: TcpStream,
        admission: Admission,
    ) {
        let mut record = ConnectionRecord {
            destination: self.destination.clone(),
            method: None,
            address: server.peer_addr().ok().map(|peer| peer.ip()),
            problem: None,
            sent: 0,
            received: 0,
        };
        let detected = if admission.is_any_protocol {
            // Here the server may speak first.
            detect_while_relaying(&mut client, &mut server, &mut record.received).await
        } else {
            detect(&mut client).await
        };
        let refusal = match detected {
            Err(error) => Err(Problem::Failed(format!("{}: {error}", self.destination))),
            Ok(Protocol::Http) => {
                // It is opened again when the request is known.
                drop(server);
                return self.read_request(client, false, Some(admission)).await;
            }
            Ok(Protocol::Tls(name)) => self.check_name(name.as_deref()),
            Ok(Protocol::Other) if !admission.is_any_protocol => Err(Problem::Refused(format!(
                "{}: it is neither TLS nor HTTP, which only a rule that names the port allows",
                self.destination
            ))),
            Ok(Protocol::Other | Protocol::None) => Ok(()),
        };
        match refusal {
            Ok(()) => match copy_bidirectional(&mut client, &mut server).await {
                Ok((sent, received)) => {
                    record.sent += sent;
                    record.received += received;
                }
                Err(error) => {
                    record.problem = Some(Problem::Failed(format!("{}: {error}", self.destination)));
                }
            },
            Err(problem) => {
                if client.bytes().first() == Some(&HANDSHAKE) {
                    let _ = client.write_all(&WRONG_NAME).await;
                }
                let _ = client.shutdown().await;
                record.problem = Some(problem);
            }
        }
        self.door.gatekeeper.record(&record);
    }

    /// The name in the handshake must be the destination. A client of an address sends none.
    fn check_name(&self, name: Option<&str>) -> Result<(), Problem> {
        let is_right = match (self.destination.address(), name) {
            (None, Some(name)) => name.trim_end_matches('.') == self.destination.host,
            (Some(_), None) => true,
            (None, None) | (Some(_), Some(_)) => false,
        };
        let shown = name.unwrap_or("none").escape_debug();
        is_right.then_some(()).ok_or_else(|| {
            Problem::Refused(format!(
                "{}: the TLS handshake is for another server ({shown})",
                self.destination
            ))
        })
    }

    /// Reads the program's request, through TLS that ends here.
    async fn read_requests<C: ByteStream>(&self, mut client: Buffered<C>, admission: Admission) {
        match timeout(HEAD_LIMIT * 6, detect(&mut client)).await {
            Ok(Ok(Protocol::Tls(name))) => {
                if let Err(problem) = self.check_name(name.as_deref()) {
                    let _ = client.write_all(&WRONG_NAME).await;
                    let _ = client.shutdown().await;
                    return self.door.record_problem(&self.destination, problem);
                }
                let handshake = async {
                    let config = self.door.gatekeeper.authority()?.server(&self.destination.host)?;
                    timeout(HEAD_LIMIT, TlsAcceptor::from(config).accept(client)).await?
                };
                match handshake.await {
                    Ok(client) => self.read_request(Buffered::new(client), true, Some(admission)).await,
                    Err(error) => {
                        let text =
                            format!("{}: the program does not trust the proxy: {error}", self.destination);
                        self.door.record_problem(&self.destination, Problem::Failed(text));
                    }
                }
            }
            Ok(Ok(Protocol::Http)) => self.read_request(client, false, Some(admission)).await,
            Ok(Ok(Protocol::None) | Err(_)) | Err(_) => {}
            Ok(Ok(Protocol::Other)) => {
                let text = format!(
                    "{}: it is neither TLS nor HTTP, so rules about methods cannot be applied",
                    self.destination
                );
                self.door.record_problem(&self.destination, Problem::Refused(text));
            }
        }
    }

    /// Reads one request in the tunnel and carries it out.
    async fn read_request<C: ByteStream>(
        &self,
        mut client: Buffered<C>,
        is_encrypted: bool,
        admission: Option<Admission>,
    ) {
        let head = match timeout(HEAD_LIMIT * 6, client.read_until(b"\r\n\r\n", MAX_HEAD)).await {
            Ok(Ok(Some(head))) => RequestHead::parse(&head),
            Ok(Err(error)) if error.kind() == io::ErrorKind::InvalidData => Err("its head is too long"),
            _ => return,
        };
        let head = head.and_then(|head| match head.target.as_str() {
            "*" => Ok(head),
            target if target.starts_with('/') => Ok(head),
            _ => Err("its target is not a path"),
        });
        match head {
            Ok(head) => {
                let target = head.target.clone();
                let destination = &self.destination;
                Exchange { door: self.door, destination, head, target, is_encrypted, admission }
                    .run(client)
                    .await;
            }
            Err(reason) => {
                let problem = Problem::Refused(format!(
                    "{}: a request cannot be understood: {reason}",
                    self.destination
                ));
                respond(&mut client, &problem).await;
                let _ = client.shutdown().await;
                self.door.record_problem(&self.destination, problem);
            }
        }
    }
}

/// Waits for the first bytes of a program and recognises the protocol.
async fn detect<C: ByteStream>(client: &mut Buffered<C>) -> io::Result<Protocol> {
    loop {
        if let Some(protocol) = recognise(client.bytes()) {
            return Ok(protocol);
        }
        if !client.more().await? {
            return Ok(if client.bytes().is_empty() { Protocol::None } else { Protocol::Other });
        }
    }
}

/// The same, while what the server sends is passed on.
async fn detect_while_relaying<C: ByteStream>(
    client: &mut Buffered<C>,
    server: &mut TcpStream,
    received: &mut u64,
) -> io::Result<Protocol> {
    let mut piece = [0; 4096];
    loop {
        if let Some(protocol) = recognise(client.bytes()) {
            return Ok(protocol);
        }
        tokio::select! {
            more = client.more() => if !more? {
                return Ok(if client.bytes().is_empty() { Protocol::None } else { Protocol::Other });
            },
            ready = server.readable() => {
                ready?;
                match server.try_read(&mut piece) {
                    Ok(0) => return Ok(Protocol::None),
                    Ok(count) => {
                        client.write_all(piece.get(..count).unwrap_or_default()).await?;
                        *received += u64::try_from(count).unwrap_or_default();
                    }
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                    Err(error) => return Err(error),
                }
            }
        }
    }
}

/// The protocol of a connection's first bytes; `None` if they are too few.
fn recognise(bytes: &[u8]) -> Option<Protocol> {
    match bytes.first()? {
        &HANDSHAKE => match read_client_hello(bytes) {
            ClientHello::Incomplete if bytes.len() <= client_hello::MAX_BYTES * 2 => None,
            ClientHello::Complete(name) => Some(Protocol::Tls(name)),
            ClientHello::Incomplete | ClientHello::Invalid => Some(Protocol::Other),
        },
        _ => {
            let method = bytes
                .iter()
                .take(MAX_METHOD + 1)
                .take_while(|byte| byte.is_ascii_uppercase() || **byte == b'-')
                .count();
            match bytes.get(method) {
                None if method <= MAX_METHOD => None,
                Some(b' ') if method > 0 => Some(Protocol::Http),
                _ => Some(Protocol::Other),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_protocol_is_recognised_by_the_first_bytes() {
        for (bytes, protocol) in [
            (&b"GET / HTTP/1.1\r\n"[..], Some(Protocol::Http)),
            (b"PRI * HTTP/2.0\r\n", Some(Protocol::Http)),
            (b"GE", None),
            (b"", None),
            (b"SSH-2.0-OpenSSH", Some(Protocol::Other)),
            (b"get / HTTP/1.1", Some(Protocol::Other)),
            (b" GET /", Some(Protocol::Other)),
            (b"ABCDEFGHIJKLMNOPQRSTUVWXYZ /", Some(Protocol::Other)),
            (&[HANDSHAKE], None),
            (&[HANDSHAKE, 2], Some(Protocol::Other)),
            (&[0, 1, 2], Some(Protocol::Other)),
        ] {
            assert_eq!(recognise(bytes), protocol, "{bytes:?}");
        }
    }
}
