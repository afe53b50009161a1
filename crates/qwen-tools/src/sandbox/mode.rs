//! Whether there is a sandbox: by default as much as the machine has, on demand all or nothing.

use std::sync::Arc;

use qwen_events::{ErrorInfo, ErrorKind};

use super::policy::Policy;
use super::report::{Report, report};
use super::stay::Sandbox;

/// How much the user insists on a sandbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Mode {
    /// Use what the machine can enforce, and say loudly when that is nothing.
    #[default]
    Auto,
    /// Refuse to work without.
    Required,
    /// None.
    Off,
}

/// What came of opening a sandbox.
pub struct Opened {
    /// The sandbox, where there is one.
    pub sandbox: Option<Arc<Sandbox>>,
    /// What is in force.
    pub description: String,
    /// The description is a warning that nobody should overlook.
    pub loud: bool,
}

/// Opens a sandbox, or says why there is none. Takes a few milliseconds: call it when the first command is to run.
pub fn open(mode: Mode, policy: &Policy) -> Result<Opened, ErrorInfo> {
    if mode == Mode::Off {
        let description = "Commands run without a sandbox, as asked.".to_owned();
        return Ok(Opened { sandbox: None, description, loud: false });
    }
    let prepared = Sandbox::prepare(policy);
    if mode == Mode::Required {
        let report = report();
        if !report.enforceable() {
            return Err(refusal(&missing(&report)));
        }
    }
    match prepared {
        Ok(sandbox) => {
            let description = sandbox.describe();
            let loud = description.contains("COULD NOT");
            Ok(Opened { sandbox: Some(Arc::new(sandbox)), description, loud })
        }
        Err(error) if mode == Mode::Required => Err(refusal(&error.to_string())),
        Err(error) => {
            let description = format!(
                "WARNING: commands run WITHOUT A SANDBOX and can do whatever you can: {error}. `qwen sandbox` tells more."
            );
            Ok(Opened { sandbox: None, description, loud: true })
        }
    }
}

fn missing(report: &Report) -> String {
    let can = &report.can;
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
        "A sandbox was asked for, but {reason}. `qwen sandbox` shows what is missing; without --sandbox (setting \
         tools.sandbox) commands run with as much of it as there is."
    );
    ErrorInfo::new(ErrorKind::Sandbox, "sandbox_unavailable", message)
}
