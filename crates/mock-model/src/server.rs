//! The mock as tests use it.

use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use crate::play::serve_connection;
use crate::state::Shared;
use crate::{Reply, Request, Source, fail};

/// A model server on the loopback interface that sends scripted replies.
///
/// Requests are counted from 0. Replies come from the queue ([`push`](Self::push)) and, when that is empty,
/// from the [`Source`] given with [`answer_with`](Self::answer_with); a request beyond both gets a 500 that
/// says so. Dropping the mock closes everything.
pub struct MockModel {
    address: SocketAddr,
    pub(crate) shared: Arc<Shared>,
    acceptor: Option<JoinHandle<()>>,
}

impl MockModel {
    /// Starts a server on a free port.
    #[track_caller]
    pub fn start() -> Self {
        match Self::try_start() {
            Ok(mock) => mock,
            Err(error) => fail(&format!("the mock model cannot listen on the loopback interface: {error}")),
        }
    }

    pub(crate) fn try_start() -> std::io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let address = listener.local_addr()?;
        let shared = Arc::new(Shared::default());
        let for_thread = Arc::clone(&shared);
        let acceptor = thread::Builder::new()
            .name("mock-accept".to_owned())
            .spawn(move || accept(&listener, &for_thread))?;
        Ok(Self { address, shared, acceptor: Some(acceptor) })
    }

    /// Starts a server with these replies queued.
    #[track_caller]
    pub fn with(replies: impl IntoIterator<Item = Reply>) -> Self {
        let mock = Self::start();
        replies.into_iter().for_each(|reply| mock.push(reply));
        mock
    }

    pub fn port(&self) -> u16 {
        self.address.port()
    }

    /// `http://127.0.0.1:PORT`, the value for `ANTHROPIC_BASE_URL`.
    pub fn origin(&self) -> String {
        format!("http://{}", self.address)
    }

    /// `http://127.0.0.1:PORT/v1`, the value for `OPENAI_BASE_URL`.
    pub fn base_url(&self) -> String {
        format!("{}/v1", self.origin())
    }

    /// Appends a reply to the queue.
    pub fn push(&self, reply: Reply) {
        self.shared.update(|state| state.queue.push_back(reply));
    }

    /// Sets the source of replies for an empty queue.
    pub fn answer_with(&self, source: impl Source + 'static) {
        self.shared.update(|state| state.source = Some(Box::new(source)));
    }

    /// Lists these models on `GET /v1/models`, which is a 404 otherwise.
    pub fn offer_models(&self, names: &[&str]) {
        let names = names.iter().map(|name| (*name).to_owned()).collect();
        self.shared.update(|state| state.models = Some(names));
    }

    /// Opens a gate permanently: a reply held there continues, and later replies do not stop there.
    pub fn open(&self, gate: &str) {
        self.shared.update(|state| state.open.insert(gate.to_owned()));
    }

    /// Waits until a reply has reached this gate (or passed it).
    #[track_caller]
    pub fn reached(&self, gate: &str) {
        self.shared.await_gate(gate).unwrap_or_else(|error| fail(&error));
    }

    /// True if a reply has reached this gate (or passed it).
    pub fn has_reached(&self, gate: &str) -> bool {
        self.shared.lock().reached.contains_key(gate)
    }

    /// All requests so far.
    pub fn requests(&self) -> Vec<Arc<Request>> {
        self.shared.lock().exchanges.iter().map(|exchange| Arc::clone(&exchange.request)).collect()
    }

    /// Waits for request `number`, counted from 0.
    #[track_caller]
    pub fn wait_for_request(&self, number: usize) -> Arc<Request> {
        self.shared.await_request(number).unwrap_or_else(|error| fail(&error))
    }

    /// Waits until the peer of request `number` has closed its connection before the reply was complete.
    #[track_caller]
    pub fn client_gone(&self, number: usize) {
        self.shared.await_disconnect(number).unwrap_or_else(|error| fail(&error));
    }

    /// Requests to other paths than the model APIs, such as `GET /v1/models`.
    pub fn unexpected_requests(&self) -> Vec<String> {
        self.shared.lock().unexpected_requests.clone()
    }
}

impl Drop for MockModel {
    fn drop(&mut self) {
        self.shared.update(|state| {
            state.stopping = true;
            for connection in state.connections.values() {
                let _ = connection.shutdown(Shutdown::Both);
            }
        });
        // Wakes the acceptor, which then notices the shutdown.
        let _ = TcpStream::connect(self.address);
        let ended = self.acceptor.take().map(JoinHandle::join);
        if matches!(ended, Some(Err(_))) && !thread::panicking() {
            fail(
                "a thread of the mock model panicked, see above: a closure that chooses replies, most likely",
            );
        }
    }
}

fn accept(listener: &TcpListener, shared: &Shared) {
    thread::scope(|scope| {
        for (number, stream) in listener.incoming().enumerate() {
            let Ok(stream) = stream else { continue };
            let Ok(handle) = stream.try_clone() else { continue };
            let stopping = shared.update(|state| {
                state.connections.insert(number, handle);
                state.stopping
            });
            if stopping {
                break;
            }
            scope.spawn(move || serve_connection(number, &stream, shared));
        }
    });
}
