//! The boundary around shell commands and MCP servers: they write in the workspace and a private temporary directory
//! only, reach no network and no socket unless told, and cannot touch what programs outside act on (`.git/hooks`,
//! `.git/config`, `.qwen`, `.mcp.json`), there or not.
//!
//! A [`Policy`] says what is wanted, a [`Report`] what the machine can do. [`Sandbox::prepare`] builds everything once
//! a session; [`Sandbox::enter`] gives each command a [`Stay`], which is applied between fork and exec and settled when
//! the command is gone. How it works and why: `docs/decisions/`.

mod entrance;
mod git;
mod kernel;
mod landlock;
mod memory;
mod mode;
mod namespaces;
mod place;
mod placeholder;
mod policy;
mod report;
mod seccomp;
mod shields;
mod stay;
mod watch;

pub use mode::{Mode, Opened, open};
pub use policy::{Placeholder, Policy, PolicyError, Protected};
pub use report::{Can, Report, can, report};
pub use stay::{Occupant, Sandbox, SandboxError, Stay};
pub use watch::Tampered;

/// Variables that point commands at sockets and desktops that are out of their reach, and are better not seen.
pub fn sandboxed_env_removals() -> &'static [&'static str] {
    &[
        "SSH_AUTH_SOCK",
        "SSH_AGENT_PID",
        "GPG_AGENT_INFO",
        "DBUS_SESSION_BUS_ADDRESS",
        "DBUS_SYSTEM_BUS_ADDRESS",
        "XDG_RUNTIME_DIR",
        "DOCKER_HOST",
        "CONTAINER_HOST",
        "PODMAN_HOST",
        "DISPLAY",
        "WAYLAND_DISPLAY",
        "XAUTHORITY",
        "PULSE_SERVER",
        "NOTIFY_SOCKET",
        "TMUX",
        "STY",
        "VSCODE_IPC_HOOK_CLI",
        "VSCODE_GIT_IPC_HANDLE",
        "GIT_ASKPASS",
        "SSH_ASKPASS",
    ]
}

/// Variables that have to point at the private temporary directory.
pub const TEMP_VARIABLES: &[&str] = &["TMPDIR", "TMP", "TEMP"];

#[cfg(test)]
mod tests;
