//! Environment variables of sandboxed processes.

use std::path::{Path, PathBuf};

use crate::process::Environment;

/// Variables that refer to sockets and desktops outside the sandbox. They are removed.
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

/// Caches below the home directory without which a program fails: the variables that move them, and their places in
/// the private temporary directory. Those that the user placed, and those that commands may write, stay.
pub(crate) fn replaced_caches(
    env: &Environment,
    is_writable: impl Fn(&Path) -> bool,
) -> Vec<(&'static str, &'static str)> {
    let Some(home) = env.get("HOME").map(PathBuf::from) else { return Vec::new() };
    let caches = env.get("XDG_CACHE_HOME").map_or_else(|| home.join(".cache"), PathBuf::from);
    let mut replaced = Vec::new();
    if env.get("GOCACHE").is_none() && !is_writable(&caches) {
        replaced.push(("GOCACHE", ".cache/go-build"));
    }
    // Installing without network reads what is there.
    let npm = home.join(".npm");
    if env.get("npm_config_cache").is_none() && !npm.exists() && !is_writable(&npm) {
        replaced.push(("npm_config_cache", ".cache/npm"));
    }
    replaced
}

/// Variables that have to point at the private temporary directory.
pub const TEMP_VARIABLES: &[&str] = &["TMPDIR", "TMP", "TEMP"];
