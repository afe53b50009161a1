//! Environment variables of sandboxed processes.

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

/// Variables that have to point at the private temporary directory.
pub const TEMP_VARIABLES: &[&str] = &["TMPDIR", "TMP", "TEMP"];
