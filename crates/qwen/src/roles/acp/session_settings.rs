//! What the settings say about a session in a directory: mode, model and thought level to start with.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use qwen_dialects::Dialect;
use qwen_dialects::Format;
use qwen_engine::log::Store;
use qwen_events::{ErrorInfo, ErrorKind};
use qwen_permissions::Mode;

use crate::cli::Run;
use crate::settings::{Config, Invocation, Layered, OutputWire};

/// The settings of a directory.
pub struct SessionSettings {
    pub mode: Mode,
    /// False if the settings forbid the mode that asks about nothing.
    pub may_skip_approval: bool,
    pub model: Arc<str>,
    /// Further models that the settings name.
    pub other_models: Vec<Arc<str>>,
    pub effort: Option<String>,
    /// After which a permission request is refused; none means no deadline.
    pub permission_timeout: Option<Duration>,
    /// Whether a model can be called, or why not.
    pub credentials: Result<(), ErrorInfo>,
    /// Where rules for always are saved.
    pub settings_file: Option<PathBuf>,
    /// None without a home directory, or if sessions are not recorded.
    pub store: Option<Store>,
}

/// Resolves the settings for `cwd`; none means the directory of the process.
pub fn resolve(run: &Run, cwd: Option<&Path>) -> Result<SessionSettings, ErrorInfo> {
    let mut invocation = Invocation::current().map_err(|error| {
        let message = format!("the working directory cannot be used: {error}");
        ErrorInfo::new(ErrorKind::Input, "no_working_directory", message)
    })?;
    if let Some(cwd) = cwd {
        cwd.clone_into(&mut invocation.cwd);
    }
    let layered = Layered::load(run, &mut invocation)?;
    let settings = layered.settings()?;
    let may_skip_approval =
        settings.permissions.disable_bypass_permissions_mode != Some(true) && !run.configuration.restricted;
    let effort = settings.model.effort.clone();
    // The flag counts more.
    let permission_timeout = run.supervision.question_timeout.or(settings.acp.permission_timeout);
    let other_models: Vec<Arc<str>> =
        settings.model.fallback_models.iter().flatten().map(|name| name.as_str().into()).collect();
    let wire = OutputWire { dialect: Dialect::Acp, format: Some(Format::StreamJson) };
    let config = Config::resolve(run, &invocation, settings, layered, &wire)?;
    Ok(SessionSettings {
        mode: config.workspace.policy.mode(),
        may_skip_approval,
        model: config.model.name.clone(),
        other_models,
        effort,
        permission_timeout,
        credentials: config.model.config.as_ref().map(|_| ()).map_err(Clone::clone),
        settings_file: config.workspace.qwen_home.as_ref().map(|home| home.join("settings.json")),
        store: config.session.store.clone(),
    })
}
