//! The sandbox policies of the programs that a session starts: its commands, and its MCP servers.

use std::path::PathBuf;
use std::sync::{Arc, Once};

use qwen_engine::Permissions;
use qwen_mcp::{EnterSandbox, ServerConfig};
use qwen_sandbox::{ProcessRole, SandboxAccess, SandboxBounds, SandboxMode, SandboxSession, Scratch};

use crate::runtime::exit;
use crate::settings::Config;

/// Where package runners keep what they fetch: servers that start by way of one (`npx`, `uvx`) write there.
const PACKAGE_CACHES: &[&str] = &[".cache", ".npm", ".local/share/uv"];

/// The sandbox of commands. Rules and directories that are added during the session count from the next one on.
pub fn for_commands(config: &Config, permissions: &Arc<Permissions>) -> SandboxSession {
    let (private, roots, permissions) = (config.sandbox.private.clone(), roots(config), permissions.clone());
    let bounds = move || SandboxBounds {
        roots: roots.iter().cloned().chain(permissions.added_directories()).collect(),
        deny_read: private.iter().cloned().chain(permissions.denied_reading()).collect(),
        deny_write: permissions.denied_editing(),
    };
    SandboxSession::new(config.sandbox.mode, bounds, config.sandbox.network)
}

/// The sandboxes of MCP servers, one for each as its configuration and its origin require. What a
/// workspace brought along gets what a command gets. A server of the user's own reaches the network, which is what most
/// are for, and writes in the caches of package runners and in the directories that its configuration lists.
pub fn for_servers(config: &Config) -> EnterSandbox {
    let (mode, network) = (config.sandbox.mode, config.sandbox.network);
    let bounds = Arc::new(server_bounds(config));
    let (cwd, home) = (config.workspace.cwd.clone(), config.workspace.home.clone());
    let scratch = Scratch::temporary();
    let warned = Once::new();
    Arc::new(move |server: &ServerConfig| {
        let wanted = &server.confinement;
        let own = !wanted.of_workspace;
        let mode = if own && wanted.sandbox == Some(false) { SandboxMode::Off } else { mode };
        let network = if own { wanted.network.unwrap_or(true) } else { network };
        let bounds = bounds.clone();
        let mut sandbox = SandboxSession::new(mode, move || bounds(), network);
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

/// The workspace.
fn roots(config: &Config) -> Vec<PathBuf> {
    [config.workspace.cwd.clone()].into_iter().chain(config.workspace.extra_roots.iter().cloned()).collect()
}

/// The bounds of servers, which begin and end with the session: those of commands, as the configuration has them.
fn server_bounds(config: &Config) -> impl Fn() -> SandboxBounds + Send + Sync + use<> {
    let (private, policy, cwd) =
        (config.sandbox.private.clone(), config.workspace.policy.clone(), config.workspace.cwd.clone());
    let roots = roots(config);
    move || SandboxBounds {
        roots: roots.clone(),
        deny_read: private.iter().cloned().chain(policy.denied_reading(&cwd)).collect(),
        deny_write: policy.denied_editing(&cwd),
    }
}
