//! The only way out of a sandbox's private network: one listening socket on its loopback, which is made in the
//! network namespace and served by our process. No process of ours is needed inside.

use std::ffi::OsString;
use std::io;
use std::net::TcpListener;
use std::path::Path;

/// Serves the connections of sandboxed programs.
pub trait NetworkGateway: Send + Sync {
    /// Serves one sandbox until the result is dropped. `door` is not blocking. Runs in a tokio runtime.
    fn serve(&self, door: TcpListener) -> io::Result<Box<dyn GatewayService>>;
}

/// The gateway of one sandbox.
pub trait GatewayService: Send + Sync {
    /// The variables by which programs in the sandbox find the gateway. Files for them are written into
    /// `directory`, which they can read and not change.
    fn environment(&self, directory: &Path) -> Vec<(&'static str, OsString)>;

    /// Called when no program is left in the sandbox: answers that were given for a call end with it.
    fn end_use(&self);

    /// Returns what was refused since the last call, in one sentence each.
    fn take_refusals(&self) -> Vec<String>;
}
