//! The listening socket, and the connections that it accepts.

use std::io;
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use crate::options::{Listen, ServeError, ServeOptions, TlsFiles};

/// A socket that accepts connections.
pub struct Listener {
    socket: Socket,
    tls: Option<TlsAcceptor>,
    /// The real address: port 0 was replaced by the one that the system chose.
    pub address: Listen,
}

enum Socket {
    Tcp(TcpListener),
    Unix(UnixListener),
}

impl Listener {
    /// Listens at the address of the options.
    pub async fn bind(options: &ServeOptions) -> Result<Self, ServeError> {
        options.check()?;
        let tls = options.tls.as_ref().map(acceptor).transpose()?;
        match &options.listen {
            Listen::Tcp(address) => {
                let failed = |error: io::Error| {
                    ServeError(format!(
                        "Cannot listen on {address}: {error}. Choose another address with --listen."
                    ))
                };
                let socket = TcpListener::bind(address).await.map_err(failed)?;
                let address = Listen::Tcp(socket.local_addr().map_err(failed)?);
                Ok(Self { socket: Socket::Tcp(socket), tls, address })
            }
            Listen::Unix(path) => {
                let failed = |error: io::Error| {
                    ServeError(format!("Cannot listen on {}: {error}. Choose another path.", path.display()))
                };
                remove_stale(path).map_err(failed)?;
                let socket = UnixListener::bind(path).map_err(failed)?;
                std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600)).map_err(failed)?;
                Ok(Self { socket: Socket::Unix(socket), tls, address: options.listen.clone() })
            }
        }
    }

    pub fn has_tls(&self) -> bool {
        self.tls.is_some()
    }

    /// The next connection, before its TLS handshake.
    pub async fn accept(&self) -> io::Result<IncomingConnection> {
        let tls = self.tls.clone();
        match &self.socket {
            Socket::Tcp(socket) => {
                let (stream, _) = socket.accept().await?;
                // Events are written whole; waiting for more would only delay them.
                stream.set_nodelay(true)?;
                Ok(IncomingConnection { connection: Connection::Tcp(stream), tls })
            }
            Socket::Unix(socket) => {
                Ok(IncomingConnection { connection: Connection::Unix(socket.accept().await?.0), tls })
            }
        }
    }
}

/// Removes the socket of a server that is gone.
fn remove_stale(path: &Path) -> io::Result<()> {
    match std::fs::symlink_metadata(path) {
        Ok(metadata) if metadata.file_type().is_socket() => {
            if std::os::unix::net::UnixStream::connect(path).is_ok() {
                return Err(io::Error::new(io::ErrorKind::AddrInUse, "another process listens there"));
            }
            std::fs::remove_file(path)
        }
        // `bind` reports a file that is in the way.
        _ => Ok(()),
    }
}

/// A connection whose TLS handshake is still to be done.
pub struct IncomingConnection {
    connection: Connection,
    tls: Option<TlsAcceptor>,
}

impl IncomingConnection {
    /// Does the TLS handshake, if the server has TLS.
    pub async fn establish(self) -> io::Result<Connection> {
        match (self.tls, self.connection) {
            (Some(tls), Connection::Tcp(stream)) => Ok(Connection::Tls(Box::new(tls.accept(stream).await?))),
            (_, connection) => Ok(connection),
        }
    }

    /// The connection itself, for an answer without HTTP.
    pub fn into_plain(self) -> Option<Connection> {
        self.tls.is_none().then_some(self.connection)
    }
}

/// A connection of any kind. One type, so that the HTTP code exists once.
pub enum Connection {
    Tcp(TcpStream),
    Unix(UnixStream),
    Tls(Box<TlsStream<TcpStream>>),
}

macro_rules! each {
    ($self:ident, $stream:ident => $work:expr) => {
        match $self.get_mut() {
            Connection::Tcp($stream) => $work,
            Connection::Unix($stream) => $work,
            Connection::Tls($stream) => $work,
        }
    };
}

impl AsyncRead for Connection {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        each!(self, stream => Pin::new(stream).poll_read(context, buffer))
    }
}

impl AsyncWrite for Connection {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        each!(self, stream => Pin::new(stream).poll_write(context, bytes))
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        each!(self, stream => Pin::new(stream).poll_flush(context))
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        each!(self, stream => Pin::new(stream).poll_shutdown(context))
    }
}

fn acceptor(files: &TlsFiles) -> Result<TlsAcceptor, ServeError> {
    let failed = |path: &Path, why: &dyn std::fmt::Display| {
        ServeError(format!("{} cannot be used: {why}. Give a PEM file.", path.display()))
    };
    let certificates: Result<Vec<CertificateDer<'static>>, _> =
        CertificateDer::pem_file_iter(&files.certificate).and_then(Iterator::collect);
    let certificates = certificates.map_err(|error| failed(&files.certificate, &error))?;
    let key = PrivateKeyDer::from_pem_file(&files.key).map_err(|error| failed(&files.key, &error))?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .and_then(|builder| builder.with_no_client_auth().with_single_cert(certificates, key));
    let mut config = config.map_err(|error| failed(&files.certificate, &error))?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(TlsAcceptor::from(Arc::new(config)))
}
