//! The gateway of each sandbox's private network: the proxy, and the variables by which programs find it.

use std::ffi::OsString;
use std::fs;
use std::io::{self, Write};
use std::net::{SocketAddr, TcpListener};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use qwen_http::trusted_certificates;
use qwen_proxy::{Gatekeeper, Serving, pem, serve};
use qwen_sandbox::{GatewayService, NetworkGateway};

use super::NetworkGate;

/// Variables that name the proxy. Programs read some of them in small letters only.
const PROXY: &[&str] = &[
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "ALL_PROXY",
    "http_proxy",
    "https_proxy",
    "all_proxy",
    "GLOBAL_AGENT_HTTP_PROXY",
];
/// Variables that name a file with the certificates to trust.
const CERTIFICATES: &[&str] = &[
    "SSL_CERT_FILE",
    "NODE_EXTRA_CA_CERTS",
    "GIT_SSL_CAINFO",
    "CARGO_HTTP_CAINFO",
    "PIP_CERT",
    "REQUESTS_CA_BUNDLE",
    "CURL_CA_BUNDLE",
    "AWS_CA_BUNDLE",
    "DENO_CERT",
];
/// What a sandbox's own servers are called. Its programs reach them directly, unless a rule opens a server of
/// this machine under one of these names.
const OWN_LOOPBACK: &str = "localhost,127.0.0.1,::1";

/// Starts a proxy in each sandbox whose programs may reach some hosts.
pub struct SandboxGateway(pub Arc<NetworkGate>);

impl NetworkGateway for SandboxGateway {
    fn serve(&self, door: TcpListener) -> io::Result<Box<dyn GatewayService>> {
        let address = door.local_addr()?;
        let serving = serve(door, self.0.clone())?;
        Ok(Box::new(Service { gate: self.0.clone(), address, _serving: serving }))
    }
}

struct Service {
    gate: Arc<NetworkGate>,
    /// In the sandbox's network.
    address: SocketAddr,
    _serving: Serving,
}

impl GatewayService for Service {
    fn environment(&self, directory: &Path) -> Vec<(&'static str, OsString)> {
        let proxy = OsString::from(format!("http://{}", self.address));
        let mut variables: Vec<(&'static str, OsString)> =
            PROXY.iter().map(|name| (*name, proxy.clone())).collect();
        let opens_loopback = self.gate.permissions.opens_loopback();
        let direct = OsString::from(if opens_loopback { "" } else { OWN_LOOPBACK });
        variables.extend([("NO_PROXY", direct.clone()), ("no_proxy", direct)]);
        // Node.js reads the variables only if it is told to.
        variables.push(("NODE_USE_ENV_PROXY", "1".into()));
        if self.gate.reads_encrypted()
            && let Ok(bundle) = self.write_bundle(directory)
        {
            variables.extend(CERTIFICATES.iter().map(|name| (*name, bundle.clone().into_os_string())));
        }
        variables
    }

    fn end_use(&self) {
        self.gate.end_use();
    }

    fn take_refusals(&self) -> Vec<String> {
        self.gate.take_refusals()
    }
}

impl Service {
    /// Writes the certificates of this machine and the session's own one.
    fn write_bundle(&self, directory: &Path) -> io::Result<PathBuf> {
        let file = directory.join("certificates.pem");
        let own = self.gate.authority()?.pem();
        if fs::read_to_string(&file).is_ok_and(|text| text.ends_with(&own)) {
            return Ok(file);
        }
        let mut text: String = trusted_certificates().iter().map(|certificate| pem(certificate)).collect();
        text.push_str(&own);
        // Replaced as a whole: another command may be reading it.
        let new = directory.join(format!("certificates.{:016x}", fastrand::u64(..)));
        let written = fs::OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&new)
            .and_then(|mut opened| opened.write_all(text.as_bytes()))
            .and_then(|()| fs::rename(&new, &file));
        written.inspect_err(|_| {
            // A leftover is harmless, and the first error is the one to report.
            let _ = fs::remove_file(&new);
        })?;
        Ok(file)
    }
}
