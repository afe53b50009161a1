//! The session's sandbox, opened when the first command wants to run, and again when its bounds move.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use qwen_events::ErrorInfo;

use crate::process::{BeforeExec, Environment};
use crate::scratch::Scratch;
use crate::{Mode, Occupant, Opened, Policy, Stay, TEMP_VARIABLES, Tampered, open, sandboxed_env_removals};

/// What a session's commands are fenced in by. Nothing is set up before the first of them.
pub struct Fence {
    mode: Mode,
    bounds: Box<dyn Fn() -> Bounds + Send + Sync>,
    writable: Vec<PathBuf>,
    network: bool,
    current: Mutex<Option<Current>>,
}

/// Where commands may go, as the rules stand and the disk is now.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Bounds {
    /// The directories of the workspace, which exist.
    pub roots: Vec<PathBuf>,
    /// What may not be read.
    pub deny_read: Vec<PathBuf>,
    /// What may not be changed in the workspace.
    pub deny_write: Vec<PathBuf>,
}

/// The sandbox as it was opened last.
#[derive(Clone)]
struct Current {
    bounds: Bounds,
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
        Self::new(Mode::Off, Bounds::default, false)
    }

    /// A fence. Commands may read everything but what the bounds deny, write only in the workspace and a temporary
    /// directory of their own, and reach the network only if `network` says so. The bounds are asked for whenever a
    /// command comes: files are made, rules and directories are added in the meantime.
    pub fn new(mode: Mode, bounds: impl Fn() -> Bounds + Send + Sync + 'static, network: bool) -> Self {
        Self { mode, bounds: Box::new(bounds), writable: Vec::new(), network, current: Mutex::new(None) }
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
        let bounds = if self.mode == Mode::Off { Bounds::default() } else { (self.bounds)() };
        let mut current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(current) = current.as_ref().filter(|current| current.bounds == bounds) {
            return (current.opened.clone(), false);
        }
        let opened = self.open(scratch, bounds.clone()).map(Arc::new);
        let first = current.replace(Current { bounds, opened: opened.clone() }).is_none();
        (opened, first)
    }

    fn open(&self, scratch: &Scratch, bounds: Bounds) -> Result<Opened, ErrorInfo> {
        if self.mode == Mode::Off {
            return open(Mode::Off, &Policy::new(PathBuf::new(), PathBuf::new()));
        }
        let temp = scratch.subdirectory("tmp").map_err(|error| {
            let message = format!("a temporary directory for commands cannot be made: {error}");
            ErrorInfo::new(qwen_events::ErrorKind::Sandbox, "sandbox_failed", message)
        })?;
        let mut policy = Policy::new(PathBuf::new(), temp);
        policy.roots = bounds.roots;
        policy.writable.clone_from(&self.writable);
        policy.deny_read = bounds.deny_read;
        policy.deny_write = bounds.deny_write;
        // What other sessions keep beside ours is theirs. A workspace that holds all of it cannot be without.
        if let Some((shared, own)) = scratch.shared().zip(scratch.path())
            && !policy.roots.iter().chain(&policy.writable).any(|root| shared.starts_with(root))
        {
            policy.deny_read.push(shared.to_owned());
            policy.show.push(own.to_owned());
        }
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
