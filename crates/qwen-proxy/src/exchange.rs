//! One HTTP request and its response. The connections are closed after it: the next request may be for
//! another server, and what follows a body must not be taken for a request.

use std::io;
use std::net::IpAddr;
use std::sync::Arc;

use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio::time::timeout;
use tokio_rustls::TlsConnector;

use crate::buffered::Buffered;
use crate::gatekeeper::{Admission, Credential, Problem};
use crate::head::{BodyEnd, MAX_HEAD, RequestHead, ResponseHead, read_chunk_size};
use crate::mask::{Mask, MaskedStream};
use crate::server::{ByteStream, Door, HEAD_LIMIT};
use crate::{ConnectionRecord, Destination};

const MAX_CHUNK_LINE: usize = 4 * 1024;
/// Interim responses before the final one.
const MAX_INTERIM: usize = 16;
/// The longest an ended connection is read, so that the client gets the refusal before a reset.
const DRAIN_LIMIT: std::time::Duration = std::time::Duration::from_millis(500);
const MAX_DRAINED: u64 = 1024 * 1024;

/// A request that was read from a program, whose destination is known.
pub struct Exchange<'a> {
    pub door: &'a Door,
    pub destination: &'a Destination,
    pub head: RequestHead,
    /// The target for the server.
    pub target: String,
    /// The program believes that it speaks to the server through TLS.
    pub is_encrypted: bool,
    /// Whether this request still has to be admitted.
    pub admission: Option<Admission>,
}

impl Exchange<'_> {
    /// Carries the request out and records it.
    pub async fn run<C: ByteStream>(mut self, client: C) {
        let (reader, mut writer) = tokio::io::split(client);
        let mut reader = Buffered::new(reader);
        let mut record = ConnectionRecord {
            destination: self.destination.clone(),
            method: Some(self.head.method.clone()),
            address: None,
            problem: None,
            sent: 0,
            received: 0,
        };
        if let Err(problem) = self.forward(&mut reader, &mut writer, &mut record).await {
            if record.received == 0 {
                respond(&mut writer, &problem).await;
                let _ = timeout(DRAIN_LIMIT, drain(&mut reader)).await;
            }
            record.problem = Some(problem);
        }
        let _ = writer.shutdown().await;
        self.door.gatekeeper.record(&record);
    }

    async fn forward<R: AsyncRead + Unpin, W: AsyncWrite + Unpin>(
        &mut self,
        reader: &mut Buffered<R>,
        writer: &mut W,
        record: &mut ConnectionRecord,
    ) -> Result<(), Problem> {
        let refused = |reason: &str| Problem::Refused(format!("{}: {reason}", self.destination));
        let body = self.head.body_end().map_err(refused)?;
        self.check_host().map_err(|reason| refused(&reason))?;
        if self.admission.is_none_or(|admission| admission.is_by_method) {
            let admitted = self.door.gatekeeper.admit(self.destination, Some(&self.head.method)).await;
            admitted.map_err(Problem::Refused)?;
        }
        let credential = match self.door.gatekeeper.find_credential(&self.destination.host) {
            Some(found) if self.is_encrypted => Some(found.map_err(Problem::Refused)?),
            _ => None,
        };
        let is_upgrade = self.head.is_upgrade();
        let request = self.rewrite(is_upgrade, credential.as_ref());
        let server = self.connect(&mut record.address).await?;
        let failed = |error: io::Error| Problem::Failed(format!("{}: {error}", self.destination));
        let (server_reader, mut server_writer) = tokio::io::split(server);
        let mut server_reader = Buffered::new(server_reader);
        server_writer.write_all(request.as_bytes()).await.map_err(failed)?;
        server_writer.flush().await.map_err(failed)?;
        let mask = credential.map(|credential| credential.mask).unwrap_or_default();
        let mut sent = 0;
        let response = {
            let upload = copy_body(reader, &mut server_writer, body, None, &mut sent);
            let download = self.answer(&mut server_reader, writer, &mask, &mut record.received);
            // A server may answer before it has read everything.
            tokio::pin!(upload, download);
            tokio::select! {
                biased;
                outcome = &mut download => outcome,
                uploaded = &mut upload => match uploaded {
                    Ok(()) => download.await,
                    Err(error) => Err(error),
                },
            }
        };
        record.sent = sent;
        match response.map_err(failed)? {
            Answer::Complete => Ok(()),
            Answer::Upgraded if !is_upgrade => {
                Err(Problem::Failed(format!("{}: it changed the protocol unasked", self.destination)))
            }
            Answer::Upgraded => {
                let upward = copy_body(reader, &mut server_writer, BodyEnd::Closed, None, &mut record.sent);
                let downward =
                    copy_body(&mut server_reader, writer, BodyEnd::Closed, Some(&mask), &mut record.received);
                // The end of either side ends the connection.
                tokio::select! { _ = upward => {}, _ = downward => {} }
                Ok(())
            }
        }
    }

    /// The `Host` field must name the destination, since servers with several hosts go by it.
    fn check_host(&self) -> Result<(), String> {
        let default_port = if self.is_encrypted { 443 } else { 80 };
        let host = self.head.fields.find_unique("host")?.ok_or("the request names no Host")?;
        match Destination::parse(host, Some(default_port)) {
            Some(named) if named == *self.destination => Ok(()),
            _ => Err(format!("the request is for the Host {}", host.escape_debug())),
        }
    }

    /// The head for the server.
    fn rewrite(&mut self, is_upgrade: bool, credential: Option<&Credential>) -> String {
        let fields = &mut self.head.fields;
        let protocol = fields.get("upgrade").map(str::to_owned);
        fields.remove_connection_fields();
        match protocol.filter(|_| is_upgrade) {
            Some(protocol) => {
                fields.set("Connection", "Upgrade");
                fields.set("Upgrade", &protocol);
            }
            None => fields.set("Connection", "close"),
        }
        if let Some(credential) = credential {
            // Secrets in what comes back can be found in plain text only.
            fields.set("Accept-Encoding", "identity");
            fields.remove("sec-websocket-extensions");
            for (name, value) in &credential.headers {
                fields.set(name, value);
            }
        }
        self.head.write(&self.target)
    }

    async fn connect(&self, address: &mut Option<IpAddr>) -> Result<Box<dyn ByteStream>, Problem> {
        let stream = self.door.connect(self.destination).await?;
        *address = stream.peer_addr().ok().map(|peer| peer.ip());
        if !self.is_encrypted {
            return Ok(Box::new(stream));
        }
        let failed = |error: String| Problem::Failed(format!("{}: {error}", self.destination));
        let config = qwen_http::tls_config(false).map_err(|error| failed(error.to_string()))?;
        let name =
            ServerName::try_from(self.destination.host.clone()).map_err(|error| failed(error.to_string()))?;
        let connecting = timeout(HEAD_LIMIT, TlsConnector::from(Arc::clone(&config)).connect(name, stream));
        let stream = connecting.await.map_err(|_| failed("TLS took too long".to_owned()))?;
        Ok(Box::new(stream.map_err(|error| failed(error.to_string()))?))
    }

    /// Passes the response on.
    async fn answer<R: AsyncRead + Unpin, W: AsyncWrite + Unpin>(
        &self,
        server: &mut Buffered<R>,
        client: &mut W,
        mask: &Mask,
        received: &mut u64,
    ) -> io::Result<Answer> {
        for _ in 0..MAX_INTERIM {
            let bytes = server.read_until(b"\r\n\r\n", MAX_HEAD).await?;
            let bytes =
                bytes.ok_or_else(|| io::Error::other("it closed the connection without a response"))?;
            let mut head = ResponseHead::parse(&bytes).map_err(io::Error::other)?;
            let end = head.body_end(&self.head.method).map_err(io::Error::other)?;
            let is_upgrade = head.status == 101;
            let is_interim = !is_upgrade && head.status < 200;
            let encoding = head
                .fields
                .get("content-encoding")
                .filter(|encoding| !encoding.eq_ignore_ascii_case("identity"));
            if !mask.is_empty() && encoding.is_some() {
                return Err(io::Error::other("it encoded the body although that was not asked for"));
            }
            if !is_upgrade {
                head.fields.remove_connection_fields();
                if !is_interim {
                    head.fields.set("Connection", "close");
                }
            }
            let mut text = head.write().into_bytes();
            mask.apply(&mut text);
            *received += u64::try_from(text.len()).unwrap_or(u64::MAX);
            client.write_all(&text).await?;
            client.flush().await?;
            if is_upgrade {
                return Ok(Answer::Upgraded);
            }
            if !is_interim {
                copy_body(server, client, end, Some(mask), received).await?;
                return Ok(Answer::Complete);
            }
        }
        Err(io::Error::other("it sent too many interim responses"))
    }
}

/// How a response ended.
enum Answer {
    Complete,
    /// The connection continues in another protocol.
    Upgraded,
}

/// Copies a body and counts its bytes. Chunks are read and written anew, so that both sides agree on where
/// they end.
async fn copy_body<R: AsyncRead + Unpin, W: AsyncWrite + Unpin>(
    from: &mut Buffered<R>,
    to: &mut W,
    end: BodyEnd,
    mask: Option<&Mask>,
    count: &mut u64,
) -> io::Result<()> {
    let none = Mask::default();
    let mut masked = MaskedStream::new(mask.unwrap_or(&none));
    match end {
        BodyEnd::Length(mut left) => {
            while left > 0 {
                let piece = from.piece(left).await?;
                if piece.is_empty() {
                    return Err(io::ErrorKind::UnexpectedEof.into());
                }
                left -= u64::try_from(piece.len()).unwrap_or(left);
                write_piece(to, &masked.push(&piece), false, count).await?;
            }
            write_piece(to, &masked.finish(), false, count).await
        }
        BodyEnd::Closed => loop {
            let piece = from.piece(u64::MAX).await?;
            if piece.is_empty() {
                return write_piece(to, &masked.finish(), false, count).await;
            }
            write_piece(to, &masked.push(&piece), false, count).await?;
        },
        BodyEnd::Chunked => {
            loop {
                let mut left = read_chunk_size(&line(from).await?).map_err(io::Error::other)?;
                if left == 0 {
                    break;
                }
                while left > 0 {
                    let piece = from.piece(left).await?;
                    if piece.is_empty() {
                        return Err(io::ErrorKind::UnexpectedEof.into());
                    }
                    left -= u64::try_from(piece.len()).unwrap_or(left);
                    write_piece(to, &masked.push(&piece), true, count).await?;
                }
                if !line(from).await?.is_empty() {
                    return Err(io::Error::other("a chunk is longer than its length"));
                }
            }
            // Trailing fields are dropped: they could contain secrets, and no client needs them.
            let mut trailers = 0;
            while !line(from).await?.is_empty() {
                trailers += 1;
                if trailers > MAX_INTERIM {
                    return Err(io::Error::other("there are too many trailing fields"));
                }
            }
            write_piece(to, &masked.finish(), true, count).await?;
            to.write_all(b"0\r\n\r\n").await?;
            to.flush().await
        }
    }
}

async fn line<R: AsyncRead + Unpin>(from: &mut Buffered<R>) -> io::Result<String> {
    let bytes = from.read_until(b"\r\n", MAX_CHUNK_LINE).await?.ok_or(io::ErrorKind::UnexpectedEof)?;
    let text = bytes.strip_suffix(b"\r\n").unwrap_or(&bytes);
    String::from_utf8(text.to_vec()).map_err(|_| io::Error::other("a line of the body is not text"))
}

async fn write_piece<W: AsyncWrite + Unpin>(
    to: &mut W,
    piece: &[u8],
    is_chunk: bool,
    count: &mut u64,
) -> io::Result<()> {
    if piece.is_empty() {
        return Ok(());
    }
    *count += u64::try_from(piece.len()).unwrap_or_default();
    if is_chunk {
        to.write_all(format!("{:x}\r\n", piece.len()).as_bytes()).await?;
        to.write_all(piece).await?;
        to.write_all(b"\r\n").await?;
    } else {
        to.write_all(piece).await?;
    }
    to.flush().await
}

/// Answers a request that was not carried out.
pub async fn respond<W: AsyncWrite + Unpin>(to: &mut W, problem: &Problem) {
    let status = match problem {
        Problem::Refused(_) => "403 Forbidden",
        Problem::Failed(_) => "502 Bad Gateway",
    };
    let body = format!("qwen: {}\n", problem.text());
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: {}\r\nX-Proxy-Error: qwen\r\nConnection: \
         close\r\n\r\n",
        body.len()
    );
    // The program may have gone.
    let _ = to.write_all(head.as_bytes()).await;
    let _ = to.write_all(body.as_bytes()).await;
    let _ = to.flush().await;
}

async fn drain<R: AsyncRead + Unpin>(from: &mut Buffered<R>) {
    let mut drained = 0;
    while drained < MAX_DRAINED {
        match from.piece(MAX_DRAINED).await {
            Ok(piece) if !piece.is_empty() => drained += u64::try_from(piece.len()).unwrap_or(MAX_DRAINED),
            _ => return,
        }
    }
}
