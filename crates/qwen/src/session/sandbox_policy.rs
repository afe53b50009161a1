//! The sandbox policies of the programs that a session starts: commands and MCP servers.

use std::path::PathBuf;
use std::sync::{Arc, Once};

use qwen_engine::{NetworkGate, Permissions, SandboxGateway};
use qwen_mcp::{EnterSandbox, ServerConfig};
use qwen_sandbox::{ProcessRole, SandboxAccess, SandboxBounds, SandboxMode, SandboxSession, Scratch};

use crate::runtime::exit;
use crate::settings::Config;

/// Cache directories of package runners (`npx`, `uvx`). Servers that start through a runner write there.
const PACKAGE_CACHES: &[&str] = &[".cache", ".npm", ".local/share/uv"];

/// The sandbox of commands. Rules and directories that are added during the session apply from the next
/// command on.
pub fn for_commands(
    config: &Config,
    permissions: &Arc<Permissions>,
    network: &Arc<NetworkGate>,
) -> SandboxSession {
    let (private, roots, permissions) = (config.sandbox.private.clone(), roots(config), permissions.clone());
    let (show, scripts) = (config.sandbox.visible.clone(), config.workspace.policy.scripts().to_vec());
    let gate = network.clone();
    let bounds = move || SandboxBounds {
        roots: roots.iter().cloned().chain(permissions.added_directories()).collect(),
        deny_read: private.iter().cloned().chain(permissions.denied_reading()).collect(),
        show: show.clone(),
        deny_write: permissions.denied_editing(),
        scripts: scripts.clone(),
        gateway: gate.is_in_use(),
    };
    SandboxSession::new(config.sandbox.mode, bounds, config.sandbox.network)
        .connecting(Arc::new(SandboxGateway(network.clone())))
        .warning(|warning| exit::report(&format!("qwen: {warning}")))
}

/// The sandboxes of MCP servers, one per server, by its configuration and its origin. A server from the
/// workspace gets the same policy as a command. A server from the user's settings reaches the network, which
/// most of them need, and writes in the caches of package runners and in the directories that its
/// configuration lists.
pub fn for_servers(config: &Config, gate: &Arc<NetworkGate>) -> EnterSandbox {
    let (mode, network) = (config.sandbox.mode, config.sandbox.network);
    let bounds = Arc::new(server_bounds(config));
    let (cwd, home) = (config.workspace.cwd.clone(), config.workspace.home.clone());
    let scratch = Scratch::temporary();
    let gate = gate.clone();
    let warned = Once::new();
    Arc::new(move |server: &ServerConfig| {
        let wanted = &server.confinement;
        let own = !wanted.of_workspace;
        let mode = if own && wanted.sandbox == Some(false) { SandboxMode::Off } else { mode };
        let network = if own { wanted.network.unwrap_or(true) } else { network };
        let bounds = bounds.clone();
        // A server that the user gave the network keeps all of it.
        let gateway = gate.is_in_use() && !(own && network);
        let mut sandbox = SandboxSession::new(mode, move || SandboxBounds { gateway, ..bounds() }, network)
            .connecting(Arc::new(SandboxGateway(gate.clone())));
        if own {
            let caches = home.iter().flat_map(|home| PACKAGE_CACHES.iter().map(|cache| home.join(cache)));
            sandbox = sandbox.writing(caches);
            let listed =
                wanted.writable.iter().map(|directory| match (directory.strip_prefix("~/"), &home) {
                    (Some(rest), Some(home)) => home.join(rest),
                    _ => cwd.join(directory),
                });
            sandbox = sandbox.writing(listed);
        }
        let sandbox = sandbox.enter(ProcessRole::Server, SandboxAccess::Workspace, &scratch)?;
        if let Some(warning) = &sandbox.warning {
            warned.call_once(|| exit::report(&format!("qwen: MCP servers: {warning}")));
        }
        Ok(sandbox)
    })
}

fn roots(config: &Config) -> Vec<PathBuf> {
    [config.workspace.cwd.clone()].into_iter().chain(config.workspace.extra_roots.iter().cloned()).collect()
}

/// The bounds of servers: those of commands, as configured at the start, since servers live as long as the
/// session.
fn server_bounds(config: &Config) -> impl Fn() -> SandboxBounds + Send + Sync + use<> {
    let (private, policy, cwd) =
        (config.sandbox.private.clone(), config.workspace.policy.clone(), config.workspace.cwd.clone());
    let (roots, show) = (roots(config), config.sandbox.visible.clone());
    move || SandboxBounds {
        roots: roots.clone(),
        deny_read: private.iter().cloned().chain(policy.denied_reading(&cwd)).collect(),
        show: show.clone(),
        deny_write: policy.denied_editing(&cwd),
        scripts: policy.scripts().to_vec(),
        gateway: false,
    }
}
