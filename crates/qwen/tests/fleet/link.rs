//! A link between a process and a bus server that a test can cut, hold and stop at a message.

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

/// What the link does with bytes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Mode {
    Open,
    /// Bytes wait in both directions, and connections stay, as in a network that drops packets.
    Held,
    /// There are no connections.
    Cut,
}

struct State {
    mode: Mode,
    /// The bytes of the process wait from the last of these texts on, which it must send in this order.
    breakpoint: Vec<Vec<u8>>,
    /// True once the breakpoint was reached.
    is_reached: bool,
    sockets: Vec<TcpStream>,
}

struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn change(&self, change: impl FnOnce(&mut State)) {
        change(&mut self.lock());
        self.changed.notify_all();
    }

    /// Waits until bytes may pass. Returns false once the link is cut.
    fn wait_open(&self, is_upstream: bool) -> bool {
        let is_waiting = |state: &mut State| {
            state.mode == Mode::Held || state.mode == Mode::Open && is_upstream && state.is_reached
        };
        let state = self.changed.wait_while(self.lock(), is_waiting).unwrap_or_else(PoisonError::into_inner);
        state.mode == Mode::Open
    }
}

/// The link of one process to one server.
pub struct Link {
    port: u16,
    shared: Arc<Shared>,
}

impl Link {
    /// Starts a link to a port of this machine.
    pub fn to(target: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let state =
            State { mode: Mode::Open, breakpoint: Vec::new(), is_reached: false, sockets: Vec::new() };
        let shared = Arc::new(Shared { state: Mutex::new(state), changed: Condvar::new() });
        let accepting = shared.clone();
        std::thread::spawn(move || {
            for client in listener.incoming().flatten() {
                // A server that is down refuses the process too.
                let Ok(server) = TcpStream::connect(("127.0.0.1", target)) else { continue };
                if accepting.lock().mode == Mode::Cut {
                    continue;
                }
                for socket in [&client, &server] {
                    let _ = socket.set_nodelay(true);
                }
                let (client_reader, server_reader) =
                    (client.try_clone().unwrap(), server.try_clone().unwrap());
                accepting.change(|state| {
                    state.sockets.extend([client.try_clone().unwrap(), server.try_clone().unwrap()]);
                });
                let (up, down) = (accepting.clone(), accepting.clone());
                std::thread::spawn(move || pass_on(&up, client_reader, server, true));
                std::thread::spawn(move || pass_on(&down, server_reader, client, false));
            }
        });
        Self { port, shared }
    }

    /// The address for the process.
    pub fn url(&self) -> String {
        format!("nats://127.0.0.1:{}", self.port)
    }

    /// Closes all connections and refuses new ones.
    pub fn cut(&self) {
        self.shared.change(|state| {
            state.mode = Mode::Cut;
            for socket in state.sockets.drain(..) {
                // It may be closed already.
                let _ = socket.shutdown(Shutdown::Both);
            }
        });
    }

    /// Holds all bytes.
    pub fn hold(&self) {
        self.shared.change(|state| state.mode = Mode::Held);
    }

    /// Passes bytes on, from those that wait.
    pub fn open(&self) {
        self.shared.change(|state| {
            state.mode = Mode::Open;
            state.breakpoint.clear();
            state.is_reached = false;
        });
    }

    /// Holds what the process sends from the last of these texts on; it must send the others before.
    pub fn stop_before(&self, texts: &[&str]) {
        let texts = texts.iter().map(|text| text.as_bytes().to_vec()).collect();
        self.shared.change(|state| state.breakpoint = texts);
    }

    /// True once the process has sent the text at which it is stopped.
    pub fn is_stopped(&self) -> bool {
        self.shared.lock().is_reached
    }
}

fn find(bytes: &[u8], text: &[u8]) -> Option<usize> {
    bytes.windows(text.len()).position(|part| part == text)
}

/// The number of bytes that may pass before the breakpoint. What may be its beginning waits for the rest.
fn passable(state: &mut State, bytes: &[u8]) -> usize {
    let mut from = 0;
    while let Some(text) = state.breakpoint.first() {
        let Some(at) = find(&bytes[from..], text) else {
            let begun = (1..text.len()).rev().find(|length| bytes.ends_with(&text[..*length]));
            return bytes.len() - begun.unwrap_or(0);
        };
        if state.breakpoint.len() == 1 {
            state.breakpoint.clear();
            state.is_reached = true;
            return from + at;
        }
        from += at + text.len();
        state.breakpoint.remove(0);
    }
    bytes.len()
}

fn pass_on(shared: &Shared, mut from: TcpStream, mut to: TcpStream, is_upstream: bool) {
    let mut buffer = vec![0; 64 * 1024];
    let mut waiting: Vec<u8> = Vec::new();
    while let Ok(count) = from.read(&mut buffer) {
        if count == 0 {
            break;
        }
        waiting.extend_from_slice(&buffer[..count]);
        loop {
            if !shared.wait_open(is_upstream) {
                return;
            }
            let pass = if is_upstream { passable(&mut shared.lock(), &waiting) } else { waiting.len() };
            if to.write_all(&waiting[..pass]).is_err() {
                return;
            }
            waiting.drain(..pass);
            if !shared.lock().is_reached {
                break;
            }
        }
    }
    // The other direction has its own end.
    let _ = to.shutdown(Shutdown::Write);
}
