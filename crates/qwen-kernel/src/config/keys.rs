//! Derives the worker process of a session from its tenant and options.

use std::collections::HashMap;
use std::ffi::OsString;
use std::fs::DirBuilder;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use qwen_events::{ErrorInfo, ErrorKind};
use serde_json::Value;

use super::{HubConfig, ProfileDirectory};
use crate::process_manager::SpawnSpec;
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
    /// The directory of the tenants' homes and of the written profiles.
    state: PathBuf,
    profiles: Option<ProfileDirectory>,
    limits: PoolLimits,
    /// The names of the variables that workers inherit.
    inherited: Vec<String>,
    /// Written profiles, by their text.
    written: HashMap<String, (Vec<(String, String)>, Vec<String>)>,
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
        Self {
            binary,
            args,
            profile: config.settings_profile.clone(),
            tenants: config.tenants.clone(),
            state,
            profiles: None,
            limits: config.worker_pool.clone(),
            inherited,
            written: HashMap::new(),
        }
    }

    /// The key of a session without options.
    pub fn default_key(&mut self) -> Result<Arc<WorkerKey>, ErrorInfo> {
        self.key("", &SessionOptions::default())
    }

    fn written(&mut self, profile: &Value) -> Result<(Vec<(String, String)>, Vec<String>), ErrorInfo> {
        let text = profile.to_string();
        if let Some(written) = self.written.get(&text) {
            return Ok(written.clone());
        }
        let refuse =
            |problem: String| ErrorInfo::new(ErrorKind::Settings, "invalid_settings_profile", problem);
        if self.profiles.is_none() {
            let made = ProfileDirectory::create(&self.state.join("profiles"));
            self.profiles =
                Some(made.map_err(|error| refuse(format!("the profile cannot be written: {error}")))?);
        }
        let Some(profiles) = &mut self.profiles else {
            return Err(refuse("the profile cannot be written".to_owned()));
        };
        let written = profiles.write(profile).map_err(|error| refuse(error.to_string()))?;
        self.written.insert(text, written.clone());
        Ok(written)
    }

    /// A tenant's private home, state and temporary directories.
    fn private_places(
        &self,
        tenant: &str,
        env: &mut Vec<(OsString, Option<OsString>)>,
    ) -> Result<(), ErrorInfo> {
        let home = tenant_directory(&self.state, tenant);
        for (variable, place) in [("HOME", "home"), ("QWEN_HOME", "home/.qwen"), ("TMPDIR", "tmp")] {
            let path = home.join(place);
            DirBuilder::new().recursive(true).mode(0o700).create(&path).map_err(|error| {
                let message =
                    format!("the directory {} of the tenant cannot be made: {error}", path.display());
                ErrorInfo::new(ErrorKind::Settings, "tenant_unusable", message)
            })?;
            env.push((variable.into(), Some(path.into_os_string())));
        }
        Ok(())
    }
}

/// The directory with a tenant's private places.
fn tenant_directory(state: &Path, tenant: &str) -> PathBuf {
    state.join("tenants").join(tenant)
}

/// The state directory (`QWEN_HOME`) of a tenant's workers.
pub fn qwen_home_of(state: &Path, tenant: &str) -> PathBuf {
    tenant_directory(state, tenant).join("home/.qwen")
}

impl WorkerKeys for Keys {
    fn key(&mut self, tenant: &str, options: &SessionOptions) -> Result<Arc<WorkerKey>, ErrorInfo> {
        let mut env: Vec<(OsString, Option<OsString>)> = Vec::new();
        let mut args = self.args.clone();
        let known = self.tenants.get(tenant).cloned();
        if !tenant.is_empty() {
            if known.is_none() && !self.tenants.is_empty() {
                let message = format!("there is no tenant '{tenant}' in the hub's configuration");
                return Err(ErrorInfo::new(ErrorKind::Input, "unknown_tenant", message).with_param("tenant"));
            }
            self.private_places(tenant, &mut env)?;
        }
        let known = known.unwrap_or_default();
        let profile = options.settings_profile.clone().or(known.settings_profile).or(self.profile.clone());
        if let Some(profile) = profile {
            for name in
                self.inherited.iter().filter(|name| CHOOSING.iter().any(|start| name.starts_with(start)))
            {
                env.push((name.into(), None));
            }
            let (variables, flags) = self.written(&profile)?;
            env.extend(variables.into_iter().map(|(name, value)| (name.into(), Some(value.into()))));
            args.extend(flags);
        }
        env.extend(known.env.into_iter().map(|(name, value)| (name.into(), Some(value.into()))));
        env.extend(options.env.iter().map(|(name, value)| (name.into(), value.as_ref().map(Into::into))));
        args.extend(options.args.iter().cloned());
        let cwd = options.cwd.as_ref().map(PathBuf::from);
        if let Some(cwd) = &cwd
            && !cwd.is_dir()
        {
            let message = format!("the working directory {} does not exist", cwd.display());
            return Err(ErrorInfo::new(ErrorKind::Input, "no_working_directory", message).with_param("cwd"));
        }
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
            ..SpawnSpec::default()
        };
        Ok(WorkerKey { tenant: tenant.to_owned(), spec, binary }.into())
    }
}
