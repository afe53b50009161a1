//! Derives the worker process of a session from its tenant and options.

use std::cell::RefCell;
use std::collections::HashMap;
use std::ffi::OsString;
use std::fs::DirBuilder;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;

use qwen_events::{ErrorInfo, ErrorKind};
use rustix::fs::AtFlags;
use serde_json::Value;

use super::profile::remove_profiles_of_ended_hubs;
use super::tenant_options::check_tenant_options;
use super::{HubConfig, ProfileDirectory, TenantIsolation, redacted};
use crate::process_manager::{
    ControlGroups, ResourceLimits, SpawnSpec, TenantUser, TenantView, is_isolation_available,
};
use crate::router::{SessionOptions, WorkerKeys};
use crate::worker_pool::{PoolLimits, WorkerKey};

/// Variables that select a model, a server or a key. With a settings profile, workers receive them only if
/// the configuration passes them on explicitly.
const CHOOSING: [&str; 6] =
    ["OPENAI_", "ANTHROPIC_", "DASHSCOPE_", "QWEN_MODEL", "QWEN_DIALECT", "QWEN_SANDBOX"];

/// Makes worker keys from a hub's configuration.
#[derive(Debug)]
pub struct Keys {
    binary: PathBuf,
    args: Vec<String>,
    profile: Option<Value>,
    tenants: std::collections::BTreeMap<String, super::TenantConfig>,
    isolation: TenantIsolation,
    /// For which users of tenants namespaces are available, as far as that was needed.
    isolated_users: HashMap<Option<TenantUser>, bool>,
    /// The control groups of tenants, once they were needed.
    groups: Option<ControlGroups>,
    /// Files and directories of the hub outside `state` that tenants do not see.
    hidden: Vec<PathBuf>,
    /// The directory of the tenants' homes and of the written profiles.
    state: PathBuf,
    profiles: Option<ProfileDirectory>,
    limits: PoolLimits,
    /// The names of the variables that workers inherit.
    inherited: Vec<String>,
    /// Written profiles, by their text.
    written: HashMap<(Option<TenantUser>, String), (Vec<(String, String)>, Vec<String>)>,
}

impl Keys {
    /// Keys for workers of `binary`, started with `args`. `inherited` are the names in the environment.
    pub fn new(
        config: &HubConfig,
        binary: PathBuf,
        args: Vec<String>,
        state: PathBuf,
        inherited: Vec<String>,
    ) -> Self {
        remove_profiles_of_ended_hubs(&profiles_directory(&state));
        Self {
            binary,
            args,
            profile: config.settings_profile.clone(),
            tenants: config.tenants.clone(),
            isolation: config.tenant_isolation,
            isolated_users: HashMap::new(),
            groups: None,
            hidden: Vec::new(),
            state,
            profiles: None,
            limits: config.worker_pool.clone(),
            inherited,
            written: HashMap::new(),
        }
    }

    /// Uses another configuration for keys that are made from now on. Profiles that were written stay for the
    /// sessions that use them.
    pub fn reload(&mut self, config: &HubConfig, binary: PathBuf, args: Vec<String>) {
        self.binary = binary;
        self.args = args;
        self.profile.clone_from(&config.settings_profile);
        self.tenants.clone_from(&config.tenants);
        self.isolation = config.tenant_isolation;
        self.limits = config.worker_pool.clone();
    }

    /// Hides files and directories of the hub, such as its records, from tenants.
    pub fn hide(&mut self, paths: impl IntoIterator<Item = PathBuf>) {
        self.hidden.extend(paths);
    }

    /// Fails if the machine cannot separate tenants as the configuration demands.
    pub fn check_isolation(&mut self) -> Result<(), ErrorInfo> {
        self.check_namespaces(None)?;
        for (tenant, config) in self.tenants.clone() {
            self.check_user(&tenant, config.user)?;
            self.control_groups(&tenant, config.limits)?;
        }
        Ok(())
    }

    /// Fails if a tenant's workers cannot run as its user.
    fn check_user(&mut self, tenant: &str, user: Option<TenantUser>) -> Result<(), ErrorInfo> {
        let Some(user) = user else { return Ok(()) };
        let refuse = |problem: String| {
            let message = format!("the tenant {tenant} cannot have the user {}: {problem}", user.uid);
            ErrorInfo::new(ErrorKind::Settings, "tenant_user_unavailable", message)
        };
        if !rustix::process::geteuid().is_root() {
            return Err(refuse(
                "only root can choose it; start the hub as root or leave out `uid`".to_owned(),
            ));
        }
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&self.state)
            .map_err(|error| refuse(format!("{} cannot be made: {error}", self.state.display())))?;
        let parent = self.state.parent().unwrap_or(&self.state);
        if !user.can_enter(parent) {
            let parent = parent.display();
            return Err(refuse(format!("it cannot enter {parent}; choose another place with --state-dir")));
        }
        self.check_namespaces(Some(user))
            .map_err(|_| refuse(format!("it cannot run {} in namespaces", self.binary.display())))
    }

    /// Makes the groups that limit a tenant; none if it has no limits.
    fn control_groups(
        &mut self,
        tenant: &str,
        limits: Option<ResourceLimits>,
    ) -> Result<Vec<PathBuf>, ErrorInfo> {
        let Some(limits) = limits else { return Ok(Vec::new()) };
        let refuse = |error: std::io::Error| {
            let message = format!(
                "the limits of the tenant {tenant} cannot be enforced: {error}; start the hub as root or with a \
                 delegated control group, or leave out `limits`"
            );
            ErrorInfo::new(ErrorKind::Settings, "tenant_limits_unavailable", message)
        };
        let groups = match &mut self.groups {
            Some(groups) => groups,
            missing => missing.insert(ControlGroups::open().map_err(refuse)?),
        };
        groups.limit(tenant, limits).map_err(refuse)
    }

    fn check_namespaces(&mut self, user: Option<TenantUser>) -> Result<(), ErrorInfo> {
        match self.isolation {
            TenantIsolation::None => return Ok(()),
            TenantIsolation::Namespaces => {}
        }
        let binary = &self.binary;
        if *self.isolated_users.entry(user).or_insert_with(|| is_isolation_available(binary, user)) {
            return Ok(());
        }
        let message = "tenants cannot be separated: this machine does not allow user and mount namespaces; allow them, or \
                       accept that with `tenants: {isolation: none}` in the hub's configuration";
        Err(ErrorInfo::new(ErrorKind::Settings, "tenants_not_isolated", message))
    }

    /// What a tenant's worker does not see: the hub's own files, except for the tenant's directory and its
    /// profile.
    fn view(&self, tenant: &str, profile: &[(String, String)]) -> Option<TenantView> {
        match self.isolation {
            TenantIsolation::None => return None,
            TenantIsolation::Namespaces => {}
        }
        let profiles = profiles_directory(&self.state);
        let profile =
            profile.iter().map(|(_, path)| Path::new(path)).filter(|path| path.starts_with(&profiles));
        let profile = profile.filter_map(Path::parent).map(Path::to_owned);
        let visible = [tenant_directory(&self.state, tenant)].into_iter().chain(profile).collect();
        let hidden = [self.state.clone()].into_iter().chain(self.hidden.iter().cloned()).collect();
        Some(TenantView { hidden, visible })
    }

    /// True if a directory belongs to the hub or to another tenant.
    fn is_hidden(&self, tenant: &str, directory: &Path) -> bool {
        let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
        let directory = real(directory);
        let mut hidden = [&self.state].into_iter().chain(&self.hidden);
        hidden.any(|hidden| directory.starts_with(real(hidden)))
            && !directory.starts_with(real(&tenant_directory(&self.state, tenant)))
    }

    /// Fails if a tenant, or everyone, cannot enter the directory.
    fn check_working_directory(
        &self,
        tenant: &str,
        user: Option<TenantUser>,
        cwd: Option<&Path>,
    ) -> Result<(), ErrorInfo> {
        let current = std::env::current_dir().unwrap_or_default();
        let is_hidden = |cwd: &Path| !tenant.is_empty() && self.is_hidden(tenant, cwd);
        let is_usable = match (cwd, user) {
            (Some(cwd), None) => cwd.is_dir() && !is_hidden(cwd),
            (cwd, Some(user)) => {
                let cwd = cwd.unwrap_or(&current);
                user.can_enter(cwd) && !is_hidden(cwd)
            }
            (None, None) => true,
        };
        if is_usable {
            return Ok(());
        }
        let cwd = cwd.unwrap_or(&current).display();
        let message = format!("the working directory {cwd} does not exist");
        Err(ErrorInfo::new(ErrorKind::Input, "no_working_directory", message).with_param("cwd"))
    }

    /// The key of a session without options.
    pub fn default_key(&mut self) -> Result<Arc<WorkerKey>, ErrorInfo> {
        self.key("", &SessionOptions::default())
    }

    /// Writes a profile for workers of this user; none is the user of this process.
    fn write_profile(
        &mut self,
        profile: &Value,
        user: Option<TenantUser>,
    ) -> Result<(Vec<(String, String)>, Vec<String>), ErrorInfo> {
        let text = (user, profile.to_string());
        if let Some(written) = self.written.get(&text) {
            return Ok(written.clone());
        }
        let refuse =
            |problem: String| ErrorInfo::new(ErrorKind::Settings, "invalid_settings_profile", problem);
        if self.profiles.is_none() {
            let made = ProfileDirectory::create(&profiles_directory(&self.state));
            self.profiles =
                Some(made.map_err(|error| refuse(format!("the profile cannot be written: {error}")))?);
        }
        let Some(profiles) = &mut self.profiles else {
            return Err(refuse("the profile cannot be written".to_owned()));
        };
        let written = profiles.write(profile, user).map_err(|error| refuse(error.to_string()))?;
        self.written.insert(text, written.clone());
        Ok(written)
    }

    /// A tenant's private home, state and temporary directories.
    fn private_directories(
        &self,
        tenant: &str,
        user: Option<TenantUser>,
        env: &mut Vec<(OsString, Option<OsString>)>,
    ) -> Result<(), ErrorInfo> {
        let home = tenant_directory(&self.state, tenant);
        let create = |path: &Path| {
            DirBuilder::new().recursive(true).mode(0o700).create(path)?;
            match user {
                Some(user) => give_to(path, user),
                None => Ok(()),
            }
        };
        let unusable = |path: &Path, error: std::io::Error| {
            let message = format!("the directory {} of the tenant cannot be made: {error}", path.display());
            ErrorInfo::new(ErrorKind::Settings, "tenant_unusable", message)
        };
        create(&home).map_err(|error| unusable(&home, error))?;
        for (variable, place) in [("HOME", "home"), ("QWEN_HOME", "qwen"), ("TMPDIR", "tmp")] {
            let path = home.join(place);
            create(&path).map_err(|error| unusable(&path, error))?;
            env.push((variable.into(), Some(path.into_os_string())));
        }
        Ok(())
    }
}

/// The directory of the profiles that hubs have written.
fn profiles_directory(state: &Path) -> PathBuf {
    state.join("profiles")
}

/// Makes a directory belong to a tenant's user. A link in its place is not followed.
fn give_to(path: &Path, user: TenantUser) -> std::io::Result<()> {
    let (uid, gid) = (rustix::fs::Uid::from_raw(user.uid), rustix::fs::Gid::from_raw(user.gid));
    Ok(rustix::fs::chownat(rustix::fs::CWD, path, Some(uid), Some(gid), AtFlags::SYMLINK_NOFOLLOW)?)
}

/// The directory with a tenant's private places.
fn tenant_directory(state: &Path, tenant: &str) -> PathBuf {
    state.join("tenants").join(tenant)
}

/// The directory to which workers of this key write their session logs. `inherited` reads this process's
/// environment.
pub fn session_log_directory(
    key: &WorkerKey,
    inherited: impl Fn(&str) -> Option<OsString>,
) -> Option<PathBuf> {
    let variable = |name: &str| {
        let set = key.spec.env.iter().rev().find(|(set, _)| set == name);
        let value = set.map_or_else(|| inherited(name), |(_, value)| value.clone());
        value.filter(|value| !value.is_empty())
    };
    let home = match variable("QWEN_HOME") {
        Some(home) => PathBuf::from(home),
        None => PathBuf::from(variable("HOME")?).join(".qwen"),
    };
    let cwd = match &key.spec.cwd {
        Some(cwd) => cwd.clone(),
        None => std::env::current_dir().ok()?,
    };
    let home = cwd.join(home);
    // A tenant can exchange what is in its directory; only what is above may be a link.
    let home = match home.parent() {
        Some(parent) if !key.tenant.is_empty() => parent.canonicalize().ok()?.join(home.file_name()?),
        _ => home.canonicalize().unwrap_or(home),
    };
    Some(home.join("sessions"))
}

/// The flags that choose how a session begins. They can be given once.
const SESSION_FLAGS: [(&str, &str); 3] =
    [("--model", "-m"), ("--approval-mode", "--permission-mode"), ("--agent", "--agent")];

/// Removes the flags of all workers that a session replaces with its own.
fn remove_replaced(args: &mut Vec<String>, own: &[String]) {
    let is_flag = |arg: &str, flag: &str| {
        arg.strip_prefix(flag).is_some_and(|rest| rest.is_empty() || rest.starts_with('='))
    };
    for (flag, alias) in SESSION_FLAGS {
        let is_meant = |arg: &str| is_flag(arg, flag) || is_flag(arg, alias);
        if !own.iter().any(|arg| is_meant(arg)) {
            continue;
        }
        let mut at = 0;
        while at < args.len() {
            if !is_meant(&args[at]) {
                at += 1;
                continue;
            }
            let has_value = args[at].contains('=');
            let end = (at + if has_value { 1 } else { 2 }).min(args.len());
            args.drain(at..end);
        }
    }
}

impl WorkerKeys for Rc<RefCell<Keys>> {
    fn key(&mut self, tenant: &str, options: &SessionOptions) -> Result<Arc<WorkerKey>, ErrorInfo> {
        self.borrow_mut().key(tenant, options)
    }
}

impl WorkerKeys for Keys {
    fn key(&mut self, tenant: &str, options: &SessionOptions) -> Result<Arc<WorkerKey>, ErrorInfo> {
        let mut env: Vec<(OsString, Option<OsString>)> = Vec::new();
        let mut args = self.args.clone();
        // Commands of a session see nothing of the other tenants, nor of the hub.
        args.extend(["--private-dir".to_owned(), self.state.display().to_string()]);
        let known = self.tenants.get(tenant).cloned();
        let user = known.as_ref().and_then(|known| known.user);
        let mut control_groups = Vec::new();
        if !tenant.is_empty() {
            if known.is_none() && !self.tenants.is_empty() {
                let message = format!("there is no tenant '{tenant}' in the hub's configuration");
                return Err(ErrorInfo::new(ErrorKind::Input, "unknown_tenant", message).with_param("tenant"));
            }
            check_tenant_options(options)?;
            self.check_namespaces(None)?;
            self.check_user(tenant, user)?;
            control_groups = self.control_groups(tenant, known.as_ref().and_then(|known| known.limits))?;
            self.private_directories(tenant, user, &mut env)?;
            let home = tenant_directory(&self.state, tenant).join("home");
            args.extend(["--visible-dir".to_owned(), home.display().to_string()]);
        }
        let known = known.unwrap_or_default();
        let profile = options.settings_profile.clone().or(known.settings_profile).or(self.profile.clone());
        let mut profile_files = Vec::new();
        let summary = profile.as_ref().map(|profile| redacted(profile).to_string());
        if let Some(profile) = profile {
            for name in
                self.inherited.iter().filter(|name| CHOOSING.iter().any(|start| name.starts_with(start)))
            {
                env.push((name.into(), None));
            }
            let (variables, flags) = self.write_profile(&profile, user)?;
            profile_files.clone_from(&variables);
            env.extend(variables.into_iter().map(|(name, value)| (name.into(), Some(value.into()))));
            args.extend(flags);
        }
        env.extend(known.env.into_iter().map(|(name, value)| (name.into(), Some(value.into()))));
        env.extend(options.env.iter().map(|(name, value)| (name.into(), value.as_ref().map(Into::into))));
        remove_replaced(&mut args, &options.args);
        args.extend(options.args.iter().cloned());
        let cwd = options.cwd.as_ref().map(PathBuf::from);
        self.check_working_directory(tenant, user, cwd.as_deref())?;
        let binary = std::fs::metadata(&self.binary)
            .map(|file| (file.dev(), file.ino(), file.size(), file.mtime()))
            .unwrap_or_default();
        let spec = SpawnSpec {
            binary: self.binary.clone(),
            args,
            env,
            cwd,
            max_open_files: self.limits.max_open_files,
            max_memory: self.limits.max_address_space,
            leash: self.limits.leash,
            user,
            control_groups,
            view: if tenant.is_empty() { None } else { self.view(tenant, &profile_files) },
            ..SpawnSpec::default()
        };
        Ok(WorkerKey { tenant: tenant.to_owned(), spec, profile: summary, binary }.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_replaces_the_flags_of_all_workers() {
        let texts = |words: &str| words.split(' ').map(str::to_owned).collect::<Vec<String>>();
        let mut args =
            texts("--model a --agent=tot --no-stdin -m b --model-timeout 3 --model=c --approval-mode plan");
        remove_replaced(&mut args, &texts("--model=d --permission-mode yolo"));
        assert_eq!(args, texts("--agent=tot --no-stdin --model-timeout 3"));
        remove_replaced(&mut args, &texts("--verbose"));
        assert_eq!(args.len(), 4);
    }
}
