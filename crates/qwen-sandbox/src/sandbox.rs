//! A prepared sandbox, and the lease of one command.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use crate::entry::SandboxEntry;
use crate::gateway::{GatewayService, NetworkGateway};
use crate::hidden::HiddenView;
use crate::kernel::covers::CoverNames;
use crate::kernel::landlock::{self, HiddenPaths, Ruleset};
use crate::kernel::namespaces::{Namespaces, text};
use crate::kernel::seccomp::{self, Filter};
use crate::kernel::shields::{HiddenShield, ReadOnlyPath, Shields};
use crate::limits::SandboxLimits;
use crate::policy::{Placeholder, ProtectedName, SandboxPolicy, SandboxPolicyError};
use crate::process::BeforeExec;
use crate::process::cleaner::Lifeline;
use crate::protection::discovery::ProtectedObjects;
use crate::protection::nested::NestedNames;
use crate::protection::placeholder::Placeholders;
use crate::protection::watch::{ProtectedRoot, ProtectionWatch, Tampering, WatchScope};
use crate::report::KernelFeatures;

/// Why there is no sandbox.
#[derive(Debug, thiserror::Error)]
pub enum SandboxError {
    /// A directory that was to be written cannot be used.
    #[error(transparent)]
    SandboxPolicy(#[from] SandboxPolicyError),
    /// The machine has nothing to confine writes with.
    #[error(
        "this machine cannot confine what commands write: it has no Landlock and lets us make no mount namespace"
    )]
    Unavailable,
    /// Landlock's rules were refused.
    #[error("the rules for files cannot be set up: {0}")]
    Rules(#[from] std::io::Error),
}

/// Everything that keeps a session's commands in, built once.
pub struct Sandbox {
    policy: SandboxPolicy,
    protected: ProtectedObjects,
    hidden: HiddenView,
    namespaces: Option<Arc<Namespaces>>,
    /// Why there are no namespaces although the machine has them.
    pub(crate) without_namespaces: Option<String>,
    landlock_abi: u32,
    filter: Option<Arc<Filter>>,
    /// Serves the private network.
    gateway: OnceLock<Box<dyn GatewayService>>,
    rules: Mutex<Rules>,
    /// Last, so that what has to be removed from the disk is no longer held by mounts.
    leases: Mutex<LeaseCounts>,
}

/// The way in for the next command, and what Landlock keeps it from reading.
struct Rules {
    current: Arc<SandboxEntry>,
    hidden: HiddenPaths,
}

/// The active leases, and the state that exists while there are any.
struct LeaseCounts {
    all: usize,
    commands: usize,
    placeholders: Placeholders,
    watch: ProtectionWatch,
    nested: NestedNames,
}

/// What enters the sandbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProcessRole {
    /// A command: protected names are looked at when it ends.
    Command,
    /// Something that runs as long as the session, such as an MCP server.
    Server,
}

impl Sandbox {
    /// Builds what the policy needs out of what the machine has.
    pub fn prepare(policy: &SandboxPolicy) -> Result<Self, SandboxError> {
        Self::with(policy, KernelFeatures::detect())
    }

    pub(crate) fn with(policy: &SandboxPolicy, means: &KernelFeatures) -> Result<Self, SandboxError> {
        let mut policy = policy.resolved()?;
        let protected = ProtectedObjects::find(&mut policy);
        let hidden_view = HiddenView::find(&policy);
        let mut without_namespaces = None;
        let namespaces = means.namespaces.and_then(|(way, network)| {
            let network = network && !policy.network;
            let built = Namespaces::build(&policy, &hidden_view, way, network, |covers| {
                shields(&policy, &hidden_view, covers, &protected.roots)
            });
            built.map_err(|error| without_namespaces = Some(error.to_string())).ok().map(Arc::new)
        });
        if namespaces.is_none() && means.landlock_abi == 0 {
            return Err(SandboxError::Unavailable);
        }
        let own_network = namespaces.as_deref().is_some_and(Namespaces::has_network);
        let mut hidden = HiddenPaths::default();
        let landlock = match means.landlock_abi {
            0 => None,
            abi => {
                Some(Ruleset::build(&policy, abi, &collect_mechanisms(namespaces.as_deref()), &mut hidden)?)
            }
        };
        let beside = seccomp::OtherMechanisms { network: own_network, landlock: landlock.is_some() };
        let filter = means.seccomp.then(|| Arc::new(Filter::build(&policy, &beside)));
        // Without one, what a killed process leaves is removed by the next.
        let lifeline = namespaces.as_ref().and_then(|_| Lifeline::new().ok()).map(Arc::new);
        let placeholders = Placeholders::new(&policy, lifeline.clone());
        let current =
            SandboxEntry { namespaces: namespaces.clone(), landlock, filter: filter.clone(), lifeline };
        let leases = LeaseCounts {
            all: 0,
            commands: 0,
            placeholders,
            watch: ProtectionWatch::default(),
            nested: NestedNames::default(),
        };
        Ok(Self {
            policy,
            protected,
            hidden: hidden_view,
            namespaces,
            without_namespaces,
            landlock_abi: means.landlock_abi,
            filter,
            gateway: OnceLock::new(),
            rules: Mutex::new(Rules { current: Arc::new(current), hidden }),
            leases: Mutex::new(leases),
        })
    }

    /// Creates the lease for one command. Call it when the command is about to start, and hold the lease
    /// until the command and all its descendants have ended.
    pub fn enter(self: &Arc<Self>, role: ProcessRole) -> Result<SandboxLease, SandboxError> {
        let mut leases = self.leases();
        if self.namespaces.is_some() {
            leases.placeholders.put(&self.protected.roots);
        }
        if role == ProcessRole::Command {
            self.begin_watch(&mut leases);
        }
        let entry = self.entry()?;
        leases.all += 1;
        let placeholders = leases.placeholders.directories();
        Ok(SandboxLease { entry, sandbox: Arc::clone(self), role, placeholders, released: false })
    }

    /// Starts to look after what the kernel does not protect, for a command, or for a call of something that
    /// runs as long as the session. Followed by [`Sandbox::end_watch`].
    fn begin_watch(&self, leases: &mut LeaseCounts) {
        leases.commands += 1;
        if leases.commands == 1 {
            let scope = if self.has_mounts() { WatchScope::NotHeld } else { WatchScope::All };
            let mut watch = ProtectionWatch::default();
            watch.add(&self.protected.roots, scope);
            watch.add(&self.protected.added(), WatchScope::All);
            self.hidden.begin();
            leases.nested.begin(&self.policy.roots, &mut watch);
            leases.watch = watch;
        }
    }

    /// Undoes changes and returns them.
    fn end_watch(&self, leases: &mut LeaseCounts) -> Vec<Tampering> {
        let mut found = leases.watch.end();
        found.0.extend(self.hidden.end());
        leases.nested.end(&self.policy.roots, &self.protected, &leases.watch, &mut found);
        leases.commands -= 1;
        if leases.commands == 0 {
            leases.watch = ProtectionWatch::default();
        }
        found.0
    }

    /// The way in for the next command. Where its rules list what may be read, they are made anew: names come
    /// and go.
    fn entry(&self) -> Result<Arc<SandboxEntry>, SandboxError> {
        let mut rules = self.rules.lock().unwrap_or_else(PoisonError::into_inner);
        if self.landlock_abi > 0 && self.namespaces.is_none() && !self.policy.deny_read.is_empty() {
            let built = Ruleset::build(
                &self.policy,
                self.landlock_abi,
                &collect_mechanisms(None),
                &mut rules.hidden,
            )?;
            let (landlock, filter) = (Some(built), self.filter.clone());
            rules.current = Arc::new(SandboxEntry { namespaces: None, landlock, filter, lifeline: None });
        }
        Ok(Arc::clone(&rules.current))
    }

    /// True while hidden paths look as they have to: what git tracks may change.
    pub(crate) fn is_current(&self) -> bool {
        self.hidden.is_current(&self.policy)
    }

    /// Settings by which git recognises hidden files, whose inode is not the one that git knows.
    pub(crate) fn git_settings(&self) -> &'static [(&'static str, &'static str)] {
        let is_needed = self.namespaces.is_some() && self.hidden.has_tracked();
        if is_needed { &[("core.checkStat", "minimal"), ("core.trustctime", "false")] } else { &[] }
    }

    /// Starts to serve the private network, if it has a door.
    pub(crate) fn start_gateway(&self, gateway: &dyn NetworkGateway) -> std::io::Result<()> {
        let door = self.namespaces.as_ref().and_then(|namespaces| namespaces.take_door());
        if let Some(door) = door {
            let _ = self.gateway.set(gateway.serve(door)?);
        }
        Ok(())
    }

    pub(crate) fn gateway(&self) -> Option<&dyn GatewayService> {
        self.gateway.get().map(|gateway| &**gateway)
    }

    /// True if the private network has a door.
    pub(crate) fn has_gateway(&self) -> bool {
        self.policy.gateway && self.namespaces.as_deref().is_some_and(Namespaces::has_network)
    }

    /// True if mounts enforce which paths are writable.
    pub(crate) fn has_mounts(&self) -> bool {
        self.namespaces.is_some()
    }

    /// The workspace's directories, whether the network is reached, and how writing elsewhere fails.
    pub(crate) fn limits(&self) -> SandboxLimits {
        SandboxLimits {
            roots: self.policy.roots.clone(),
            network: self.policy.network,
            gateway: self.has_gateway(),
            has_mounts: self.has_mounts(),
        }
    }

    /// The private temporary directory.
    pub fn temp(&self) -> &Path {
        &self.policy.temp
    }

    /// What is in force, in a few sentences for the start of a session.
    pub fn describe(&self) -> String {
        let places = self.policy.writable_paths();
        let open = self.namespaces.is_none() && !self.policy.deny_write.is_empty();
        let places: Vec<_> = places.iter().map(|place| place.display().to_string()).collect();
        let mut means = Vec::new();
        if self.landlock_abi > 0 {
            means.push(format!("Landlock {}", self.landlock_abi));
        }
        if self.namespaces.is_some() {
            means.push("mount namespace".to_owned());
        }
        let own_network = self.namespaces.as_deref().is_some_and(Namespaces::has_network);
        if own_network {
            means.push("network namespace".to_owned());
        }
        if self.namespaces.as_deref().is_some_and(Namespaces::has_processes) {
            means.push("process namespace".to_owned());
        }
        if self.filter.is_some() {
            means.push("seccomp".to_owned());
        }
        let network = match (self.policy.network, own_network, self.filter.is_some()) {
            _ if self.has_gateway() => "leads only to hosts that Network rules open",
            (true, ..) => "is on",
            (false, true, _) => "is off, except among the session's own commands",
            (false, false, true) => "is off",
            (false, false, false) => "COULD NOT BE SWITCHED OFF",
        };
        let sockets = match (self.policy.unix_sockets, self.filter.is_some()) {
            (true, _) => "may be used",
            (false, true) => "are out of reach",
            (false, false) => "COULD NOT BE PUT OUT OF REACH",
        };
        let mut text = format!(
            "Commands run in a sandbox ({}). They write only in {}. The network {network}; unix sockets {sockets}.",
            means.join(", "),
            places.join(", "),
        );
        if self.namespaces.is_none() {
            text.push_str(
                " There is no mount namespace: git's hooks and settings, .qwen, .mcp.json and .claude's settings are put back after \
                 each command and each call of an MCP server, not locked.",
            );
        }
        if self.policy.gateway && !self.has_gateway() {
            text.push_str(" Network rules open no host here: this machine makes no network namespaces.");
        }
        if open {
            text.push_str(
                " Files that rules deny to edit are kept from what commands name, not by the kernel.",
            );
        }
        if let Some(reason) = &self.without_namespaces {
            let _ = write!(text, " A mount namespace could not be set up for this workspace ({reason}).");
        }
        text
    }

    fn leases(&self) -> MutexGuard<'_, LeaseCounts> {
        self.leases.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One command's lease of the sandbox. Dropping it also releases it, but discards the report.
pub struct SandboxLease {
    /// First, so that no mount outlives the sandbox through it.
    entry: Arc<SandboxEntry>,
    sandbox: Arc<Sandbox>,
    role: ProcessRole,
    /// Directories that git has to ignore.
    placeholders: Vec<PathBuf>,
    released: bool,
}

impl SandboxLease {
    /// The placeholders of missing names, which git has to ignore.
    pub(crate) fn placeholders(&self) -> &[PathBuf] {
        &self.placeholders
    }

    /// True if a path is in a place that commands may write.
    pub(crate) fn may_write(&self, path: &Path) -> bool {
        self.sandbox.policy.writable_paths().iter().any(|place| path.starts_with(place))
    }

    /// True if a file that exists is missing or unreadable in the sandbox.
    pub fn hides(&self, file: &Path) -> bool {
        self.sandbox.policy.hides(file)
    }

    /// The gateway of the private network.
    pub(crate) fn gateway(&self) -> Option<&dyn GatewayService> {
        self.sandbox.gateway()
    }

    /// Looks after the protected names during calls of this process.
    pub fn watcher(&self) -> SandboxWatcher {
        SandboxWatcher { sandbox: Arc::clone(&self.sandbox) }
    }

    /// Moves a process into the sandbox irrevocably, between fork and exec.
    pub fn entry(&self) -> Arc<dyn BeforeExec> {
        self.entry.clone()
    }

    /// Releases the lease after the command and all its descendants have ended. Checks the protected names,
    /// undoes changes and returns them.
    pub fn release(mut self) -> Vec<Tampering> {
        self.leave()
    }

    fn leave(&mut self) -> Vec<Tampering> {
        if std::mem::replace(&mut self.released, true) {
            return Vec::new();
        }
        let mut leases = self.sandbox.leases();
        let mut tampered = Vec::new();
        if self.role == ProcessRole::Command {
            tampered = self.sandbox.end_watch(&mut leases);
        }
        leases.all -= 1;
        if leases.all == 0 {
            leases.placeholders.remove();
            if let Some(gateway) = self.sandbox.gateway() {
                gateway.end_use();
            }
        }
        tampered
    }
}

impl Drop for SandboxLease {
    fn drop(&mut self) {
        self.leave();
    }
}

/// Looks after the protected names while a process that stays in the sandbox, such as an MCP server, works on
/// a call.
#[derive(Clone)]
pub struct SandboxWatcher {
    pub(crate) sandbox: Arc<Sandbox>,
}

/// The time of one call. Dropping it also ends it, but discards the report.
pub struct WatchedCall {
    sandbox: Arc<Sandbox>,
    ended: bool,
}

impl SandboxWatcher {
    /// Remembers what the protected names hold that the kernel does not protect.
    pub fn begin(&self) -> WatchedCall {
        self.sandbox.begin_watch(&mut self.sandbox.leases());
        WatchedCall { sandbox: self.sandbox.clone(), ended: false }
    }
}

impl WatchedCall {
    /// Undoes changes and returns them.
    pub fn end(mut self) -> Vec<Tampering> {
        self.stop()
    }

    fn stop(&mut self) -> Vec<Tampering> {
        if std::mem::replace(&mut self.ended, true) {
            return Vec::new();
        }
        self.sandbox.end_watch(&mut self.sandbox.leases())
    }
}

impl Drop for WatchedCall {
    fn drop(&mut self) {
        self.stop();
    }
}

fn collect_mechanisms(namespaces: Option<&Namespaces>) -> landlock::OtherMechanisms {
    landlock::OtherMechanisms {
        mounts: namespaces.is_some(),
        network: namespaces.is_some_and(Namespaces::has_network),
        shared_memory: namespaces.and_then(Namespaces::shared_memory),
        terminals: namespaces.and_then(Namespaces::terminals),
    }
}

/// The paths that mounts cover or protect.
fn shields(
    policy: &SandboxPolicy,
    view: &HiddenView,
    covers: &CoverNames,
    guarded: &[ProtectedRoot],
) -> Shields {
    let writable = policy.writable_paths();
    // A directory on the way to a writable place is covered when the namespace is made, by the way there.
    let on_the_way =
        |hidden: &Path| writable.iter().any(|place| place.starts_with(hidden) && *place != hidden);
    let visible: Vec<_> = view.paths.iter().filter(|hidden| !on_the_way(&hidden.path)).collect();
    let mut hidden: Vec<HiddenShield> = visible
        .iter()
        .map(|hidden| HiddenShield { path: text(&hidden.path), cover: covers.find(&hidden.path) })
        .collect();
    hidden.extend(view.objects.iter().map(|object| HiddenShield { path: text(object), cover: None }));
    // In the order of their paths, what holds another comes first. The way to what is held must not be moved
    // either.
    let mut held: BTreeMap<PathBuf, bool> = BTreeMap::new();
    let mut hold = |root: &Path, name: &Path, name_only: bool| {
        let parents = name.ancestors().skip(1).filter(|parent| !parent.as_os_str().is_empty());
        for parent in parents {
            held.entry(root.join(parent)).or_insert(true);
        }
        let held = held.entry(root.join(name)).or_insert(name_only);
        *held &= name_only;
    };
    for ProtectedRoot { root, names, pinned } in guarded {
        for ProtectedName { name, .. } in names {
            hold(root, name, false);
        }
        for name in pinned {
            hold(root, name, true);
        }
    }
    // A hidden file must not get another name, under which no rule hides it.
    for path in visible.iter().map(|hidden| &hidden.path).filter(|path| path.symlink_metadata().is_ok()) {
        for root in writable.iter().filter(|root| path.starts_with(root)) {
            if let Some(parent) = path.strip_prefix(root).ok().and_then(Path::parent)
                && !parent.as_os_str().is_empty()
            {
                hold(root, parent, true);
            }
        }
    }
    for denied in &policy.deny_write {
        for root in writable.iter().filter(|root| denied.starts_with(root)) {
            hold(root, denied.strip_prefix(root).unwrap_or(denied), false);
        }
    }
    let is_ignored = |path: &Path| {
        guarded.iter().any(|ProtectedRoot { root, names, .. }| {
            let is_it = |name: &ProtectedName| {
                name.placeholder == Placeholder::Directory && path.strip_prefix(root) == Ok(&name.name)
            };
            names.iter().any(is_it)
        })
    };
    let held = held.iter().map(|(path, name_only)| ReadOnlyPath {
        is_ignored: is_ignored(path),
        path: text(path),
        name_only: *name_only,
    });
    Shields { hidden, held: held.collect() }
}
