//! What the programs that a session starts are fenced in by: its commands, and its MCP servers.

use std::path::PathBuf;
use std::sync::{Arc, Once};

use qwen_engine::Permissions;
use qwen_mcp::{EnterFence, ServerConfig};
use qwen_sandbox::{Bounds, Fence, Mode, Occupant, Scratch};

use crate::runtime::exit;
use crate::settings::Config;

/// Where package runners keep what they fetch: servers that start by way of one (`npx`, `uvx`) write there.
const PACKAGE_CACHES: &[&str] = &[".cache", ".npm", ".local/share/uv"];

/// The fence around commands. Rules and directories that are added during the session count from the next one on.
pub fn around_commands(config: &Config, permissions: &Arc<Permissions>) -> Fence {
    let (private, roots, permissions) = (config.private.clone(), roots(config), permissions.clone());
    let bounds = move || Bounds {
        roots: roots.iter().cloned().chain(permissions.added_directories()).collect(),
        deny_read: private.iter().cloned().chain(permissions.denied_reading()).collect(),
        deny_write: permissions.denied_editing(),
    };
    Fence::new(config.sandbox, bounds, config.sandbox_network)
}

/// The fence around the programs of MCP servers, one for each as its configuration and its origin have it. What a
/// workspace brought along gets what a command gets. A server of the user's own reaches the network, which is what most
/// are for, and writes in the caches of package runners and in the directories that its configuration lists.
pub fn around_servers(config: &Config) -> EnterFence {
    let (mode, network) = (config.sandbox, config.sandbox_network);
    let bounds = Arc::new(bounds_of_servers(config));
    let (cwd, home) = (config.cwd.clone(), config.home.clone());
    let scratch = Scratch::temporary();
    let warned = Once::new();
    Arc::new(move |server: &ServerConfig| {
        let wanted = &server.confinement;
        let own = !wanted.of_workspace;
        let mode = if own && wanted.sandbox == Some(false) { Mode::Off } else { mode };
        let network = if own { wanted.network.unwrap_or(true) } else { network };
        let bounds = bounds.clone();
        let mut fence = Fence::new(mode, move || bounds(), network);
        if own {
            let caches = home.iter().flat_map(|home| PACKAGE_CACHES.iter().map(|cache| home.join(cache)));
            fence = fence.writing(caches);
            let listed =
                wanted.writable.iter().map(|directory| match (directory.strip_prefix("~/"), &home) {
                    (Some(rest), Some(home)) => home.join(rest),
                    _ => cwd.join(directory),
                });
            fence = fence.writing(listed);
        }
        let inside = fence.enter(Occupant::Server, &scratch)?;
        if let Some(warning) = &inside.warning {
            warned.call_once(|| exit::say(&format!("qwen: MCP servers: {warning}")));
        }
        Ok(inside)
    })
}

/// The workspace.
fn roots(config: &Config) -> Vec<PathBuf> {
    [config.cwd.clone()].into_iter().chain(config.extra_roots.iter().cloned()).collect()
}

/// The bounds of servers, which begin and end with the session: those of commands, as the configuration has them.
fn bounds_of_servers(config: &Config) -> impl Fn() -> Bounds + Send + Sync + use<> {
    let (private, policy, cwd) = (config.private.clone(), config.policy.clone(), config.cwd.clone());
    let roots = roots(config);
    move || Bounds {
        roots: roots.clone(),
        deny_read: private.iter().cloned().chain(policy.denied_reading(&cwd)).collect(),
        deny_write: policy.denied_editing(&cwd),
    }
}
