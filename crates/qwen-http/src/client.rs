//! Requests, responses and the connection pool.

use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use bytes::Bytes;
use http::header::{HOST, PROXY_AUTHORIZATION};
use http::{HeaderMap, HeaderValue, Method, StatusCode, Uri};
use http_body_util::Full;
use hyper::body::{Body as _, Incoming};
use hyper::client::conn::http1::{Connection, SendRequest, handshake};
use hyper_util::rt::TokioIo;
use tokio::time::Instant;

use super::Error;
use super::connect::{self, ClientConfig};
use super::paced::PaceSwitch;
use super::proxy::Proxy;
use super::socket::{ReceivedFlag, Socket};
use super::target::{Origin, Target};

/// The maximum number of idle connections: one for a conversation, a few for concurrent thoughts.
const MAX_IDLE: usize = 8;

/// The server has most likely closed an older connection.
const MAX_IDLE_AGE: Duration = Duration::from_secs(90);

/// A client with a connection pool. Clones share it.
#[derive(Debug, Clone)]
pub struct Client(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    config: ClientConfig,
    idle: Mutex<Vec<Idle>>,
}

#[derive(Debug, Clone)]
pub struct HttpRequest {
    pub method: Method,
    /// An absolute URL: `http://…` or `https://…`.
    pub url: Arc<str>,
    /// Host and Content-Length are added to these.
    pub headers: HeaderMap,
    /// Empty for no body.
    pub body: Bytes,
    /// The limit from sending the request to receiving the head of the response.
    pub head_timeout: Option<Duration>,
}

impl HttpRequest {
    pub fn get(url: impl Into<Arc<str>>) -> Self {
        Self {
            method: Method::GET,
            url: url.into(),
            headers: HeaderMap::new(),
            body: Bytes::new(),
            head_timeout: None,
        }
    }

    pub fn post(url: impl Into<Arc<str>>, body: impl Into<Bytes>) -> Self {
        Self { method: Method::POST, body: body.into(), ..Self::get(url) }
    }
}

/// The head of a response; the body is read separately.
#[derive(Debug)]
pub struct Response {
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub body: ResponseBody,
    /// When the request went out.
    pub sent_at: Instant,
}

/// A streaming response body. Its reader drives the connection; dropping it closes the connection.
#[derive(Debug)]
pub struct ResponseBody {
    // None once the end has been read.
    reading: Option<(Link, Incoming)>,
    home: Arc<Shared>,
}

/// One connection.
struct Link {
    origin: Origin,
    sender: SendRequest<Full<Bytes>>,
    // None once the connection is closed.
    connection: Option<Connection<TokioIo<Socket>, Full<Bytes>>>,
    received: ReceivedFlag,
    pace: PaceSwitch,
}

impl std::fmt::Debug for Link {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Link({})", self.origin.host_port())
    }
}

/// An idle connection, waiting for its next request.
#[derive(Debug)]
struct Idle {
    link: Link,
    // The unread rest of the last response, if its reader released it early.
    leftover: Option<Incoming>,
    since: Instant,
}

/// A failed exchange, and whether it is safe to retry on another connection.
struct Failed {
    error: Error,
    stale: bool,
}

impl Client {
    /// A client without connections.
    pub fn new(config: ClientConfig) -> Self {
        Self(Arc::new(Shared { config, idle: Mutex::new(Vec::new()) }))
    }

    /// Sends a request and waits for the head of the response. A reused connection that turns out to be
    /// dead before the response began is replaced once, silently.
    pub async fn send(&self, request: HttpRequest) -> Result<Response, Error> {
        let target = Target::parse(&request.url)?;
        let proxy = self.0.config.proxy.choose(&target.origin)?;
        if let Some(link) = self.0.take_idle(&target.origin).await {
            match self.exchange(link, &target, proxy.as_ref(), &request).await {
                Ok(response) => return Ok(response),
                Err(Failed { stale: true, .. }) => {}
                Err(Failed { error, .. }) => return Err(error),
            }
        }
        let link = self.0.connect(&target.origin, proxy.as_ref()).await?;
        self.exchange(link, &target, proxy.as_ref(), &request).await.map_err(|failed| failed.error)
    }

    async fn exchange(
        &self,
        mut link: Link,
        target: &Target,
        proxy: Option<&Proxy>,
        request: &HttpRequest,
    ) -> Result<Response, Failed> {
        let outgoing = compose(target, proxy, request).map_err(|error| Failed { error, stale: false })?;
        link.received.reset();
        let sent_at = Instant::now();
        let head = {
            let Link { sender, connection, .. } = &mut link;
            let mut answer = pin!(sender.send_request(outgoing));
            let head = poll_fn(|cx| {
                drive(connection, cx);
                // Only the connection delivers the answer, and it has just been polled.
                answer.as_mut().poll(&mut Context::from_waker(Waker::noop()))
            });
            match request.head_timeout {
                None => Ok(head.await),
                Some(limit) => tokio::time::timeout_at(sent_at + limit, head).await.map_err(|_| limit),
            }
        };
        let host = || link.origin.host_port();
        match head {
            Ok(Ok(response)) => {
                link.pace.set(true);
                let (parts, incoming) = response.into_parts();
                let body = ResponseBody { reading: Some((link, incoming)), home: Arc::clone(&self.0) };
                Ok(Response { status: parts.status, headers: parts.headers, body, sent_at })
            }
            Ok(Err(source)) => {
                let stale = !link.received.is_set();
                Err(Failed { error: Error::Exchange { host: host(), source }, stale })
            }
            Err(limit) => Err(Failed { error: Error::HeadTimeout { host: host(), limit }, stale: false }),
        }
    }
}

/// The request as sent over the wire.
fn compose(
    target: &Target,
    proxy: Option<&Proxy>,
    request: &HttpRequest,
) -> Result<http::Request<Full<Bytes>>, Error> {
    let wrong = |e: &dyn std::fmt::Display| Error::Request(e.to_string());
    let authority = target.origin.authority();
    let mut headers = request.headers.clone();
    headers.insert(HOST, HeaderValue::try_from(&authority).map_err(|e| wrong(&e))?);
    // A plain request to a proxy has the absolute URL; inside a tunnel, and without a proxy, the path is
    // enough.
    let proxy = proxy.filter(|_| !target.origin.https);
    let uri = if let Some(proxy) = proxy {
        if let Some(value) = &proxy.authorization {
            let mut value = HeaderValue::try_from(value).map_err(|e| wrong(&e))?;
            value.set_sensitive(true);
            headers.insert(PROXY_AUTHORIZATION, value);
        }
        let parts = Uri::builder().scheme("http").authority(authority).path_and_query(target.path.clone());
        parts.build().map_err(|e| wrong(&e))?
    } else {
        Uri::from(target.path.clone())
    };
    let mut outgoing = http::Request::new(Full::new(request.body.clone()));
    *outgoing.method_mut() = request.method.clone();
    *outgoing.uri_mut() = uri;
    *outgoing.headers_mut() = headers;
    Ok(outgoing)
}

impl Shared {
    async fn connect(&self, origin: &Origin, proxy: Option<&Proxy>) -> Result<Link, Error> {
        let socket = connect::open(&self.config, origin, proxy).await?;
        let (received, pace) = (socket.received(), socket.pace());
        let made = handshake(TokioIo::new(socket)).await;
        let (sender, connection) =
            made.map_err(|source| Error::Exchange { host: origin.host_port(), source })?;
        Ok(Link { origin: origin.clone(), sender, connection: Some(connection), received, pace })
    }

    /// An idle connection to `origin` that still appears usable; the server is not asked.
    async fn take_idle(&self, origin: &Origin) -> Option<Link> {
        loop {
            let mut idle = {
                let mut kept = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
                let newest = kept.iter().rposition(|idle| idle.link.origin == *origin)?;
                kept.remove(newest)
            };
            if idle.since.elapsed() < MAX_IDLE_AGE && poll_fn(|cx| Poll::Ready(idle.is_ready(cx))).await {
                return Some(idle.link);
            }
        }
    }

    fn store_idle(&self, link: Link, leftover: Option<Incoming>) {
        if link.connection.is_none() {
            return;
        }
        link.pace.set(false);
        let mut kept = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() == MAX_IDLE {
            kept.remove(0);
        }
        kept.push(Idle { link, leftover, since: Instant::now() });
    }
}

impl Idle {
    /// Reads the rest of the last response without waiting, and checks that the connection is open.
    fn is_ready(&mut self, cx: &mut Context<'_>) -> bool {
        let mut driven = false;
        while let Some(leftover) = &mut self.leftover {
            match Pin::new(leftover).poll_frame(&mut Context::from_waker(Waker::noop())) {
                Poll::Ready(None) => self.leftover = None,
                Poll::Ready(Some(Ok(_))) => driven = false,
                Poll::Ready(Some(Err(_))) => return false,
                Poll::Pending if driven => return false,
                Poll::Pending => {
                    drive(&mut self.link.connection, cx);
                    driven = true;
                }
            }
        }
        drive(&mut self.link.connection, cx);
        self.link.connection.is_some() && self.link.sender.is_ready()
    }
}

/// Polls the connection for reads and writes; drops it when it has ended.
fn drive(connection: &mut Option<Connection<TokioIo<Socket>, Full<Bytes>>>, cx: &mut Context<'_>) {
    // The reader of the answer or the body receives its errors.
    if connection.as_mut().is_some_and(|connection| Pin::new(connection).poll(cx).is_ready()) {
        *connection = None;
    }
}

impl ResponseBody {
    /// The next bytes, never empty; none at the end, after which the connection returns to the pool.
    pub fn poll_data(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, Error>>> {
        let mut driven = false;
        loop {
            let Some((link, incoming)) = &mut self.reading else { return Poll::Ready(None) };
            // Only the connection delivers bytes, and it is polled right here: only its waker matters.
            match Pin::new(incoming).poll_frame(&mut Context::from_waker(Waker::noop())) {
                Poll::Ready(Some(Ok(frame))) => match frame.into_data() {
                    Ok(data) if !data.is_empty() => return Poll::Ready(Some(Ok(data))),
                    _ => driven = false,
                },
                Poll::Ready(Some(Err(source))) => {
                    let host = link.origin.host_port();
                    self.reading = None;
                    return Poll::Ready(Some(Err(Error::Exchange { host, source })));
                }
                Poll::Ready(None) => {
                    if let Some((link, _)) = self.reading.take() {
                        self.home.store_idle(link, None);
                    }
                    return Poll::Ready(None);
                }
                Poll::Pending if driven => return Poll::Pending,
                Poll::Pending => {
                    drive(&mut link.connection, cx);
                    driven = true;
                }
            }
        }
    }

    /// The next bytes; see [`ResponseBody::poll_data`].
    pub async fn data(&mut self) -> Option<Result<Bytes, Error>> {
        poll_fn(|cx| self.poll_data(cx)).await
    }

    /// Returns the connection to the pool before the end was read, for a reader that does not need the
    /// rest. It is reused only if the rest has arrived by the next request.
    pub fn release(mut self) {
        if let Some((link, incoming)) = self.reading.take() {
            self.home.store_idle(link, Some(incoming));
        }
    }
}
