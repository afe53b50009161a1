//! The hub behind a server's sessions: one in this process, or nodes on a bus.

use std::future::Future;
use std::pin::Pin;

use qwen_events::SessionId;
use qwen_kernel::Hub;
use serde_json::Value;

/// The next bytes of a hub; none once it has ended.
pub type NextOutput<'a> = Pin<Box<dyn Future<Output = Option<Vec<u8>>> + 'a>>;

/// A hub that writes numbered chunks of the `qwen` dialect.
pub trait SessionHub {
    /// Processes one line of the client.
    fn client_line(&self, line: &[u8]);

    /// Adds a line of the server to a session's stream.
    fn session_line(&self, session: &SessionId, line: &[u8]);

    /// Waits for the next bytes for the client.
    fn next_output(&self) -> NextOutput<'_>;

    /// Drains and exits; a second call exits at once.
    fn drain(&self, exit_code: u8);

    /// Kills every worker of this process at once.
    fn kill_all(&self);

    /// The exit code, once all work is finished.
    fn exit_code(&self) -> Option<u8>;

    /// The nodes on the bus; none without a bus.
    fn nodes(&self) -> Option<Vec<Value>> {
        None
    }
}

impl SessionHub for Hub {
    fn client_line(&self, line: &[u8]) {
        Hub::client_line(self, line);
    }

    fn session_line(&self, session: &SessionId, line: &[u8]) {
        Hub::session_line(self, session, line);
    }

    fn next_output(&self) -> NextOutput<'_> {
        Box::pin(Hub::next_output(self))
    }

    fn drain(&self, exit_code: u8) {
        Hub::drain(self, exit_code);
    }

    fn kill_all(&self) {
        Hub::kill_all(self);
    }

    fn exit_code(&self) -> Option<u8> {
        Hub::exit_code(self)
    }
}
