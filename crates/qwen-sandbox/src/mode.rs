//! Sandbox modes: by default use what the machine can enforce; on request require a full sandbox or none.

use std::sync::Arc;

use qwen_events::{ErrorInfo, ErrorKind};

use crate::policy::SandboxPolicy;
use crate::report::{KernelFeatures, SandboxGuarantees};
use crate::{Sandbox, SandboxError};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SandboxMode {
    /// Use what the machine can enforce, and warn prominently if that is nothing.
    #[default]
    Auto,
    /// Refuse to run commands without a sandbox.
    Required,
    Off,
}

impl SandboxMode {
    /// Fails if a sandbox is required and this machine cannot enforce one. Probes the machine only in that
    /// case.
    pub fn check(self) -> Result<(), ErrorInfo> {
        if self != Self::Required {
            return Ok(());
        }
        let can = crate::guarantees();
        if can.enforce() { Ok(()) } else { Err(refusal(&missing(&can))) }
    }
}

/// The result of opening a sandbox.
pub struct OpenedSandbox {
    pub sandbox: Option<Arc<Sandbox>>,
    /// What is in force.
    pub description: String,
    /// The description is a warning and must be shown prominently: there is no sandbox, or it lacks
    /// something.
    pub loud: bool,
}

/// Opens a sandbox, or returns why there is none. Takes about a millisecond, so call it when the first
/// command is about to run.
pub fn open(mode: SandboxMode, policy: &SandboxPolicy) -> Result<OpenedSandbox, ErrorInfo> {
    // Creating it is the check; a separate probe would double the time.
    if mode != SandboxMode::Off
        && let Some(means) = KernelFeatures::hoped_for()
        && let Ok(opened) = open_with(mode, policy, || &means)
        && opened.sandbox.as_ref().is_some_and(|sandbox| sandbox.has_mounts())
    {
        return Ok(opened);
    }
    open_with(mode, policy, KernelFeatures::detect)
}

fn open_with<'a>(
    mode: SandboxMode,
    policy: &SandboxPolicy,
    means: impl FnOnce() -> &'a KernelFeatures,
) -> Result<OpenedSandbox, ErrorInfo> {
    if mode == SandboxMode::Off {
        let description = "Commands run without a sandbox, as asked.".to_owned();
        return Ok(OpenedSandbox { sandbox: None, description, loud: false });
    }
    let means = means();
    let can = SandboxGuarantees::with(means);
    if mode == SandboxMode::Required && !can.enforce() {
        return Err(refusal(&missing(&can)));
    }
    match Sandbox::with(policy, means) {
        Ok(sandbox) => {
            let (description, loud) = (sandbox.describe(), {
                let is_closed = policy.gateway && !sandbox.has_gateway();
                !can.enforce() || !sandbox.has_mounts() || is_closed
            });
            Ok(OpenedSandbox { sandbox: Some(Arc::new(sandbox)), description, loud })
        }
        Err(error @ SandboxError::Unavailable) if mode == SandboxMode::Auto => {
            let description = format!(
                "WARNING: commands run WITHOUT A SANDBOX and can do whatever you can: {error}. `qwen sandbox` shows the details."
            );
            Ok(OpenedSandbox { sandbox: None, description, loud: true })
        }
        // The machine supports a sandbox, so the cause is something else. Running without one would be
        // unexpected.
        Err(error) => Err(refusal(&error.to_string())),
    }
}

fn missing(can: &SandboxGuarantees) -> String {
    let missing: Vec<_> = [
        ("confine what commands write", can.write_confinement),
        ("keep commands off the network", can.network_off),
        ("keep commands from unix sockets", can.unix_sockets),
    ]
    .into_iter()
    .filter_map(|(what, can)| (!can).then_some(what))
    .collect();
    format!("this machine cannot {}", missing.join(" or "))
}

fn refusal(reason: &str) -> ErrorInfo {
    let message = format!(
        "Commands cannot run in the sandbox: {reason}. `qwen sandbox` shows what this machine can enforce; without \
         --sandbox (setting tools.sandbox) commands run with as much of it as there is."
    );
    ErrorInfo::new(ErrorKind::Sandbox, "sandbox_unavailable", message)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOTHING: KernelFeatures =
        KernelFeatures { landlock_abi: 0, seccomp: false, namespaces: None, no_namespaces: None };

    fn policy() -> (tempfile::TempDir, SandboxPolicy) {
        let place = tempfile::tempdir().unwrap();
        let policy = SandboxPolicy::new(place.path(), place.path());
        (place, policy)
    }

    #[test]
    fn a_sandbox_that_is_required_and_cannot_be_had_is_an_error_of_its_own() {
        let (_place, policy) = policy();
        let error = open_with(SandboxMode::Required, &policy, || &NOTHING).err().unwrap();
        assert_eq!((error.kind, error.exit_code()), (ErrorKind::Sandbox, 44));
        assert!(error.message.contains("cannot confine what commands write"), "{error}");
    }

    #[test]
    fn by_default_nothing_at_all_is_said_loudly() {
        let (_place, policy) = policy();
        let opened = open_with(SandboxMode::Auto, &policy, || &NOTHING).ok().unwrap();
        assert!(opened.sandbox.is_none() && opened.loud);
        assert!(opened.description.contains("WITHOUT A SANDBOX"), "{}", opened.description);
    }

    #[test]
    fn switched_off_nothing_is_tried() {
        let (_place, policy) = policy();
        let opened = open_with(SandboxMode::Off, &policy, || unreachable!("nobody asks")).ok().unwrap();
        assert!(opened.sandbox.is_none() && !opened.loud);
    }

    #[test]
    fn the_reported_sandbox_can_be_opened() {
        let (_place, policy) = policy();
        let enforceable = crate::report().enforceable();
        assert_eq!(open(SandboxMode::Required, &policy).is_ok(), enforceable);
        if enforceable {
            let opened = open(SandboxMode::Auto, &policy).ok().unwrap();
            assert!(opened.sandbox.is_some() && !opened.loud, "{}", opened.description);
        }
    }

    #[test]
    fn a_workspace_that_is_not_there_is_refused_and_not_run_unconfined() {
        if !crate::report().enforceable() {
            eprintln!("SKIPPED: no sandbox can be had here");
            return;
        }
        let missing = SandboxPolicy::new("/nowhere/at/all", "/tmp");
        assert_eq!(open(SandboxMode::Auto, &missing).err().unwrap().kind, ErrorKind::Sandbox);
    }
}
