//! What this machine can enforce, found by trying, for `qwen sandbox` and for the choice of means.

use std::fmt;
use std::path::PathBuf;
use std::sync::OnceLock;

use serde::Serialize;

use crate::kernel::namespaces::{self, NamespaceMethod};
use crate::kernel::{self, landlock};

/// What this machine can enforce.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SandboxReport {
    /// Landlock's version; 0 means that the kernel has none or has it switched off.
    pub landlock_abi: u32,
    pub seccomp: bool,
    /// True if we may make user namespaces.
    pub user_namespaces: bool,
    /// True if we may make mount namespaces, with or without a user namespace.
    pub mount_namespaces: bool,
    /// True if we may make network namespaces.
    pub network_namespaces: bool,
    /// Where bubblewrap is installed. It is not needed.
    pub bubblewrap: Option<PathBuf>,
    /// The resulting level of enforcement.
    pub can: SandboxGuarantees,
    pub notes: Vec<String>,
}

/// What the kernel refuses to a sandboxed command here.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct SandboxGuarantees {
    /// Writing outside the workspace and the temporary directory.
    pub write_confinement: bool,
    /// Changing permissions, owners and times outside.
    pub metadata_confinement: bool,
    /// Reading what is not to be read.
    pub deny_read: bool,
    pub network_off: bool,
    /// Using the loopback network among the session's own commands while the network is off.
    pub private_loopback: bool,
    /// Reaching sockets in the file system and abstract ones.
    pub unix_sockets: bool,
    /// Changing `.git/hooks` and `.git/config`.
    pub protect_git: bool,
    /// Changing or making `.qwen` and `.mcp.json`.
    pub protect_settings: bool,
    /// Reading other processes' environment and memory.
    pub process_isolation: bool,
    pub signal_isolation: bool,
}

impl SandboxReport {
    /// True if a required sandbox is possible: writes are confined and the network is off.
    pub fn enforceable(&self) -> bool {
        self.can.enforce()
    }

    /// The report for programs.
    pub fn json(&self) -> serde_json::Value {
        let mut json = serde_json::to_value(self).unwrap_or_default();
        if let Some(fields) = json.as_object_mut() {
            fields.insert("enforceable".to_owned(), self.enforceable().into());
        }
        json
    }

    fn from(means: &KernelFeatures, user_namespaces: bool, bubblewrap: Option<PathBuf>) -> Self {
        let can = SandboxGuarantees::with(means);
        Self {
            landlock_abi: means.landlock_abi,
            seccomp: means.seccomp,
            user_namespaces,
            mount_namespaces: means.namespaces.is_some(),
            network_namespaces: can.private_loopback,
            bubblewrap,
            notes: notes(means, &can),
            can,
        }
    }
}

/// What the kernel can keep commands from on this machine. Found at the first call, which takes about a
/// millisecond.
pub fn guarantees() -> SandboxGuarantees {
    SandboxGuarantees::with(KernelFeatures::detect())
}

impl SandboxGuarantees {
    pub(crate) fn with(means: &KernelFeatures) -> Self {
        let mounts = means.namespaces.is_some();
        let landlock = means.landlock_abi > 0;
        let own_network = means.namespaces.is_some_and(|(_, network)| network);
        Self {
            write_confinement: landlock || mounts,
            metadata_confinement: mounts,
            deny_read: landlock || mounts,
            network_off: means.seccomp || own_network,
            private_loopback: own_network,
            unix_sockets: means.seccomp,
            protect_git: mounts,
            protect_settings: mounts,
            process_isolation: landlock,
            signal_isolation: means.landlock_abi >= 6,
        }
    }

    /// What a sandbox that was asked for has to have.
    pub(crate) fn enforce(&self) -> bool {
        self.write_confinement && self.network_off && self.unix_sockets
    }
}

fn notes(means: &KernelFeatures, can: &SandboxGuarantees) -> Vec<String> {
    let mut notes = Vec::new();
    let mut note = |text: &str| notes.push(text.to_owned());
    if !can.write_confinement {
        note(
            "Commands cannot be confined: the kernel has no Landlock (Linux 5.13 and later, `landlock` among the LSMs) and we may not make mount namespaces.",
        );
    } else if means.landlock_abi == 0 {
        note(
            "There is no Landlock (Linux 5.13 and later, `landlock` among the LSMs): other processes of the same user, and pipes and terminals of theirs, are within reach.",
        );
    } else if !can.metadata_confinement {
        if means.landlock_abi < 2 {
            note(
                "Landlock 1 does not let files move between directories of the workspace; Linux 5.19 and later do.",
            );
        }
        if means.landlock_abi < 3 {
            note(
                "Landlock before version 3 (Linux 6.2) does not keep files outside the workspace from being emptied.",
            );
        }
        note(
            "Permissions, owners and times of files outside the workspace can be changed: Landlock does not cover them.",
        );
    }
    if let Some(refusal) = &means.no_namespaces {
        note(&format!("Mount namespaces cannot be made ({refusal})."));
        if can.write_confinement {
            note(
                "Therefore .git/hooks, .git/config, .qwen and .mcp.json are not out of reach while a command runs: they are checked and put back when it ends.",
            );
            note(
                "Therefore, where a rule denies reading, files that a command creates next to the denied one cannot be read by that command, and files do not move between directories of that workspace.",
            );
        }
    }
    if !means.seccomp {
        note(
            "There are no system call filters (CONFIG_SECCOMP_FILTER): sockets in the file system are within reach.",
        );
    }
    if can.write_confinement && !can.signal_isolation {
        note("Other processes of the same user can be signalled; Linux 6.12 and later refuse that.");
    }
    notes
}

impl fmt::Display for SandboxReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let yes = |yes: bool| if yes { "yes" } else { "no" };
        let verdict = if self.enforceable() { "can be enforced" } else { "cannot be enforced" };
        writeln!(f, "The sandbox {verdict} on this machine.\n")?;
        match self.landlock_abi {
            0 => writeln!(f, "  Landlock            no")?,
            abi => writeln!(f, "  Landlock            version {abi}")?,
        }
        writeln!(f, "  system call filters {}", yes(self.seccomp))?;
        writeln!(f, "  user namespaces     {}", yes(self.user_namespaces))?;
        writeln!(f, "  mount namespaces    {}", yes(self.mount_namespaces))?;
        writeln!(f, "  network namespaces  {}", yes(self.network_namespaces))?;
        match &self.bubblewrap {
            Some(path) => writeln!(f, "  bubblewrap          {} (not needed)", path.display())?,
            None => writeln!(f, "  bubblewrap          not installed (not needed)")?,
        }
        writeln!(f, "\nThe kernel keeps commands from")?;
        let can = &self.can;
        for (what, kept) in [
            ("writing outside the workspace", can.write_confinement),
            ("changing permissions and times outside", can.metadata_confinement),
            ("reading denied files", can.deny_read),
            ("reaching the network", can.network_off),
            ("reaching unix sockets", can.unix_sockets),
            ("changing .git/hooks and .git/config", can.protect_git),
            ("making or changing .qwen and .mcp.json", can.protect_settings),
            ("reading other processes", can.process_isolation),
            ("signalling other processes", can.signal_isolation),
        ] {
            writeln!(f, "  {what:<40} {}", yes(kept))?;
        }
        for note in &self.notes {
            writeln!(f, "\n{note}")?;
        }
        Ok(())
    }
}

/// The means that a sandbox can be made of here.
#[derive(Debug, Clone)]
pub(crate) struct KernelFeatures {
    pub landlock_abi: u32,
    pub seccomp: bool,
    /// How mount namespaces are made, and whether networks are too.
    pub namespaces: Option<(NamespaceMethod, bool)>,
    /// Why they are not.
    pub no_namespaces: Option<String>,
}

static HERE: OnceLock<KernelFeatures> = OnceLock::new();

impl KernelFeatures {
    /// The features of most machines, used until they were probed.
    pub(crate) fn hoped_for() -> Option<Self> {
        let way = if rustix::process::geteuid().is_root() {
            NamespaceMethod::Privileged
        } else {
            NamespaceMethod::UserNamespace
        };
        HERE.get().is_none().then(|| Self {
            landlock_abi: landlock::abi(),
            seccomp: kernel::filters_can_refuse(),
            namespaces: Some((way, true)),
            no_namespaces: None,
        })
    }

    /// The facilities of this machine, probed at the first call, which takes about a millisecond.
    pub(crate) fn detect() -> &'static Self {
        HERE.get_or_init(|| {
            let mut refusal = None;
            let ways = [
                (NamespaceMethod::Privileged, true),
                (NamespaceMethod::UserNamespace, true),
                (NamespaceMethod::Privileged, false),
                (NamespaceMethod::UserNamespace, false),
            ];
            let namespaces = ways.into_iter().find(|&(way, network)| match namespaces::probe(way, network) {
                Ok(()) => true,
                Err(error) => {
                    refusal = Some(error.to_string());
                    false
                }
            });
            Self {
                landlock_abi: landlock::abi(),
                seccomp: kernel::filters_can_refuse(),
                namespaces,
                no_namespaces: if namespaces.is_some() { None } else { refusal },
            }
        })
    }
}

/// What this machine can enforce. Tries it out, so it takes a few milliseconds.
pub fn report() -> SandboxReport {
    let means = KernelFeatures::detect();
    let user_namespaces = match means.namespaces {
        Some((NamespaceMethod::UserNamespace, _)) => true,
        _ => namespaces::probe(NamespaceMethod::UserNamespace, false).is_ok(),
    };
    let path = std::env::var_os("PATH").unwrap_or_default();
    let bubblewrap = std::env::split_paths(&path).map(|dir| dir.join("bwrap")).find(|file| file.is_file());
    SandboxReport::from(means, user_namespaces, bubblewrap)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(landlock_abi: u32, seccomp: bool, namespaces: Option<(NamespaceMethod, bool)>) -> SandboxReport {
        let no_namespaces = namespaces.is_none().then(|| "not permitted".to_owned());
        SandboxReport::from(&KernelFeatures { landlock_abi, seccomp, namespaces, no_namespaces }, false, None)
    }

    #[test]
    fn a_sandbox_needs_confined_writes_and_a_way_to_keep_the_network_off() {
        for (landlock, seccomp, namespaces, enforceable) in [
            (0, false, None, false),
            (0, true, None, false),
            (7, false, None, false),
            (1, true, None, true),
            (0, true, Some((NamespaceMethod::UserNamespace, true)), true),
            (0, false, Some((NamespaceMethod::Privileged, true)), false),
        ] {
            let report = with(landlock, seccomp, namespaces);
            assert_eq!(report.enforceable(), enforceable, "{report}");
            assert_eq!(report.json()["enforceable"], enforceable);
        }
    }

    #[test]
    fn the_report_lists_missing_protections() {
        let strong = with(7, true, Some((NamespaceMethod::UserNamespace, true)));
        assert_eq!(strong.notes, Vec::<String>::new());
        let weak = with(2, true, None).to_string();
        for word in ["put back when it ends", "emptied", "signalled", "not permitted"] {
            assert!(weak.contains(word), "{word} in {weak}");
        }
        let none = with(0, false, None).to_string();
        assert!(none.contains("cannot be enforced"), "{none}");
    }

    #[test]
    fn programs_get_every_answer_by_name() {
        let json = with(7, true, Some((NamespaceMethod::Privileged, true))).json();
        assert_eq!(json["landlock_abi"], 7);
        for name in ["write_confinement", "network_off", "unix_sockets", "protect_git", "deny_read"] {
            assert_eq!(json["can"][name], true, "{name}");
        }
    }
}
