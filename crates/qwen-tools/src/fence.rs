//! The session's sandbox, opened when the first command wants to run, and again when there is more to hide.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use qwen_events::ErrorInfo;

use crate::Scratch;
use crate::process::{BeforeExec, Environment};
use crate::sandbox::{
    Mode, Occupant, Opened, Policy, Stay, TEMP_VARIABLES, Tampered, open, sandboxed_env_removals,
};

/// What a session's commands are fenced in by. Nothing is set up before the first of them.
pub struct Fence {
    mode: Mode,
    roots: Vec<PathBuf>,
    writable: Vec<PathBuf>,
    deny_read: Box<dyn Fn() -> Vec<PathBuf> + Send + Sync>,
    network: bool,
    current: Mutex<Option<Current>>,
}

/// The sandbox as it was opened last.
#[derive(Clone)]
struct Current {
    /// What it hides.
    deny_read: Vec<PathBuf>,
    opened: Result<Arc<Opened>, ErrorInfo>,
}

/// A command's stay inside the fence.
pub struct Inside {
    stay: Option<Stay>,
    temp: Option<PathBuf>,
    /// A warning that is given once, with the first command.
    pub warning: Option<String>,
}

impl Fence {
    /// No fence.
    pub fn none() -> Self {
        Self::new(Mode::Off, Vec::new(), Vec::new, false)
    }

    /// A fence around `roots`. Commands may read everything but `deny_read`, write only in the roots and a temporary
    /// directory of their own, and reach the network only if `network` says so. What they may not read is asked for
    /// whenever a command comes: files are made and rules are added in the meantime.
    pub fn new(
        mode: Mode,
        roots: Vec<PathBuf>,
        deny_read: impl Fn() -> Vec<PathBuf> + Send + Sync + 'static,
        network: bool,
    ) -> Self {
        let (writable, deny_read) = (Vec::new(), Box::new(deny_read));
        Self { mode, roots, writable, deny_read, network, current: Mutex::new(None) }
    }

    /// Lets commands write in these directories too.
    pub fn writing(mut self, directories: impl IntoIterator<Item = PathBuf>) -> Self {
        self.writable.extend(directories);
        self
    }

    /// Lets a command in.
    pub fn enter(&self, occupant: Occupant, scratch: &Scratch) -> Result<Inside, ErrorInfo> {
        let (opened, first) = self.current(scratch);
        let opened = opened?;
        let warning = (first && opened.loud).then(|| opened.description.clone());
        let Some(sandbox) = &opened.sandbox else { return Ok(Inside { stay: None, temp: None, warning }) };
        let stay = sandbox.enter(occupant).map_err(|error| {
            let message = format!("the command cannot enter the sandbox: {error}");
            ErrorInfo::new(qwen_events::ErrorKind::Sandbox, "sandbox_failed", message)
        })?;
        Ok(Inside { stay: Some(stay), temp: Some(sandbox.temp().to_owned()), warning })
    }

    /// The sandbox for the next command, and whether it is the first. Those who are in an earlier one stay there.
    fn current(&self, scratch: &Scratch) -> (Result<Arc<Opened>, ErrorInfo>, bool) {
        let deny_read = if self.mode == Mode::Off { Vec::new() } else { (self.deny_read)() };
        let mut current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(current) = current.as_ref().filter(|current| current.deny_read == deny_read) {
            return (current.opened.clone(), false);
        }
        let opened = self.open(scratch, deny_read.clone()).map(Arc::new);
        let first = current.replace(Current { deny_read, opened: opened.clone() }).is_none();
        (opened, first)
    }

    fn open(&self, scratch: &Scratch, deny_read: Vec<PathBuf>) -> Result<Opened, ErrorInfo> {
        if self.mode == Mode::Off {
            return open(Mode::Off, &Policy::new(PathBuf::new(), PathBuf::new()));
        }
        let temp = scratch.subdirectory("tmp").map_err(|error| {
            let message = format!("a temporary directory for commands cannot be made: {error}");
            ErrorInfo::new(qwen_events::ErrorKind::Sandbox, "sandbox_failed", message)
        })?;
        let mut policy = Policy::new(PathBuf::new(), temp);
        policy.roots.clone_from(&self.roots);
        policy.writable.clone_from(&self.writable);
        policy.deny_read = deny_read;
        policy.network = self.network;
        open(self.mode, &policy)
    }
}

impl Inside {
    /// What the command's process does to itself before it starts.
    pub fn before_exec(&self) -> Option<Arc<dyn BeforeExec>> {
        self.stay.as_ref().map(Stay::entrance)
    }

    /// The command's environment: its own temporary directory, and nothing that points out of the fence.
    pub fn environment(&self, env: Arc<Environment>) -> Arc<Environment> {
        let Some(temp) = &self.temp else { return env };
        let mut env = Environment::clone(&env);
        for name in sandboxed_env_removals() {
            env.remove(name);
        }
        for name in TEMP_VARIABLES {
            env.set(name, temp);
        }
        Arc::new(env)
    }

    /// Ends the stay, once everything that the command started is gone, and tells what was tampered with and undone.
    pub fn settle(self) -> Vec<Tampered> {
        self.stay.map(Stay::settle).unwrap_or_default()
    }
}
