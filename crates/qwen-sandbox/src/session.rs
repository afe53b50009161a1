//! The session's sandbox, opened for the first command and again when its bounds change.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use qwen_events::ErrorInfo;

use crate::gateway::{GatewayService, NetworkGateway};
use crate::git_excludes;
use crate::process::{BeforeExec, Environment};
use crate::scratch::Scratch;
use crate::system_temp::{MountPoints, SYSTEM_TEMP, SystemTemp, open_to_all};
use crate::variables;
use crate::{
    OpenedSandbox, ProcessRole, SandboxLease, SandboxLimits, SandboxMode, SandboxPolicy, SandboxWatcher,
    TEMP_VARIABLES, Tampering, open, sandboxed_env_removals,
};

/// A session's sandbox. Nothing is set up before its first command.
pub struct SandboxSession {
    mode: SandboxMode,
    bounds: Box<dyn Fn() -> SandboxBounds + Send + Sync>,
    writable: Vec<PathBuf>,
    network: bool,
    /// Serves the private network while the bounds ask for it.
    gateway: Option<Arc<dyn NetworkGateway>>,
    current: Mutex<Option<Current>>,
    /// Gets the warning that is given once.
    warn: Option<Box<dyn Fn(&str) + Send + Sync>>,
    /// The mount points in the session's own `/tmp`.
    mount_points: MountPoints,
    /// The sandbox that cannot write. It is opened for the first command that only reads.
    read_only: Mutex<Option<Current>>,
}

/// What a sandboxed process may write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SandboxAccess {
    /// The workspace, the private temporary directory and what the policy lists.
    Workspace,
    /// Nothing but a private temporary directory, and no network, regardless of the policy.
    ReadOnly,
}

/// The limits of commands, from the current rules and files.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SandboxBounds {
    /// The directories of the workspace, which exist.
    pub roots: Vec<PathBuf>,
    /// What may not be read.
    pub deny_read: Vec<PathBuf>,
    /// Directories inside of that which may be read.
    pub show: Vec<PathBuf>,
    /// What may not be changed in the workspace.
    pub deny_write: Vec<PathBuf>,
    /// Files that hooks run, which may not be changed or created.
    pub scripts: Vec<PathBuf>,
    /// The gateway decides about each connection, also where the network is on.
    pub gateway: bool,
}

/// The sandbox as it was opened last.
#[derive(Clone)]
struct Current {
    bounds: SandboxBounds,
    opened: Result<Arc<OpenedSandbox>, ErrorInfo>,
}

/// The sandbox of one process, held until the process and all that it started is gone.
pub struct ProcessSandbox {
    lease: Option<SandboxLease>,
    temp: Option<PathBuf>,
    /// Settings that git needs in the sandbox.
    git_settings: &'static [(&'static str, &'static str)],
    limits: Option<SandboxLimits>,
    /// A warning that is given once, with the first command.
    pub warning: Option<String>,
}

impl SandboxSession {
    /// Creates a session without a sandbox.
    pub fn none() -> Self {
        Self::new(SandboxMode::Off, SandboxBounds::default, false)
    }

    /// Commands may read everything but what the bounds deny, write only in the workspace and a private
    /// temporary directory, and use the network only if `network` is set. The bounds are read again for
    /// each command, because files, rules and directories change.
    pub fn new(
        mode: SandboxMode,
        bounds: impl Fn() -> SandboxBounds + Send + Sync + 'static,
        network: bool,
    ) -> Self {
        Self {
            mode,
            bounds: Box::new(bounds),
            writable: Vec::new(),
            network,
            gateway: None,
            current: Mutex::new(None),
            warn: None,
            mount_points: MountPoints::default(),
            read_only: Mutex::new(None),
        }
    }

    /// Lets commands write in these directories too.
    pub fn writing(mut self, directories: impl IntoIterator<Item = PathBuf>) -> Self {
        self.writable.extend(directories);
        self
    }

    /// Lets commands connect through this gateway where the bounds ask for it.
    pub fn connecting(mut self, gateway: Arc<dyn NetworkGateway>) -> Self {
        self.gateway = Some(gateway);
        self
    }

    /// Reports the warning of the first command to the user, too.
    pub fn warning(mut self, warn: impl Fn(&str) + Send + Sync + 'static) -> Self {
        self.warn = Some(Box::new(warn));
        self
    }

    /// Opens the sandbox for one process. Call it when the process is about to start.
    pub fn enter(
        &self,
        role: ProcessRole,
        access: SandboxAccess,
        scratch: &Scratch,
    ) -> Result<ProcessSandbox, ErrorInfo> {
        let (opened, first) = self.current(access, scratch);
        let opened = opened?;
        let warning = (first && opened.loud).then(|| opened.description.clone());
        if let (Some(warn), Some(warning)) = (&self.warn, &warning) {
            warn(warning);
        }
        let Some(sandbox) = &opened.sandbox else {
            return Ok(ProcessSandbox { lease: None, temp: None, git_settings: &[], limits: None, warning });
        };
        let lease = sandbox.enter(role).map_err(|error| {
            let message = format!("the command cannot enter the sandbox: {error}");
            ErrorInfo::new(qwen_events::ErrorKind::Sandbox, "sandbox_failed", message)
        })?;
        Ok(ProcessSandbox {
            lease: Some(lease),
            temp: Some(sandbox.temp().to_owned()),
            git_settings: sandbox.git_settings(),
            limits: Some(sandbox.limits()),
            warning,
        })
    }

    /// The sandbox for the next command, and whether it is the first. Running processes stay in an earlier
    /// one.
    fn current(
        &self,
        access: SandboxAccess,
        scratch: &Scratch,
    ) -> (Result<Arc<OpenedSandbox>, ErrorInfo>, bool) {
        let bounds = if self.mode == SandboxMode::Off { SandboxBounds::default() } else { (self.bounds)() };
        let (current, other) = match access {
            SandboxAccess::Workspace => (&self.current, &self.read_only),
            SandboxAccess::ReadOnly => (&self.read_only, &self.current),
        };
        let unopened = other.lock().unwrap_or_else(PoisonError::into_inner).is_none();
        let mut current = current.lock().unwrap_or_else(PoisonError::into_inner);
        let is_current = |current: &&Current| {
            let sandbox = current.opened.as_ref().ok().and_then(|opened| opened.sandbox.as_ref());
            current.bounds == bounds && sandbox.is_none_or(|sandbox| sandbox.is_current())
        };
        if let Some(current) = current.as_ref().filter(is_current) {
            return (current.opened.clone(), false);
        }
        let opened = self.open(access, scratch, bounds.clone()).map(Arc::new);
        let first = current.replace(Current { bounds, opened: opened.clone() }).is_none();
        (opened, first && unopened)
    }

    fn open(
        &self,
        access: SandboxAccess,
        scratch: &Scratch,
        bounds: SandboxBounds,
    ) -> Result<OpenedSandbox, ErrorInfo> {
        if self.mode == SandboxMode::Off {
            return open(SandboxMode::Off, &SandboxPolicy::new(PathBuf::new(), PathBuf::new()));
        }
        let temp = match access {
            SandboxAccess::Workspace => "tmp",
            SandboxAccess::ReadOnly => "tmp-read-only",
        };
        let temp = scratch.subdirectory(temp).map_err(|error| {
            let message = format!("a temporary directory for commands cannot be made: {error}");
            ErrorInfo::new(qwen_events::ErrorKind::Sandbox, "sandbox_failed", message)
        })?;
        let mut policy = SandboxPolicy::new(PathBuf::new(), temp);
        policy.deny_read = bounds.deny_read;
        let roots = bounds.roots.clone();
        match access {
            SandboxAccess::Workspace => {
                policy.roots = bounds.roots;
                policy.writable.clone_from(&self.writable);
                policy.deny_write = bounds.deny_write;
                policy.scripts = bounds.scripts;
                policy.gateway = bounds.gateway && self.gateway.is_some();
                policy.network = self.network && !policy.gateway;
            }
            SandboxAccess::ReadOnly => {
                policy.roots = Vec::new();
                policy.visible_roots.clone_from(&bounds.roots);
                // A root stays visible in a directory that may not be read.
                let is_hidden =
                    |root: &PathBuf| policy.deny_read.iter().any(|hidden| root.starts_with(hidden));
                policy.show = bounds.roots.iter().filter(|root| is_hidden(root)).cloned().collect();
            }
        }
        policy.show.extend(bounds.show);
        // Hide the scratch directories of other sessions, unless the workspace contains them.
        if let Some((shared, own)) = scratch.shared().zip(scratch.path())
            && !policy.roots.iter().chain(&policy.writable).chain(&roots).any(|root| shared.starts_with(root))
        {
            policy.deny_read.push(shared.to_owned());
            policy.show.push(own.to_owned());
        }
        policy.system_temp = self.system_temp(access, scratch, &policy, &roots);
        let opened = open(self.mode, &policy)?;
        if let (Some(sandbox), Some(gateway)) = (&opened.sandbox, &self.gateway) {
            sandbox.start_gateway(&**gateway).map_err(|error| {
                let message = format!("the gateway of the sandbox's network cannot be started: {error}");
                ErrorInfo::new(qwen_events::ErrorKind::Sandbox, "sandbox_failed", message)
            })?;
        }
        Ok(opened)
    }

    /// The session's own `/tmp`. None if commands may write the real one, or it cannot be made.
    fn system_temp(
        &self,
        access: SandboxAccess,
        scratch: &Scratch,
        policy: &SandboxPolicy,
        roots: &[PathBuf],
    ) -> Option<SystemTemp> {
        let places = || policy.roots.iter().chain(&policy.writable).chain(roots);
        let real = Path::new(SYSTEM_TEMP).canonicalize().ok()?;
        if real != Path::new(SYSTEM_TEMP) || places().any(|place| real.starts_with(place)) {
            return None;
        }
        let directory = scratch.subdirectory("system-tmp").ok()?;
        open_to_all(&directory).ok()?;
        let named =
            policy.deny_read.iter().chain(&policy.show).chain(&policy.deny_write).chain([&policy.temp]);
        let needed: Vec<&Path> = places().chain(named).map(PathBuf::as_path).collect();
        let visible = self.mount_points.refresh(&directory, &needed);
        Some(SystemTemp { directory, is_writable: access == SandboxAccess::Workspace, visible })
    }
}

impl ProcessSandbox {
    /// False where the machine has no sandbox, or none is wanted.
    pub fn is_enforced(&self) -> bool {
        self.lease.is_some()
    }

    /// What the sandbox refuses; none where there is no sandbox.
    pub fn limits(&self) -> Option<&SandboxLimits> {
        self.limits.as_ref()
    }

    /// Explains why a command line may have failed that names a file which the sandbox hides: to the command it does
    /// not exist. None if it names no such file.
    pub fn explain_hidden<'a>(&self, command: impl IntoIterator<Item = &'a str>) -> Option<String> {
        let lease = self.lease.as_ref()?;
        let is_quote = |letter: char| letter.is_whitespace() || matches!(letter, '"' | '\'' | '=' | ';');
        let words = command.into_iter().flat_map(|part| part.split(is_quote));
        let mut files = words.filter(|word| word.starts_with('/')).map(Path::new);
        let hidden = files.find(|file| lease.hides(file))?;
        Some(format!(
            "the sandbox hides {} from it; move it into the workspace, or add its directory with --include-directories",
            hidden.display()
        ))
    }

    /// What the command's process does to itself before it starts.
    pub fn before_exec(&self) -> Option<Arc<dyn BeforeExec>> {
        self.lease.as_ref().map(SandboxLease::entry)
    }

    /// Looks after the protected names during calls of a process that stays.
    pub fn watcher(&self) -> Option<SandboxWatcher> {
        self.lease.as_ref().map(SandboxLease::watcher)
    }

    /// The command's environment: its own temporary directory, and no variable that points out of the
    /// sandbox.
    pub fn environment(&self, env: Arc<Environment>) -> Arc<Environment> {
        let Some(temp) = &self.temp else { return env };
        let mut env = Environment::clone(&env);
        for name in sandboxed_env_removals() {
            env.remove(name);
        }
        for name in TEMP_VARIABLES {
            env.set(name, temp);
        }
        let is_writable = |place: &Path| self.lease.as_ref().is_some_and(|lease| lease.may_write(place));
        for (name, place) in variables::replaced_caches(&env, is_writable) {
            env.set(name, temp.join(place));
        }
        let mut settings: Vec<(&str, OsString)> =
            self.git_settings.iter().map(|(name, value)| (*name, OsString::from(value))).collect();
        let placeholders = self.lease.as_ref().map(SandboxLease::placeholders).unwrap_or_default();
        let excludes = temp.parent().and_then(|place| git_excludes::write(place, placeholders, &env));
        settings.extend(excludes.map(|file| ("core.excludesFile", file.into_os_string())));
        add_git_settings(&mut env, &settings);
        let gateway = self.lease.as_ref().and_then(SandboxLease::gateway);
        for (name, value) in
            gateway.zip(temp.parent()).map(|(gateway, place)| gateway.environment(place)).unwrap_or_default()
        {
            env.set(name, value);
        }
        Arc::new(env)
    }

    /// What the gateway of the private network refused since the last call, in one sentence each.
    pub fn take_network_refusals(&self) -> Vec<String> {
        let gateway = self.lease.as_ref().and_then(SandboxLease::gateway);
        gateway.map(GatewayService::take_refusals).unwrap_or_default()
    }

    /// Gives the sandbox back once everything that the command started is gone. Returns what was tampered
    /// with.
    pub fn release(self) -> Vec<Tampering> {
        self.lease.map(SandboxLease::release).unwrap_or_default()
    }
}

/// Adds settings for git to those that the environment contains already.
fn add_git_settings(env: &mut Environment, settings: &[(&str, OsString)]) {
    if settings.is_empty() {
        return;
    }
    let count = env.get("GIT_CONFIG_COUNT").and_then(|count| count.to_str()?.parse().ok());
    let mut count: usize = count.unwrap_or(0);
    for (name, value) in settings {
        env.set(format!("GIT_CONFIG_KEY_{count}"), name);
        env.set(format!("GIT_CONFIG_VALUE_{count}"), value);
        count += 1;
    }
    env.set("GIT_CONFIG_COUNT", count.to_string());
}
