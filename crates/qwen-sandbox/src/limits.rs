//! Explains failures that the sandbox may have caused.

use std::path::PathBuf;

/// What a command's sandbox refused it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SandboxLimits {
    /// The workspace's directories, which can be written.
    pub roots: Vec<PathBuf>,
    /// Whether the network can be reached.
    pub network: bool,
    /// Whether hosts can be reached that rules open.
    pub gateway: bool,
    /// With mounts, writing elsewhere fails as on a read-only disk, otherwise for want of permission.
    pub has_mounts: bool,
}

/// What programs print when they cannot write.
const NOT_WRITTEN: &[&str] = &[
    "Read-only file system",
    "read-only file system",
    "EROFS",
    "Device or resource busy",
    "Invalid cross-device link",
];
/// What programs print when Landlock alone refuses to write.
const NOT_PERMITTED: &[&str] = &["Permission denied", "permission denied", "EACCES"];
/// What programs print when they do not reach the network.
const NOT_REACHED: &[&str] = &[
    "Network is unreachable",
    "network is unreachable",
    "ENETUNREACH",
    "Network unreachable",
    "Could not resolve",
    "could not resolve",
    "name resolution",
    "Name or service not known",
    "Name does not resolve",
    "nodename nor servname",
    "unknown host",
    "Unknown host",
    "No address associated with hostname",
    "no such host",
    "dns error",
    "EAI_AGAIN",
    "ENOTFOUND",
    "getaddrinfo",
    "Failed to connect",
    "failed to lookup address",
    "No route to host",
];
/// What programs print when they may not open a socket in the file system.
const NO_SOCKET: &[&str] = &[
    "docker.sock",
    "Docker daemon",
    "authentication agent",
    "socket: Operation not permitted",
    "socket: operation not permitted",
];

const NOTE_START: &str = "[The sandbox may have caused this failure: ";
const NOTE_END: &str = ". Only the user can change that: report it instead of trying again.]";

impl SandboxLimits {
    /// The causes and remedies in the note at the end of a failed command's output, if it has one.
    pub fn causes_in(output: &str) -> Option<&str> {
        let (_, note) = output.rsplit_once(NOTE_START)?;
        note.trim_end().strip_suffix(NOTE_END)
    }

    /// The note for a failed command's output, with what the user can do about it. None if the sandbox did
    /// not cause the failure, as far as the output tells.
    pub fn explain(&self, output: &str) -> Option<String> {
        let says = |words: &[&str]| words.iter().any(|words| output.contains(words));
        let mut causes = Vec::new();
        if says(NOT_WRITTEN) || (!self.has_mounts && says(NOT_PERMITTED)) {
            let roots: Vec<_> = self.roots.iter().map(|root| root.display().to_string()).collect();
            causes.push(format!(
                "commands write only in {} and $TMPDIR, not in other places, and not to git's hooks and settings, .qwen and \
                 .mcp.json; `--include-directories DIR` adds a directory",
                roots.join(", ")
            ));
        }
        if !self.network && says(NOT_REACHED) {
            let cause = if self.gateway {
                "commands reach only hosts that a rule opens, through the proxy that HTTPS_PROXY names; the rule \
                 `Network(HOST)` in permissions.allow opens one"
            } else {
                "commands have no network; the rule `Network(HOST)` in permissions.allow opens one host, \
                 `--sandbox-network` all"
            };
            causes.push(cause.to_owned());
        }
        if says(NO_SOCKET) {
            causes.push(
                "commands reach no unix sockets (Docker, D-Bus, the ssh agent); `--sandbox=false` runs them without the sandbox"
                    .to_owned(),
            );
        }
        (!causes.is_empty()).then(|| format!("{NOTE_START}{}{NOTE_END}", causes.join("; ")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_names_the_limit_that_caused_it_and_the_remedy() {
        let limits = |network, has_mounts| SandboxLimits {
            roots: vec!["/w".into()],
            network,
            gateway: false,
            has_mounts,
        };
        let cases = [
            (
                "touch: cannot touch '/etc/x': Read-only file system",
                limits(false, true),
                Some("--include-directories"),
            ),
            (
                "sh: 1: cannot create /etc/x: Permission denied",
                limits(false, false),
                Some("--include-directories"),
            ),
            ("bash: ./run: Permission denied", limits(false, true), None),
            ("curl: (6) Could not resolve host: example.org", limits(false, true), Some("--sandbox-network")),
            ("curl: (6) Could not resolve host: example.org", limits(true, true), None),
            (
                "dial unix /var/run/docker.sock: socket: operation not permitted",
                limits(true, true),
                Some("--sandbox=false"),
            ),
            ("assertion failed", limits(false, true), None),
        ];
        for (output, limits, remedy) in cases {
            let note = limits.explain(output);
            assert_eq!(note.is_some(), remedy.is_some(), "{output}: {note:?}");
            let told = note.map(|note| format!("{output}\n{note}")).unwrap_or_default();
            let causes = SandboxLimits::causes_in(&told);
            assert_eq!(causes.is_some(), remedy.is_some(), "{told}");
            assert!(remedy.is_none_or(|remedy| causes.unwrap_or_default().contains(remedy)), "{output}");
        }
    }
}
